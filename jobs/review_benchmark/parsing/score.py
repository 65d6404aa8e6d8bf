"""How relevant a reply calls a paper: rules in order, the first that applies wins.

A score is never rescaled and never clipped: what lies outside the scale is a failure.
"""

from __future__ import annotations

import re

from jobs.replies import objects, parse_failure, reply_content, wellformed
from jobs.review_benchmark.answered import RATIONALE, Relevance
from runner.job import guarded
from runner.messages import ParseFailure, Reply

_NUMBER = r"[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
_SCORE = rf"({_NUMBER})(?:\s*(?:/|out\s+of)\s*([0-9]+(?:\.[0-9]+)?))?"
_ALONE = re.compile(rf"\W*?{_SCORE}\W*", re.IGNORECASE)
# a dash right before the number is its sign
_LINE = re.compile(
    rf"\W*(?:relevance\s+)?score\W*?(?::|=|-(?=\s)|is)\W*?{_SCORE}\W*", re.IGNORECASE
)
_VALUE = re.compile(rf"\s*{_SCORE}\s*", re.IGNORECASE)


@guarded
def parse_score(reply: Reply, ends: tuple[float, float]) -> Relevance | ParseFailure:
    """The score in a reply.

    Failures: `empty`, `refusal`, `truncated`, `no_score`, `bad_score`, `ambiguous`.

    Args:
        reply: of the model.
        ends: least and highest score of the scale, both inclusive.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = list(objects(text, lambda value: "score" in value))
    if found:
        rationale = found[-1].get("rationale")
        return _agreed(
            [_stated(each["score"], ends) for each in found],
            "json",
            _short(rationale) if isinstance(rationale, str) else "",
        )
    # what stands before a cut may be the beginning of another number
    whole = text.splitlines()[:-1] if reply.is_truncated else text.splitlines()
    lines = [match for each in whole if (match := _LINE.fullmatch(each))]
    if lines:
        return _agreed([_read(match, ends) for match in lines], "line")
    alone = None if reply.is_truncated else _ALONE.fullmatch(text)
    if alone is not None:
        return _agreed([_read(alone, ends)], "number")
    return parse_failure(reply, "no_score")


def _agreed(
    scores: list[float | None], rule: str, rationale: str = ""
) -> Relevance | ParseFailure:
    if len(set(scores)) > 1:
        return ParseFailure(reason="ambiguous")
    score = scores[-1]
    if score is None:
        return ParseFailure(reason="bad_score")
    return Relevance(score=score, rationale=rationale, rule=rule)


def _short(rationale: str) -> str:
    return wellformed(rationale).strip()[:RATIONALE]


def _stated(value: object, ends: tuple[float, float]) -> float | None:
    """A score as JSON has it: numbers come as the texts they were written with."""
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else _read(match, ends)


def _read(match: re.Match[str], ends: tuple[float, float]) -> float | None:
    """A score on the scale; None where it, or what it is out of, is not."""
    number, top = match[1], match[2]
    if top is not None and float(top) != ends[1]:
        return None
    score = float(number.replace(",", "."))
    return score if ends[0] <= score <= ends[1] else None
