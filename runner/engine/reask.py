"""The dialogue that asks a model again for a reply that can be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runner.faults import PARSER_ERROR
from runner.prompts import REASK, PromptBook
from runner.reply import AnyReply, ParseFailure, Reply
from runner.request import Message, Part
from store.events import (
    AttemptAnswered,
    RecordedEvent,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
)

_ASKED: Final = f"{REASK.name}.user"

USUAL: Final = PromptBook(
    texts={
        _ASKED: "That reply could not be read ({problem}). Answer the same question "
        "again, only in the form that was asked for."
    }
)
"""How a job asks again that ships no text of its own for it."""


def refused(history: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """Of a task's events, the answers that were refused since its last end, if any."""
    found: list[RecordedEvent] = []
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


def reask_messages(
    reply: Reply, failure: ParseFailure, dataset: object = None
) -> tuple[Message, ...]:
    """The unreadable reply and what was wrong with it, as two further messages.

    Args:
        reply: that could not be read.
        failure: what its parser says.
        dataset: of the job; its prompts say how to ask again, where it has any.
    """
    prompts = getattr(dataset, "prompts", None)
    book = prompts if isinstance(prompts, PromptBook) else USUAL
    book = book if _ASKED in book.texts else USUAL
    problem = failure.reason.replace("_", " ")
    if failure.detail is not None:
        problem += f": {failure.detail}"
    return (
        Message(role="assistant", parts=(Part(text=reply.text or "(empty)"),)),
        Message(role="user", parts=book.parts(_ASKED, problem=problem)),
    )
