"""The rules of profile `clinpgx-qa`: replies read as recorded evaluations read them.

They exist to reproduce verdicts that were given elsewhere, quirks included, and are not
to be improved: an improvement belongs into the default rules.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from jobs.json_scan import wellformed
from jobs.paper_investigation.parsing.batch import BatchedAnswers, number_answers
from jobs.paper_investigation.parsing.p_values import BOUNDS, is_not_found
from jobs.paper_investigation.parsing.values import (
    LETTERS,
    Letter,
    StudyAnswer,
    VariantList,
    unread,
)
from runner.messages import ParseFailure, Reply

#: What stands in a field of a study answer that the reply does not have.
PARSE_ERROR = "parse_error"

_FENCE_MARK = re.compile(r"```(?:json)?")
_NUMBERED_LINE = re.compile(r"^\s*(\d{1,9})[.)](.*)$", re.MULTILINE)

_SIGNS = str.maketrans("\u2212\u2013×⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--x+-0123456789")
_COMMA = re.compile(r"(?<=\d),(?=\d)")
_DECIMAL = r"-?(?:\d+\.?\d*|\.\d+)"
_POWER = re.compile(
    rf"({_DECIMAL})\s*x\s*10\s*\^?\s*\(?\s*([+-]?\d+)\)?", re.IGNORECASE
)
_SCIENTIFIC = re.compile(rf"{_DECIMAL}e[+-]?\d+", re.IGNORECASE)
_PLAIN = re.compile(_DECIMAL)

_BOUND = re.compile(r"\s*([<>]=?)")


def read_list(reply: Reply) -> VariantList | ParseFailure:
    """The reply as a JSON array, else what stands between its outermost brackets.

    An entry that is no text becomes one as Python prints it.
    """
    text = reply.text
    outermost = text[text.find("[") : text.rfind("]") + 1]
    for rule, candidate in (("whole", text), ("outermost_brackets", outermost)):
        array = _decoded(candidate)
        if isinstance(array, list):
            entries = [wellformed(str(entry)) for entry in array]
            named = tuple(entry for entry in entries if entry.strip())
            return VariantList(
                entries=named, dropped=len(entries) - len(named), rule=rule
            )
    return unread(reply, "no_list")


def read_letter(
    reply: Reply, _options: tuple[str, ...] | None
) -> Letter | ParseFailure:
    """The letter alone, or leading, or the first of a to d between blanks."""
    text = reply.text.strip().lower()
    if text in LETTERS:
        return Letter(letter=text, rule="whole")
    for letter in LETTERS:
        if text.startswith((f"{letter})", f"{letter}.")):
            return Letter(letter=letter, rule="lead")
    for letter in LETTERS:
        if f" {letter} " in f" {text} ":
            return Letter(letter=letter, rule="between_blanks")
    return unread(reply, "no_letter")


def needs_options(_read: Letter | ParseFailure) -> bool:
    """No rule here looks at the options' texts."""
    return False


def read_study(reply: Reply) -> StudyAnswer | ParseFailure:
    """The first object without inner braces; a missing field is "parse_error"."""
    text = _FENCE_MARK.sub("", reply.text)
    start = max(0, text.find("{"))
    found = _decoded(text[start : text.find("}", start) + 1])
    if not isinstance(found, dict):
        return unread(reply, "no_object")
    return StudyAnswer(
        p_value=wellformed(str(found.get("p_value", PARSE_ERROR))),
        significance=wellformed(str(found.get("significance", PARSE_ERROR))),
        rule="first_object",
    )


def split_batch(reply: Reply, count: int) -> BatchedAnswers:
    """The rest of each line that starts with a number and a dot or bracket."""
    lines = _NUMBERED_LINE.finditer(reply.text)
    return number_answers(((int(m[1]), Reply(text=m[2])) for m in lines), count)


def p_value_right(expected: str, answer: str, tolerance: float) -> bool:
    """Whether *answer* agrees with *expected*, operators of the answer mostly ignored.

    Two numbers agree within *tolerance* of the larger. A bound wants a bound of the
    same direction at the front, or any number that satisfies it; a value wants any
    number that agrees with it.
    """
    if is_not_found(expected) or is_not_found(answer):
        return is_not_found(expected) and is_not_found(answer)
    wanted = next(_numbers(expected), None)
    if wanted is None:
        return expected.strip().lower() == answer.strip().lower()
    given = list(_numbers(answer))
    bound = _BOUND.match(expected)
    if bound is None:
        return _agrees(wanted, given, tolerance)
    front = _BOUND.match(answer)
    if front and front[1][0] == bound[1][0] and _agrees(wanted, given[:1], tolerance):
        return True
    return any(BOUNDS[bound[1]](number, wanted) for number in given)


def _agrees(wanted: float, given: Iterable[float], tolerance: float) -> bool:
    return any(math.isclose(wanted, number, rel_tol=tolerance) for number in given)


def _decoded(text: str) -> Any:  # noqa: ANN401 - whatever the model wrote
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _numbers(text: str) -> Iterator[float]:
    """Powers of ten first, then e-notation, then plain numbers; no character twice."""
    text = _COMMA.sub("", text.translate(_SIGNS))
    for match in _POWER.finditer(text):
        yield float(f"{match[1]}e{match[2]}")
    text = _POWER.sub(" ", text)
    for match in _SCIENTIFIC.finditer(text):
        yield float(match[0])
    for match in _PLAIN.finditer(_SCIENTIFIC.sub(" ", text)):
        yield float(match[0])
