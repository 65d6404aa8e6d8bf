"""What all readers of replies begin with: a reply that holds nothing, and objects."""

from __future__ import annotations

from jobs.json_scan import Object, objects
from runner.messages import ParseFailure, Reply


def text_in(reply: Reply) -> str | ParseFailure:
    """The text of a reply, or why there is none: `empty`, `refusal`, `truncated`."""
    if reply.is_refused:
        return ParseFailure(reason="refusal")
    text = reply.text.lstrip("\ufeff").strip()
    if not text:
        return ParseFailure(reason="truncated" if reply.is_truncated else "empty")
    return text


def first_with(name: str, text: str) -> Object | None:
    """The first JSON object with a field; a fence or prose around it is passed over."""
    return next(objects(text, lambda value: name in value), None)


def nothing(reply: Reply, reason: str) -> ParseFailure:
    """A reply without what was asked for; one that was cut off says so."""
    return ParseFailure(reason="truncated" if reply.is_truncated else reason)
