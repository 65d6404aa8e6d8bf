"""Keeps what each log of a split run reports, and derives the run's state.

Pure. Each slice belongs to the part with the most progress on it; the run has ended
when all these parts have.

If all tasks of a log are its own and it paid for all of its answers, a fold of its
events would equal the projections of its writer: the same rows under the union's
numbers, and sums to add. So a log that is merged for the first time is not folded
again, which would be most of the work.
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
"""A slice has the first of these phases that any of its parts is in."""

WORKING = frozenset({"run_started", "run_resumed"})

Limit: TypeAlias = tuple[LimitObserved, int]
"""Latest observed values, and when: microseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One log's view of the run."""

    log: bytes  #: id of its first writer
    slices: Slices
    state: RunState
    limits: Mapping[str, Limit]  #: by model, as last observed by its process


def limits_of(parts: Iterable[PartState]) -> dict[str, Limit]:
    """Limits of the run: the sum over its processes.

    For each model, running processes are summed; if none is running, all.
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
    """Return the sum of processes' limits; unlimited if one has none."""
    observed = [limit for limit, _ in limits]
    rpms = [limit.rpm for limit in observed]
    tpms = [limit.tpm for limit in observed]
    ceilings = [limit.ceiling for limit in observed]
    pauses = [x.paused_until_us for x in observed if x.paused_until_us is not None]
    together = msgspec.structs.replace(
        observed[0],
        concurrency=sum(limit.concurrency for limit in observed),
        in_flight=sum(limit.in_flight for limit in observed),
        rpm=None if None in rpms else fsum(filter(None, rpms)),
        tpm=None if None in tpms else fsum(filter(None, tpms)),
        paused_until_us=max(pauses, default=None),
        ceiling=None if None in ceilings else sum(filter(None, ceilings)),
    )
    return together, max(at_us for _, at_us in limits)


def whole_state(parts: Iterable[PartState], tasks: int) -> RunState:
    """Return the state of the run from its *parts*; it has *tasks* tasks."""
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
    """Return the event that started or ended work on the whole run."""
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
    """Return who holds all of them; None if one is free."""
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
    """Return the report of each log, by its part.

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
    """Store what only a union's projections take from an event.

    Args:
        target: holds the projections, in an open transaction.
        part: the event's log.
        event: with the union's numbers.

    Returns:
        The slices that its log plans from now on; None: no change.
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
    """Store one log's report and the state derived from all.

    Args:
        target: holds the projections, in an open transaction.
        parts: the report of each log.
        changed_part: the part whose report is new.
        fold: other changes.
        applied_seq: the last event of the projections afterwards.
    """
    part = parts[changed_part]
    # every field, unlike in events: the rows of all versions must be equal
    observed = {
        model: (msgspec.structs.asdict(limits), seq)
        for model, (limits, seq) in part.limits.items()
    }
    state, limits = (_ENCODER.encode(it).decode() for it in (part.state, observed))
    target.execute(UNION["set_part"], (changed_part, str(part.slices), state, limits))
    fold.limiters = limits_of(parts.values())
    fold.run = whole_state(parts.values(), part.state.tasks)
    tables.write_fold(target, fold, applied_seq)


#: Statements that read a log's rows and add them to those of the union.
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
    """Return whether an event is about an answer that another log paid for."""
    return _ADOPTED.search(b"".join(row.facts for row in rows)) is not None


class Graft:
    """Collects what a log's events contribute to the union, and the log's state."""

    def __init__(self, union: sqlite3.Connection, part: int) -> None:
        """Start with a log that is not in the union yet.

        Args:
            union: in an open transaction.
            part: which log it is.
        """
        self._union = union
        self._part = part
        self._slices = ALL
        #: parts of its events that depend on order or encoding
        self._fold = Fold(run=RunState(), tasks={})

    def apply(self, seq: int, ts_us: int, event: Event) -> None:
        """Take in an event that is not about one task, with the union's numbers."""
        self._slices = record_part_event(self._union, self._part, event) or self._slices
        if isinstance(event, LimitObserved | RunPaused):
            self._fold.apply(seq, ts_us, event)

    def write(self, log: LogReader, seqs: int, tasks: int, applied_seq: int) -> None:
        """Add the log's projections to those of the union.

        Args:
            log: its state after its last merged event.
            seqs: offset of its event numbers.
            tasks: offset of its task numbers.
            applied_seq: the last event of the union's projections afterwards.
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
