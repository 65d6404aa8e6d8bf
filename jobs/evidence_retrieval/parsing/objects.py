"""The JSON object that a reply means, found wherever it stands and never repaired."""

from __future__ import annotations

import re
from collections.abc import Callable

from jobs.replies import Object, objects, whole_object
from runner.messages import ParseFailure, Reply

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def first_object(text: str, wanted: Callable[[Object], bool]) -> Object | None:
    """The first *wanted* object: the whole text, a fenced block, any in the prose.

    A block wins over an object that stands before it, for that is where models put
    their answer after having shown its form. Numbers come as texts, as they were
    written.
    """
    stripped = text.lstrip("\ufeff").strip()
    for piece in (stripped, *_FENCED.findall(stripped)):
        value = whole_object(piece.strip())
        if value is not None and wanted(value):
            return value
    return next(objects(stripped, wanted), None)


def unread(reply: Reply, reason: str) -> ParseFailure:
    """The failure to read *reply*: `truncated` where the output limit cut it."""
    return ParseFailure(reason="truncated" if reply.is_truncated else reason)
