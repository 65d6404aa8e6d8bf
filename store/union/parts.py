"""Keeps what each log of a split run reports, and derives the run's state.

Pure. Each slice belongs to whoever has brought it furthest; the run has ended when each
slice's part has.

Where all tasks of a log are its own, and it paid for all of its answers, what folding
its events would come to is what its own writer's fold came to: the same rows under the
union's numbers, and sums that are added up. So a log that is merged for the first time
need not be folded again, which is most of the work of merging.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TypeAlias

import msgspec

from store import tables
from store.database import SQL, UNION, LogReader
from store.events import (
    Event,
    LimitObserved,
    RunPaused,
    RunStarted,
    TasksPlanned,
    TasksReopened,
)
from store.fold import Fold
from store.fold_state import RunState
from store.log.integrity import EventRow
from store.slices import ALL, SLICES, Slices
from store.tables import load_run_state

ORDER = (
    "run_finished",
    "run_resumed",
    "run_started",
    "run_drained",
    "run_cancelled",
    "created",
)
"""A slice's own phase is the first of these that one of its parts is in."""

WORKING = frozenset({"run_started", "run_resumed"})

Limit: TypeAlias = tuple[LimitObserved, int]
"""What was observed, and when: microseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One log's view of the run."""

    log: bytes  #: id of its first writer
    slices: Slices
    state: RunState
    limits: Mapping[str, Limit]  #: by model, as last observed by its process


def limits_of(parts: Iterable[PartState]) -> dict[str, Limit]:
    """What holds the run back: the sum of what its processes are held to.

    Of a model, those at work are summed; where none that asks it is, all of them.
    """
    parts_by_model: dict[str, list[PartState]] = {}
    for part in sorted(parts, key=lambda part: part.log):
        for model in part.limits:
            parts_by_model.setdefault(model, []).append(part)
    model_limits = {}
    for model, every in sorted(parts_by_model.items()):
        at_work = [part for part in every if part.state.phase in WORKING]
        model_limits[model] = _sum([part.limits[model] for part in at_work or every])
    return model_limits


def _sum(limits: Sequence[Limit]) -> Limit:
    """The limits of processes beside each other; one without any frees all."""
    observed = [limit for limit, _ in limits]
    rpms = [limit.rpm for limit in observed]
    tpms = [limit.tpm for limit in observed]
    pauses = [x.paused_until_us for x in observed if x.paused_until_us is not None]
    together = replace(
        observed[0],
        concurrency=sum(limit.concurrency for limit in observed),
        in_flight=sum(limit.in_flight for limit in observed),
        rpm=None if None in rpms else fsum(filter(None, rpms)),
        tpm=None if None in tpms else fsum(filter(None, tpms)),
        paused_until_us=max(pauses, default=None),
    )
    return together, max(at_us for _, at_us in limits)


def whole_state(parts: Iterable[PartState], tasks: int) -> RunState:
    """The state of the run that *parts* are of, whose *tasks* are numbered in all."""
    ordered = sorted(parts, key=lambda part: (ORDER.index(part.state.phase), part.log))
    holders: dict[int, PartState] = {}
    for part in ordered:
        for number in part.slices:
            holders.setdefault(number, part)
    deciding = list({part.log: part for part in holders.values()}.values())
    at_work = [part.state for part in deciding if part.state.phase in WORKING]
    return replace(
        _phase(deciding, at_work, missing=SLICES - len(holders)),
        paused_by=_agreed(state.paused_by for state in at_work),
        draining_by=_agreed(state.draining_by for state in at_work),
        tasks=tasks,
        consumed=max((part.state.consumed for part in ordered), default=0),
        exhausted=len(holders) == SLICES
        and all(part.state.exhausted for part in deciding),
        success_us=max(
            (p.state.success_us for p in ordered if p.state.success_us is not None),
            default=None,
        ),
    )


def _phase(
    deciding: Iterable[PartState], at_work: Iterable[RunState], *, missing: int
) -> RunState:
    """What began or ended the work on the whole."""
    states = [part.state for part in deciding]
    latest = max((state.phase_us for state in states), default=0)
    working = max(at_work, key=_turn, default=None)
    if working is not None:
        return working
    if missing:
        return RunState(
            phase="run_drained",
            phase_by="shards",
            phase_why=f"{missing} of {SLICES} slices have not been started: run the "
            "shards that hold them",
            phase_us=latest,
        )
    last = max(states, key=lambda state: (ORDER.index(state.phase), *_turn(state)))
    return replace(last, phase_us=latest)


def _turn(state: RunState) -> tuple[int, str]:
    return state.phase_us, state.phase


def _agreed(names: Iterable[str | None]) -> str | None:
    """Who holds all of them; None where one of them is free."""
    holders = list(names)
    return max((name or "" for name in holders), default=None) if all(holders) else None


_ENCODER = msgspec.json.Encoder()
_STATE = msgspec.json.Decoder(RunState)
_LIMITS = msgspec.json.Decoder(dict[str, Limit])


def part_logs(facts: sqlite3.Connection) -> Mapping[int, bytes]:
    """The id of each part's log."""
    return {part: log for part, log, *_ in facts.execute(UNION["logs"]).fetchall()}


def stored_parts(
    facts: sqlite3.Connection, target: sqlite3.Connection
) -> dict[int, PartState]:
    """What each log says, by its part.

    Args:
        facts: the union.
        target: holds its projections.
    """
    names = part_logs(facts)
    return {
        part: PartState(
            log=names[part],
            slices=Slices.parse(slices),
            state=_STATE.decode(state),
            limits=_LIMITS.decode(limits),
        )
        for part, slices, state, limits in target.execute(UNION["parts"]).fetchall()
    }


def record_part_event(
    target: sqlite3.Connection, part: int, event: Event
) -> Slices | None:
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


def write_parts(
    target: sqlite3.Connection,
    parts: Mapping[int, PartState],
    changed_part: int,
    fold: Fold,
    applied_seq: int,
) -> None:
    """Keep what one log says by now, and what all of them come to.

    Args:
        target: holds the projections, in an open transaction.
        parts: what each log says.
        changed_part: the one that has said something new.
        fold: what has changed beside that.
        applied_seq: what the projections then are of.
    """
    part = parts[changed_part]
    state, limits = (_ENCODER.encode(it).decode() for it in (part.state, part.limits))
    target.execute(UNION["set_part"], (changed_part, str(part.slices), state, limits))
    fold.limiters = limits_of(parts.values())
    fold.run = whole_state(parts.values(), part.state.tasks)
    tables.write_fold(target, fold, applied_seq)


#: How a log's rows are read, and how they are added to those of the union.
TABLES = (
    ("graft_counts", "add_counts"),
    ("graft_minutes", "add_minute"),
    ("graft_lanes", "add_lane"),
    ("graft_replies", "add_replies"),
    ("graft_latencies", "add_latency"),
    ("graft_errors", "add_error"),
    ("graft_failures", "add_failures"),
    ("graft_reasons", "add_reason"),
    ("graft_counters", "add_counter"),
    ("graft_marks", "insert_mark"),
)

#: In the facts of an event about an answer that another log paid for.
_ADOPTED = re.compile(rb'"adopted":[t"]')


def adopts(rows: Sequence[EventRow]) -> bool:
    """Whether one of the events is of an answer that another log paid for."""
    return _ADOPTED.search(b"".join(row.facts for row in rows)) is not None


class Graft:
    """What a log's events say on their way into the union, and where it stands then."""

    def __init__(self, union: sqlite3.Connection, part: int) -> None:
        """Begin with a log of which nothing is in the union.

        Args:
            union: in an open transaction.
            part: which log it is.
        """
        self._union = union
        self._part = part
        self._slices = ALL
        #: of its events, what depends on their order or on how they were written
        self._fold = Fold(run=RunState(), tasks={})

    def apply(self, seq: int, ts_us: int, event: Event) -> None:
        """Take in an event that is not about one task, with the union's numbers."""
        self._slices = record_part_event(self._union, self._part, event) or self._slices
        if isinstance(event, LimitObserved | RunPaused):
            self._fold.apply(seq, ts_us, event)

    def write(self, log: LogReader, seqs: int, tasks: int, applied_seq: int) -> None:
        """Add the log's projections to those of the union.

        Args:
            log: as it was after its last event that was taken in.
            seqs: what its events' numbers are moved by.
            tasks: what its tasks' numbers are moved by.
            applied_seq: what the union's projections then are of.
        """
        union = self._union
        moved = {"seqs": seqs, "tasks": tasks}
        union.executemany(UNION["graft_task"], self._tasks(log, moved))
        for read, add in TABLES:
            union.executemany(SQL[add], log.execute(UNION[read], moved))
        part_states = stored_parts(union, union)
        run = load_run_state(log)
        part_states[self._part] = PartState(
            log=part_logs(union)[self._part],
            slices=self._slices,
            state=replace(run, tasks=tasks + run.tasks),
            limits=self._fold.limiters,
        )
        fold = Fold(run=run, tasks={}, pauses=self._fold.pauses)
        write_parts(union, part_states, self._part, fold, applied_seq)

    def _tasks(
        self, log: LogReader, moved: dict[str, int]
    ) -> Iterator[tuple[object, ...]]:
        stages, models = (self._ids(log, table) for table in ("stage", "model"))
        for task, stage, model, *rest in log.execute(UNION["graft_tasks"], moved):
            yield (task, stages[stage], models[model], *rest)

    def _ids(self, log: LogReader, table: str) -> dict[int, int]:
        """The union's numbers for a log's numbers of the names in a table."""
        local_ids = dict(log.execute(SQL[f"ids_{table}"]).fetchall())
        here = tables.interned_ids(self._union, table, local_ids)
        return {number: here[name] for name, number in local_ids.items()}
