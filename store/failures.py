"""What goes wrong in a run: by class over the whole of it, and by the minute."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from store.statements import SQL
from store.sums import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    """Failed attempts of one class, stage and model."""

    error: str
    stage: str
    model: str
    n: int
    final: int | None  #: of them, without a further attempt; None: an older log
    last_seq: int
    sample_task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """What went wrong in one minute of one class, stage, model and outcome."""

    t: int  #: minutes since 1970 UTC
    error: str  #: a class, or the reason why a reply was refused or not read
    stage: str
    model: str
    outcome: Outcome
    n: int
    last_task: int


def error_counts(conn: sqlite3.Connection) -> list[ErrorCount]:
    """Failed attempts by class, stage and model."""
    return [
        ErrorCount(
            error=error,
            stage=stage,
            model=model,
            n=n,
            final=final,
            last_seq=last_seq,
            sample_task=sample,
        )
        for error, stage, model, n, final, last_seq, sample in conn.execute(
            SQL["error_classes"]
        ).fetchall()
    ]


def failures(conn: sqlite3.Connection, since: int) -> tuple[FailureRow, ...] | None:
    """What went wrong from minute *since* on, ascending.

    None where that is not known: the log was last written by an older siftlog.
    """
    if conn.execute(SQL["is_older"]).fetchone()[0]:
        return None
    return tuple(
        FailureRow(
            t=t,
            error=error,
            stage=stage,
            model=model,
            outcome=Outcome(outcome),
            n=n,
            last_task=task,
        )
        for t, error, stage, model, outcome, n, task in conn.execute(
            SQL["failures"], (since,)
        ).fetchall()
    )
