"""What a reply says of a record: rules in order, the first that applies wins."""

from __future__ import annotations

import math
import re

from jobs.inputs.rows import kind_of
from jobs.replies import Object, objects, wellformed, whole_object
from jobs.screening.judgement import REASON_CODES, Decision, Judgement
from jobs.screening.parsing.words import bare, decision_of, stated
from runner.job import guarded
from runner.messages import ParseFailure, Reply

LIKELY = 0.5
PERCENT = 100

_NUMBER = re.compile(r"([0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(%?)")


@guarded
def parse_screen(reply: Reply) -> Judgement | ParseFailure:
    """The judgement in a reply.

    Failures: `empty`, `refusal`, `ambiguous`, `bad_decision`, `no_decision`,
    `score_only`, `truncated`.
    """
    if reply.is_refused:
        return ParseFailure(reason="refusal")
    text = reply.text.lstrip("\ufeff").strip()
    if not text:
        return ParseFailure(reason="truncated" if reply.is_truncated else "empty")
    # a fence, or prose around an object, is passed over; one inside another is its part
    found = list(objects(text, lambda value: "decision" in value))
    if not found and score_alone(text) is not None:
        return ParseFailure(reason="score_only")
    return _of_objects(found) if found else _of_words(text, is_cut=reply.is_truncated)


def score_alone(text: str) -> float | None:
    """The p_include of a reply that is one object without a decision; else None."""
    value = whole_object(text.strip())
    if value is None or "decision" in value:
        return None
    return probability(value.get("p_include"))


def _of_objects(found: list[Object]) -> Judgement | ParseFailure:
    """The last object; with others that decide otherwise, none."""
    read = [decision_of(each["decision"]) for each in found]
    decision = read[-1]
    if len(set(read)) > 1:
        return ParseFailure(reason="ambiguous")
    if decision is None:
        written = found[-1]["decision"]
        shown = repr(written[:40]) if isinstance(written, str) else kind_of(written)
        return ParseFailure(
            reason="bad_decision",
            detail=f"decision is {shown}: include, exclude or unclear is expected",
        )
    return _judgement(decision, found[-1])


def _of_words(text: str, *, is_cut: bool) -> Judgement | ParseFailure:
    """What a reply without an object says."""
    decision = stated(text)
    if decision is not None:
        return Judgement(decision=decision, rule="line")
    # nobody knows how long a cut reply is, nor what it would have gone on to deny
    if is_cut:
        return ParseFailure(reason="truncated")
    decision = bare(text)
    if decision is not None:
        return Judgement(decision=decision, rule="word")
    return ParseFailure(reason="no_decision")


def _judgement(decision: Decision, value: Object) -> Judgement:
    noticed = []
    stated_p = value.get("p_include")
    p = probability(stated_p)
    if p is None and stated_p is not None:
        noticed.append("bad_confidence")
    if p is not None and _contradicts(decision, p):
        noticed.append("inconsistent")
    code = value.get("reason_code")
    if code not in REASON_CODES:
        noticed.append("bad_reason_code")
        code = "other"
    reason = value.get("reason")
    return Judgement(
        decision=decision,
        p_include=p,
        reason_code=str(code),
        reason=wellformed(reason) if isinstance(reason, str) else "",
        noticed=tuple(noticed),
    )


def _contradicts(decision: Decision, p: float) -> bool:
    return (decision == "include" and p < LIKELY) or (
        decision == "exclude" and p > LIKELY
    )


def probability(value: object) -> float | None:
    """A probability from 0 to 1; percent where it is written so, or is above 1.

    None for true and false, for what is no number, and for what lies outside.
    """
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    number = float(found[1].replace(",", "."))
    if found[2] or 1 < number <= PERCENT:
        number /= PERCENT
    return number if math.isfinite(number) and 0 <= number <= 1 else None
