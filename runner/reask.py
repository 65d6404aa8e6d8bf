"""The dialogue that asks a model again for a reply that can be read."""

from __future__ import annotations

from runner.reply import ParseFailure, Reply
from runner.request import Message, Part


def reask_messages(reply: Reply, failure: ParseFailure) -> tuple[Message, ...]:
    """The unreadable reply and what was wrong with it, as two further messages."""
    reason = failure.reason.replace("_", " ")
    asked = (
        f"That reply could not be read ({reason}). "
        "Answer the same question again, only in the form that was asked for."
    )
    return (
        Message(role="assistant", parts=(Part(text=reply.text or "(empty)"),)),
        Message(role="user", parts=(Part(text=asked),)),
    )
