"""The dialogue that asks a model again for a reply that can be read."""

from __future__ import annotations

from collections.abc import Iterable

from runner.faults import PARSER_ERROR
from runner.reply import AnyReply, ParseFailure, Reply
from runner.request import Message, Part
from store.events import (
    AttemptAnswered,
    Recorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
)


def refused(history: Iterable[Recorded]) -> list[Recorded]:
    """Of a task's events, the answers that were refused since its last end, if any."""
    found: list[Recorded] = []
    for recorded in history:
        match recorded.event:
            case TaskCompleted() | TaskFailed() | TaskSkipped():
                found = []
            case AttemptAnswered(reask=str()):
                found.append(recorded)
            case _:
                pass
    return found


def may_reask(reply: AnyReply, failure: ParseFailure, *, asked: int, most: int) -> bool:
    """Whether a reply that cannot be read is asked for again, after *asked* times.

    Only chats are. A cut one is not: the same limit would cut it again. Nor is one
    whose parser raised: the model cannot mend that.
    """
    is_mendable = isinstance(reply, Reply) and not reply.is_truncated
    return asked < most and is_mendable and failure.reason != PARSER_ERROR


def reask_messages(reply: Reply, failure: ParseFailure) -> tuple[Message, ...]:
    """The unreadable reply and what was wrong with it, as two further messages."""
    why = failure.reason.replace("_", " ")
    if failure.detail is not None:
        why += f": {failure.detail}"
    asked = (
        f"That reply could not be read ({why}). "
        "Answer the same question again, only in the form that was asked for."
    )
    return (
        Message(role="assistant", parts=(Part(text=reply.text or "(empty)"),)),
        Message(role="user", parts=(Part(text=asked),)),
    )
