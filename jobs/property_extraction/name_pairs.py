"""Pairs of a predicted and a curated property name, and the verdicts on them.

Reads candidates and verdicts from files, and takes the majority of verdicts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from jobs.kit.inputs.cells import integer_of, number_of
from jobs.kit.inputs.column_map import ColumnMap
from jobs.property_extraction.input_table import TableRow, open_table
from jobs.property_extraction.parsing import WORDS
from jobs.property_extraction.prediction_files import PredictedRow
from runner.table_files import as_meant

Value = TypeVar("Value")

MOST_EXAMPLES: Final = 3
"""Predictions that are shown with a pair."""

EXAMPLE_FIELDS: Final = ("value", "unit", "condition", "quote")
"""Of an example; never a value of the truth."""

_CHARS: Final = 300
"""Characters of an example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePair:
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


def read_candidates(path: Path) -> tuple[NamePair, ...]:
    """The distinct pairs of a file in its order; of equal ones the first counts.

    Raises:
        DatasetError: a column is missing, a row has a blank name, or a number is none.
    """
    table = open_table(path)
    header = table.header
    columns = {name: header.need((name,)) for name in ("pred_name", "gt_name")}
    columns |= {
        name: column
        for name in ("count", "avg_sim", "value_hits", "canonical", "examples")
        if (column := header.first((name,))) is not None
    }
    pairs: dict[tuple[str, str], NamePair] = {}
    for cells in table.rows:
        pair = NamePair(
            pred_name=_name(cells, columns, "pred_name"),
            gt_name=_name(cells, columns, "gt_name"),
            count=_read(cells, columns, "count", integer_of) or 0,
            avg_sim=_read(cells, columns, "avg_sim", _share),
            value_hits=_read(cells, columns, "value_hits", integer_of) or 0,
            canonical=_read(cells, columns, "canonical", _bool_of),
            examples=tuple(
                _examples(cells, as_meant(cells.at(columns.get("examples"))))
            ),
        )
        pairs.setdefault((pair.pred_name, pair.gt_name), pair)
    return tuple(pairs.values())


def with_examples(
    pairs: Iterable[NamePair], predictions: Iterable[PredictedRow]
) -> tuple[NamePair, ...]:
    """Pairs with the first predictions of their names, where they have no examples."""
    pairs = tuple(pairs)
    examples_by_name: dict[str, list[str]] = {pair.pred_name: [] for pair in pairs}
    for row in predictions:
        examples = examples_by_name.get(row.name)
        if row.value and examples is not None and len(examples) < MOST_EXAMPLES:
            examples.append(
                example_line({name: getattr(row, name) for name in EXAMPLE_FIELDS})
            )
    return tuple(
        pair
        if pair.examples
        else replace(pair, examples=tuple(examples_by_name[pair.pred_name]))
        for pair in pairs
    )


def example_line(fields: Mapping[str, str]) -> str:
    """A prediction in a line of at most 300 characters."""
    texts = (fields.get(name, "") for name in EXAMPLE_FIELDS)
    return " | ".join(" ".join(text.split()) for text in texts if text)[:_CHARS]


def _name(cells: TableRow, columns: Mapping[str, int], column: str) -> str:
    name = as_meant(cells.at(columns[column]))
    if not name:
        raise cells.error(f"{column} is blank (fill it in, or remove the row)")
    return name


def _read(
    cells: TableRow,
    columns: Mapping[str, int],
    column: str,
    read: Callable[[str], Value],
) -> Value | None:
    """What a cell says; None where it is blank or there is none."""
    text = cells.at(columns.get(column))
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


def _bool_of(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.lower())
    if value is None:
        raise ValueError(f"is {text!r} (true or false is expected)")
    return value


def _examples(cells: TableRow, text: str) -> Iterator[str]:
    """The examples in a cell: a JSON list of objects, or of texts."""
    if not text:
        return
    try:
        examples = json.loads(text)
    except (ValueError, RecursionError):
        examples = None
    if not isinstance(examples, list):
        raise cells.error(
            "examples is no JSON list (leave it empty, or write it as "
            'alias_candidates.csv has it, [{"value": ..., "unit": ...}])'
        )
    for example in examples[:MOST_EXAMPLES]:
        if isinstance(example, dict):
            yield example_line(
                {name: _text(example.get(name)) for name in EXAMPLE_FIELDS}
            )
        else:
            yield _text(example)[:_CHARS]


def _text(value: object) -> str:
    return "" if value is None else str(value)


Names: TypeAlias = tuple[str, str]
"""A predicted name and a name of the truth."""

HEURISTIC = "heuristic"
"""Stands for the model where names are equal but for case: nobody was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameVerdict:
    """One model's answer about a pair, once."""

    pred_name: str
    gt_name: str
    is_match: bool | None  #: None: it could not be read
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRuling:
    """What all verdicts on a pair come to."""

    is_match: bool | None  #: None: as many say yes as say no, or nobody could be read
    votes: int  #: that say yes
    models: tuple[str, ...]  #: that were asked, sorted
    reason: str  #: of a verdict that says the same


def majority(verdicts: Iterable[NameVerdict]) -> Mapping[Names, NameRuling]:
    """The ruling on every pair; the order of verdicts does not matter.

    Every model and replicate has one vote; what could not be read has none, and what
    was never asked is no verdict.
    """
    by_pair: defaultdict[Names, list[NameVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.model == HEURISTIC:
            continue
        by_pair[verdict.pred_name, verdict.gt_name].append(verdict)
    return {pair: _ruling(by_pair[pair]) for pair in sorted(by_pair)}


def _ruling(verdicts: list[NameVerdict]) -> NameRuling:
    yes = sum(verdict.is_match is True for verdict in verdicts)
    no = sum(verdict.is_match is False for verdict in verdicts)
    is_match = None if yes == no else yes > no
    reasons = sorted((v.model, v.reason) for v in verdicts if v.is_match is is_match)
    tie = f"{yes} for, {no} against"
    return NameRuling(
        is_match=is_match,
        votes=yes,
        models=tuple(sorted({v.model for v in verdicts if v.model})),
        reason=tie if is_match is None else reasons[0][1],
    )


VERDICT_FIELDS = ("pred_name", "gt_name", "is_match", "reason", "model")
"""What a column of verdicts may be mapped to."""


def read_verdicts(
    path: Path, renamed: ColumnMap | None = None
) -> Iterator[NameVerdict]:
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
        for column in (pred_name, gt_name):
            if not cells.at(column):
                raise cells.error(
                    f"{table.header.names[column]} is blank (fill it in, or remove the "
                    "row)"
                )
        yield NameVerdict(
            pred_name=as_meant(cells.at(pred_name)),
            gt_name=as_meant(cells.at(gt_name)),
            is_match=_decided(cells, cells.at(is_match)),
            reason=as_meant(cells.at(reason)),
            model=as_meant(cells.at(model)),
        )


def _decided(cells: TableRow, text: str) -> bool | None:
    word = text.casefold()
    if word not in {"", "undecided", *WORDS}:
        raise cells.error(f"is_match is {text!r} (true, false or blank is expected)")
    return WORDS.get(word)
