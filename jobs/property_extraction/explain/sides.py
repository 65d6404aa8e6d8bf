"""The rows of both sides of a property, and how each pair of them compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.property_extraction.explain.group import Group
from jobs.property_extraction.row import TruthRow
from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import Compared, Reason
from jobs.text import (
    NONE,
    WIDTH,
    TextColumn,
    clip,
    cut,
    one_line,
    shortened,
    text_table,
)

ROWS = 20
"""Of each side that are listed."""
ACROSS = 8
"""Truth rows in the matrix of edges: a page has no room for more."""
ROUNDING = 1e-12
"""A relative error up to here is what binary numbers leave."""
VALUE_CELLS = 18
UNIT_CELLS = 12
NAME_CELLS = 24

SAID: Mapping[Reason, str] = {
    "equal": "equal",
    "different": "no",
    "no_number": "no number",
    "truth_no_number": "no number",
    "incompatible": "unit",
    "left_out": "left out",
}
"""What a cell of the matrix says where no error can be told."""


def predicted_lines(group: Group) -> Iterator[str]:
    """What a model stated, as it was read, and what it counts as."""
    rows = list(zip(group.predicted, group.stated, strict=True))[:ROWS]
    yield f"  predicted ({len(group.predicted):,})"
    if rows:
        yield from text_table(
            [
                _words("", [f"p{i}" for i in range(1, len(rows) + 1)]),
                TextColumn(title="row", cells=[f"{row.row:,}" for _, row in rows]),
                _words("value", [clip(row.value, VALUE_CELLS) for _, row in rows]),
                _words("unit", [clip(row.unit, UNIT_CELLS) or NONE for _, row in rows]),
                _words(
                    "read",
                    [_read(group.results.comparer, row.value) for _, row in rows],
                ),
                _words("counts", [str(group.fates.fates[at]) for at, _ in rows]),
                _words("stated as", [_name(row.name) for _, row in rows]),
            ],
            indent="    ",
        )
    yield from _more(len(group.predicted) - ROWS)


def truth_lines(curated: Sequence[TruthRow], comparer: Comparer) -> Iterator[str]:
    """What a curator wrote, as it was read."""
    rows = curated[:ROWS]
    yield f"  truth ({len(curated):,})"
    if rows:
        yield from text_table(
            [
                _words("", [f"t{i}" for i in range(1, len(rows) + 1)]),
                TextColumn(title="row", cells=[f"{row.source_row:,}" for row in rows]),
                _words("value", [clip(row.value, VALUE_CELLS) for row in rows]),
                _words("unit", [clip(row.unit, UNIT_CELLS) or NONE for row in rows]),
                _words("read", [_read(comparer, row.value) for row in rows]),
                _words("name", [_name(row.name) for row in rows]),
            ],
            indent="    ",
        )
    yield from _more(len(curated) - ROWS)


def unit_lines(group: Group) -> Iterator[str]:
    """How each unit of the one side is told in those of the other."""
    settings, rubric = group.results.dataset.settings, group.results.dataset.rubric
    if settings.units == "ignore" or all(
        rubric.kind(row.name) is not Kind.SI for row in group.curated
    ):
        return
    pairs = dict.fromkeys(
        (row.unit, truth.unit) for row in group.stated for truth in group.curated
    )
    yield "  units"
    for own, other in pairs:
        found = group.results.comparer.conversion(own, other)
        factor = f", x {found.factor:g}" if found.status == "converted" else ""
        offset = f" {found.offset:+g}" if found.offset else ""
        yield cut(
            f"    {one_line(own) or 'none'} -> {one_line(other) or 'none'}: "
            f"{found.status}{factor}{offset}",
            WIDTH,
        )


def edge_lines(group: Group) -> Iterator[str]:
    """A line a predicted row, a column a truth row; brackets are around pairs."""
    pairs = set(group.pairs())
    rows = range(min(ROWS, len(group.predicted)))
    columns = range(min(ACROSS, len(group.truth)))
    yield "  edges: relative error, = within the tolerance, [ ] paired"
    yield from text_table(
        [
            _words("", [f"p{i + 1}" for i in rows]),
            *(
                _words(
                    f"t{j + 1}",
                    [
                        _cell(
                            group.compared(group.predicted[i], group.truth[j]),
                            is_paired=(i, j) in pairs,
                        )
                        for i in rows
                    ],
                )
                for j in columns
            ),
        ],
        indent="    ",
    )
    if len(group.truth) > ACROSS:
        yield f"    and {len(group.truth) - ACROSS:,} more truth rows"


def _cell(told: Compared | None, *, is_paired: bool) -> str:
    if told is None:
        return NONE  # another name
    text = SAID[told.reason]
    if told.error is not None:
        error = told.error if told.error > ROUNDING else 0.0
        text = f"{'= ' if told.match else ''}{error:.2g}"
    return f"[{text}]" if is_paired else text


def _read(comparer: Comparer, value: str) -> str:
    number = comparer.number(value)
    if number.value is None:
        return number.status.replace("_", " ")
    return f"{number.value:g}"


def _name(name: str) -> str:
    return shortened(one_line(name), NAME_CELLS)


def _words(title: str, cells: Sequence[str]) -> TextColumn:
    return TextColumn(title=title, cells=cells, has_words=True)


def _more(n: int) -> Iterator[str]:
    if n > 0:
        yield f"    and {n:,} more"
