"""What the logs of a run have spent, each for the slices that it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from store.slices import Slices
from store.union.statements import UNION


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpent:
    """The money of one log, in pico-dollars."""

    log: bytes  #: id of its first writer
    slices: Slices
    spent_pico: int  #: known to be spent
    possible_pico: int  #: may be billed beyond that


def spent_by_log(union: sqlite3.Connection) -> Iterator[LogSpent]:
    """What each log has spent, by its id; reads every event of the union."""
    for log, slices, spent, possible in union.execute(UNION["spent_by_log"]).fetchall():
        yield LogSpent(
            log=log,
            slices=Slices.parse(slices),
            spent_pico=spent,
            possible_pico=possible,
        )
