"""Lists the commands that can be sent to a run, and their input fields.

An action offers the choices that make sense in the run's state; an action without
choices is greyed out. A choice becomes a command by its kind and payload, plus the
value of its field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from store.control import CommandRecord, Payload
from store.document import plural
from store.read.limits import ObservedLimits
from store.read.status import Pause
from tui.render.format import amount
from tui.sources.run_snapshot import ENDED, RunSnapshot

Value: TypeAlias = str | int | float | None


class NotAValue(Exception):
    """The input is invalid; the message says what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """An input field."""

    key: str  #: key of the payload
    label: str
    read: Callable[[str], Value]  #: raises `NotAValue`
    value: str = ""  #: initial value
    is_number: bool = True  #: a digit typed anywhere in the dialog goes to this field
    example: str = "N"  #: stands for the value in the command line until it is typed


def as_typed(typed: str) -> Value:
    """Return the text without surrounding blanks."""
    return typed.strip()


def whole(typed: str) -> Value:
    """Parse a count of 1 or more.

    Raises:
        NotAValue: it is invalid.
    """
    if not re.fullmatch(r"[1-9]\d{0,8}", typed.strip(), re.ASCII):
        raise NotAValue("type a whole number from 1 on")
    return int(typed)


def positive(typed: str) -> Value:
    """Parse an amount above 0.

    Raises:
        NotAValue: it is invalid.
    """
    number = re.fullmatch(r"\d{1,12}(\.\d{1,6})?", typed.strip(), re.ASCII)
    if number is None or float(typed) == 0:
        raise NotAValue("type a number above 0")
    return float(typed)


def ceiling(typed: str) -> Value:
    """Parse an amount above 0, or none: no limit.

    Raises:
        NotAValue: it is invalid.
    """
    if typed.strip() == "none":
        return None
    try:
        return positive(typed)
    except NotAValue:
        raise NotAValue("type a number above 0, or none: no limit") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandChoice:
    """One possible command, except for its input field."""

    words: str
    kind: str  #: a kind of `runner.run.control`
    payload: Payload = field(default_factory=dict)
    field: Field | None = None
    effect: str | None = None  #: its effect, if that needs no figures

    @property
    def example(self) -> Payload:
        """The payload with a word in place of the value."""
        if self.field is None:
            return self.payload
        return {**self.payload, self.field.key: self.field.example}

    def payload_with(self, typed: str) -> Payload:
        """Return the payload of the command.

        Raises:
            NotAValue: the input is invalid.
        """
        if self.field is None:
            return self.payload
        return {**self.payload, self.field.key: self.field.read(typed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An entry of the table."""

    name: str
    key: str | None  #: None: only in the palette
    title: str
    about: str
    is_reversible: bool = False  #: enter confirms it at once
    choices: Callable[[RunSnapshot, str], tuple[CommandChoice, ...]]
    """Returns the choices for a run and the current task filter."""


def _pausing(seen: RunSnapshot, task_filter: str) -> tuple[CommandChoice, ...]:
    del task_filter
    if not seen.is_alive or seen.state in ENDED or seen.state == "draining":
        return ()
    pauses = seen.status.pauses
    is_whole = any(pause.scope == (None, None) for pause in pauses)
    return (*_lifts(pauses), *(() if is_whole else _pauses(seen)))


def _lifts(pauses: tuple[Pause, ...]) -> Iterator[CommandChoice]:
    if pauses:
        yield CommandChoice(words="resume: all that is paused", kind="resume")
    for pause in pauses:
        if pause.scope != (None, None):
            yield CommandChoice(
                words=f"resume: {pause}",
                kind="resume",
                payload={"stage": pause.stage, "model": pause.model},
            )


def _pauses(seen: RunSnapshot) -> Iterator[CommandChoice]:
    yield CommandChoice(words="pause: the run", kind="pause")
    paused_scopes = {pause.scope for pause in seen.status.pauses}
    open_queues = [queue for queue in seen.status.queues if queue.is_open]
    for stage in dict.fromkeys(queue.stage for queue in open_queues):
        if (stage, None) not in paused_scopes:
            payload = {"stage": stage}
            yield CommandChoice(
                words=f"pause: stage {stage}", kind="pause", payload=payload
            )
    for model in dict.fromkeys(queue.model for queue in open_queues):
        if (None, model) not in paused_scopes:
            payload = {"model": model}
            yield CommandChoice(
                words=f"pause: model {model}", kind="pause", payload=payload
            )


_CEILINGS: tuple[tuple[str, str, Callable[[str], Value]], ...] = (
    ("concurrency", "calls at a time", whole),
    ("rpm", "requests a minute", ceiling),
    ("tpm", "tokens a minute", ceiling),
)


def _limiting(seen: RunSnapshot, task_filter: str) -> tuple[CommandChoice, ...]:
    del task_filter
    if seen.state in {"finished", "cancelled"} or seen.status.imported:
        return ()
    choices = [
        CommandChoice(
            words=f"{limits.model}: {unit}",
            kind="limits",
            payload={"model": limits.model},
            field=Field(
                key=key,
                label=f"{unit}, at most (now: {_now(limits, key)})",
                read=read,
            ),
        )
        for limits in seen.status.limits
        for key, unit, read in _CEILINGS
    ]
    if seen.status.budget_usd is not None:
        add = Field(key="add_usd", label="dollars to add", read=positive, example="USD")
        choices.append(
            CommandChoice(words="budget: add dollars", kind="budget", field=add)
        )
    return tuple(choices)


def _now(limits: ObservedLimits, key: str) -> str:
    if key == "concurrency" and limits.is_lowered:
        return f"{amount(limits.concurrency)} of at most {amount(limits.ceiling)}"
    value = getattr(limits, key)
    return "none" if value is None else amount(value)


def _retrying(seen: RunSnapshot, task_filter: str) -> tuple[CommandChoice, ...]:
    if seen.status.imported:
        return ()
    which = Field(
        key="filter",
        label="filter",
        read=as_typed,
        value=task_filter or "state:failed",
        is_number=False,
    )
    return (CommandChoice(words="retry failed tasks", kind="retry", field=which),)


def _cancelling(seen: RunSnapshot, task_filter: str) -> tuple[CommandChoice, ...]:
    del task_filter
    if seen.state in {"finished", "cancelled"} or seen.status.imported:
        return ()
    drain = CommandChoice(
        words="drain: let calls in flight finish and end; it can be resumed",
        kind="drain",
    )
    cancel = CommandChoice(
        words="cancel: let calls in flight finish, skip all other tasks",
        kind="cancel",
        payload={"now": False},
    )
    now = CommandChoice(
        words="cancel now: cut the calls in flight, too",
        kind="cancel",
        payload={"now": True},
    )
    if not seen.is_alive:
        return (cancel,)
    return (cancel, now) if seen.state == "draining" else (drain, cancel, now)


def _scoring(seen: RunSnapshot, task_filter: str) -> tuple[CommandChoice, ...]:
    del task_filter
    answers = seen.status.tasks.completed
    if seen.is_alive or not answers:
        return ()  # a live run is scored in part, and nothing is recorded
    effect = (
        f"{plural(answers, 'answer')} would be scored again with the installed "
        "versions of siftlog and the job, and the scoring added to the "
        "earlier ones. Leaving the monitor stops it."
    )
    return (
        CommandChoice(words="score the answers again", kind="score", effect=effect),
    )


def withdrawing(request: CommandRecord) -> Action:
    """Return the action that withdraws a pending command."""
    choice = CommandChoice(
        words=f"withdraw: {request.words}",
        kind="withdraw",
        payload={"id": request.id},
        effect=f"The command of {request.author} will be withdrawn, unless the "
        "run has already started it.",
    )
    return Action(
        name="withdraw",
        key="x",
        title="Withdraw",
        about="Take back a request that still waits",
        choices=lambda seen, task_filter: (choice,),  # noqa: ARG005 - whatever the run does
    )


SCORE = Action(
    name="score",
    key=None,
    title="Score again",
    about="Score the stored answers again",
    choices=_scoring,
)
ACTIONS = (
    Action(
        name="pause",
        key="P",
        title="Pause",
        about="Start no further call, or continue",
        is_reversible=True,
        choices=_pausing,
    ),
    Action(
        name="limits",
        key="L",
        title="Limits",
        about="Set a model's limits, or add to the budget",
        choices=_limiting,
    ),
    Action(
        name="retry",
        key="R",
        title="Retry",
        about="Send failed tasks again, or those of a filter",
        choices=_retrying,
    ),
    Action(
        name="cancel",
        key="C",
        title="Stop",
        about="End the run: drain it, or cancel it and skip open tasks",
        choices=_cancelling,
    ),
    SCORE,
)
"""In the order of the line of keys."""
