"""Which of the fields that a call sent its refusal is about; pure.

The words of many servers are read here and nothing is decided: what is sent instead is
the business of `runner.clients.ladder`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from runner.clients.http_refusal import Complaint
from runner.wire import Shape

FORMAT: Final = "response_format"
SYSTEM: Final = "system"
PACKED: Final = "encoding_format"
LIMITS: Final = ("max_tokens", "max_completion_tokens")
ROOM: Final = "reasoning room"
_REFUSING: Final = re.compile(
    r"un-?(supported|known|expected|available|recogni[sz]ed)|extra|forbidden|invalid"
    r"|(not|n't|no longer) (\w+ )?(support|permit|allow|accept|available|implemented"
    r"|compatible|enabled|recogni[sz]ed|a valid|an? \w+ parameter)|deprecated"
    r"|only the default|must (be|alternate)|has to be|can ?not|can only|incompatible"
    r"|removed",
    re.IGNORECASE,
)
"""Words of a refusal, near the name of what is refused."""

_SYSTEM: Final = re.compile(
    r"system (role|message|prompt|instruction)s?\b.{0,60}(support|allow|enabled|permit)"
    r"|(role|roles)\b.{0,60}\b(system|developer)\b|developer instruction"
    r"|roles must alternate",
    re.IGNORECASE,
)
"""Seen: "System role not supported" (Gemma's template), "'messages[0].role' does not
support 'system' with this model" (o1-mini), "Developer instruction is not enabled"
(Gemini's form of Gemma), "Conversation roles must alternate user/assistant"."""

_FORMAT: Final = re.compile(
    r"response.?format|text\.format|json.?schema|json.?object|response_?schema"
    r"|structured.?output"
    r"|output_?(format|config)|guided.?decoding|grammar|invalid schema",
    re.IGNORECASE,
)
_TOO_LARGE: Final = re.compile(
    r"too (large|high|big|long)|at most|above|exceed|less than|maximum|<=|limit of",
    re.IGNORECASE,
)
_COMMON: Final = re.compile(r"[a-z]+")
"""Names that are also words of English: they count only in quotes, or as a place."""
_PLAINLY_NAMED: Final = frozenset({"temperature"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a call sent, as far as an endpoint may refuse it."""

    shape: Shape
    names: frozenset[str] = frozenset()
    room: int = 0  #: tokens for reasoning in its limit
    task: int = 0  #: number of its task; 0: of none


def refused_in(
    complaint: Complaint, words: str, sent: Sent, *, is_form: bool
) -> tuple[str, ...]:
    """Which of the fields that were sent an endpoint refuses, by its own words.

    A field that the body names as such decides. Otherwise a name counts that stands in
    a sentence of refusal; names that are words of English only in quotes.

    Args:
        complaint: the body of the refusal.
        words: its sentence, or what there is instead.
        sent: what the call sent.
        is_form: whether the words are of a kind that is about the reply's form.
    """
    places = [_named(field, words, sent.names) for field in complaint.fields]
    named = [name for name in places if name is not None]
    code = complaint.code.replace("invalid_request_error", "")  # of every refusal
    if not named and _REFUSING.search(f"{code} {words}"):
        named = [name for name in sorted(sent.names) if _is_in(name, words)]
        if SYSTEM in sent.names and _SYSTEM.search(words):
            named.append(SYSTEM)
    elif not named and _TOO_LARGE.search(words):
        named = [name for name in LIMITS if name in sent.names and _is_in(name, words)]
    if not named and is_form:
        named = [name for name in (FORMAT, PACKED) if name in sent.names]
    limits = [name for name in named if name in LIMITS]
    if limits and _TOO_LARGE.search(f"{complaint.code} {words}"):
        # the number is at fault, not its name
        others = [name for name in named if name not in LIMITS]
        named = [*others, ROOM] if sent.room and sent.shape.room else others
    return tuple(dict.fromkeys(named))


_NAMES: Final = {"effort": "reasoning_effort", "instructions": SYSTEM}
"""Names of the Responses form, where `reasoning.effort` is a field of a field."""


def _named(field: str, words: str, names: Collection[str]) -> str | None:
    """The field of ours that a body means by *field*, such as `body.temperature`."""
    steps = [_NAMES.get(step, step) for step in re.split(r"[.\[\]]+", field) if step]
    for step in steps:
        if step in names:
            return step
    if "messages" in steps and SYSTEM in names and _SYSTEM.search(f"{field} {words}"):
        return SYSTEM
    if FORMAT in names and _FORMAT.search(field):
        return FORMAT
    return None


def _is_in(name: str, words: str) -> bool:
    if name in {SYSTEM, FORMAT}:
        return name == FORMAT and bool(_FORMAT.search(words))
    if _COMMON.fullmatch(name) and name not in _PLAINLY_NAMED:
        return bool(re.search(rf"""['"`]{name}['"`]""", words))
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words))
