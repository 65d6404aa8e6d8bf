"""Sends commands to a run, lists their results and previews their effect.

No second process ever writes to the log. To send a command, a process appends one line
here; the run's process reads new lines and answers with events. A line is appended
under a lock of the file, after a newline if a crash left the previous line unfinished,
so only that line is lost.

A request waits in `control.jsonl` until the run's process answers it by events. A copy
of a log may lack this file; answered requests are still found in the log.

Previews read projections only, so they cost the same for ten tasks and ten million; a
filter is the exception, because its tasks are counted. Costs are shown only if every
answer so far has a price. The command line and the monitor print the same sentences.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from store.document import plural
from store.errors import NoSuchName
from store.events import CommandAccepted, CommandApplied, CommandRejected, RecordedEvent
from store.nearest import did_you_mean
from store.query import final_tasks_query
from store.read.limits import UNITS, model_limits_in_words
from store.read.remaining import set_apart
from store.read.status import status
from store.read.tasks import QueueKey, count_by_queue, mean_costs
from store.read.usage import batches, dollars, spending
from store.runs import RunFolder
from store.tables import recorded
from store.task import TaskState, is_within, usd

Payload: TypeAlias = Mapping[str, str | int | float | bool | None]
"""Parameters of a command: a stage, a filter, a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command sent to a run."""

    id: str  #: unique; a command is carried out once, however often it is read
    author: str
    host: str
    at_us: int
    kind: str  #: "pause", "drain", "retry", ...
    payload: Payload = field(default_factory=dict)
    expected_state: str | None = None  #: refuse if the run is in another state by then

    @classmethod
    def new(
        cls, kind: str, payload: Payload, *, at_us: int, expected_state: str | None
    ) -> Command:
        """A command from the current user that is not written yet."""
        return cls(
            id=uuid.uuid4().hex,
            author=_author(),
            host=os.uname().nodename,
            at_us=at_us,
            kind=kind,
            payload=payload,
            expected_state=expected_state,
        )


def _author() -> str:
    """Return the name of the current user; in a container the uid may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def withdrawals(commands: Iterable[Command]) -> dict[str, Command]:
    """Return who withdrew each request first, by request id."""
    by_command: dict[str, Command] = {}
    for command in commands:
        if command.kind == "withdraw":
            by_command.setdefault(str(command.payload.get("id")), command)
    return by_command


_DECODER = msgspec.json.Decoder(Command)


def send_command(folder: RunFolder, command: Command) -> None:
    """Append *command* for a run, without waiting for the answer."""
    line = msgspec.json.encode(command) + b"\n"
    with folder.control.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        if (end := file.seek(0, os.SEEK_END)) and os.pread(
            file.fileno(), 1, end - 1
        ) != b"\n":
            line = b"\n" + line
        # usually one call; a write cut short by a full disk raises on the next one
        while line:
            line = line[file.write(line) :]


def forward_command(folder: RunFolder, line: bytes) -> None:
    """Append a command that was sent elsewhere, unless it is already in the file.

    Raises:
        ValueError: *line* is not a request.
    """
    try:
        command = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no request: {error}") from error
    if command.id not in {sent.id for sent in CommandTail(folder.control).read()}:
        send_command(folder, command)


class CommandTail:
    """Reads the new lines of a `control.jsonl`.

    A line without its newline is left for the next time; a line that is not a command
    is skipped and counted in `unreadable`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.unreadable = 0

    def read(self) -> list[Command]:
        """Return the commands appended since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return []
        whole = added[: added.rfind(b"\n") + 1]
        self._position += len(whole)
        commands = []
        for line in filter(None, whole.split(b"\n")):
            try:
                commands.append(_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.unreadable += 1
        return commands


OUTCOME_KINDS = ("command_accepted", "command_rejected", "command_applied")
"""Events that answer a request."""
_END_US = 253_402_300_800_000_000
"""The year 10000: calendars show nothing later, and any user may write a line."""
ALL = 1_000_000
"""Requests in one log, at most; people make them."""


class CommandOutcome(Enum):
    """State of a request."""

    WAITING = "waiting"  #: not answered
    WITHDRAWN = "withdrawn"  #: not answered, and not to be carried out any more
    ACCEPTED = "accepted"  #: being carried out, or at the end of the process
    APPLIED = "applied"
    REJECTED = "rejected"


OPEN = frozenset({CommandOutcome.WAITING, CommandOutcome.ACCEPTED})
"""Answers that are not final."""
_IRREVOCABLE = frozenset({CommandOutcome.ACCEPTED, CommandOutcome.APPLIED})
"""Answers of one shard that no other's refusal takes back."""
_OUTCOMES: Mapping[CommandOutcome, str] = {
    CommandOutcome.WAITING: "Sent: {words}",
    CommandOutcome.WITHDRAWN: "Withdrawn: {words}",
    CommandOutcome.ACCEPTED: "Accepted: {words}",
    CommandOutcome.APPLIED: "Applied: {reply}",
    CommandOutcome.REJECTED: "Refused: {words}: {reply}",
}


def outcome_sentence(
    answer: CommandOutcome, words: str, reply: str | None = None
) -> str:
    """Say what has become of a command, the same on every display; no full stop.

    Args:
        answer: its state.
        words: the command in a few words.
        reply: its effect, which names what it is about, or why it was refused.
    """
    return _OUTCOMES[answer].format(words=words, reply=reply or words)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """A request with its answer."""

    id: str
    kind: str
    author: str
    payload: Payload
    host: str | None = None  #: None: it is in the log only
    asked_us: int | None = None  #: None: it is in the log only
    expected_state: str | None = None
    answer: CommandOutcome = CommandOutcome.WAITING
    accepted_us: int | None = None
    answered_us: int | None = None  #: when it was applied or rejected
    said: str | None = None  #: its effect, or why it was rejected

    @property
    def words(self) -> str:
        """The command in a few words."""
        return words_of(self.kind, self.payload)

    @property
    def began_us(self) -> int:
        """Time when it was sent, or else first seen."""
        times = (self.asked_us, self.accepted_us, self.answered_us)
        return next((time for time in times if time is not None), 0)


def words_of(kind: str, payload: Payload) -> str:
    """A request on one line.

    >>> words_of("limits", {"model": "m", "rpm": None})
    'limits model m rpm none'
    """
    words = (
        key if value is True else f"{key} {'none' if value is None else value}"
        for key, value in payload.items()
        if value is not False and (value is not None or key in {"rpm", "tpm"})
    )
    return " ".join((kind, *words))


def command_log(
    conn: sqlite3.Connection, commands: Sequence[Command]
) -> list[CommandRecord]:
    """Return every request to a run, in the order in which they were made.

    Args:
        conn: the run's log.
        commands: the lines of its `control.jsonl`.
    """
    withdrawn = withdrawals(commands)
    records: dict[str, CommandRecord] = {}
    for command in commands:
        answer = (
            CommandOutcome.WITHDRAWN
            if command.id in withdrawn
            else CommandOutcome.WAITING
        )
        records.setdefault(
            command.id,
            CommandRecord(
                id=command.id,
                kind=command.kind,
                author=command.author,
                payload=command.payload,
                host=command.host,
                asked_us=command.at_us if 0 <= command.at_us < _END_US else None,
                expected_state=command.expected_state,
                answer=answer,
            ),
        )
    for row in recorded_outcomes(conn):
        _take_in(records, row)
    return sorted(records.values(), key=lambda request: request.began_us)


def recorded_outcomes(conn: sqlite3.Connection, after: int = 0) -> list[RecordedEvent]:
    """Answers that were recorded after an event, ascending."""
    return recorded(conn, after, ALL, OUTCOME_KINDS)


def _take_in(records: dict[str, CommandRecord], row: RecordedEvent) -> None:
    """Apply an answer event to its request."""
    match row.event:
        case CommandAccepted() as event:
            before = records.get(event.command) or CommandRecord(
                id=event.command,
                kind=event.kind,
                author=event.author,
                payload=json.loads(event.payload),
            )
            if before.answer is CommandOutcome.APPLIED:
                return  # by another shard of the run, already
            after = replace(
                before, answer=CommandOutcome.ACCEPTED, accepted_us=row.ts_us
            )
        case CommandRejected() as event:
            if (
                event.command in records
                and records[event.command].answer in _IRREVOCABLE
            ):
                return  # by another shard of the run
            before = records.get(event.command) or CommandRecord(
                id=event.command, kind=event.kind, author=event.author, payload={}
            )
            after = replace(
                before,
                answer=CommandOutcome.REJECTED,
                answered_us=row.ts_us,
                said=event.reason,
            )
        case CommandApplied() as event if event.command in records:
            after = replace(
                records[event.command],
                answer=CommandOutcome.APPLIED,
                answered_us=row.ts_us,
                said=event.effect,
            )
        case _:
            return
    records[after.id] = after


BE_WAITED_FOR: Final = "be waited for"
"""A preview of a command: its tasks and calls in flight, and the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPreview:
    """The tasks and calls that a request is about, and the money."""

    tasks: int
    in_flight: int  #: of these tasks, calls in flight
    with_follow_ups: float | None = None  #: tasks and those to come; None: unknown
    batched: int = 0  #: of these, calls to models that use batches
    usd: float | None = None  #: cost of sending the tasks again; None: unknown
    spent_usd: float | None = None  #: so far; None: unknown
    cap_usd: float | None = None  #: of the whole run; None: no budget
    budget_left_usd: float | None = None  #: None: no budget

    @property
    def untouched(self) -> int:
        """Open tasks without a call in flight."""
        return self.tasks - self.in_flight


def preview_command(
    reader: sqlite3.Connection, kind: str, payload: Payload
) -> CommandPreview:
    """Preview a request of any kind.

    Raises:
        NoSuchName: the run has no such stage or model.
        QueryError: its filter cannot be read.
    """
    if kind == "retry":
        return preview_retry(reader, str(payload.get("filter", "")))
    stage, model = payload.get("stage"), payload.get("model")
    return preview_open_tasks(
        reader,
        None if stage is None else str(stage),
        None if model is None else str(model),
        paused_only=kind == "resume",
    )


def preview_open_tasks(
    reader: sqlite3.Connection,
    stage: str | None = None,
    model: str | None = None,
    *,
    paused_only: bool = False,
) -> CommandPreview:
    """Preview the open tasks of a stage, a model, or the run.

    Args:
        reader: a reader of the log.
        stage: only of this stage.
        model: only of this model.
        paused_only: only tasks that a pause holds back.

    Raises:
        NoSuchName: no tasks have such a name.
    """
    run = status(reader)
    check_name("stage", stage, sorted({queue.stage for queue in run.queues}))
    check_name("model", model, sorted({queue.model for queue in run.queues}))
    queues = [queue for queue in run.queues if is_within(queue.key, (stage, model))]
    with_follow_ups = None
    if paused_only:
        pauses = run.pauses
        queues = [q for q in queues if any(pause.holds(*q.key) for pause in pauses)]
        held = {queue.key for queue in queues}
        _, with_follow_ups = set_apart(run.remaining, lambda *key: key in held)
    running = [(queue, queue.states.get(TaskState.RUNNING, 0)) for queue in queues]
    by_batches = {batch.model for batch in batches(reader)}
    return CommandPreview(
        tasks=sum(n for queue in queues for s, n in queue.states.items() if s.is_open),
        in_flight=sum(n for _, n in running),
        with_follow_ups=with_follow_ups,
        batched=sum(n for queue, n in running if queue.model in by_batches),
        **_money(reader),
    )


def check_name(label: str, name: object, known: Sequence[str]) -> None:
    """Check that a run has the stage or model of a request; None matches all.

    Raises:
        NoSuchName: it has none.
    """
    if name is not None and name not in known:
        hint = did_you_mean(str(name), known, f"use {', '.join(known)}")
        raise NoSuchName(f"there is no {label} {name!r} here: {hint}")


def preview_retry(reader: sqlite3.Connection, expression: str) -> CommandPreview:
    """Preview the final tasks that a filter matches, at the mean cost of such tasks.

    Raises:
        QueryError: the filter cannot be read.
    """
    counts = count_by_queue(reader, final_tasks_query(expression))
    run = status(reader)
    return CommandPreview(
        tasks=sum(counts.values()),
        in_flight=0,
        batched=0,
        usd=None if run.cost_usd is None else _cost(counts, mean_costs(reader)),
        **_money(reader),
    )


def _cost(
    counts: Mapping[QueueKey, int], means: Mapping[QueueKey, float]
) -> float | None:
    """Return the cost of one reply each, at the mean of its stage and model."""
    if not counts.keys() <= means.keys():
        return None
    return sum(n * means[key] for key, n in sorted(counts.items()))


def _money(reader: sqlite3.Connection) -> dict[str, float | None]:
    """Describe cost, budget and what the budget leaves apart from calls in flight."""
    money = spending(reader)
    taken = money.spent_pico + money.possible_pico + money.in_flight_pico
    left = None if money.cap_pico is None else usd(money.cap_pico - taken)
    return {
        "spent_usd": money.spent_usd,
        "cap_usd": money.cap_usd,
        "budget_left_usd": left,
    }


def preview_sentence(
    kind: str, payload: Payload, preview: CommandPreview, run_id: str
) -> str:
    """Describe the effect of a request in one sentence with figures."""
    return _SENTENCES[kind](payload, preview, run_id)


def _tasks(n: int, kind: str = "") -> str:
    return plural(n, f"{kind}task")


def _calls(
    preview: CommandPreview, of: str = "", *, end: str = "finish", left: str
) -> str:
    """Describe calls in flight that would *end* and batches that would be *left*."""
    alone, batched = preview.in_flight - preview.batched, preview.batched
    clauses = (
        [f"{plural(alone, 'call')} in flight{of} would {end}"]
        if alone or not batched
        else []
    )
    if batched:
        clauses.append(f"{plural(batched, 'call')} in batches{of} would {left}")
    return " and ".join(clauses)


def _pause(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del payload
    return (
        f"{_tasks(preview.tasks, 'open ')} of {run_id} would be held back; "
        f"{_calls(preview, left=BE_WAITED_FOR)}."
    )


def _resume(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del payload
    more = round(preview.with_follow_ups or 0)
    about = f" (about {more:,} with follow-ups)" if more > preview.tasks else ""
    return f"{_tasks(preview.tasks, 'open ')} of {run_id}{about} would go on."


def _drain(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del payload
    calls = _calls(preview, f" of {run_id}", left="stay at the provider")
    return f"{calls}; {_tasks(preview.untouched)} would stay open for siftlog resume."


def _cancel(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    end = "be cut" if payload.get("now") else "finish"
    return (
        f"{_tasks(preview.untouched, 'open ')} of {run_id} would be skipped; "
        f"{_calls(preview, end=end, left='be cancelled at the provider')}."
    )


def _retry(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del payload
    if not preview.tasks:
        return (
            f"No finished task of {run_id} matches, so nothing is "
            f"retried; siftlog status {run_id} lists the reasons."
        )
    cost = "" if preview.usd is None else f", for about {dollars(preview.usd)}"
    if preview.budget_left_usd is not None:
        cost += f"; the budget has {dollars(preview.budget_left_usd)} left"
    return f"{_tasks(preview.tasks)} of {run_id} would be retried{cost}."


def _limits(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del run_id
    requested_limits = {name: payload[name] for name in UNITS if name in payload}
    values = {
        name: None if v is None else float(v) for name, v in requested_limits.items()
    }
    model = payload.get("model")
    limits = model_limits_in_words(None if model is None else str(model), values)
    learned = (
        ", fewer while the endpoint refuses calls" if "concurrency" in values else ""
    )
    calls = _calls(preview, end="go on", left=BE_WAITED_FOR)
    return f"{limits}{learned}, for {_tasks(preview.tasks, 'open ')}; {calls}."


def _budget(payload: Payload, preview: CommandPreview, run_id: str) -> str:
    del run_id
    budget_text = f"cost {dollars(preview.spent_usd)}"
    left = preview.budget_left_usd
    if preview.cap_usd is None or left is None:
        budget_text += ", no budget"
    else:
        budget_text += f", {dollars(left)} left of the budget of "
        budget_text += dollars(preview.cap_usd)
        if "add_usd" in payload:
            budget_text += f", {dollars(left + float(payload['add_usd'] or 0))} then"
    return f"{budget_text}, for {_tasks(preview.tasks, 'open ')}."


_SENTENCES: Mapping[str, Callable[[Payload, CommandPreview, str], str]] = {
    "pause": _pause,
    "resume": _resume,
    "drain": _drain,
    "cancel": _cancel,
    "retry": _retry,
    "limits": _limits,
    "budget": _budget,
}
