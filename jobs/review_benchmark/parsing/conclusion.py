"""What a reply concludes, and how alike it calls two conclusions."""

from __future__ import annotations

import math
from typing import TypeVar, get_args

from jobs.json_scan import wellformed
from jobs.review_benchmark.answered import (
    Agreement,
    Certainty,
    Conclusion,
    Direction,
    Likeness,
)
from jobs.review_benchmark.parsing.objects import first_with, nothing, text_in
from runner.reply import ParseFailure, Reply

MOST = 100.0
"""Similarity is asked for from 0 to 100."""

_Word = TypeVar("_Word", bound=str)


def parse_conclusion(reply: Reply) -> Conclusion | ParseFailure:
    """The conclusion in a reply; prose without any object is one by itself.

    Failures: `empty`, `refusal`, `truncated`, `no_conclusion`.
    """
    text = text_in(reply)
    if isinstance(text, ParseFailure):
        return text
    found = first_with("conclusion", text)
    if found is None:
        if "{" in text or reply.is_truncated:
            return nothing(reply, "no_conclusion")
        return Conclusion(text=wellformed(text))
    concluded = found["conclusion"]
    if not isinstance(concluded, str) or not concluded.strip():
        return ParseFailure(reason="no_conclusion")
    return Conclusion(
        text=wellformed(concluded).strip(),
        direction=_word(found.get("direction"), get_args(Direction), "unclear"),
        certainty=_word(found.get("certainty"), get_args(Certainty), "unclear"),
    )


def parse_likeness(reply: Reply) -> Likeness | ParseFailure:
    """How alike a judge calls two conclusions.

    Failures: `empty`, `refusal`, `truncated`, `no_similarity`, `bad_similarity`.
    """
    text = text_in(reply)
    if isinstance(text, ParseFailure):
        return text
    found = first_with("similarity", text)
    if found is None:
        return nothing(reply, "no_similarity")
    try:
        similarity = float(found["similarity"])
    except (TypeError, ValueError):
        similarity = math.nan
    if isinstance(found["similarity"], bool) or not 0.0 <= similarity <= MOST:
        return ParseFailure(reason="bad_similarity")
    rationale = found.get("rationale")
    return Likeness(
        similarity=similarity / MOST,
        direction=_word(found.get("direction"), get_args(Agreement), "unclear"),
        rationale=wellformed(rationale).strip() if isinstance(rationale, str) else "",
    )


def _word(value: object, allowed: tuple[_Word, ...], otherwise: _Word) -> _Word:
    """One of the allowed words, however it is written."""
    if not isinstance(value, str):
        return otherwise
    plain = value.strip().lower().replace(" ", "_").replace("-", "_")
    return next((word for word in allowed if word == plain), otherwise)
