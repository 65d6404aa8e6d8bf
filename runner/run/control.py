"""Reads control commands of a live run, carries them out and answers with events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from runner.engine.background import run_alongside
from runner.engine.driver import Driver
from runner.errors import RunnerError
from runner.limits.limiter import MOST_CALLS, Limits
from store.clock import Clock
from store.control import (
    ALL,
    OPEN,
    Command,
    CommandRecord,
    CommandTail,
    check_name,
    command_log,
    withdrawals,
)
from store.database import open_reader
from store.document import plural
from store.errors import StoreError
from store.events import (
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    RecordedEvent,
    RunPaused,
    TasksReopened,
)
from store.log.interface import Log
from store.query import Query, final_tasks_query
from store.read.limits import UNITS, model_limits_in_words
from store.read.status import Pause, liveness, status
from store.read.tasks import tasks
from store.read.usage import dollars
from store.runs import RunFolder
from store.task import Scope, is_within

KINDS = ("command_accepted", "command_applied")
"""Kinds of events from which changes in force are read."""


class CommandRefused(RunnerError):
    """A command that is refused; the message explains why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChange:
    """Limits set by the user during a run; others are unchanged."""

    model: str | None  #: None: every model
    values: Mapping[str, float | None]  #: by field of `Limits`; None: no such limit

    def concerns(self, model: str) -> bool:
        """Return whether it concerns a model."""
        return self.model in {None, model}

    def applied_to(self, limits: Limits) -> Limits:
        """Return *limits* with the change."""
        calls = self.values.get("concurrency")
        return replace(
            limits,
            concurrency=limits.concurrency if calls is None else int(calls),
            rpm=self.values.get("rpm", limits.rpm),
            tpm=self.values.get("tpm", limits.tpm),
        )

    def without(self, names: Iterable[str]) -> LimitsChange:
        """Return the change without the fields *names*."""
        left = {k: v for k, v in self.values.items() if k not in set(names)}
        return LimitsChange(model=self.model, values=left)

    def __str__(self) -> str:
        """Describe the new limits in a few words."""
        return model_limits_in_words(self.model, self.values)


MOST = 10**12
"""Larger values are typing errors. Every later process repeats an accepted command
until it is applied, so values that no float or database can hold must be refused
first."""


def is_amount(value: object) -> TypeGuard[float]:
    """Return whether it is a number above 0 and at most `MOST`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= MOST


def limits_change(payload: Mapping[str, object]) -> LimitsChange:
    """Return the change that a command requests.

    Raises:
        CommandRefused: it has no limit, or an impossible one.
    """
    values: dict[str, float | None] = {}
    for name in UNITS:
        if name not in payload:
            continue
        value = payload[name]
        if value is None and name != "concurrency":
            values[name] = None
            continue
        if not is_amount(value):
            raise CommandRefused(
                f"{name} must be above 0 and at most {MOST:,}; pause the run to start "
                "nothing"
            )
        if name == "concurrency" and (value != int(value) or value > MOST_CALLS):
            raise CommandRefused(
                f"concurrency must be a whole number of at most {MOST_CALLS:,}"
            )
        values[name] = value
    if not values:
        raise CommandRefused("no limit was named")
    model = payload.get("model")
    return LimitsChange(model=None if model is None else str(model), values=values)


def limits_in_force(recorded: Sequence[RecordedEvent]) -> list[LimitsChange]:
    """Return the applied limit changes among events of `KINDS`, in order."""
    applied = {r.event.command for r in recorded if isinstance(r.event, CommandApplied)}
    accepted = {
        r.event.command: r.event.payload
        for r in recorded
        if isinstance(r.event, CommandAccepted)
        and r.event.kind == "limits"
        and r.event.command in applied
    }
    return [limits_change(json.loads(payload)) for payload in accepted.values()]


PAGE = 2000
"""Tasks reopened by one event, and read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """The live run that commands act on."""

    folder: RunFolder
    log: Log
    driver: Driver
    stages: tuple[str, ...]
    models: tuple[str, ...]
    begun: frozenset[str]  #: commands that an earlier process began and did not finish


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Result of a command."""

    effect: str  #: in a few words
    events: tuple[Event, ...] = ()


Act: TypeAlias = Callable[[], Awaitable[CommandResult | None]]
"""Carries a command out; None: it takes effect only when the process ends."""

Effects: TypeAlias = Mapping[str, Callable[[Command, LiveRun], Act]]


def _pause(command: Command, run: LiveRun) -> Act:
    stage, model = _scope(command, run)
    pause = Pause(stage=stage, model=model, by=command.author)

    async def act() -> CommandResult:
        run.driver.pause(pause)
        event = RunPaused(by=pause.by, paused=True, stage=stage, model=model)
        return CommandResult(
            effect=f"paused: {pause}; {_finishing(stage, run.driver.in_flight(model))}",
            events=(event,),
        )

    return act


def _finishing(stage: str | None, calls: int) -> str:
    """Describe the calls in flight that a pause leaves; they have a model, no stage."""
    if stage is not None:
        return "its calls in flight finish"
    if not calls:  # those of the preview have been answered since
        return "no call is in flight now"
    return f"{plural(calls, 'call')} in flight {'finishes' if calls == 1 else 'finish'}"


def _resume(command: Command, run: LiveRun) -> Act:
    stage, model = _scope(command, run)

    async def act() -> CommandResult:
        lifted = run.driver.lift(stage, model)
        scopes = ", ".join(map(str, lifted)) or "nothing"
        return CommandResult(
            effect=f"lifted: {scopes}", events=lifts(lifted, by=command.author)
        )

    pauses = run.driver.statistics().pauses
    if not pauses:
        raise CommandRefused("the run is not paused")
    if not any(is_within(pause.scope, (stage, model)) for pause in pauses):
        raise CommandRefused(
            f"it is not paused; paused is: {', '.join(map(str, pauses))}"
        )
    return act


def lifts(pauses: Sequence[Pause], *, by: str) -> tuple[RunPaused, ...]:
    """Return the events that lift *pauses*."""
    return tuple(
        RunPaused(by=by, paused=False, stage=pause.stage, model=pause.model)
        for pause in pauses
    )


def _drain(command: Command, run: LiveRun) -> Act:
    del command

    async def act() -> CommandResult:
        run.driver.drain()
        return CommandResult(effect="no further task is started")

    return act


def _cancel(command: Command, run: LiveRun) -> Act:
    async def act() -> None:
        if command.payload.get("now"):
            run.driver.stop()
        else:
            run.driver.drain()

    return act


def _retry(command: Command, run: LiveRun) -> Act:
    query = final_tasks_query(str(command.payload.get("filter", "")))
    if run.folder.part and any(term.fragment == "task" for term in query.terms):
        raise CommandRefused(
            "tasks have other numbers in the logs of shards: name them by key:, stage: "
            "and model:"
        )

    async def act() -> CommandResult:
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
        return CommandResult(effect=f"{plural(count, 'task')} reopened")

    return act


async def _reopened_already(command: str, log: Log) -> tuple[int, int]:
    """Return the number of tasks reopened by an interrupted retry, and the last one."""
    count = last = 0
    for recorded in await log.events(limit=1_000_000, kinds=["tasks_reopened"]):
        event = recorded.event
        if isinstance(event, TasksReopened) and event.command == command:
            count, last = count + len(event.tasks), event.tasks[-1]
    return count, last


def _page(folder: RunFolder, query: Query, after: int) -> list[int]:
    with open_reader(folder.log) as reader:
        return [row.task for row in tasks(reader, query, after=after, limit=PAGE)]


def _limits(command: Command, run: LiveRun) -> Act:
    change = limits_change(command.payload)
    check_name("model", change.model, run.models)

    async def act() -> CommandResult:
        for model in filter(change.concerns, run.models):
            run.driver.set_limits(model, change.applied_to(run.driver.limits(model)))
        return CommandResult(
            # at once, so that no display shows the old limits after "applied"
            effect=str(change),
            events=run.driver.observe_limits(),
        )

    return act


def _budget(command: Command, run: LiveRun) -> Act:
    usd = command.payload.get("add_usd")
    if not is_amount(usd):
        raise CommandRefused(
            f"a budget is raised by more than 0 and at most {MOST:,} dollars"
        )
    if not run.driver.has_budget:
        raise CommandRefused("the run has no budget to add to")
    if run.driver.shares_budget:
        raise CommandRefused(
            "the budget is that of all runs of its group: raise it in the group's file "
            "and type siftlog run-all again"
        )

    async def act() -> CommandResult:
        run.driver.add_budget(usd)
        return CommandResult(effect=f"{dollars(usd)} added to the budget")

    return act


def _withdraw(command: Command, run: LiveRun) -> Act:
    """Refuse: pending commands are withdrawn earlier, in `Listener._poll`."""
    del command, run
    raise CommandRefused("no pending request has that id")


def _scope(command: Command, run: LiveRun) -> Scope:
    """Return the stage and model of a command, both known to the run."""
    stage, model = (command.payload.get(key) for key in ("stage", "model"))
    check_name("stage", stage, run.stages)
    check_name("model", model, run.models)
    return (
        None if stage is None else str(stage),
        None if model is None else str(model),
    )


def _too_late(command: Command, run: LiveRun) -> Act:
    """Refuse: a command to one process does not apply to the next."""
    del run
    raise CommandRefused(f"the process that was to {command.kind} had ended")


def unknown(command: Command, run: LiveRun) -> Act:
    """Refuse a command of a kind that is not in the table."""
    del run
    raise CommandRefused(f"this siftlog cannot {command.kind}")


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
"""Effects of commands that were sent while no process wrote the run."""


POLL_S = 0.5
"""Polling interval: a command takes effect within a second."""


def waiting(folder: RunFolder) -> list[CommandRecord]:
    """Return commands of a run without a final answer, oldest first."""
    with open_reader(folder.log) as reader:
        records = command_log(reader, CommandTail(folder.control).read())
    return [request for request in records if request.answer in OPEN]


class Listener:
    """Carries out the commands of one live run."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        log: Log,
        driver: Driver,
        clock: Clock,
        stages: tuple[str, ...],
        models: tuple[str, ...],
        notify: Callable[[str], None],
        initial_state: str | None = None,
        startup_limits: Collection[str] = (),
        answered: Collection[str] = (),
    ) -> None:
        """Prepare to listen for a run that is about to start.

        Args:
            folder: the run's.
            log: receives the answers.
            driver: target of the commands.
            clock: schedules the polling.
            stages: stages of the job.
            models: all models of the run.
            notify: called with messages for the user who resumes the run.
            initial_state: state of the run when this process started; None: it is new.
            startup_limits: names of the limits given for this process.
            answered: ids of commands carried out before this log existed.
        """
        self._folder = folder
        self._log = log
        self._driver = driver
        self._clock = clock
        self._stages = stages
        self._models = models
        self.notify = notify  #: shows a message to the user
        self._initial_state = initial_state
        self._startup_limits = startup_limits
        self._tail = CommandTail(folder.control)
        self._answered = set(answered)
        self._begun: frozenset[str] = frozenset()
        self.drained_by: str | None = None  #: who requested the drain, if any
        self.cancels: list[Command] = []  #: accepted; applied as the process ends

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Carry out pending commands, then listen while the block runs."""
        await self._take_up()
        await self._poll(WAITING, self._initial_state)
        async with run_alongside(self._driver.guard(self._listen)):
            yield

    async def _take_up(self) -> None:
        """Apply limits set in earlier processes; collect answered and begun commands.

        Begun commands were accepted and have no result yet.
        """
        recorded = await self._log.events(limit=ALL, kinds=[*KINDS, "command_rejected"])
        accepted = set()
        for event in (r.event for r in recorded):
            if isinstance(event, CommandAccepted):
                accepted.add(event.command)
            if isinstance(event, CommandRejected | CommandApplied):
                self._answered.add(event.command)
        self._begun = frozenset(accepted - self._answered)
        for change in (
            c.without(self._startup_limits) for c in limits_in_force(recorded)
        ):
            for model in filter(change.concerns, self._models):
                limits = change.applied_to(self._driver.limits(model))
                self._driver.set_limits(model, limits)

    async def _listen(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + POLL_S)
            await self._poll(EFFECTS, None)

    async def _poll(self, effects: Effects, initial_state: str | None) -> None:
        try:
            read = self._tail.read()
        except OSError:
            return  # such as too many open files: the next poll reads it
        new = [command for command in read if command.id not in self._answered]
        withdrawn = withdrawals(new)
        for command in new:
            if command.id in self._answered:
                continue
            self._answered.add(command.id)
            if command.id in withdrawn and command.id not in self._begun:
                await self._drop(command, withdrawn[command.id], initial_state)
            else:
                await self._obey(command, effects, initial_state)

    async def _drop(
        self, command: Command, withdrawal: Command, initial_state: str | None
    ) -> None:
        """Answer a withdrawn command, and the command that withdrew it.

        This is one transaction: a crash leaves both unanswered, or neither.
        """
        self._answered.add(withdrawal.id)
        reason = f"withdrawn by {withdrawal.author}"
        rejected = _rejected(command, reason)
        applied = CommandApplied(
            command=withdrawal.id,
            effect=f"{command.kind} (by {command.author}) dropped",
        )
        await self._log.append(rejected, _accepted(withdrawal), applied)
        self._answer(command, initial_state, reason)

    async def _obey(
        self, command: Command, effects: Effects, initial_state: str | None
    ) -> None:
        target = LiveRun(
            folder=self._folder,
            log=self._log,
            driver=self._driver,
            stages=self._stages,
            models=self._models,
            begun=self._begun,
        )
        try:
            await self._check_state(command, initial_state)
            act = effects.get(command.kind, unknown)(command, target)
        except (CommandRefused, StoreError) as error:
            # an unreadable log may still be writable; if not, this raises
            await self._log.append(_rejected(command, str(error)))
            self._answer(command, initial_state, f"refused: {error}")
            return
        if command.kind == "cancel":
            # before it is durable, because the process may end during the write
            self.cancels.append(command)
        await self._log.append(_accepted(command))
        done = await act()
        if command.kind == "drain":
            self.drained_by = command.author
        if done is not None:
            applied = CommandApplied(command=command.id, effect=done.effect)
            await self._log.append(*done.events, applied)
            self._answer(command, initial_state, done.effect)

    def _answer(self, command: Command, initial_state: str | None, effect: str) -> None:
        """Show the result of a command that waited; its sender may be gone."""
        if initial_state is not None:
            self.notify(f"Waiting was {command.kind} (by {command.author}): {effect}.")

    async def _check_state(self, command: Command, initial_state: str | None) -> None:
        """Refuse a command that was based on an earlier state of the run."""
        if command.expected_state is None:
            return
        state = initial_state or await asyncio.to_thread(self._state)
        if state != command.expected_state:
            raise CommandRefused(
                f"the run is now {state}, not {command.expected_state}"
            )

    def _state(self) -> str:
        with open_reader(self._folder.log) as reader:
            signs = status(reader).signs
        return liveness(signs, self._clock.now_us(), is_alive=True)


def _accepted(command: Command) -> CommandAccepted:
    return CommandAccepted(
        command=command.id,
        kind=command.kind,
        author=command.author,
        payload=json.dumps(command.payload, sort_keys=True),
    )


def _rejected(command: Command, reason: str) -> CommandRejected:
    return CommandRejected(
        command=command.id, kind=command.kind, author=command.author, reason=reason
    )
