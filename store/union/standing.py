"""How far the parts of a split run are: what a union knows beside a log's status."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from store.run_state import RunState
from store.slices import ALL, Slices
from store.statements import SQL
from store.union.statements import UNION, is_union

_STATE = msgspec.json.Decoder(RunState)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStand:
    """One log of the run."""

    log: str  #: id of its first writer, in hex
    slices: Slices  #: what it plans
    phase: str  #: kind of the last event that began or ended work in it
    events: int  #: of it, in the union

    @property
    def has_ended(self) -> bool:
        """Whether it has come to the end of what it plans."""
        return self.phase == "run_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The parts of a run."""

    parts: tuple[PartStand, ...]  #: by the first of their slices
    missing: Slices  #: what no log plans yet
    unfinished: Slices  #: what none of the logs has come to the end of
    repeated: int  #: answers that were paid for although another log had one
    digest: str  #: SHA-256 over the logs and where each ends, in hex

    @property
    def ended(self) -> int:
        """Logs that have come to their end."""
        return sum(part.has_ended for part in self.parts)


def standing(conn: sqlite3.Connection) -> Standing | None:
    """The parts of a run; None: it is not split.

    Args:
        conn: a reader.
    """
    if not is_union(conn):
        return None
    logs = {
        part: (log, seq, link)
        for part, log, seq, link in conn.execute(UNION["logs"]).fetchall()
    }
    parts = [
        PartStand(
            log=logs[part][0].hex(),
            slices=Slices.parse(slices),
            phase=_STATE.decode(state).phase,
            events=logs[part][1],
        )
        for part, slices, state, _limits in conn.execute(UNION["parts"]).fetchall()
    ]
    held = {number for part in parts for number in part.slices}
    done = {n for part in parts if part.has_ended for n in part.slices}
    repeated = dict(conn.execute(SQL["counters"]).fetchall()).get("answers_repeated", 0)
    digest = sha256()
    for log, seq, link in sorted(logs.values()):
        digest.update(log + seq.to_bytes(8, "big") + link)
    return Standing(
        parts=tuple(sorted(parts, key=lambda part: (part.slices.ranges, part.log))),
        missing=Slices.holding(number for number in ALL if number not in held),
        unfinished=Slices.holding(number for number in ALL if number not in done),
        repeated=repeated,
        digest=digest.hexdigest(),
    )
