from __future__ import annotations

import pytest

from jobs.kit.methods.check import canonical, check_manuscript
from jobs.kit.methods.manuscript import Source, read_manuscript
from jobs.kit.methods.references import QuotedValue, Rounding, by_name

METRIC = {"rounding": Rounding.METRIC, "family": "recall"}
KNOWN = by_name(
    [
        QuotedValue(name="recall:a", value=0.91666, model="a", **METRIC),  # type: ignore[arg-type]
        QuotedValue(name="recall:b", value=0.75, model="b", **METRIC),  # type: ignore[arg-type]
        QuotedValue(name="recall:a@n", value=1234, model="a", is_denominator=True),
        QuotedValue(name="share", value=0.9714, rounding=Rounding.PERCENT, unit="%"),
        QuotedValue(name="count", value=12_345),
        QuotedValue(name="model:a", value="a", family="model", model="a"),
        QuotedValue(name="model:b", value="b", family="model", model="b"),
        QuotedValue(name="cost", value=3.456, rounding=Rounding.DOLLARS),
    ]
)
SOURCE = "<!--siftlog-source run=r scoring=1 seq=9-->\n"


def _faults(
    name: str, text: str, *, any_precision: bool = False
) -> list[tuple[str, str]]:
    read = read_manuscript(f"<!--siftlog:{name}-->{text}<!--/siftlog-->", "markdown")
    verdict = check_manuscript(read, KNOWN, "r", any_precision=any_precision)
    assert verdict.checked == 1
    return [(fault.kind, fault.expected) for fault in verdict.faults]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("recall:a", text) for text in ("0.917", ".917", "0·917", "**0.917**")),
        *(
            ("recall:a@n", text)
            for text in ("1,234", "1234", "1 234", "1\N{THIN SPACE}234")
        ),
        *(("share", text) for text in ("97.1", "97.1%", "97.1 %")),
        *(("cost", text) for text in ("3.46", "\\$3.46", "US\\$3.46")),
        ("model:a", "a"),
    ],
)
def test_a_value_in_any_usual_typesetting_is_right(name: str, text: str) -> None:
    assert _faults(name, text) == []


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("recall:a", "0.927", "digit"),
        ("recall:a", "0.916", "rounding"),
        ("recall:a", "0.92", "rounding"),
        ("recall:a", "0.91666", "rounding"),
        ("recall:a", "91.7", "unit"),
        ("recall:a", "0.750", "model"),
        ("recall:a", "", "digit"),
        ("recall:a", "high", "digit"),
        ("recall:a@n", "1,235", "denominator"),
        ("share", "0.971", "unit"),
        ("share", "97", "rounding"),
        ("share", "79.1", "digit"),
        ("count", "12,354", "digit"),
        ("count", "1,2345", "digit"),
        ("model:a", "b", "model"),
        ("model:a", "A", "digit"),
        ("cost", "3.45", "rounding"),
        ("nothing", "1", "unknown"),
    ],
)
def test_what_is_wrong_with_a_value_is_named(name: str, text: str, kind: str) -> None:
    (fault,) = _faults(name, text)
    assert fault[0] == kind


def test_other_digits_may_be_allowed_if_they_are_right() -> None:
    for text in ("0.92", "0.9167", "0.9"):
        assert _faults("recall:a", text, any_precision=True) == []
    for text in ("0.916", "0.91", "0.9166"):
        assert _faults("recall:a", text, any_precision=True) != [], text


def test_a_value_that_was_right_when_it_was_written_is_stale() -> None:
    read = read_manuscript(
        f"{SOURCE}<!--siftlog:count-->7<!--/siftlog-->"
        "<!--siftlog:count-->8<!--/siftlog-->",
        "markdown",
    )

    def earlier(source: Source) -> dict[str, QuotedValue]:
        assert (source.scoring, source.seq) == (1, 9)
        return by_name([QuotedValue(name="count", value=7)])

    verdict = check_manuscript(read, KNOWN, "r", earlier=earlier)
    assert [fault.kind for fault in verdict.faults] == ["stale", "digit"]


def test_values_of_other_runs_are_counted_and_not_checked() -> None:
    read = read_manuscript(
        f"{SOURCE}<!--siftlog:count-->7<!--/siftlog-->"
        "<!--siftlog-source run=other scoring=1 seq=1-->"
        "<!--siftlog:count-->8<!--/siftlog-->",
        "markdown",
    )
    verdict = check_manuscript(read, KNOWN, "r")
    assert (verdict.checked, verdict.elsewhere, len(verdict.faults)) == (1, 1, 1)


def test_a_fault_says_what_stands_where_and_what_should() -> None:
    read = read_manuscript("x\n <!--siftlog:recall:c-->0.5<!--/siftlog-->", "markdown")
    (fault,) = check_manuscript(read, KNOWN, "r").faults
    assert (fault.line, fault.column) == (2, 25)
    assert fault.sentence.startswith(
        "recall:c is 0.5: the run has no value of this name (the nearest is recall:"
    )


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1,234,567.8", "1234567.8"),
        ("1,23", "1,23"),
        ("−.5", "-0.5"),
        ("12’345", "12345"),
    ],
)
def test_a_number_has_one_form(text: str, plain: str) -> None:
    assert canonical(text) == plain
