"""A scoring as a difference looks at it: values, items, verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from jobs.differences.difference import VerdictChange
from runner.records.scoring import Scoring
from runner.scorecard import Comparable, Verdict
from store.verdicts import StoredVerdict, write_verdicts
from store.views import all_verdicts

Metric: TypeAlias = tuple[str, str]
"""A model, and the path of one of its metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a difference takes of a scoring."""

    values: Mapping[Metric, float | None]
    verdicts: Path | None  #: the file that holds them; None: it is gone
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
    """Verdicts that differ in value, truth or outcome, by task, without their keys."""
    for old, new in _side_by_side(all_verdicts(before), all_verdicts(after)):
        if _told(old) != _told(new):
            task = new.task if old is None else old.task  # type: ignore[union-attr]
            yield VerdictChange(task=task, key="", before=old, after=new)


def _told(verdict: StoredVerdict | None) -> tuple[Any, ...] | None:
    """What counts of it; by which rule it was read does not."""
    return verdict and (verdict.value, verdict.expected, verdict.correct)


Pair: TypeAlias = tuple[StoredVerdict | None, StoredVerdict | None]


def _side_by_side(
    before: Iterator[StoredVerdict], after: Iterator[StoredVerdict]
) -> Iterator[Pair]:
    """The verdicts of both sides, task by task; those of a task in their order."""
    by_task = attrgetter("task")
    left = ((task, list(own)) for task, own in groupby(before, by_task))
    right = ((task, list(own)) for task, own in groupby(after, by_task))
    none: tuple[float, list[StoredVerdict]] = (float("inf"), [])
    old, new = next(left, none), next(right, none)
    while old is not none or new is not none:
        first = min(old[0], new[0])
        yield from zip_longest(
            old[1] if old[0] == first else (), new[1] if new[0] == first else ()
        )
        old = next(left, none) if old[0] == first else old
        new = next(right, none) if new[0] == first else new
