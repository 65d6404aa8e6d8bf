"""What can be asked of a run from here: one table, and what each entry offers. Pure.

An action offers what makes sense in the state that the run is in; one that offers
nothing is greyed. A choice becomes a request by its kind and payload, to which the
value of its field is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from store.asked import Asked
from store.commands import Payload
from store.views import LimitsSeen, Pause
from tui.drawing.format import amount
from tui.sources.sight import ENDED, Snapshot
from tui.steering.fields import Field, Value, as_typed, ceiling, positive, whole


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
    ("concurrency", "calls at a time", whole),
    ("rpm", "requests a minute", ceiling),
    ("tpm", "tokens a minute", ceiling),
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
        add = Field(key="add_usd", label="dollars to add", read=positive)
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
        read=as_typed,
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
