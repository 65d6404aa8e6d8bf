from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from runner.scorecard import Cell
from runner.table_files import Kind

CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)
)
TYPES = {
    Kind.NOTHING: type(None),
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.NUMBER: float,
    Kind.TEXT: str,
}


@given(st.sampled_from(Kind), st.sampled_from(Kind), st.sampled_from(Kind))
def test_the_kind_of_a_column_does_not_depend_on_the_order_of_its_cells(
    a: Kind, b: Kind, c: Kind
) -> None:
    assert a.with_(b) is b.with_(a)
    assert a.with_(b).with_(c) is a.with_(b.with_(c))
    assert a.with_(a) is a.with_(Kind.NOTHING) is a


@given(st.lists(CELLS))
def test_every_cell_fits_the_column_that_was_made_for_it(cells: list[Cell]) -> None:
    kind = Kind.NOTHING
    for cell in cells:
        kind = kind.with_(Kind.of(cell))
    for cell in cells:
        held = kind.cell(cell)
        assert type(held) in {type(None), TYPES[kind]}
        is_undefined = cell is None or (isinstance(cell, float) and math.isnan(cell))
        assert (held is None) is is_undefined
        if type(cell) is TYPES[kind] and not is_undefined:
            assert held == cell
        if kind is Kind.INTEGER and held is not None:
            assert -(2**63) <= held < 2**63  # type: ignore[operator]
