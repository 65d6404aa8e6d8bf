"""Verdicts on pairs of names, as the artifacts of a verification hold them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jobs.inputs.column_map import ColumnMap
from jobs.property_extraction.aliases.verdicts import Verdict
from jobs.property_extraction.inputs.columns import Cells, open_table
from jobs.property_extraction.parsing.verdict import WORDS
from runner.score.render import as_meant

FIELDS = ("pred_name", "gt_name", "is_match", "reason", "model")
"""What a column of verdicts may be mapped to."""


def read_verdicts(path: Path, renamed: ColumnMap | None = None) -> Iterator[Verdict]:
    """The rows of a CSV file, in file order; a blank verdict is one nobody could read.

    Raises:
        DatasetError: a column is missing, a name is blank, or a verdict is another
            word.
    """
    table = open_table(path, renamed=renamed)
    pred_name, gt_name, is_match = (
        table.header.need((name,)) for name in ("pred_name", "gt_name", "is_match")
    )
    reason, model = (table.header.first((name,)) for name in ("reason", "model"))
    for cells in table.rows:
        for place in (pred_name, gt_name):
            if not cells.at(place):
                raise cells.error(
                    f"{table.header.names[place]} is blank (fill it in, or remove the "
                    "row)"
                )
        yield Verdict(
            pred_name=as_meant(cells.at(pred_name)),
            gt_name=as_meant(cells.at(gt_name)),
            is_match=_decided(cells, cells.at(is_match)),
            reason=as_meant(cells.at(reason)),
            model=as_meant(cells.at(model)),
        )


def _decided(cells: Cells, text: str) -> bool | None:
    word = text.casefold()
    if word not in {"", "undecided", *WORDS}:
        raise cells.error(f"is_match is {text!r} (true, false or blank is expected)")
    return WORDS.get(word)
