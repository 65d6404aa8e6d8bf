from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.values.comparison import ComparisonKind, ValueComparison
from tests.jobs.property_extraction.values.stated_values import (
    Value,
    comparer,
    matches,
    pairs,
)


@pytest.mark.parametrize(
    ("prediction", "truth", "match"),
    [
        ("0.999", "1", True),
        ("1.001", "1", True),
        ("2.8028", "2.8", True),
        ("2.7972", "2.8", True),
        ("0.9989", "1", False),
        ("1.0011", "1", False),
        ("-1.001", "-1", True),
        ("-0.999", "-1", True),
        ("1", "-1", False),
        ("0", "0.00", True),
        ("-0", "0", True),
        ("1e-300", "0", False),
        ("0", "1e-300", False),
        ("1e-320", "1e-320", True),
        ("1e308", "1e308", True),
    ],
)
def test_the_border_is_inclusive_in_decimals(
    prediction: str, truth: str, match: bool
) -> None:
    assert matches(ComparisonKind.SI, prediction, truth) is match


def test_strict_numbers_have_the_border_of_binary_rounding() -> None:
    assert not matches(ComparisonKind.SI, "0.999", "1", numbers="strict")
    assert matches(ComparisonKind.SI, "0.9991", "1", numbers="strict")


@pytest.mark.parametrize(
    ("prediction", "truth", "compared"),
    [
        (
            Value("30", "μΩ cm at 100 K"),
            Value("0.03", "m.ohm.cm"),
            ("equal", "converted"),
        ),
        (Value("7.82", "kOe/K"), Value("0.782", "T/K"), ("equal", "converted")),
        (Value("226.85", "°C"), Value("500", "K"), ("equal", "converted")),
        (Value("5", "K"), Value("5", "T"), ("incompatible", "incompatible")),
        (Value("5", "%"), Value("5", ""), ("equal", "missing")),
        (Value("5", "N/A"), Value("5", "K"), ("equal", "missing")),
        (Value("5", "sccm"), Value("5", "K"), ("equal", "unknown")),
        (Value("5", "sccm"), Value("6", "sccm"), ("different", "same")),
        (Value("5", "Å"), Value("5", "A"), ("equal", "same")),
        (Value("<5", "K"), Value("5", "K"), ("no_number", "same")),
        (Value("5", "K"), Value("five", "K"), ("truth_no_number", "same")),
    ],
)
def test_units_are_converted_before_numbers_are_compared(
    prediction: Value, truth: Value, compared: tuple[str, str]
) -> None:
    by = comparer()
    found = by.compare(ComparisonKind.SI, "Tc", prediction, truth)
    assert (found.reason, found.unit_status) == compared
    assert found.match == (found.reason == "equal")
    assert bool(pairs(by, ComparisonKind.SI, [prediction], [truth])) == found.match


def test_ignored_units_leave_numbers_as_they_are() -> None:
    by = comparer(units="ignore")
    one, other = Value("5", "K"), Value("5.001", "T")
    found = by.compare(ComparisonKind.SI, "Tc", one, other)
    assert found == ValueComparison(
        reason="equal", number_status="value", error=found.error
    )
    assert found.error == pytest.approx(0.001 / 5.001)
    assert pairs(by, ComparisonKind.SI, [one], [other]) == [(0, 0)]


def test_the_error_is_relative_to_the_truth() -> None:
    by = comparer()
    errors = [
        by.compare(
            ComparisonKind.SI, "Tc", Value(value, "kOe"), Value(truth, "T")
        ).error
        for value, truth in (("11", "1"), ("0", "0"), ("1", "0"), ("-10", "-2"))
    ]
    assert errors == [pytest.approx(0.1), 0.0, None, 0.5]


def test_a_value_too_large_for_the_truths_unit_matches_nothing() -> None:
    by, huge = comparer(), Value("1e308", "GPa")
    assert not by.compare(ComparisonKind.SI, "p", huge, Value("1", "Pa")).match
    assert not pairs(by, ComparisonKind.SI, [huge], [Value("1", "Pa")])


values = st.builds(
    Value,
    st.one_of(
        st.sampled_from(["1", "1.001", "0.999", "1000", "0.1", "0", "-1", "<1", "x"]),
        st.floats(-2, 2).map(repr),
    ),
    st.sampled_from(["K", "mK", "°C", "T", "kOe", "Oe", "", "N/A", "sccm", "slm", "%"]),
)


@given(
    st.lists(values, max_size=12),
    st.lists(values, max_size=12),
    st.sampled_from(["convert", "ignore"]),
    st.sampled_from(["scientific", "strict"]),
)
def test_edges_are_the_pairs_that_compare_as_equal(
    predictions: list[Value], truths: list[Value], units: str, numbers: str
) -> None:
    by = comparer(units=units, numbers=numbers)
    asked = {
        (i, j): by.compare(ComparisonKind.SI, "Tc", one, other)
        for i, one in enumerate(predictions)
        for j, other in enumerate(truths)
    }
    edges = list(by.edges(ComparisonKind.SI, "Tc", predictions, truths))
    assert [(edge.prediction, edge.truth) for edge in edges] == [
        place for place, found in asked.items() if found.match
    ]
    for edge in edges:
        assert edge.error == asked[edge.prediction, edge.truth].error


@given(st.lists(values, max_size=12), st.lists(values, max_size=12))
def test_value_hits_are_the_equal_values_whose_units_were_checked(
    predictions: list[Value], truths: list[Value]
) -> None:
    by = comparer()
    expected = [
        (i, j)
        for i, one in enumerate(predictions)
        for j, other in enumerate(truths)
        for found in (by.compare(ComparisonKind.SI, "Tc", one, other),)
        if found.match and found.unit_status in {"same", "converted"}
    ]
    # whatever is asked of a score
    for asking in (by, comparer(units="ignore")):
        hits = asking.value_hits(predictions, truths)
        assert [(edge.prediction, edge.truth) for edge in hits] == expected


@given(
    st.decimals(-(10**4), 10**4, places=3),
    st.sampled_from(
        [
            ("K", "mK", 3),
            ("T", "kOe", 1),
            ("m", "Å", 10),
            ("J", "mj", 3),
            ("ohm.m", "μΩ cm", 8),
            ("/Pa", "%/GPa", 11),
            ("m-3", "/cc", -6),
        ]
    ),
)
def test_a_value_told_in_another_unit_matches_itself_both_ways(
    number: object, units: tuple[str, str, int]
) -> None:
    base, other, power = units
    one, told = Value(str(number), base), Value(f"{number}e{power}", other)
    by = comparer()
    for prediction, truth in ((one, told), (told, one)):
        found = by.compare(ComparisonKind.SI, "Tc", prediction, truth)
        assert (found.match, found.unit_status) == (True, "converted")


def test_large_groups_meet_without_a_matrix() -> None:
    predictions = [Value(f"{1.0021**i:.12g}", "mK") for i in range(10000)]
    truths = [Value(f"{1.0021**i / 1000:.12g}", "K") for i in reversed(range(10000))]
    found = pairs(comparer(), ComparisonKind.SI, predictions, truths)
    assert found == [(i, 9999 - i) for i in range(10000)]
