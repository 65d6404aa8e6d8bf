"""Tables as text, Markdown and LaTeX: forms, digits, hostile text, and that it sets.

Texts of cells: nothing runs in a spreadsheet, and all come back as they were.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.table_files import FORMULA, as_meant, harmless
from runner.table_rendering import (
    PAGE_ROWS,
    PrintCell,
    PrintColumn,
    PrintTable,
    format_ends,
    format_number,
    typeset,
)
from tests.latex import assert_compiles

TABLE = PrintTable(
    title="Screening of 375 records",
    columns=(
        PrintColumn(name="Metric"),
        PrintColumn(name="Better"),
        PrintColumn(name="value", kind="number", group="gpt_4"),
        PrintColumn(name="95% interval", kind="interval", group="gpt_4"),
        PrintColumn(name="n", kind="number"),
        PrintColumn(name="Change", kind="change"),
        PrintColumn(name="Key", kind="key"),
    ),
    rows=(
        ("Sensitivity", "higher", 0.93333, (0.88, 0.98), 1111, -0.01, "all.s"),
        ("Loss", "lower", None, "", 7, 0.02, "all.loss~std"),
    ),
    note="Percentile bootstrap.",
)


VALUE, COUNT = "S[table-format=1.3]", "S[table-format=4.0]"
CHANGE = "S[table-format=+1.3]"
ENDS = r"{[\num{0.880}, \num{0.980}]}"


def test_text_has_an_interval_behind_its_value_and_no_blank_cell() -> None:
    assert typeset([TABLE], "text").splitlines() == [
        "Screening of 375 records",
        "Metric       Better  gpt_4                 n      Change  Key",
        "Sensitivity  higher  0.933 [0.880, 0.980]  1,111  -0.010  all.s",
        "Loss         lower   n/a                   7      +0.020  all.loss~std",
        "Percentile bootstrap.",
    ]


def test_markdown_escapes_text_and_shows_keys_as_code() -> None:
    assert typeset([TABLE], "markdown").splitlines() == [
        "**Screening of 375 records**",
        "",
        r"| Metric | Better | gpt\_4 | gpt\_4: 95% interval | n | Change | Key |",
        "| :--- | :--- | ---: | :---: | ---: | ---: | :--- |",
        "| Sensitivity | higher | 0.933 | [0.880, 0.980] | 1,111 | -0.010 | `all.s` |",
        "| Loss | lower | n/a |  | 7 | +0.020 | `all.loss~std` |",
        "",
        "Percentile bootstrap.",
    ]


def test_latex_has_booktabs_rules_siunitx_columns_and_keys_as_comments(
    tmp_path: Path,
) -> None:
    made = typeset([TABLE], "latex")
    assert made.splitlines() == [
        r"% needs \usepackage{booktabs,siunitx}",
        r"\begin{table}",
        r"\centering",
        r"\caption{Screening of 375 records. Percentile bootstrap.}",
        r"\label{tab:screening-of-375-records}",
        r"\small",
        rf"\begin{{tabular}}{{ll{VALUE}c{COUNT}{CHANGE}}}",
        r"\toprule",
        r" &  & \multicolumn{2}{c}{gpt\_4} &  &  \\",
        r"\cmidrule(lr){3-4}",
        r"{Metric} & {Better} & {value} & {95\% interval} & {n} & {Change} \\",
        r"\midrule",
        rf"Sensitivity & higher & 0.933 & {ENDS} & 1111 & -0.010 \\ % all.s",
        r"Loss & lower & {n/a} &  & 7 & +0.020 \\ % all.loss~std",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    assert_compiles(made, tmp_path)


HOSTILE = (
    "[a](b) row",
    "*starred",
    "\\end{tabular}\\input{x}",
    "50 % of $x_i^2$ & #1 ~ {y}",
    "a | b `c` <d> \"e\" 'f' -- ?`",
    "line\nfeed \\\\ tab\there",
)


def test_text_from_outside_is_text_in_every_form(tmp_path: Path) -> None:
    rows: tuple[tuple[PrintCell, ...], ...] = tuple((x, 0.5, x) for x in HOSTILE)
    table = PrintTable(
        title=" ".join(HOSTILE),
        columns=(
            PrintColumn(name=HOSTILE[3]),
            PrintColumn(name="v", kind="number", group=HOSTILE[2]),
            PrintColumn(name=HOSTILE[4], kind="key"),
        ),
        rows=rows,
        note=HOSTILE[2],
    )
    made = typeset([table], "latex")
    assert_compiles(made, tmp_path)
    # keys are comments, where nothing is read
    read = [line.partition(" % ")[0] for line in made.splitlines()]
    assert "".join(read).count(r"\end{tabular}") == 1
    assert not [line for line in read if "\\input" in line]
    lines = typeset([table], "markdown").splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 2 + len(rows)
    assert len(typeset([table], "text").splitlines()) == 3 + len(rows)


def test_numbers_of_all_sizes_set(tmp_path: Path) -> None:
    values = (1e-7, 0.5, -12.25, 1234.5, 10**7, None, 0.0, -0.0)
    table = PrintTable(
        title="Sizes",
        columns=(
            PrintColumn(name="v", kind="number"),
            PrintColumn(name="ends", kind="interval"),
            PrintColumn(name="change", kind="changes"),
        ),
        rows=tuple(
            (v, None if v is None else (v, v), None if v is None else (-v, v))
            for v in values
        ),
    )
    made = typeset([table], "latex")
    # with an exponent among them no column of type S fits all
    assert r"\begin{tabular}{rcc}" in made
    assert r"\num{1e-07} & {[\num{1e-07}, \num{1e-07}]}" in made
    assert_compiles(made, tmp_path)


def test_a_long_table_breaks_over_pages_and_a_wide_one_is_scaled(
    tmp_path: Path,
) -> None:
    long = PrintTable(
        title="Long",
        columns=(PrintColumn(name="name"), PrintColumn(name="v", kind="number")),
        rows=tuple(("word " * 12, at / 7) for at in range(PAGE_ROWS + 1)),
    )
    wide = PrintTable(
        title="Wide",
        columns=tuple(PrintColumn(name=f"column {at}") for at in range(20)),
        rows=(tuple("cell" for _ in range(20)),),
    )
    made = typeset([long, wide], "latex")
    assert r"\usepackage{booktabs,longtable,siunitx}" in made
    assert r"\begin{longtable}{p{5.5cm}S[table-format=1.3]}" in made
    assert r"\usepackage{booktabs,graphicx,siunitx}" in made
    assert r"\resizebox{\linewidth}{!}{%" in made
    assert_compiles(made, tmp_path)


def test_a_table_without_rows_is_one(tmp_path: Path) -> None:
    empty = PrintTable(
        title="",
        columns=(PrintColumn(name="a"), PrintColumn(name="b", kind="number")),
        rows=(),
    )
    assert typeset([empty], "text") == "a  b"
    assert_compiles(typeset([empty], "latex"), tmp_path)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.12345, "0.123"),
        (0.0004, "0.0004"),
        (12345, "12,345"),
        (1234.5, "1.23e+03"),
        (None, "n/a"),
        (float("nan"), "n/a"),
        (-0.0, "0.000"),
        (2.59e-208, "0.000"),
        (-2.59e-208, "0.000"),
        (2.5e-12, "2.5e-12"),
    ],
)
def test_numbers_have_the_digits_a_reader_needs(value: float, said: str) -> None:
    assert format_number(value) == said


TEXTS = st.text(alphabet="'=-+@\t\n\ra ", max_size=6)


def test_an_end_that_is_small_beside_the_other_is_zero() -> None:
    assert format_ends([3.63e-12, 1.0]) == ["0.000", "1.000"]
    assert format_ends([-0.0004, 0.2], signed=True) == ["+0.000", "+0.200"]
    # small ends alone keep their digits, and counts stay counts
    assert format_ends([3.63e-12, 2e-6]) == ["3.63e-12", "2e-06"]
    assert format_ends([1, 12]) == ["1", "12"]
    assert format_ends([None, 0.5]) == ["n/a", "0.500"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("-slope in Hc2 vs T", "'-slope in Hc2 vs T"),
        ("=x", "'=x"),
        ("'=x", "''=x"),
        ("*shape", "*shape"),
        ("'quoted'", "'quoted'"),
        ("", ""),
    ],
)
def test_a_quote_goes_before_what_a_spreadsheet_would_run(text: str, cell: str) -> None:
    assert harmless(text) == cell


@given(TEXTS)
def test_every_text_comes_back_and_no_cell_runs(text: str) -> None:
    cell = harmless(text)
    assert as_meant(cell) == text
    assert not cell.startswith(FORMULA)
