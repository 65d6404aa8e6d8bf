"""tests.jobs.kit.test_tables"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.tables import (
    METRIC_VALUE,
    TableOf,
    count,
    flag,
    group,
    groups,
    number,
    per_key,
    print_table,
    printed,
    text,
)
from runner.scorecard import Metric, StreamedRow
from runner.table_rendering import typeset


class Paper(NamedTuple):
    pmid: str
    counts: Mapping[str, int]
    metrics: Mapping[str, Metric]
    is_found: bool = True


PAPERS = TableOf[Paper](
    name="papers",
    columns=(
        text("pmid", lambda paper: paper.pmid, "PubMed id"),
        flag("found", lambda paper: paper.is_found),
        per_key("n_{}", ("tp", "fp"), lambda paper, word: paper.counts[word]),
        group(METRIC_VALUE, lambda paper: paper.metrics.get("f1"), "f1"),
        groups(METRIC_VALUE, ("p", "r"), lambda paper, path: paper.metrics.get(path)),
    ),
    caption="One row a paper.",
    is_headline=True,
)
RECALL = Metric(path="r", value=0.5, n=4, lo=0.25, hi=0.75)
PAPER = Paper("26", {"tp": 1, "fp": 2}, {"r": RECALL})


def test_names_and_cells_come_from_the_same_columns() -> None:
    table = PAPERS.table([PAPER])
    assert table.columns == (
        *("pmid", "found", "n_tp", "n_fp", "f1", "f1.lo", "f1.hi"),
        *("p", "p.lo", "p.hi", "r", "r.lo", "r.hi"),
    )
    assert table.rows == (("26", True, 1, 2, *(None,) * 6, 0.5, 0.25, 0.75),)
    assert (table.name, table.caption) == ("papers", "One row a paper.")
    assert table.is_headline
    assert PAPERS.fields(PAPER) == dict(zip(table.columns, table.rows[0], strict=True))
    assert list(PAPERS.lines([PAPER])) == [table.columns, *table.rows]


def test_a_column_keeps_kind_and_meaning_wherever_it_is_grouped() -> None:
    by_name = {column.name: column for column in PAPERS.flat_columns}
    assert by_name["pmid"].meaning == "PubMed id"
    assert by_name["r.lo"].meaning == by_name["f1.lo"].meaning != ""
    assert {name: by_name[name].kind for name in ("found", "n_tp", "r.hi")} == {
        "found": "flag",
        "n_tp": "count",
        "r.hi": "number",
    }


@given(st.lists(st.text(), unique=True, max_size=6))
def test_each_key_has_the_cell_of_its_own(keys: list[str]) -> None:
    table = TableOf[Mapping[str, int]](
        name="keys", columns=(per_key("of {}", keys, lambda row, key: row[key]),)
    )
    values = {key: place for place, key in enumerate(keys)}
    assert table.fields(values) == {f"of {key}": n for key, n in values.items()}


def test_two_columns_of_one_name_are_refused() -> None:
    same = text("pmid", lambda paper: paper.pmid)
    with pytest.raises(ValueError, match="'papers' has two columns of one name"):
        TableOf[Paper](name="papers", columns=(same, same))


def test_streamed_rows_are_made_when_they_are_read_and_as_often() -> None:
    made: list[str] = []

    def papers() -> list[Paper]:
        made.append("made")
        return [PAPER]

    streamed = PAPERS.streamed(papers, name="openai_gpt/papers")
    assert (streamed.table.name, streamed.table.rows, made) == (
        "openai_gpt/papers",
        (),
        [],
    )
    row = StreamedRow(table="openai_gpt/papers", cells=PAPERS.cells(PAPER))
    assert [*streamed] == [*streamed] == [row]
    assert made == ["made", "made"]


def test_a_printed_table_shows_each_row_under_its_headings() -> None:
    table = print_table(
        "Papers",
        [PAPER],
        (
            printed("Paper", lambda paper: paper.pmid),
            printed(
                "value", lambda paper: paper.metrics["r"].value, "number", "Recall"
            ),
            printed("n", lambda paper: paper.metrics["r"].n, "number"),
        ),
        note="All of them.",
    )
    assert typeset([table], "text").splitlines() == [
        "Papers",
        "Paper  Recall  n",
        "26     0.500   4",
        "All of them.",
    ]


def test_number_and_count_columns_take_undefined_cells() -> None:
    table = TableOf[None](
        name="blank", columns=(count("n", lambda _: None), number("x", lambda _: None))
    )
    assert table.cells(None) == (None, None)
