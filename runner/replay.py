"""Stored answers as jobs see them: decoded, parsed, in the order of families.

Nothing here calls a model. The same log and the same parsers give the same answers,
so a better parser needs no new call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from runner.job import Dataset, Job
from runner.reading import answer_of
from runner.task import Answer
from store.views import families


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswers:
    """A run's answers up to one event, over a read-only connection."""

    job: Job
    dataset: Dataset
    connection: sqlite3.Connection
    upto_seq: int
    models: tuple[str, ...]
    replicates: int
    imported: bool

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        stages = {stage.name: stage for stage in self.job.stages}
        family: list[Answer] = []
        root = 0
        for row, stored in families(self.connection, self.upto_seq):
            if family and row.root != root:
                yield tuple(family)
                family = []
            root = row.root
            family.append(answer_of(stages, self.dataset, row, stored))
        if family:
            yield tuple(family)
