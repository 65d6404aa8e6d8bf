"""Pairs of names to verify: a predicted one, and one of the truth that it may mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from jobs.inputs.rows import integer_of, number_of
from jobs.property_extraction.inputs.columns import Cells, open_table
from jobs.property_extraction.inputs.predictions import PredictedRow
from runner.score.render import as_meant

Value = TypeVar("Value")

MOST_EXAMPLES: Final = 3
"""Predictions that are shown with a pair."""

FIELDS: Final = ("value", "unit", "condition", "quote")
"""Of an example; never a value of the truth."""

_CHARS: Final = 300
"""Characters of an example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two names, and what a model stated under the first one."""

    pred_name: str
    gt_name: str
    count: int = 0  #: papers that have both; 0: the file does not say
    avg_sim: float | None = None  #: similarity of the names, 0 to 1
    value_hits: int = 0  #: predicted rows of the name with a value that is missed
    canonical: bool | None = None  #: pred_name is right; None: the file does not say
    examples: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the names are one but for case and outer blanks."""
        pred_name, gt_name = (
            name.strip().casefold() for name in (self.pred_name, self.gt_name)
        )
        return pred_name == gt_name


def read_candidates(path: Path) -> tuple[Pair, ...]:
    """The distinct pairs of a file in its order; of equal ones the first counts.

    Raises:
        DatasetError: a column is missing, a row has a blank name, or a number is none.
    """
    table = open_table(path)
    header = table.header
    places = {name: header.need((name,)) for name in ("pred_name", "gt_name")}
    places |= {
        name: place
        for name in ("count", "avg_sim", "value_hits", "canonical", "examples")
        if (place := header.first((name,))) is not None
    }
    found: dict[tuple[str, str], Pair] = {}
    for cells in table.rows:
        pair = Pair(
            pred_name=_name(cells, places, "pred_name"),
            gt_name=_name(cells, places, "gt_name"),
            count=_read(cells, places, "count", integer_of) or 0,
            avg_sim=_read(cells, places, "avg_sim", _share),
            value_hits=_read(cells, places, "value_hits", integer_of) or 0,
            canonical=_read(cells, places, "canonical", _truth_of),
            examples=tuple(_listed(cells, as_meant(cells.at(places.get("examples"))))),
        )
        found.setdefault((pair.pred_name, pair.gt_name), pair)
    return tuple(found.values())


def with_examples(
    pairs: Iterable[Pair], predictions: Iterable[PredictedRow]
) -> tuple[Pair, ...]:
    """Pairs with the first predictions of their names, where they have no examples."""
    pairs = tuple(pairs)
    wanted: dict[str, list[str]] = {pair.pred_name: [] for pair in pairs}
    for row in predictions:
        told = wanted.get(row.name)
        if row.value and told is not None and len(told) < MOST_EXAMPLES:
            told.append(example({name: getattr(row, name) for name in FIELDS}))
    return tuple(
        pair if pair.examples else replace(pair, examples=tuple(wanted[pair.pred_name]))
        for pair in pairs
    )


def example(fields: Mapping[str, str]) -> str:
    """A prediction in a line of at most 300 characters."""
    told = (fields.get(name, "") for name in FIELDS)
    return " | ".join(" ".join(text.split()) for text in told if text)[:_CHARS]


def _name(cells: Cells, places: Mapping[str, int], column: str) -> str:
    name = as_meant(cells.at(places[column]))
    if not name:
        raise cells.error(f"{column} is blank (fill it in, or remove the row)")
    return name


def _read(
    cells: Cells, places: Mapping[str, int], column: str, read: Callable[[str], Value]
) -> Value | None:
    """What a cell says; None where it is blank or there is none."""
    text = cells.at(places.get(column))
    if not text:
        return None
    try:
        return read(text)
    except ValueError as error:
        raise cells.error(f"{column} {error}") from error


def _share(text: str) -> float:
    value = number_of(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"is {text!r} (a number from 0 to 1 is expected)")
    return value


def _truth_of(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.lower())
    if found is None:
        raise ValueError(f"is {text!r} (true or false is expected)")
    return found


def _listed(cells: Cells, text: str) -> Iterator[str]:
    """The examples in a cell: a JSON list of objects, or of texts."""
    if not text:
        return
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list):
        raise cells.error(
            "examples is no JSON list (leave it empty, or write it as "
            'alias_candidates.csv has it, [{"value": ..., "unit": ...}])'
        )
    for each in given[:MOST_EXAMPLES]:
        if isinstance(each, dict):
            yield example({name: _text(each.get(name)) for name in FIELDS})
        else:
            yield _text(each)[:_CHARS]


def _text(value: object) -> str:
    return "" if value is None else str(value)
