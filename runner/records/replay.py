"""Stored answers as scoring sees them: decoded, in the order of families.

Nothing here calls a model, and nothing is parsed: a job's scoring reads the replies by
the rules it is asked for, so better rules need no new call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from runner.reading import answer_of
from runner.task import Answer
from store.scoring import families


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswers:
    """A run's answers up to one event, over a read-only connection."""

    connection: sqlite3.Connection
    upto_seq: int
    models: tuple[str, ...]
    replicates: int
    imported: bool

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        family: list[Answer] = []
        root = 0
        for row, stored in families(self.connection, self.upto_seq):
            if family and row.root != root:
                yield tuple(family)
                family = []
            root = row.root
            family.append(answer_of(row, stored))
        if family:
            yield tuple(family)
