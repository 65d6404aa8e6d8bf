"""What each log of a split run says of the run as a whole, as the union keeps it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from store import projections
from store.events import Event, RunStarted, TasksPlanned, TasksReopened
from store.fold import Fold
from store.run_state import RunState
from store.slices import Slices
from store.union.phase import Limit, Part, limits_of, whole
from store.union.statements import UNION

_ENCODER = msgspec.json.Encoder()
_STATE = msgspec.json.Decoder(RunState)
_LIMITS = msgspec.json.Decoder(dict[str, Limit])


def logs(facts: sqlite3.Connection) -> Mapping[int, bytes]:
    """The id of each part's log."""
    return {part: log for part, log, *_ in facts.execute(UNION["logs"]).fetchall()}


def stored(facts: sqlite3.Connection, target: sqlite3.Connection) -> dict[int, Part]:
    """What each log says, by its part.

    Args:
        facts: the union.
        target: holds its projections.
    """
    names = logs(facts)
    return {
        part: Part(
            log=names[part],
            slices=Slices.parse(slices),
            state=_STATE.decode(state),
            limits=_LIMITS.decode(limits),
        )
        for part, slices, state, limits in target.execute(UNION["parts"]).fetchall()
    }


def hear(target: sqlite3.Connection, part: int, event: Event) -> Slices | None:
    """Keep what an event says that only a union's projections hold.

    Args:
        target: holds the projections, in an open transaction.
        part: whose event it is.
        event: with the union's numbers.

    Returns:
        The slices that its log plans from now on; None: it says nothing of them.
    """
    match event:
        case RunStarted(shard=shard) if shard is not None:
            return Slices.parse(shard.slices)
        case TasksReopened(tasks=tasks):
            target.executemany(UNION["add_reopening"], [(task, part) for task in tasks])
        case TasksPlanned(first=first, places=places) if places:
            placed = [(at, first + i) for i, at in enumerate(places)]
            target.executemany(UNION["set_place"], placed)
        case _:
            pass
    return None


def write(
    target: sqlite3.Connection,
    parts: Mapping[int, Part],
    said: int,
    fold: Fold,
    upto: int,
) -> None:
    """Keep what one log says by now, and what all of them come to.

    Args:
        target: holds the projections, in an open transaction.
        parts: what each log says.
        said: the one that has said something new.
        fold: what has changed beside that.
        upto: what the projections then are of.
    """
    part = parts[said]
    state, limits = (_ENCODER.encode(it).decode() for it in (part.state, part.limits))
    target.execute(UNION["set_part"], (said, str(part.slices), state, limits))
    fold.limiters = limits_of(parts.values())
    fold.run = whole(parts.values(), part.state.tasks)
    projections.write(target, fold, upto)
