"""Stores the verdicts of a scoring, and reads them task by task.

They are in a small separate database, written once and replaced as a whole; the log
itself never holds a verdict, because a better scorer changes them all. A task may have
several verdicts: one of a batch call per question.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Final

from store.statements import queries

BATCH = 10_000

_SQL: Final = queries("verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """One verdict of one task in one scoring."""

    task: int
    value: str  #: the parsed reply
    expected: str
    correct: bool | None  #: None where there is no right or wrong
    rule: str  #: the parsing rule that fired, or the reason of the failure
    is_grounded: bool | None = None  #: its quotes are in the text; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Verdict counts of one task in one scoring."""

    verdicts: int  #: at least one
    judged: int  #: of them, those that are right or wrong
    right: int
    value: str = ""  #: the parsed reply, of the first verdict
    rule: str = ""  #: its parsing rule, or the reason of the failure
    ungrounded: int = 0  #: of them, those with a quote that is not in the text


def write_verdicts(path: Path, verdicts: Iterable[object]) -> None:
    """Write *verdicts* to a new database at *path*, in flat memory.

    They have the fields of a `StoredVerdict`, and maybe others.
    """
    columns = attrgetter("task", "value", "expected", "correct", "rule", "is_grounded")
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


def equal_verdicts(path: Path, verdicts: Iterable[object]) -> int | None:
    """Return the number of *verdicts*, if they are those of a database in its order.

    Ignores `is_grounded`, which older files do not have.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    columns = attrgetter("task", "value", "expected", "correct", "rule")
    count = 0
    with closing(_reader(path)) as db:
        rows = db.execute(_SQL["in_order"])
        for verdict, stored in zip_longest(map(columns, verdicts), rows):
            if verdict != stored:
                return None
            count += 1
    return count


def _verdict(row: tuple[int, str, str, int | None, str, int | None]) -> StoredVerdict:
    task, value, expected, correct, rule, grounded = row
    return StoredVerdict(
        task=task,
        value=value,
        expected=expected,
        correct=None if correct is None else bool(correct),
        rule=rule,
        is_grounded=None if grounded is None else bool(grounded),
    )


def read_scores(path: Path, tasks: Iterable[int]) -> dict[int, Score]:
    """Return the scores of some tasks; omit those without a verdict.

    Raises:
        sqlite3.Error: the file is missing or is not a database of verdicts.
    """
    tasks_json = json.dumps(list(tasks))
    with closing(_reader(path)) as db:
        return {
            task: Score(
                verdicts=verdicts,
                judged=judged,
                right=right,
                ungrounded=ungrounded,
                value=value,
                rule=rule,
            )
            for task, verdicts, judged, right, ungrounded, value, rule, _ in db.execute(
                _SQL["scores"], (tasks_json,)
            ).fetchall()
        }


OUTCOMES = ("right", "wrong", "ungrounded")
"""Outcomes of a task by its verdicts: all are right, one is wrong, one has a quote that
is not in the text."""


def read_tasks(path: Path, outcome: str) -> Sequence[int]:
    """Return the tasks with one of `OUTCOMES`, ascending.

    Raises:
        sqlite3.Error: the file is missing or is not a database of verdicts.
    """
    with closing(_reader(path)) as db:
        return array("q", (task for (task,) in db.execute(_SQL[f"tasks_{outcome}"])))


def latest_verdicts(log: Path) -> Path | None:
    """Return the verdicts of the newest scoring beside a log; None: there are none."""
    numbers = {
        int(path.parent.name): path
        for path in (log.parent / "scores").glob("*/verdicts.db")
        if path.parent.name.isdecimal()
    }
    return numbers[max(numbers)] if numbers else None


def outcome_tasks(log: Path, outcome: str) -> str:
    """Return the tasks with an outcome by the newest scoring, as JSON for a query."""
    path = latest_verdicts(log)
    try:
        return json.dumps(list(() if path is None else read_tasks(path, outcome)))
    except (sqlite3.Error, KeyError):
        return "[]"  # a damaged file: no task has a verdict


def _reader(path: Path) -> sqlite3.Connection:
    """Open a database of verdicts, with the columns of this version."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        (has_grounded,) = db.execute(_SQL["has_grounded"]).fetchone()
        db.execute(_SQL["view" if has_grounded else "older_view"])
    except sqlite3.Error:
        db.close()
        raise
    return db
