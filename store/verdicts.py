"""`verdicts.db` of one scoring: what was read from each task and whether it was right.

A small database beside the log, written once and replaced as a whole; the log itself
never holds a verdict, because a better scorer changes them all. A task may have several
verdicts: one of a batch call per question.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Final

from store.statements import named, text

BATCH = 10_000

_SQL: Final = named(text("verdicts"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """One verdict of one task in one scoring."""

    task: int
    value: str  #: what was read from the reply
    expected: str
    correct: bool | None  #: None where there is no right or wrong
    rule: str  #: the parsing rule that fired, or the reason of the failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one task did in one scoring: its verdicts, counted."""

    verdicts: int  #: at least one
    judged: int  #: of them, those that are right or wrong
    right: int


def write_verdicts(path: Path, verdicts: Iterable[StoredVerdict]) -> None:
    """Write *verdicts* to a new database at *path*, in flat memory."""
    columns = attrgetter("task", "value", "expected", "correct", "rule")
    rows = map(columns, verdicts)
    with closing(sqlite3.connect(path)) as db:
        db.execute(_SQL["create"])
        while batch := list(islice(rows, BATCH)):
            db.executemany(_SQL["insert"], batch)
        db.execute(_SQL["create_index"])
        db.commit()


def read_verdicts(path: Path, task: int) -> list[StoredVerdict]:
    """The verdicts of one task, in the order they were given.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    with closing(_reader(path)) as db:
        return [_verdict(row) for row in db.execute(_SQL["of_task"], (task,))]


def all_verdicts(path: Path) -> Iterator[StoredVerdict]:
    """Every verdict by its task's number, those of a task in the order given.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    with closing(_reader(path)) as db:
        yield from map(_verdict, db.execute(_SQL["all"]))


def _verdict(row: tuple[int, str, str, int | None, str]) -> StoredVerdict:
    task, value, expected, correct, rule = row
    return StoredVerdict(
        task=task,
        value=value,
        expected=expected,
        correct=None if correct is None else bool(correct),
        rule=rule,
    )


def read_scores(path: Path, tasks: Iterable[int]) -> dict[int, Score]:
    """The scores of some tasks; those without a verdict are left out.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    named = json.dumps(list(tasks))
    with closing(_reader(path)) as db:
        return {
            task: Score(verdicts=verdicts, judged=judged, right=right)
            for task, verdicts, judged, right in db.execute(
                _SQL["scores"], (named,)
            ).fetchall()
        }


def _reader(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
