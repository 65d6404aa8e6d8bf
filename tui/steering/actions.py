"""What can be asked of a run from here: one table, and what each entry offers. Pure.

An action offers what makes sense in the state that the run is in; one that offers
nothing is greyed. A choice becomes a request by its kind and payload, to which the
value of its field is added.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from store.asked import Asked
from store.commands import Payload
from store.stakes import Stakes
from store.views import LimitsSeen, Pause
from tui.drawing.format import amount
from tui.sources.sight import ENDED, Snapshot

Value: TypeAlias = str | int | float | None

FREE_USD = 10.0
"""A retry that costs more is confirmed by the run's name: the price of a slip."""
FREE_TASKS = 1000
"""The same where its cost is not known."""


class NotAValue(Exception):
    """What was typed cannot be used; the message says what can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Something to be typed."""

    key: str  #: of the payload
    label: str
    read: Callable[[str], Value]  #: raises `NotAValue`
    value: str = ""  #: to begin with
    is_number: bool = True  #: a digit is meant for it, wherever one is in the dialog


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One request that can be made, up to what is still to be typed."""

    words: str
    kind: str  #: of `runner.control.effects`
    payload: Payload = field(default_factory=dict)
    field: Field | None = None
    told: str | None = None  #: what it comes to, where no figures are needed for that

    def payload_with(self, typed: str) -> Payload:
        """The payload of the request.

        Raises:
            NotAValue: what was typed cannot be used.
        """
        if self.field is None:
            return self.payload
        return {**self.payload, self.field.key: self.field.read(typed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An entry of the table."""

    name: str
    key: str | None  #: None: in the palette alone
    title: str
    about: str
    is_shown: bool = True  #: in the line of keys
    choices: Callable[[Snapshot, str], tuple[Choice, ...]]
    """What it offers of a run, to whoever looks at the tasks of a filter."""


# What is typed


def _filter(typed: str) -> Value:
    return typed.strip()


def _whole(typed: str) -> Value:
    if not re.fullmatch(r"[1-9]\d{0,8}", typed.strip(), re.ASCII):
        raise NotAValue("type a whole number from 1 on")
    return int(typed)


def _positive(typed: str) -> Value:
    number = re.fullmatch(r"\d{1,12}(\.\d{1,6})?", typed.strip(), re.ASCII)
    if number is None or float(typed) == 0:
        raise NotAValue("type a number above 0")
    return float(typed)


def _ceiling(typed: str) -> Value:
    if typed.strip() == "none":
        return None
    try:
        return _positive(typed)
    except NotAValue:
        raise NotAValue("type a number above 0, or none: no limit") from None


# What is offered


def _pausing(seen: Snapshot, aim: str) -> tuple[Choice, ...]:
    del aim
    if not seen.is_alive or seen.state in ENDED or seen.state == "draining":
        return ()
    held = seen.status.pauses
    is_whole = any(pause.scope == (None, None) for pause in held)
    return (*_lifts(held), *(() if is_whole else _pauses(seen)))


def _lifts(held: tuple[Pause, ...]) -> Iterator[Choice]:
    if held:
        yield Choice(words="resume: all that is paused", kind="resume")
    for pause in held:
        if pause.scope != (None, None):
            yield Choice(
                words=f"resume: {pause}",
                kind="resume",
                payload={"stage": pause.stage, "model": pause.model},
            )


def _pauses(seen: Snapshot) -> Iterator[Choice]:
    yield Choice(words="pause: the run", kind="pause")
    held = {pause.scope for pause in seen.status.pauses}
    lanes = [lane for lane in seen.status.lanes if lane.is_open]
    for stage in dict.fromkeys(lane.stage for lane in lanes):
        if (stage, None) not in held:
            payload = {"stage": stage}
            yield Choice(words=f"pause: stage {stage}", kind="pause", payload=payload)
    for model in dict.fromkeys(lane.model for lane in lanes):
        if (None, model) not in held:
            payload = {"model": model}
            yield Choice(words=f"pause: model {model}", kind="pause", payload=payload)


_CEILINGS: tuple[tuple[str, str, Callable[[str], Value]], ...] = (
    ("concurrency", "calls at a time", _whole),
    ("rpm", "requests a minute", _ceiling),
    ("tpm", "tokens a minute", _ceiling),
)


def _limiting(seen: Snapshot, aim: str) -> tuple[Choice, ...]:
    del aim
    if seen.state in {"finished", "cancelled"} or seen.status.imported:
        return ()
    choices = [
        Choice(
            words=f"{limits.model}: {unit}",
            kind="limits",
            payload={"model": limits.model},
            field=Field(key=key, label=f"{unit}, {_now(limits, key)} now", read=read),
        )
        for limits in seen.status.limits
        for key, unit, read in _CEILINGS
    ]
    if seen.status.budget_usd is not None:
        add = Field(key="add_usd", label="dollars to add", read=_positive)
        choices.append(Choice(words="budget: add dollars", kind="budget", field=add))
    return tuple(choices)


def _now(limits: LimitsSeen, key: str) -> str:
    values = {"concurrency": limits.concurrency, "rpm": limits.rpm, "tpm": limits.tpm}
    value = values[key]
    return "none" if value is None else amount(value)


def _retrying(seen: Snapshot, aim: str) -> tuple[Choice, ...]:
    if seen.status.imported:
        return ()
    which = Field(
        key="filter",
        label="filter",
        read=_filter,
        value=aim or "state:failed",
        is_number=False,
    )
    return (Choice(words="ask final tasks again", kind="retry", field=which),)


def _cancelling(seen: Snapshot, aim: str) -> tuple[Choice, ...]:
    del aim
    if seen.state in {"finished", "cancelled"} or seen.status.imported:
        return ()
    drain = Choice(
        words="drain: let calls in flight finish and end; it can be resumed",
        kind="drain",
    )
    cancel = Choice(
        words="cancel: let calls in flight finish, skip all other tasks",
        kind="cancel",
        payload={"now": False},
    )
    now = Choice(
        words="cancel now: cut the calls in flight, too",
        kind="cancel",
        payload={"now": True},
    )
    if not seen.is_alive:
        return (cancel,)
    return (cancel, now) if seen.state == "draining" else (drain, cancel, now)


def _scoring(seen: Snapshot, aim: str) -> tuple[Choice, ...]:
    del aim
    answers = seen.status.tasks.completed
    if seen.is_alive or not answers:
        return ()  # a run under way is scored in part, and nothing of that is kept
    told = (
        f"{answers:,} answers would be scored once more, by the siftlog and the job "
        "that are installed now, and the scoring recorded beside the earlier ones. "
        "Leaving the monitor stops it."
    )
    return (Choice(words="score the answers again", kind="score", told=told),)


def withdrawing(request: Asked) -> Action:
    """To take back a request that still waits."""
    choice = Choice(
        words=f"withdraw: {request.words}",
        kind="withdraw",
        payload={"id": request.id},
        told=f"What {request.author} asked would never be carried out, unless the run "
        "has begun with it meanwhile.",
    )
    return Action(
        name="withdraw",
        key="x",
        title="Withdraw",
        about="Take back a request that still waits",
        choices=lambda seen, aim: (choice,),  # noqa: ARG005 - whatever the run does
    )


SCORE = Action(
    name="score",
    key=None,
    title="Score again",
    about="Score the stored answers once more",
    choices=_scoring,
)
ACTIONS = (
    Action(
        name="pause",
        key="P",
        title="Pause",
        about="Start no further call, or go on",
        choices=_pausing,
    ),
    Action(
        name="limits",
        key="L",
        title="Limits",
        about="Set ceilings of a model, or add to the budget",
        choices=_limiting,
    ),
    Action(
        name="retry",
        key="R",
        title="Retry",
        about="Ask final tasks again",
        choices=_retrying,
    ),
    Action(
        name="cancel",
        key="C",
        title="Cancel",
        about="End the run: drain it, or skip what is open",
        is_shown=False,
        choices=_cancelling,
    ),
    SCORE,
)
"""In the order of the line of keys."""


# What a request is, before it is made


def expected_state(seen: Snapshot) -> str:
    """The state that the run must be in for a decision of now to count.

    A process that is only slow to say so is live by the time that it reads the request.
    """
    is_slow = seen.state == "quiet" or (seen.state == "lost" and seen.is_alive)
    return "live" if is_slow else seen.state


def is_named(kind: str, stakes: Stakes) -> bool:
    """Whether the run's name must be typed: what it does cannot be taken back."""
    if kind == "retry":
        if stakes.usd is None:
            return stakes.tasks > FREE_TASKS
        return stakes.usd > FREE_USD
    return kind == "cancel"


def is_futile(kind: str, stakes: Stakes) -> bool:
    """Whether nothing would happen."""
    return kind == "retry" and not stakes.tasks


_VERBS: Mapping[str, str] = {"withdraw": "commands"}
_FLAGS: Mapping[str, str] = {
    "stage": "--stage",
    "model": "--model",
    "concurrency": "--concurrency",
    "rpm": "--rpm",
    "tpm": "--tpm",
    "add_usd": "--add",
    "filter": "--filter",
    "now": "--now",
    "id": "--withdraw",
}
_NONE = frozenset({"rpm", "tpm"})
"""Where nothing is a value: no limit."""


def command_line(kind: str, payload: Payload, run_id: str) -> str:
    """What does the same without the monitor.

    >>> command_line("limits", {"model": "m", "rpm": None}, "r1")
    'siftlog limits r1 --model m --rpm none'
    """
    words = ["siftlog", _VERBS.get(kind, kind), run_id]
    for key, value in payload.items():
        if value is True:
            words.append(_FLAGS[key])
        elif value is None and key in _NONE:
            words += [_FLAGS[key], "none"]
        elif value is not None and value is not False:
            number = f"{value:.10g}" if isinstance(value, float) else str(value)
            words += [_FLAGS[key], number]
    return shlex.join(words)
