"""What a reply concludes, and how alike it calls two conclusions."""

from __future__ import annotations

import re
from typing import get_args

from jobs.replies import (
    Object,
    first_object_with,
    objects,
    parse_failure,
    reply_content,
    wellformed,
)
from jobs.review_benchmark.answered import (
    Agreement,
    Certainty,
    Conclusion,
    Direction,
    Likeness,
    word_of,
)
from runner.job import guarded
from runner.messages import ParseFailure, Reply

MOST = 100.0
"""Similarity is asked for from 0 to 100."""

_SIMILARITY = re.compile(
    r"\s*\+?([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?:%|/\s*100)?\s*"
)


@guarded
def parse_conclusion(reply: Reply) -> Conclusion | ParseFailure:
    """The conclusion in a reply; prose without any object is one by itself.

    Failures: `empty`, `refusal`, `truncated`, `no_conclusion`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = first_object_with("conclusion", text)
    if found is None:
        if "{" in text or reply.is_truncated:
            return parse_failure(reply, "no_conclusion")
        return Conclusion(text=wellformed(text))
    concluded = found["conclusion"]
    if not isinstance(concluded, str) or not concluded.strip():
        return ParseFailure(reason="no_conclusion")
    return Conclusion(
        text=wellformed(concluded).strip(),
        direction=word_of(found.get("direction"), get_args(Direction)),
        certainty=word_of(found.get("certainty"), get_args(Certainty)),
    )


@guarded
def parse_likeness(reply: Reply) -> Likeness | ParseFailure:
    """How alike a judge calls two conclusions.

    Failures: `empty`, `refusal`, `truncated`, `no_similarity`, `bad_similarity`,
    `ambiguous`. A number is never rescaled and never clipped.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = [
        _likeness(each) for each in objects(text, lambda value: "similarity" in value)
    ]
    if not found:
        return parse_failure(reply, "no_similarity")
    said = {
        None if each is None else (each.similarity, each.direction) for each in found
    }
    if len(said) > 1:
        return ParseFailure(reason="ambiguous")
    return found[-1] or ParseFailure(reason="bad_similarity")


def _likeness(stated: Object) -> Likeness | None:
    """What one object says; None where its number is none from 0 to `MOST`."""
    written = stated["similarity"]
    match = _SIMILARITY.fullmatch(written) if isinstance(written, str) else None
    if match is None or not (similarity := float(match[1])) <= MOST:
        return None
    rationale = stated.get("rationale")
    return Likeness(
        similarity=similarity / MOST,
        direction=word_of(stated.get("direction"), get_args(Agreement)) or "unclear",
        rationale=wellformed(rationale).strip() if isinstance(rationale, str) else "",
    )
