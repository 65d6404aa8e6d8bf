"""Ranks the items of a scoring by how much a person learns from reading them.

Every verdict passes through `NotableItems.watch` while the scoring writes it. The
verdicts are in a temporary database on disk, so memory stays flat. `ranking` reads it
once and keeps the best items alone.

An item is a key of a stage, or a part of it such as a field. The table `REASONS` says
what makes one notable, the most telling reason first; weights of several reasons add
up. No reason takes more than `SHARE` of the places while others have items left, so
that a hundred wrong answers do not hide the few that could not be parsed.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, TypeVar

from store.statements import queries

MOST: Final = 20
"""Items that a ranking keeps."""

SHARE: Final = 8
"""Most items with the same first reason, unless there are no others."""

CONFIDENT: Final = 0.9
"""Stated probability from which a wrong answer counts as confident."""

TEXT_CHARS: Final = 400
"""Characters of a value, an expected value or a rule that are kept."""

_PAIR: Final = 2
_BATCH: Final = 5_000
_UNPARSED_ROWS: Final = 20
_SQL: Final = queries("notable")

T = TypeVar("T")


class ItemSigns(NamedTuple):
    """Summary of the verdicts on one item."""

    place: int  #: of its first verdict
    stage: str
    key: str
    part: str
    models: int
    answers: int
    right: int
    wrong: int  #: parsed and wrong
    wrong_models: int
    wrong_labels: int  #: different wrong answers, where answers are compared
    labels: int  #: different answers, where answers are compared
    confidence: float | None  #: the largest one of a wrong answer
    ungrounded: int
    unparsed: int

    @property
    def name(self) -> tuple[str, str, str]:
        """Stage, key and part."""
        return self.stage, self.key, self.part


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason to read an item."""

    name: str
    weight: Callable[[ItemSigns], float]  #: 0: it does not apply
    words: Callable[[ItemSigns], str]


def _all_wrong(item: ItemSigns) -> float:
    if item.models == 1 or item.wrong_models < item.models or item.right:
        return 0
    return (10 if item.wrong_labels == 1 else 8) + (item.confidence or 0)


def _all_wrong_words(item: ItemSigns) -> str:
    who = "both models are" if item.models == _PAIR else f"all {item.models} models are"
    return f"{who} wrong{', with the same answer' if item.wrong_labels == 1 else ''}"


def _confident(item: ItemSigns) -> float:
    p = item.confidence
    return 4 + p if p is not None and p >= CONFIDENT else 0


def _disagreement(item: ItemSigns) -> float:
    """Return the disagreement in being right; in values where none is judged."""
    if item.right or item.wrong:
        few = min(item.right, item.wrong)
        return 3 + 2 * few / item.answers if few else 0
    return 3 + item.labels / item.answers if item.labels > 1 else 0


def _disagreement_words(item: ItemSigns) -> str:
    who = "models" if item.models > 1 else "replicates"
    if item.wrong:
        return f"{who} disagree: {item.right} right, {item.wrong} wrong"
    return f"{who} disagree: {item.labels} different answers"


REASONS: Final = (
    Reason("all models wrong", _all_wrong, _all_wrong_words),
    Reason(
        "confident and wrong",
        _confident,
        lambda item: f"wrong with a stated confidence of {item.confidence:.2f}",
    ),
    Reason("disagreement", _disagreement, _disagreement_words),
    Reason(
        "quote not in the text",
        lambda item: 2.5 * (item.ungrounded > 0),
        lambda item: f"quote not in the text ({_of(item.ungrounded, item.answers)})",
    ),
    Reason(
        "unparsed",
        lambda item: 2 * item.unparsed / item.answers,
        lambda item: f"unparsed ({_of(item.unparsed, item.answers)})",
    ),
    Reason(
        "wrong",
        lambda item: float(item.wrong > 0 and not item.right and not _all_wrong(item)),
        lambda item: (
            f"wrong ({_of(item.wrong, item.answers)})" if item.answers > 1 else "wrong"
        ),
    ),
)
"""Reasons to read an item, the most telling first."""


def _of(n: int, answers: int) -> str:
    return f"{n} of {answers} {'answer' if answers == 1 else 'answers'}"


class RankedVerdict(NamedTuple):
    """A verdict on a notable item."""

    stage: str
    key: str
    part: str
    model: str
    task: int
    value: str
    expected: str
    rule: str
    correct: bool | None
    confidence: float | None
    is_grounded: bool | None
    is_unparsed: bool

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        """The verdict in a row of the database."""
        verdict = cls(*row)
        return verdict._replace(
            correct=None if verdict.correct is None else bool(verdict.correct),
            is_grounded=None
            if verdict.is_grounded is None
            else bool(verdict.is_grounded),
            is_unparsed=bool(verdict.is_unparsed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedItem:
    """An item worth reading."""

    stage: str
    key: str
    part: str
    reasons: tuple[str, ...]  #: in words, the most telling first
    verdicts: tuple[RankedVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnparsedCount:
    """Unparsed replies of one model with one reason."""

    model: str
    reason: str
    replies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotableRanking:
    """The most notable items of a scoring."""

    items: tuple[RankedItem, ...] = ()  #: the most telling first
    counts: tuple[tuple[str, int], ...] = ()
    """Items by their most telling reason, of the whole scoring."""
    unparsed: tuple[UnparsedCount, ...] = ()  #: the most frequent first


class NotableItems:
    """Collects the verdicts of a scoring in a temporary database on disk."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        self._database.execute(_SQL["unsafe"])
        self._database.execute(_SQL["create"])

    def watch(self, verdicts: Iterable[T]) -> Iterator[T]:
        """Pass verdicts on, and collect them.

        They have the fields of a `runner.scorecard.Verdict`.
        """
        passing = iter(verdicts)
        while batch := list(islice(passing, _BATCH)):
            self._database.executemany(_SQL["insert"], map(_row, batch))
            yield from batch

    def ranking(self) -> NotableRanking:
        """Return the most notable items, and close the database."""
        with closing(self._database) as database:
            counts: Counter[str] = Counter()
            best: dict[str, list[tuple[float, int, ItemSigns]]] = {}
            for row in database.execute(_SQL["items"]):
                item = ItemSigns(*row)
                weights = [(reason, reason.weight(item)) for reason in REASONS]
                first = next((reason.name for reason, w in weights if w), "")
                if not first:
                    continue
                counts[first] += 1
                # ties: the item that the plan has first
                entry = (sum(w for _, w in weights), -item.place, item)
                heap = best.setdefault(first, [])
                (heapq.heappush if len(heap) < MOST else heapq.heappushpop)(heap, entry)
            chosen = _shared(list(best.values()))
            return NotableRanking(
                items=tuple(_ranked(database, chosen)),
                counts=tuple(
                    (reason.name, counts[reason.name])
                    for reason in REASONS
                    if counts[reason.name]
                ),
                unparsed=tuple(
                    UnparsedCount(model=model, reason=rule, replies=n)
                    for model, rule, n, _ in database.execute(
                        _SQL["unparsed"], (_UNPARSED_ROWS,)
                    )
                ),
            )


_FIELDS = attrgetter(
    *("stage", "key", "part", "model", "task", "value", "expected", "rule"),
    *("label", "correct", "confidence", "is_grounded", "is_unparsed"),
)


def _row(verdict: object) -> tuple[object, ...]:
    stage, key, part, model, task, value, expected, rule, *rest = _FIELDS(verdict)
    texts = (value[:TEXT_CHARS], expected[:TEXT_CHARS], rule[:TEXT_CHARS])
    return (stage, key, part, model, task, *texts, *rest)


def _shared(
    by_reason: list[list[tuple[float, int, ItemSigns]]],
) -> list[ItemSigns]:
    """Choose `MOST` items, at first no more than `SHARE` of each reason."""
    ordered = [sorted(entries, reverse=True) for entries in by_reason]
    first = sorted((e for es in ordered for e in es[:SHARE]), reverse=True)[:MOST]
    rest = sorted((e for es in ordered for e in es[SHARE:]), reverse=True)
    entries = first + rest[: MOST - len(first)]
    return [item for _, _, item in sorted(entries, reverse=True)]


def _ranked(
    database: sqlite3.Connection, chosen: list[ItemSigns]
) -> Iterator[RankedItem]:
    keys = json.dumps([item.key for item in chosen])
    verdicts: dict[tuple[str, str, str], list[RankedVerdict]] = {
        item.name: [] for item in chosen
    }
    for row in database.execute(_SQL["of_keys"], (keys,)):
        if row[:3] in verdicts:
            verdicts[row[:3]].append(RankedVerdict.of(row))
    for item in chosen:
        yield RankedItem(
            stage=item.stage,
            key=item.key,
            part=item.part,
            reasons=tuple(
                reason.words(item) for reason in REASONS if reason.weight(item)
            ),
            verdicts=tuple(verdicts[item.name]),
        )
