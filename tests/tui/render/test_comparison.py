"""A comparison as the lines of a table, and what is told of each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.comparisons import APART, FEW, UNSURE, metric, pair, record
from tui.render import comparison as drawing
from tui.render import comparison as words_of
from tui.render.comparison import (
    METRIC_COLUMNS,
    ComparisonRow,
    filter_rows,
    number,
    rows,
)
from tui.render.layout import fitted
from tui.sources.comparison import ComparisonResult, PricedComparison, TaskCost


def comparison(*pairs: dict[str, Any], **changed: Any) -> PricedComparison:
    return PricedComparison(
        words=("r1", "r2"),
        compared=msgspec.convert(
            record(*(pairs or (pair(),)), **changed), ComparisonResult
        ),
        costs={
            ("r1", "m-large"): TaskCost(usd=4.3, tasks=1_000),
            ("r2", "m-large"): TaskCost(usd=310.0, tasks=1_000),
        },
    )


def cells(row: ComparisonRow) -> dict[str, str]:
    return {column.title: column.text(row) for column in METRIC_COLUMNS}


def row_of(**changed: Any) -> ComparisonRow:
    shown = comparison(pair(metrics={"m": metric(**changed)}))
    return list(rows(shown))[1]


def test_a_line_has_both_values_the_interval_and_who_wins() -> None:
    assert cells(row_of()) == {
        "metric": "m",
        "A": "0.500",
        "B": "0.750",
        "B - A": "+0.250",
        "interval": "+0.125 … +0.375",
        "verdict": "B better",
        "won/lost/tied": "31 k/460/561 k",
        "pairs": "612 k",
        "p (Holm)": "0.002",
    }


def test_a_metric_has_its_name_and_is_filtered_by_name_or_path() -> None:
    row = row_of(name="Variant recall")
    assert (row.name, row.path) == ("Variant recall", "m")
    assert drawing.about(row).startswith("Variant recall · m · ")
    for part in ("variant", "m"):
        assert 0 in filter_rows({0: row}, part)


def test_the_word_is_the_commands_and_what_it_lacks_is_said() -> None:
    assert cells(row_of(**UNSURE))["verdict"] == "undecided"
    assert "no interval, so neither" in drawing.about(row_of(**UNSURE))
    assert "no test, so neither" in drawing.about(row_of(**UNSURE))
    assert cells(row_of(**FEW))["verdict"] == "too few"
    assert "4 papers are too few for a winner" in drawing.about(row_of(**FEW))
    assert "p 0.001: sign flips by paper" in drawing.about(row_of())


def test_what_is_unknown_is_a_dash_and_never_a_number() -> None:
    found = cells(row_of(**APART))
    assert found.pop("verdict") == "no pairs"
    assert found.pop("pairs") == "0"
    assert found.pop("p (Holm)") == "0.002"
    assert set(found.values()) == {"m", "-"}


def test_costs_end_each_group_and_an_unknown_price_is_a_question_mark() -> None:
    known, unknown = (
        row
        for row in rows(comparison(pair(), pair("m-small")))
        if isinstance(row.figures, drawing.ComparisonCosts)
    )
    assert list(cells(known).values())[:4] == [
        "$/1,000 tasks",
        *("$4.30", "$310", "+$306"),
    ]
    assert list(cells(unknown).values())[1:4] == ["?", "?", "?"]
    assert "1,000 tasks ended in A" in drawing.about(known)


def test_a_filter_keeps_the_models_above_what_it_lets_through() -> None:
    listed = dict(enumerate(rows(comparison(pair(), pair("m-small")))))
    assert len(listed) == 10
    kept = filter_rows(listed, "FEW")
    assert [(place, bool(row.heading)) for place, row in kept.items()] == [
        *((0, True), (2, False)),
        *((5, True), (7, False)),
    ]
    assert filter_rows(listed, "") == listed
    assert not filter_rows(listed, "no such metric")


NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, NUMBERS)
def test_figures_fit_their_columns_and_nothing_has_no_sign(a: float, b: float) -> None:
    widths = {column.title: column.width for column in METRIC_COLUMNS}
    row = row_of(a=a, b=b, difference=b - a, lo=a, hi=b)
    for title, text in cells(row).items():
        assert len(text) <= widths[title]
    signed = number(a, is_signed=True)
    assert (signed[0] in "+−") == any(digit in signed for digit in "123456789")


@pytest.mark.parametrize(
    ("width", "last"),
    [(76, "pairs"), (96, "won/lost/tied"), (116, "p (Holm)"), (156, "p (Holm)")],
)
def test_as_many_columns_as_fit(width: int, last: str) -> None:
    kept = fitted(METRIC_COLUMNS, width)
    assert kept[-1].title == last
    assert sum(column.width + 2 for column in kept) - 2 <= width


def test_all_that_is_left_out_is_told_of_two_models() -> None:
    shown = comparison(
        pair(
            metrics={"m": APART},
            only_a=["x", "y"],
            not_compared={"z": "A and B disagree"},
        ),
        notes=["the settings differ: a", "r1: partial: the run is unfinished."],
    )
    told = drawing.about(next(iter(rows(shown))))
    for words in ("1 metrics", "nothing in common", "2 that only A has", "1 that can"):
        assert words in told
    more = words_of.pair_details(shown.compared, shown.compared.pairs[0])
    for words in (
        "only A has x",
        "z: A and B disagree",
        "note: r1: partial",
        "m, 0 pairs\nmean",
    ):
        assert words in more
    assert words_of.notes(shown.compared).startswith("2 notes, enter on the first line")
    assert words_of.notes(comparison().compared) == ""


def test_age_is_told_by_event_and_what_came_since() -> None:
    compared = comparison().compared
    assert words_of.as_of(compared, {}) == "as of event 12 of A and 14 of B"
    assert words_of.as_of(compared, {"r1": 15, "r2": 14}).endswith("3 events since: r")
    same = pair(b={"run": "r1", "model": "m-small", "seq": 12})
    assert words_of.as_of(comparison(same).compared, {}) == "as of event 12 of A"


def test_how_it_was_made_is_told() -> None:
    assert words_of.method(comparison().compared) == (
        "95 % intervals of 2,000 draws by paper · Holm over 2 tests"
    )
    assert words_of.amount_compared(comparison().compared) == (
        "3 metrics, paired by item"
    )
    assert "2 pairs of models" in words_of.amount_compared(
        comparison(pair(), pair("s")).compared
    )


@pytest.mark.parametrize(
    ("item", "model", "filters"),
    [
        ("PMC1", "m-large", ("item:PMC1 model:m-large",)),
        ("PMC1/q:1", "m", ("item:PMC1/q:1 model:m", "item:PMC1 model:m")),
        ('a "b c', "m", ('item:"b c" model:m',)),
        ("", "m l", ('item:"" model:"m l"',)),
    ],
)
def test_an_item_leads_to_its_tasks_or_to_those_of_its_document(
    item: str, model: str, filters: tuple[str, ...]
) -> None:
    (found,) = comparison(pair(model)).compared.pairs
    assert words_of.tasks_of(found, item) == filters


def test_items_of_two_models_of_one_run_lead_to_the_tasks_of_both() -> None:
    same = pair(b={"run": "r1", "model": "m-small", "seq": 12})
    (found,) = comparison(same).compared.pairs
    assert words_of.tasks_of(found, "PMC1") == ("item:PMC1",)
