"""Parses the replies of each stage; never raises on model output.

The reply about a record is parsed by rules in order, and the first that applies wins:
JSON objects, then decisions in the words that models use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import msgspec

from jobs.kit.inputs.cells import kind_of
from jobs.kit.replies import (
    Object,
    last_object,
    objects,
    parse_failure,
    reply_content,
    whole_object,
)
from jobs.screening.data import (
    REASON_CODES,
    Criteria,
    Decision,
    Ids,
    ScreeningJudgement,
)
from jobs.screening.input_tables import PICO
from jobs.screening.inputs import ScreeningDataset
from runner.job import ReplyParser, Stage, Task
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply, wellformed

WORDS: Mapping[str, Decision] = {
    "include": "include",
    "included": "include",
    "yes": "include",
    "relevant": "include",
    "true": "include",
    "1": "include",
    "exclude": "exclude",
    "excluded": "exclude",
    "no": "exclude",
    "irrelevant": "exclude",
    "false": "exclude",
    "0": "exclude",
    "unclear": "unclear",
    "uncertain": "unclear",
    "unsure": "unclear",
    "maybe": "unclear",
    "cannot tell": "unclear",
}

SHORT = 200
"""Maximum characters of a reply in which one bare word counts as its decision."""

_MARKUP = re.compile(r"[*_`#>~]+")
_LONGEST_FIRST = sorted(WORDS, key=len, reverse=True)
_STATED = re.compile(
    r"(?:final\s+)?(?:decision|verdict|answer)\s*(?:[:=-]|is\b)"
    # a share such as 0.8 or 1% is a number, and "include or exclude" a question
    rf"\W*({'|'.join(_LONGEST_FIRST)})\b(?![.,]?\d|\s*(?:[%/|]|or\b))",
    re.IGNORECASE,
)
# a lone digit in prose is a number, not a decision
_BARE = re.compile(
    rf"\b({'|'.join(word for word in _LONGEST_FIRST if not word.isdigit())})\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\bnot\b|n['\u2019]t\b|\bcannot\b", re.IGNORECASE)
_LACK = re.compile(r"\bno\s+\w", re.IGNORECASE)


def decision_of(value: object) -> Decision | None:
    """Return the decision in a JSON value; numbers come as texts."""
    if isinstance(value, bool):
        return "include" if value else "exclude"
    if not isinstance(value, str):
        return None
    # nearly always one of the words, unchanged
    return WORDS.get(value) or WORDS.get(" ".join(value.split()).strip(" .").casefold())


def stated(text: str) -> Decision | None:
    """Return the decision of the last line that labels one as such."""
    for line in reversed(text.splitlines()):
        matches = list(_STATED.finditer(_MARKUP.sub("", line)))
        if matches:
            return WORDS[matches[-1][1].casefold()]
    return None


def bare(text: str) -> Decision | None:
    """Return the decision of a short reply with one decision word and no negation."""
    short = _MARKUP.sub("", text).strip()
    whole = decision_of(short)
    if whole is not None or len(short) > SHORT:
        return whole
    # "cannot tell" is a decision, and does not negate another one
    if _NEGATED.search(_BARE.sub("", short)):
        return None
    # "no abstract" states what is missing; it may accompany a decision, but is none
    if not _BARE.search(_LACK.sub("", short)):
        return None
    decisions = {WORDS[word.casefold()] for word in _BARE.findall(short)}
    return decisions.pop() if len(decisions) == 1 else None


LIKELY = 0.5
PERCENT = 100

_NUMBER = re.compile(r"([0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(%?)")


REPEATED = 200
"""Maximum characters of a reply that is cached after parsing: without reasons, only a
few hundred distinct decisions occur."""


@guarded
def parse_screen(reply: Reply) -> ScreeningJudgement | ParseFailure:
    """Parse the judgement in a reply.

    Failures: `empty`, `refusal`, `ambiguous`, `bad_decision`, `no_decision`,
    `score_only`, `truncated`.
    """
    if len(reply.text) > REPEATED:
        return _parse(reply)
    return _parse_repeated(reply.text, reply.finish_reason)


@lru_cache(maxsize=4096)
def _parse_repeated(text: str, finish_reason: str) -> ScreeningJudgement | ParseFailure:
    return _parse(Reply(text=text, finish_reason=finish_reason))


def _parse(reply: Reply) -> ScreeningJudgement | ParseFailure:
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    # a fence, or prose around an object, is ignored; a nested object is part of its
    # parent
    payloads = list(objects(text, lambda value: "decision" in value))
    if not payloads and score_alone(text) is not None:
        return ParseFailure(reason="score_only")
    return (
        _of_objects(payloads)
        if payloads
        else _of_words(text, is_cut=reply.is_truncated)
    )


def score_alone(text: str) -> float | None:
    """Return the p_include of a reply that is one object without a decision."""
    value = whole_object(text.strip())
    if value is None or "decision" in value:
        return None
    return probability(value.get("p_include"))


def _of_objects(payloads: list[Object]) -> ScreeningJudgement | ParseFailure:
    """Return the last object's judgement, unless the others decide otherwise."""
    read = [decision_of(payload["decision"]) for payload in payloads]
    decision = read[-1]
    if len(set(read)) > 1:
        return ParseFailure(reason="ambiguous")
    if decision is None:
        written = payloads[-1]["decision"]
        excerpt = repr(written[:40]) if isinstance(written, str) else kind_of(written)
        return ParseFailure(
            reason="bad_decision",
            detail=f"decision is {excerpt}: include, exclude or unclear is expected",
        )
    return _judgement(decision, payloads[-1])


def _of_words(text: str, *, is_cut: bool) -> ScreeningJudgement | ParseFailure:
    """Parse the decision of a reply without an object."""
    decision = stated(text)
    if decision is not None:
        return ScreeningJudgement(decision=decision, rule="line")
    # the length of a truncated reply, and any later negation, are unknown
    if is_cut:
        return ParseFailure(reason="truncated")
    decision = bare(text)
    if decision is not None:
        return ScreeningJudgement(decision=decision, rule="word")
    return ParseFailure(reason="no_decision")


def _judgement(decision: Decision, value: Object) -> ScreeningJudgement:
    issues = []
    stated_p = value.get("p_include")
    p = probability(stated_p)
    if p is None and stated_p is not None:
        issues.append("bad_confidence")
    if p is not None and _contradicts(decision, p):
        issues.append("inconsistent")
    code = value.get("reason_code")
    if code not in REASON_CODES:
        issues.append("bad_reason_code")
        code = "other"
    reason = value.get("reason")
    return ScreeningJudgement(
        decision=decision,
        p_include=p,
        reason_code=str(code),
        reason=wellformed(reason) if isinstance(reason, str) else "",
        issues=tuple(issues),
    )


def _contradicts(decision: Decision, p: float) -> bool:
    return (decision == "include" and p < LIKELY) or (
        decision == "exclude" and p > LIKELY
    )


def probability(value: object) -> float | None:
    """Parse a probability from 0 to 1, or from a percentage.

    Numbers above 1 count as percentages. None for booleans, for text that is not a
    number, and for values out of range.
    """
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    number = float(match[1].replace(",", "."))
    if match[2] or 1 < number <= PERCENT:
        number /= PERCENT
    return number if math.isfinite(number) and 0 <= number <= 1 else None


_FIELDS = frozenset({"question", "pico", "inclusion", "exclusion"})


@guarded
def parse_criteria(reply: Reply) -> Criteria | ParseFailure:
    """Parse the criteria in a reply: the last object that has any of the fields.

    A field of the wrong type counts as empty, and a single text, where a list is
    expected, as a list of one. Failures: `empty`, `refusal`, `truncated`,
    `no_criteria`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    payload = last_object(text, lambda value: not _FIELDS.isdisjoint(value)) or {}
    pico = payload.get("pico")
    pico_fields = pico if isinstance(pico, dict) else {}
    criteria = Criteria(
        question=_text(payload.get("question")),
        pico={name: text for name in PICO if (text := _text(pico_fields.get(name)))},
        inclusion=_text_list(payload.get("inclusion")),
        exclusion=_text_list(payload.get("exclusion")),
    )
    if criteria.is_empty:
        failure = parse_failure(reply, "no_criteria")
        return replace(failure, detail="no question, pico or list of texts")
    return criteria


def _text(value: object) -> str:
    return wellformed(" ".join(value.split())) if isinstance(value, str) else ""


def _text_list(value: object) -> Ids:
    values = value if isinstance(value, list) else [value]
    return tuple(filter(None, map(_text, values)))


def read_criteria(
    dataset: ScreeningDataset, task: Task, reply: Reply
) -> Criteria | ParseFailure:
    """Parse the criteria of a review."""
    if not dataset.records_of(task.key):
        return ParseFailure(reason="unknown_review")
    return parse_criteria(reply)


def read_screen(
    dataset: ScreeningDataset, task: Task, reply: Reply
) -> ScreeningJudgement | ParseFailure:
    """Parse the decision about a record, if the set has that record."""
    if dataset.validation_set is not None and dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_record")
    return parse_screen(reply)


class ScreeningReading(msgspec.Struct, frozen=True, array_like=True):
    """The part of a reply, of any stage, that a scoring needs.

    If there is neither a judgement nor a failure, the reply states criteria.
    """

    judgement: ScreeningJudgement | None = None
    failure: ParseFailure | None = None
    p: float | None = None  #: of a reply with a score and no decision


def read_stage(stage: str, reply: Reply) -> ScreeningReading:
    """Parse a reply of a stage by the current rules, for any item."""
    if stage == "criteria":
        criteria = parse_criteria(reply)
        if isinstance(criteria, ParseFailure):
            return ScreeningReading(failure=criteria)
        return ScreeningReading()
    parsed = parse_screen(reply)
    if isinstance(parsed, ScreeningJudgement):
        return ScreeningReading(judgement=parsed)
    p = score_alone(reply.text) if parsed.reason == "score_only" else None
    return ScreeningReading(failure=parsed, p=p)


PARSER = ReplyParser(name="screening", result=ScreeningReading, parse=read_stage)
"""Parser of scorings; it reads no data."""


STAGES = (
    Stage(name="criteria", parse=read_criteria, gathers=True, once=True),
    Stage(name="title", parse=read_screen, gathers=True),
    Stage(name="abstract", parse=read_screen, gathers=True),
    Stage(name="fulltext", parse=read_screen, follows=False),
)
"""All but the last stage gather: a failed call must not end a record."""
