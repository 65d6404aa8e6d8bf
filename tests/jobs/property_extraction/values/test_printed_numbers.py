from __future__ import annotations

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.property_extraction.settings import Numbers
from jobs.property_extraction.values.numbers import Number, read_number

RULES: tuple[Numbers, ...] = ("scientific", "strict")

PRINTED = {
    "2.8": 2.8,
    " 7.441(5) ": 7.441,
    "1.2(3)e-5": 1.2e-5,
    "14.2±0.6": 14.2,
    "14.2 +/- 0.6": 14.2,
    "5.0 ± 0.2 × 10^3": 5000.0,
    "5×10^6 ± 2×10^5": 5e6,
    "~13": 13.0,
    "ca. 3": 3.0,
    "approximately 3": 3.0,
    "2.6 × 10⁻⁹": 2.6e-9,
    "5*10^{-3}": 5e-3,
    "5 x 10^(3)": 5000.0,
    "10^5": 1e5,
    "-10⁵": -1e5,
    "−0.5": -0.5,
    "+10": 10.0,
    "1,234,567.5": 1234567.5,
    "1\u202f234.5": 1234.5,
    "11.260 78(1)": 11.26078,
    ".5": 0.5,
    "5.": 5.0,
    "4.80E+16": 4.8e16,
}

OTHERWISE = {
    "bound": ["<2630±160", "≥ 3", "> 5", "up to 4", "At least 4", "above 5", "~<5"],
    "range": ["13-23", "~4-5 × 10^16", "2.58–3.38 K", "-5--3", "1.8(1) - 4.0(2)"],
    "not_a_number": [
        "",
        "well above 10^5",
        "a = 7.441",
        "1,5",
        "0,123",
        "1,23,456",
        "1_000",
        "0x10",
        "nan",
        "inf",
        "-Infinity",
        "1e400",
        "10^400",
        "٣",
        "(5)",
        "(10)",
        "12(3",
        "1e5 × 10^3",
        "2.5X10",
        "5 × 5",
        "2.8 K",
        "category 3",
        "None",
    ],
}


@pytest.mark.parametrize("text", PRINTED)
def test_a_number_is_read_as_papers_print_it(text: str) -> None:
    assert read_number(text, "scientific") == Number("value", PRINTED[text])


@pytest.mark.parametrize(
    ("status", "text"), [(k, text) for k, texts in OTHERWISE.items() for text in texts]
)
def test_what_is_more_or_less_than_a_number_has_no_value(
    status: str, text: str
) -> None:
    found = read_number(text, "scientific")
    assert (found.status, found.value) == (status, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [("7.441(5)", 7.441), ("1.2(3)e-5", 1.2e-5), (" -3.00E-10 ", -3e-10)],
)
def test_strict_reads_decimals_after_dropping_brackets(text: str, value: float) -> None:
    assert read_number(text, "strict") == Number("value", value)


@pytest.mark.parametrize(
    "text",
    [
        "~13",
        "14.2±0.6",
        "11.260 78(1)",
        "5×10^6",
        "13-23",
        "<5",
        "1,234",
        "1_000",
        "(5)",
        "12(3",
        "nan",
        "inf",
        "1e400",
        "٣",
        "−5",
    ],
)
def test_strict_reads_nothing_else(text: str) -> None:
    assert read_number(text, "strict") == Number("not_a_number")


printed_text = st.text(
    alphabet="0123456789.,eE+-–−±×*^{}()<~ 10⁵⁻x\u00a0K٣", max_size=30
)


@given(st.one_of(st.text(), printed_text), st.sampled_from(RULES))
@example("10^" + "9" * 5000, "scientific")
def test_any_text_is_read_without_fail_and_a_value_is_finite(
    text: str, rule: Numbers
) -> None:
    found = read_number(text, rule)
    assert (found.value is not None) == (found.status == "value")
    assert found.value is None or math.isfinite(found.value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_written_is_read_again(value: float) -> None:
    for rule in RULES:
        assert read_number(repr(value), rule) == Number("value", value)


@given(st.decimals(-(10**7), 10**7, places=4))
def test_how_a_number_is_printed_does_not_change_it(number: object) -> None:
    plain = str(number)
    grouped = re.sub(r"(?<=\d)(?=(\d{3})+\.)", ",", plain)
    value = Number("value", float(plain))
    for text in (grouped, f"≈ {plain}(12)", f"{plain} ± 0.5", f"{plain}×10⁰"):
        assert read_number(text, "scientific") == value


@pytest.mark.parametrize(
    "text",
    [
        "1" * 20000 + "x",
        "1 111" * 4000,
        "±1" * 9000,
        "1(" * 9000,
        "1-" * 9000,
        "1.111 " + "111 " * 5000 + "x",
        "10^{" * 5000,
        " " * 20000 + "1x",
    ],
    ids=lambda text: text.split()[0][:6],
)
def test_a_long_text_is_given_up_at_once(text: str) -> None:
    # a pattern that backtracks without end is ended by the suite's timeout
    assert read_number(text, "scientific").value is None
