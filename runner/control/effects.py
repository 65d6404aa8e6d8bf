"""What each kind of request from outside comes to: one table.

A request is first prepared, which refuses what cannot be, and then carried out. What is
prepared changes nothing; what is carried out may be carried out again after a crash in
the middle, and then goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from runner.control.standing import MOST, Refused, is_amount, limits_change
from runner.engine.driver import Driver
from store.control import Command, check_name
from store.database import open_reader
from store.events import Event, RunPaused, TasksReopened
from store.log.interface import Log
from store.query import Query, final_tasks_query
from store.read.status import Pause
from store.read.tasks import tasks
from store.read.usage import dollars
from store.runs import RunFolder
from store.task import Scope, is_within

PAGE = 2000
"""Tasks reopened by one event, and read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The live run that requests are about."""

    folder: RunFolder
    log: Log
    driver: Driver
    stages: tuple[str, ...]
    models: tuple[str, ...]
    begun: frozenset[str]  #: requests that an earlier process broke off in the middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was carried out."""

    said: str  #: in a few words
    events: tuple[Event, ...] = ()


Act: TypeAlias = Callable[[], Awaitable[Done | None]]
"""Carries a request out; None: it takes effect only as the process ends."""

Effects: TypeAlias = Mapping[str, Callable[[Command, Target], Act]]


def _pause(command: Command, run: Target) -> Act:
    stage, model = _scope(command, run)
    pause = Pause(stage=stage, model=model, by=command.author)

    async def act() -> Done:
        run.driver.pause(pause)
        event = RunPaused(by=pause.by, paused=True, stage=stage, model=model)
        return Done(
            said=f"paused: {pause}; {run.driver.statistics().in_flight} calls in "
            "flight finish",
            events=(event,),
        )

    return act


def _resume(command: Command, run: Target) -> Act:
    stage, model = _scope(command, run)

    async def act() -> Done:
        lifted = run.driver.lift(stage, model)
        said = ", ".join(map(str, lifted)) or "nothing"
        return Done(said=f"lifted: {said}", events=lifts(lifted, by=command.author))

    held = run.driver.statistics().pauses
    if not held:
        raise Refused("the run is not paused")
    if not any(is_within(pause.scope, (stage, model)) for pause in held):
        raise Refused(f"that is not what is paused: {', '.join(map(str, held))}")
    return act


def lifts(held: Sequence[Pause], *, by: str) -> tuple[RunPaused, ...]:
    """The events that lift pauses."""
    return tuple(
        RunPaused(by=by, paused=False, stage=pause.stage, model=pause.model)
        for pause in held
    )


def _drain(command: Command, run: Target) -> Act:
    del command

    async def act() -> Done:
        run.driver.drain()
        return Done(said="no further task is started")

    return act


def _cancel(command: Command, run: Target) -> Act:
    async def act() -> None:
        if command.payload.get("now"):
            run.driver.stop()
        else:
            run.driver.drain()

    return act


def _retry(command: Command, run: Target) -> Act:
    query = final_tasks_query(str(command.payload.get("filter", "")))
    if run.folder.part and any(term.condition == "task" for term in query.terms):
        raise Refused(
            "tasks have other numbers in the logs of shards: name them by key:, stage: "
            "and model:"
        )

    async def act() -> Done:
        count = after = 0
        if command.id in run.begun:
            count, after = await _reopened_already(command.id, run.log)
        while page := await asyncio.to_thread(_page, run.folder, query, after):
            await run.log.append(
                TasksReopened(tasks=page, by=command.author, command=command.id)
            )
            run.driver.reopened()
            await run.log.heartbeat()
            count, after = count + len(page), page[-1]
        return Done(said=f"{count:,} tasks reopened")

    return act


async def _reopened_already(command: str, log: Log) -> tuple[int, int]:
    """How many tasks a broken-off retry has reopened, and the last of them."""
    count = last = 0
    for recorded in await log.events(limit=1_000_000, kinds=["tasks_reopened"]):
        event = recorded.event
        if isinstance(event, TasksReopened) and event.command == command:
            count, last = count + len(event.tasks), event.tasks[-1]
    return count, last


def _page(folder: RunFolder, query: Query, after: int) -> list[int]:
    with open_reader(folder.log) as reader:
        return [row.task for row in tasks(reader, query, after=after, limit=PAGE)]


def _limits(command: Command, run: Target) -> Act:
    change = limits_change(command.payload)
    check_name("model", change.model, run.models)

    async def act() -> Done:
        for model in filter(change.concerns, run.models):
            run.driver.set_limits(model, change.applied_to(run.driver.limits(model)))
        return Done(said=str(change))

    return act


def _budget(command: Command, run: Target) -> Act:
    usd = command.payload.get("add_usd")
    if not is_amount(usd):
        raise Refused(f"a budget is raised by more than 0 and at most {MOST:,} dollars")
    if not run.driver.has_budget:
        raise Refused("the run has no budget, so there is nothing to add to")
    if run.driver.shares_budget:
        raise Refused(
            "the budget is that of all runs of its group: raise it in the group's file "
            "and type siftlog run-all again"
        )

    async def act() -> Done:
        run.driver.add_budget(usd)
        return Done(said=f"{dollars(usd)} added to the budget")

    return act


def _withdraw(command: Command, run: Target) -> Act:
    """What could be taken back was, before it came to this: see `listen`."""
    del command, run
    raise Refused("there is no unanswered request of that id")


def _scope(command: Command, run: Target) -> Scope:
    """The stage and model that a request names, both known to the run."""
    stage, model = (command.payload.get(what) for what in ("stage", "model"))
    check_name("stage", stage, run.stages)
    check_name("model", model, run.models)
    return (
        None if stage is None else str(stage),
        None if model is None else str(model),
    )


def _too_late(command: Command, run: Target) -> Act:
    """What was said to one process is not meant for the next."""
    del run
    raise Refused(f"the process that was to {command.kind} had ended")


def unknown(command: Command, run: Target) -> Act:
    """A request of a kind that is not in the table."""
    del run
    raise Refused(f"this siftlog cannot {command.kind}")


EFFECTS: Effects = {
    "pause": _pause,
    "resume": _resume,
    "drain": _drain,
    "cancel": _cancel,
    "retry": _retry,
    "limits": _limits,
    "budget": _budget,
    "withdraw": _withdraw,
}
WAITING: Effects = {
    **EFFECTS,
    **dict.fromkeys(("pause", "resume", "drain"), _too_late),
}
"""For what was asked while nobody wrote the run."""
