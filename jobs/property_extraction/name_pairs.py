"""Pairs of a predicted and a curated property name, and the verdicts on them.

Reads candidates and verdicts from files, and computes the majority of verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from jobs.kit.grouping import grouped
from jobs.kit.inputs.cells import integer_of, number_of
from jobs.kit.inputs.column_map import ColumnMap
from jobs.property_extraction.input_table import (
    Meant,
    Name,
    TableRow,
    column_names,
    read_rows,
    unless_blank,
)
from jobs.property_extraction.parsing import WORDS
from jobs.property_extraction.prediction_files import PredictedRow
from runner.table_files import as_meant

MOST_EXAMPLES: Final = 3
"""Most predictions shown with a pair."""

EXAMPLE_FIELDS: Final = ("value", "unit", "condition", "quote")
"""Fields of an example; never a value of the truth."""

_CHARS: Final = 300
"""Characters of an example."""


Names: TypeAlias = tuple[str, str]
"""A predicted name and a name of the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoNames:
    """Base of entries about a predicted name and a name of the truth."""

    pred_name: str  #: as models write it
    gt_name: str  #: as in the truth

    @property
    def names(self) -> Names:
        """Both names, as a key of mappings."""
        return self.pred_name, self.gt_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePair(TwoNames):
    """Two names, and predictions of a model under the first one."""

    count: int = 0  #: papers that have both; 0: not stated
    avg_sim: float | None = None  #: similarity of the names, 0 to 1
    value_hits: int = 0  #: predicted rows of the name with a missed value
    canonical: bool | None = None  #: whether pred_name is canonical; None: not stated
    examples: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the names are equal except for case and outer blanks."""
        pred_name, gt_name = (name.strip().casefold() for name in self.names)
        return pred_name == gt_name


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


def _examples(text: str) -> tuple[str, ...]:
    """Read the examples in a cell: a JSON list of objects, or of texts."""
    try:
        examples = json.loads(as_meant(text))
    except (ValueError, RecursionError):
        examples = None
    if not isinstance(examples, list):
        raise ValueError(  # noqa: TRY004 - for pydantic
            "is no JSON list (leave it empty, or write it as "
            'alias_candidates.csv has it, [{"value": ..., "unit": ...}])'
        )
    return tuple(
        example_line({name: _text(example.get(name)) for name in EXAMPLE_FIELDS})
        if isinstance(example, dict)
        else _text(example)[:_CHARS]
        for example in examples[:MOST_EXAMPLES]
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


class _CandidateRow(TableRow):
    pred_name: Name
    gt_name: Name
    count: Annotated[int, unless_blank(integer_of, 0)] = 0
    avg_sim: Annotated[float | None, unless_blank(_share)] = None
    value_hits: Annotated[int, unless_blank(integer_of, 0)] = 0
    canonical: Annotated[bool | None, unless_blank(_bool_of)] = None
    examples: Annotated[tuple[str, ...], unless_blank(_examples, ())] = ()


def read_candidates(path: Path) -> tuple[NamePair, ...]:
    """Return the distinct pairs of a file in its order; of equal ones the first counts.

    Raises:
        DatasetError: a column is missing, a row has a blank name, or a number is
            invalid.
    """
    pairs: dict[Names, NamePair] = {}
    for row in read_rows(path, _CandidateRow):
        pairs.setdefault((row.pred_name, row.gt_name), NamePair(**row.cells))
    return tuple(pairs.values())


def with_examples(
    pairs: Iterable[NamePair], predictions: Iterable[PredictedRow]
) -> tuple[NamePair, ...]:
    """Add the first predictions of each name to pairs without examples."""
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
    """Format a prediction as a line of at most 300 characters."""
    texts = (fields.get(name, "") for name in EXAMPLE_FIELDS)
    return " | ".join(" ".join(text.split()) for text in texts if text)[:_CHARS]


HEURISTIC = "heuristic"
"""Model of verdicts on names that are equal except for case, without a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameVerdict(TwoNames):
    """One verdict of a model on a pair."""

    is_match: bool | None  #: None: it was unreadable
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRuling:
    """The combined result of all verdicts on a pair."""

    is_match: bool | None  #: None: a tie, or no readable verdict
    votes: int  #: number of positive verdicts
    models: tuple[str, ...]  #: models with a verdict, sorted
    reason: str  #: of a verdict with the same result


def majority(verdicts: Iterable[NameVerdict]) -> Mapping[Names, NameRuling]:
    """Return the ruling on every pair; the order of verdicts does not matter.

    Every model and replicate has one vote; unreadable verdicts have none, and automatic
    ones do not count.
    """
    by_pair = grouped((v.names, v) for v in verdicts if v.model != HEURISTIC)
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


def _decided(text: str) -> bool | None:
    word = text.casefold()
    if word not in {"undecided", *WORDS}:
        raise ValueError(f"is {text!r} (true, false or blank is expected)")
    return WORDS.get(word)


class _VerdictRow(TableRow):
    pred_name: Name
    gt_name: Name
    is_match: Annotated[bool | None, unless_blank(_decided)]
    reason: Meant = ""
    model: Meant = ""


VERDICT_FIELDS = column_names(_VerdictRow)
"""Fields to which a column of verdicts may be mapped."""


def read_verdicts(
    path: Path, renamed: ColumnMap | None = None
) -> Iterator[NameVerdict]:
    """Yield the rows of a CSV file, in file order; a blank verdict is unreadable.

    Raises:
        DatasetError: a column is missing, a name is blank, or a verdict is another
            word.
    """
    for row in read_rows(path, _VerdictRow, renamed=renamed):
        yield NameVerdict(**row.cells)
