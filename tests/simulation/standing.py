"""How a run stands, worked out from its tasks and events.

For the log in memory what `store.read.status` and `store.read.usage` read from the
tables of the real one; where both run the same seed, they are compared by what follows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    CommandAccepted,
    CommandApplied,
    Event,
    RunCancelled,
    RunPaused,
    RunResumed,
    RunStarted,
    UnknownEvent,
)
from store.fold_state import Turn
from store.read.status import Pause, QueueCounts, TaskCounts
from store.read.usage import Spending
from store.task import TaskDraft, TaskState, pico


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of `Status` what an ending or beginning process looks at."""

    tasks: TaskCounts
    queues: tuple[QueueCounts, ...]
    pauses: tuple[Pause, ...]
    money: Spending
    is_cancelled: bool  #: a person ended the run, and nobody has resumed it since


def standing(
    tasks: Iterable[TaskDraft], events: Sequence[Event | UnknownEvent]
) -> Standing:
    """How a run stands."""
    lanes: dict[tuple[str, str], Counter[TaskState]] = defaultdict(Counter)
    for task in tasks:
        lanes[task.stage, task.model][task.state] += 1
    return Standing(
        tasks=_counts(sum(lanes.values(), Counter())),
        queues=tuple(
            QueueCounts(stage=stage, model=model, states=states)
            for (stage, model), states in sorted(lanes.items())
        ),
        pauses=_pauses(events),
        money=_money(events),
        is_cancelled=_is_cancelled(events),
    )


def _is_cancelled(events: Sequence[Event | UnknownEvent]) -> bool:
    turns = [event for event in events if isinstance(event, Turn)]
    return bool(turns) and isinstance(turns[-1], RunCancelled)


def _counts(states: Counter[TaskState]) -> TaskCounts:
    return TaskCounts(
        planned=states.total(),
        completed=states[TaskState.COMPLETED],
        failed=states[TaskState.FAILED],
        skipped=states[TaskState.SKIPPED],
        open=sum(n for state, n in states.items() if state.is_open),
        running=states[TaskState.RUNNING],
        waiting=states[TaskState.WAITING],
        unparsed=0,
    )


def _pauses(events: Sequence[Event | UnknownEvent]) -> tuple[Pause, ...]:
    held: dict[tuple[str | None, str | None], Pause] = {}
    for event in events:
        if isinstance(event, RunPaused):
            pause = Pause(stage=event.stage, model=event.model, by=event.by)
            held.pop(pause.scope, None)
            if event.paused:
                held[pause.scope] = pause
    return tuple(held.values())


def _money(events: Sequence[Event | UnknownEvent]) -> Spending:
    spent = possible = 0
    cap: float | None = None
    added = 0
    asked: dict[str, int] = {}
    sent: dict[int, int] = {}
    for event in events:
        possible += pico(getattr(event, "possible_usd", None) or 0.0)
        if isinstance(event, AttemptStarted):
            sent[event.task] = pico(event.worst_usd or 0.0)
        elif isinstance(event, AttemptAnswered | AttemptFailed):
            sent.pop(event.task, None)
        elif isinstance(event, AttemptsAbandoned):
            for task, _ in event.attempts:
                sent.pop(task, None)
        if isinstance(event, AttemptAnswered):
            spent += pico(event.cost_usd or 0.0)
        elif isinstance(event, RunStarted | RunResumed):
            cap, added = event.budget_usd, 0
        elif isinstance(event, CommandAccepted) and event.kind == "budget":
            asked[event.command] = pico(json.loads(event.payload)["add_usd"])
        elif isinstance(event, CommandApplied):
            added += asked.get(event.command, 0)
    return Spending(
        spent_pico=spent,
        possible_pico=possible,
        in_flight_pico=sum(sent.values()),
        cap_pico=None if cap is None else pico(cap) + added,
        is_whole=False,
    )
