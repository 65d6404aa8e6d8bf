"""Puts together what several files say of one query.

The first file is read as a stream; those beside it are held, because their lines may
stand in any order. What is noticed about the files is known when all are read to their
end, so it goes with the last query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from jobs.evidence_retrieval.importing.given import SINGLE, Given, united
from jobs.evidence_retrieval.importing.source import Part, Source
from jobs.evidence_retrieval.inputs.criteria import natural_order
from jobs.inputs.rows import InputFindings
from runner.errors import DatasetError

Query: TypeAlias = tuple[str, str]
"""Post and criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A file and the reader of its format."""

    source: Source
    read: Callable[[Source], Iterator[Part]]
    judges_posts: bool = False  #: a post that it names is judged for every criterion

    @property
    def name(self) -> str:
        """The file, for errors and findings."""
        return self.source.path.name


def joined(readings: Sequence[Reading], noticed: InputFindings) -> Iterator[Part]:
    """Each query once, in the order of the first file, then of the others.

    Raises:
        DatasetError: a file is off, names a query twice or a post in two folds, two
            files give the same thing of the same model, or there is no query at all.
    """
    first, *others = readings
    seen = _Seen()
    held: dict[Query, Part] = {}
    for reading in others:
        for part in seen.distinct(reading):
            known = held.get(part.query)
            held[part.query] = part if known is None else _both(known, part, noticed)
    last: Part | None = None
    for part in _streamed(seen.distinct(first), held, noticed):
        if last is not None:
            yield last
        last = seen.completed(part)
    if last is None:
        raise DatasetError(f"{first.name}: no row in it (nothing to import).")
    seen.compare_criteria(first, noticed)
    yield replace(last, truth=replace(last.truth, noticed=noticed.findings()))


def _streamed(
    parts: Iterator[Part], held: dict[Query, Part], noticed: InputFindings
) -> Iterator[Part]:
    for part in parts:
        beside = held.pop(part.query, None)
        yield part if beside is None else _both(part, beside, noticed)
    yield from held.values()


@dataclass(frozen=True, slots=True)
class _Seen:
    """What files have named so far."""

    criteria: dict[str, set[str]] = field(default_factory=dict)  #: by file
    judged: set[str] = field(default_factory=set)  #: posts

    def distinct(self, reading: Reading) -> Iterator[Part]:
        """The parts of a file, each query once, each post in one fold."""
        lines: dict[Query, str] = {}
        folds: dict[str, str] = {}
        own = self.criteria.setdefault(reading.name, set())
        for part in reading.read(reading.source):
            line = lines.setdefault(part.query, part.where)
            if line is not part.where:
                raise part.error(
                    f"post {part.post} and criterion {part.criterion} stand at {line} "
                    "already (keep one of the two)"
                )
            fold = part.truth.fold
            if fold is not None and folds.setdefault(part.post, fold) != fold:
                raise part.error(
                    f"fold_id is {fold}, but post {part.post} is in fold "
                    f"{folds[part.post]} already (a post belongs to one fold)"
                )
            own.add(part.criterion)
            if reading.judges_posts:
                self.judged.add(part.post)
            yield part

    def completed(self, part: Part) -> Part:
        """A query of a judged post that is not mentioned has no evidence."""
        truth = part.truth
        if truth.gold is None and truth.y is None and part.post in self.judged:
            return replace(part, truth=replace(truth, gold=()))
        return part

    def compare_criteria(self, first: Reading, noticed: InputFindings) -> None:
        """All files should speak of the same criteria."""
        mine = self.criteria[first.name]
        for name, own in self.criteria.items():
            if odd := natural_order(own ^ mine):
                noticed.add(
                    "criteria_differ",
                    "warn",
                    name,
                    f"{first.name} has {len(mine)} criteria and {name} has {len(own)}; "
                    "some stand in one of the two only.",
                    example=odd[0],
                    n=len(odd),
                )


def _both(part: Part, other: Part, noticed: InputFindings) -> Part:
    """What two files say: the same of what is true, not of what a model says."""
    _compare_truth(part, other, noticed)
    given = dict(part.given)
    for model, said in other.given.items():
        mine = given.get(model)
        if mine is not None:
            _require_new(part, mine, other, said, model)
        given[model] = said if mine is None else united(mine, said)
    return replace(part, truth=united(part.truth, other.truth), given=given)


def _require_new(part: Part, mine: Given, other: Part, said: Given, model: str) -> None:
    """Refuse a second answer of one model to one query.

    Two files may each hold a part of an answer, such as probabilities and a ranking.

    Raises:
        DatasetError: both hold the same part; names both files and rows.
    """
    twice = [
        *(f"the list {name}" for name in said.lists if name in mine.lists),
        *(name for name in said.probs if name in mine.probs),
        *(name for name in said.stated if name in mine.stated),
        *(
            name
            for name in SINGLE
            if None not in {getattr(mine, name), getattr(said, name)}
        ),
    ]
    if twice:
        raise other.error(
            f"{twice[0]} of {model} for post {other.post} and criterion "
            f"{other.criterion} stands at {part.where} already (give one of the two "
            "files to another model with --rankings NAME=FILE, or import them as "
            "separate runs)"
        )


def _compare_truth(part: Part, other: Part, noticed: InputFindings) -> None:
    """Two files should say the same of what is true; else the first counts."""
    one, two = part.truth, other.truth
    gold = (one.gold, two.gold)
    differ = {
        "gold": None not in gold and set(one.gold or ()) != set(two.gold or ()),
        "has_evidence": None not in (one.y, two.y) and one.y != two.y,
        "fold_id": None not in (one.fold, two.fold) and one.fold != two.fold,
    }
    for name in (name for name, is_so in differ.items() if is_so):
        noticed.add(
            "files_disagree",
            "error",
            name,
            f"Two files say different things of {name}; the first one counts.",
            example=f"{part.where} and {other.where}",
        )
