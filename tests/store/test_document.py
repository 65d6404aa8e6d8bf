"""Blocks are aligned, wrapped and cut by cells, whatever text they hold."""

from __future__ import annotations

import math
import pickle

import pytest
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
    answer_words,
    as_text,
    fitted_lines,
    text_lines,
    wide_table,
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


def test_a_long_label_stays_apart_from_its_text() -> None:
    assert (
        as_text([Fact("a label of more cells", "text")]) == "a label of more cells text"
    )


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


TABLE = wide_table(
    ["model", "recall", "paper score", "precision"],
    [
        ["baseline/lexical", "0.912 [0.79, 1.00]", "0.598 [0.38, 0.80]", "0.919"],
        ["some-model", "", "n/a", "0.558"],
    ],
)


def test_a_table_that_fits_is_left_alone() -> None:
    assert list(fitted_lines(as_text([TABLE]), 67)) == as_text([TABLE]).split("\n")


def test_a_table_that_is_too_wide_is_split_and_repeats_its_first_column() -> None:
    assert list(fitted_lines(as_text([TABLE]), 60)) == [
        "model             recall              paper score",
        "baseline/lexical  0.912 [0.79, 1.00]  0.598 [0.38, 0.80]",
        "some-model                            n/a",
        "model             precision",
        "baseline/lexical  0.919",
        "some-model        0.558",
    ]


def test_rows_without_titles_are_wrapped_below_their_last_cell() -> None:
    text = as_text([wide_table(("", ""), [("seed", "of every draw"), ("x", "y")])])
    assert text == "seed  of every draw\nx     y"
    lines = ["seed  of every", "      draw", "x     y"]
    assert list(fitted_lines(text, 16)) == lines


def test_a_wide_fact_is_continued_below_its_text() -> None:
    fact = Fact("cost", "$1.00, model-a $0.60, budget $5.00", width=10, is_wide=True)
    assert as_text([fact]) == "cost      $1.00, model-a $0.60, budget $5.00"
    assert list(fitted_lines(as_text([fact]), 40)) == [
        "cost      $1.00, model-a $0.60, budget",
        "          $5.00",
    ]


def test_quoted_text_keeps_its_margin() -> None:
    assert list(fitted_lines(as_text([Quote("one two three four")]), 18)) == [
        "      | one two",
        "      | three four",
    ]


def test_a_command_or_path_is_never_broken() -> None:
    path = "/".join(["folder"] * 20)
    assert list(fitted_lines(f"files: {path}", 40)) == ["files:", f"  {path}"]


LINES = st.text(st.sampled_from("ab,|  "), max_size=80)


@given(st.lists(LINES, min_size=1).map("\n".join), st.integers(20, 60))
def test_no_word_is_lost_and_a_line_is_too_long_only_for_one_word(
    text: str, width: int
) -> None:
    shown = list(fitted_lines(text, width))
    assert " ".join(shown).split() == text.split()
    for line in shown:
        assert len(line.rstrip()) <= width or len(line.split()) == 1
    # what is continued is indented: it cannot pass for a line of its own
    begun = [line for line in shown if line[:1].strip()]
    firsts = {line.split()[0] for line in text.split("\n") if line[:1].strip()}
    assert {line.split()[0] for line in begun} <= firsts


@given(BLOCKS, st.integers(20, 100))
def test_a_fitted_page_has_no_line_that_a_terminal_acts_on(
    blocks: list[Block], width: int
) -> None:
    assert all(line == printable(line) for line in fitted_lines(as_text(blocks), width))


def test_a_text_is_the_same_page_in_another_process() -> None:
    text = as_text([TABLE])
    copy = pickle.loads(pickle.dumps(text))  # noqa: S301 - made here
    assert (copy, copy.blocks) == (text, text.blocks)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("p== 0.008, sig=yes", "p=0.008, sig=yes"),
        ("p=< 0.001, sig=yes", "p<0.001, sig=yes"),
        ("p=<=0.05, sig=yes", "p<=0.05, sig=yes"),
        ("p=0.03, sig=no", "p=0.03, sig=no"),
        ("p=not found, sig=not found", "p=not found, sig=not found"),
        ("step==3", "step==3"),
    ],
)
def test_a_p_value_is_shown_with_one_sign(stored: str, shown: str) -> None:
    assert answer_words(stored) == shown
