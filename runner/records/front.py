"""The front of a run: what is finished of it from the first item on, without a gap.

Items that are quick to answer come back first, and may be the easy ones; an item that
is waited for holds up those behind it, so that what is looked at was chosen by the plan
alone and not by who answered in time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter

from runner.deciding import Decide, Finished
from runner.job import Answers, Dataset, Job
from runner.records.scoring import answers
from runner.scorecard import Comparable
from runner.task import Answer
from runner.work import Work
from store.read.status import run_started, status
from store.results import StoppingRule
from store.scoring import task_families
from store.tables import last_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What a run's front comes to, item by item."""

    comparable: Mapping[str, Comparable]  #: by model
    finished: Finished
    seq: int  #: the log's last event that was read


def front(job: Job, dataset: Dataset, reader: sqlite3.Connection) -> Front:
    """The front of a run, scored; nothing is written."""
    # in this order: tasks may still be planned in between, and none before
    is_planned = status(reader).planning_exhausted
    upto = last_seq(reader)
    keys, before = _finished(reader, upto)
    whole = answers(reader, run_started(reader), upto)
    card = job.score(dataset, whole if before is None else _Cut(whole, before))
    return Front(
        comparable=card.comparable,
        finished=Finished(keys=keys, is_whole=is_planned and before is None),
        seq=upto,
    )


def check(
    work: Work, models: tuple[str, ...], stopping: StoppingRule, decide: Decide
) -> None:
    """See that a metric can be watched, before anything is asked.

    Raises:
        UsageError: it cannot, naming those that can.
    """
    made = work.job.score(work.dataset, _NoAnswers(models=models)).comparable
    a, b = (made.get(model, {}) for model in models)
    decide(a, b, Finished(keys=(), is_whole=False), stopping)


def _finished(
    reader: sqlite3.Connection, upto: int
) -> tuple[tuple[str, ...], int | None]:
    """Keys of the items that are finished, and the first task that is not."""
    keys: dict[str, None] = {}
    for root, rows in groupby(task_families(reader, upto), attrgetter("root")):
        family = list(rows)
        key = family[0].key
        if any(row.state.is_open for row in family):
            # another model, or an earlier stage, may have finished with the item
            keys.pop(key, None)
            return tuple(keys), root
        keys[key] = None
    return tuple(keys), None


@dataclass(frozen=True, slots=True)
class _Cut:
    """Answers up to a first-stage task; a `runner.job.Answers`."""

    answers: Answers
    before: int

    @property
    def models(self) -> tuple[str, ...]:
        return self.answers.models

    @property
    def replicates(self) -> int:
        return self.answers.replicates

    @property
    def imported(self) -> bool:
        return self.answers.imported

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return takewhile(
            lambda family: family[0].task.number < self.before, self.answers.families()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoAnswers:
    """The answers of a run before its first; a `runner.job.Answers`."""

    models: tuple[str, ...]
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return iter(())
