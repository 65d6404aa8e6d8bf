"""Texts of cells: nothing runs in a spreadsheet, and all come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.typeset import (
    FORMULA,
    as_meant,
    harmless,
)

TEXTS = st.text(alphabet="'=-+@\t\n\ra ", max_size=6)


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
