"""Where a split run stands as a whole, from where each of its parts stands.

Pure. Each slice belongs to whoever has brought it furthest; the run has ended when each
slice's part has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TypeAlias

from store.events import LimitObserved
from store.run_state import RunState
from store.slices import SLICES, Slices

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
class Part:
    """One log's view of the run."""

    log: bytes  #: id of its first writer
    slices: Slices
    state: RunState
    limits: Mapping[str, Limit]  #: by model, as last observed by its process


def limits_of(parts: Iterable[Part]) -> dict[str, Limit]:
    """What holds the run back: the sum of what its processes are held to.

    Of a model, those at work are summed; where none that asks it is, all of them.
    """
    asking: dict[str, list[Part]] = {}
    for part in sorted(parts, key=lambda part: part.log):
        for model in part.limits:
            asking.setdefault(model, []).append(part)
    held = {}
    for model, every in sorted(asking.items()):
        at_work = [part for part in every if part.state.phase in WORKING]
        held[model] = _sum([part.limits[model] for part in at_work or every])
    return held


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


def whole(parts: Iterable[Part], tasks: int) -> RunState:
    """The state of the run that *parts* are of, whose *tasks* are numbered in all."""
    ordered = sorted(parts, key=lambda part: (ORDER.index(part.state.phase), part.log))
    holders: dict[int, Part] = {}
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
    deciding: Iterable[Part], at_work: Iterable[RunState], *, missing: int
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
    said = list(names)
    return max((name or "" for name in said), default=None) if all(said) else None
