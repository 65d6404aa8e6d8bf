"""The front of a run: what is finished of it from the first item on, without a gap.

Items that are quick to answer come back first, and may be the easy ones; an item that
is waited for holds up those behind it, so that what is looked at was chosen by the plan
alone and not by who answered in time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter

from runner.deciding import Decide, Finished, Look
from runner.job import Dataset, Job
from runner.records.replay import LogAnswers
from runner.task import Answer
from runner.work import Work
from store.stopping import Stopping
from store.views import last_seq, run_started, status, task_families


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The answers of a run's front; a `runner.job.Answers`."""

    answers: LogAnswers
    before: int | None  #: task that is not finished, nor what follows; None: all are

    @property
    def models(self) -> tuple[str, ...]:
        """Models of the subject role, in the run's order."""
        return self.answers.models

    @property
    def replicates(self) -> int:
        """How many replicates of each first-stage item were planned."""
        return self.answers.replicates

    @property
    def imported(self) -> bool:
        """Whether the answers were made elsewhere."""
        return self.answers.imported

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        if self.before is None:
            return self.answers.families()
        end = self.before
        return takewhile(lambda f: f[0].task.number < end, self.answers.families())


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A look at a run, and up to where its log was read."""

    look: Look
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoAnswers:
    """The answers of a run before its first; a `runner.job.Answers`."""

    models: tuple[str, ...]
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """None."""
        return iter(())


def check(
    work: Work, models: tuple[str, ...], stopping: Stopping, decide: Decide
) -> None:
    """See that a metric can be watched, before anything is asked.

    Raises:
        UsageError: it cannot, naming those that can.
    """
    made = work.job.score(work.dataset, _NoAnswers(models=models)).comparable
    a, b = models
    nothing = Finished(keys=(), is_whole=False)
    decide(made.get(a, {}), made.get(b, {}), nothing, stopping)


def look(
    job: Job,
    dataset: Dataset,
    reader: sqlite3.Connection,
    stopping: Stopping,
    decide: Decide,
) -> Seen:
    """How the two models of a run stand to each other by its front.

    Raises:
        UsageError: the metric is not one that can be watched.
    """
    first = run_started(reader)
    # in this order: tasks may still be planned in between, and none before
    is_planned = status(reader).planning_exhausted
    upto = last_seq(reader)
    keys, before = _finished(reader, upto)
    a, b = first.models["subject"]
    front = Front(
        answers=LogAnswers(
            connection=reader,
            upto_seq=upto,
            models=(a, b),
            replicates=first.replicates,
            imported=first.imported,
        ),
        before=before,
    )
    made = job.score(dataset, front).comparable
    finished = Finished(keys=keys, is_whole=is_planned and before is None)
    return Seen(
        look=decide(made.get(a, {}), made.get(b, {}), finished, stopping), seq=upto
    )


def _finished(
    reader: sqlite3.Connection, upto: int
) -> tuple[tuple[str, ...], int | None]:
    """Keys of the items that are finished, and the first task that is not."""
    keys: dict[str, None] = {}
    for root, rows in groupby(task_families(reader, upto), attrgetter("root")):
        family = list(rows)
        if any(row.state.is_open for row in family):
            # another model, or an earlier stage, may have finished with the item
            keys.pop(family[0].key, None)
            return tuple(keys), root
        keys[family[0].key] = None
    return tuple(keys), None
