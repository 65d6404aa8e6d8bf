"""A scoring as a difference looks at it: values, items, verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from jobs.differences.difference import VerdictChange
from runner.score.render import headlines
from runner.score.scoring import Scoring
from runner.scorecard import Comparable, Verdict
from store.scoring import StoredVerdict, all_verdicts, write_verdicts

Metric: TypeAlias = tuple[str, str]
"""A model, and the path of one of its metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a difference takes of a scoring."""

    values: Mapping[Metric, float | None]
    verdicts: Path | None  #: the file that holds them; None: it is gone
    headlines: Sequence[str] = ()  #: paths of the metrics to look at first
    comparable: Mapping[str, Comparable] = field(default_factory=dict)
    bookable: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


def replayed(made: Scoring, verdicts: Path) -> Seen:
    """A scoring made again; its verdicts are written to a new file."""
    card = made.scorecard
    write_verdicts(
        verdicts,
        (
            StoredVerdict(
                task=each.task,
                value=each.value,
                expected=each.expected,
                correct=each.correct,
                rule=each.rule,
            )
            for each in card.details
            if isinstance(each, Verdict)
        ),
    )
    return Seen(
        values={
            (model, metric.path): metric.value
            for model, metrics in card.models.items()
            for metric in metrics
        },
        verdicts=verdicts,
        headlines=headlines(card),
        comparable=card.comparable,
        bookable=card.bookable,
    )


def stored(scorecard: bytes, verdicts: Path) -> Seen:
    """A scoring as it was recorded, by code that may be gone."""
    models = json.loads(scorecard)["models"]
    return Seen(
        values={
            (model, path): metric["value"]
            for model, own in models.items()
            for path, metric in own["metrics"].items()
        },
        verdicts=verdicts if verdicts.exists() else None,
    )


def verdict_changes(before: Path, after: Path) -> Iterator[VerdictChange]:
    """Verdicts that differ in value, truth or outcome, by task, without their keys.

    Of a task with several, those that are on both sides are no change, wherever they
    stand; the others are held against one another in their order.
    """
    for task, old, new in _side_by_side(all_verdicts(before), all_verdicts(after)):
        common = Counter(map(_told, old)) & Counter(map(_told, new))
        for was, now in zip_longest(_without(old, common), _without(new, common)):
            yield VerdictChange(task=task, key="", before=was, after=now)


def _told(verdict: StoredVerdict) -> tuple[Any, ...]:
    """What counts of it; by which rule it was read does not."""
    return verdict.value, verdict.expected, verdict.correct


def _without(
    verdicts: Sequence[StoredVerdict], common: Counter[tuple[Any, ...]]
) -> Iterator[StoredVerdict]:
    left = Counter(common)
    for verdict in verdicts:
        if left[_told(verdict)]:
            left[_told(verdict)] -= 1
        else:
            yield verdict


def _side_by_side(
    before: Iterator[StoredVerdict], after: Iterator[StoredVerdict]
) -> Iterator[tuple[int, list[StoredVerdict], list[StoredVerdict]]]:
    """The verdicts of both sides, task by task."""
    left, right = _by_task(before), _by_task(after)
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        task = min(side[0] for side in (old, new) if side is not None)
        was: list[StoredVerdict] = []
        now: list[StoredVerdict] = []
        if old is not None and old[0] == task:
            was, old = old[1], next(left, None)
        if new is not None and new[0] == task:
            now, new = new[1], next(right, None)
        yield task, was, now


def _by_task(
    verdicts: Iterator[StoredVerdict],
) -> Iterator[tuple[int, list[StoredVerdict]]]:
    for task, own in groupby(verdicts, attrgetter("task")):
        yield task, list(own)
