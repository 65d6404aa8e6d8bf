"""Blocks are aligned, wrapped and cut by cells, whatever text they hold."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from store.document import (
    WIDTH,
    Block,
    Fact,
    Heading,
    Numbers,
    Quote,
    TableBlock,
    Words,
    as_json,
    as_markdown,
    as_text,
    text_lines,
)
from store.printable import cut, display_width, one_line, padded, printable

CELLS = st.none() | st.integers() | st.floats() | st.text(max_size=20)
TABLES = st.builds(
    TableBlock,
    st.just([Words("a", 9), Numbers("b"), Words("c", 9, keeps_end=True)]),
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4),
    indent=st.integers(0, 6),
    total=st.integers(0, 9),
)
BLOCKS: st.SearchStrategy[list[Block]] = st.lists(
    st.text(max_size=60)
    | st.builds(Heading, st.text())
    | st.builds(Quote, st.text())
    | st.builds(Fact, st.text(max_size=8), st.text(), st.integers(0, 8))
    | TABLES
)


@given(BLOCKS)
def test_no_text_acts_on_a_terminal_or_breaks_a_line(blocks: list[Block]) -> None:
    assert all(line == printable(line) for line in text_lines(blocks))
    assert all("\n" not in line for line in text_lines(blocks))


@given(BLOCKS)
def test_headings_facts_and_tables_fit_the_page(blocks: list[Block]) -> None:
    fitted = [block for block in blocks if not isinstance(block, str | Quote)]
    assert all(display_width(line) <= WIDTH for line in text_lines(fitted))


@given(BLOCKS)
def test_json_has_no_value_that_json_does_not_know(blocks: list[Block]) -> None:
    json.dumps(as_json(blocks), allow_nan=False)


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_cells_of_a_column_begin_or_end_in_one_place(
    rows: list[tuple[str, str]],
) -> None:
    cells = [[one_line(cell).replace(" ", "_")[:20] for cell in row] for row in rows]
    lines = as_text([TableBlock([Words("a"), Numbers("b")], cells)]).split("\n")
    assert len(lines) == len(rows) + 1
    wide = max(display_width(cell) for cell in ["a", *(row[0] for row in cells)])
    last = max(display_width(cell) for cell in ["b", *(row[1] for row in cells)])
    for (word, number), line in zip(cells, lines[1:], strict=True):
        row = f"  {padded(word, wide)}  {padded(number, last, is_number=True)}"
        assert line == cut(row.rstrip(), WIDTH)


@given(st.text("ab 長é\u0301", max_size=400), st.text("ab長", max_size=30))
def test_a_fact_hangs_below_its_label(text: str, label: str) -> None:
    for place, line in enumerate(text_lines([Fact(label, text, indent=2, width=0)])):
        assert display_width(line) <= WIDTH
        before = f"  {label}" if not place else " " * (2 + display_width(label))
        assert line.startswith(before)


def test_cells_show_what_is_not_known_and_keep_what_is_text() -> None:
    rows = [(1200, 0.25, ""), (None, math.nan, None), ("1-2", math.inf, "one\ntwo")]
    table = TableBlock([Numbers("n"), Numbers("p", decimals=1), Words("name", 6)], rows)
    assert as_text([table]).split("\n") == [
        "      n    p  name",
        "  1,200  0.2",
        "      -    -  -",
        "    1-2  inf  one\u240at…",
    ]


def test_a_name_that_is_too_long_loses_its_end_or_its_middle() -> None:
    columns = [Words("a", 5), Words("b", 7, keeps_end=True)]
    lines = as_text([TableBlock(columns, [("abcdefgh", "abcdefgh")])]).split("\n")
    assert lines[1] == "  abcd…  ab…efgh"


def test_a_wide_table_is_not_cut_and_a_narrow_page_cuts() -> None:
    rows = [("x" * 90,)]
    wide = TableBlock([Words("a")], rows, indent=0, is_wide=True)
    assert as_text([wide]).split("\n")[1] == "x" * 90
    narrow = TableBlock([Words("a")], rows, indent=0)
    assert as_text([narrow], 40).split("\n")[1] == "x" * 39 + "…"


def test_details_stand_below_their_rows_and_the_rest_is_counted() -> None:
    details = ["    first", "    second"]
    table = TableBlock(
        [Numbers("n")], [(1,), (2,)], total=5, rest=" rows", details=details
    )
    lines = ["  n", "  1", "    first", "  2", "    second", "  and 3 more rows"]
    assert as_text([table]).split("\n") == lines


def test_a_fact_on_one_line_is_cut() -> None:
    fact = Fact("title", "word " * 40, is_cut=True)
    (line,) = text_lines([fact])
    assert display_width(line) == WIDTH
    assert line.endswith("…")


def test_a_fact_without_text_says_nothing() -> None:
    assert not list(text_lines([Fact("title", "")]))


def test_a_long_text_is_wrapped_whole() -> None:
    text = "word " * 1000
    assert sum(line.count("word") for line in text_lines([Fact("", text)])) == 1000


def test_markdown_escapes_what_is_markup_and_joins_facts() -> None:
    page: list[Block] = [
        Heading("a*b"),
        Fact("label", "x_y"),
        Fact("other", "z"),
        "  a line",
        Quote("<b>\nnext"),
        TableBlock([Words("w"), Numbers("n")], [("a|b", 0.5)], total=3),
    ]
    assert as_markdown(page) == (
        "## a\\*b\n\n- label: x\\_y\n- other: z\n\na line\n\n> \\<b\\>\n> next\n\n"
        "| w | n |\n| :--- | ---: |\n| a\\|b | 0.5000 |\n\nand 2 more"
    )


def test_json_keeps_types() -> None:
    page: list[Block] = [
        Heading("a", level=1),
        "",
        Quote("q\nr"),
        TableBlock([Words("w"), Numbers("n")], [("a", 0.5), (None, 3)], total=9),
    ]
    assert as_json(page) == [
        {"heading": "a", "level": 1},
        {"quote": "q\nr"},
        {"columns": ["w", "n"], "rows": [["a", 0.5], [None, 3]], "total": 9},
    ]
