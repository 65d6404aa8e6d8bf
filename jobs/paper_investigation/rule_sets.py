"""Selects the rules to parse replies and compare p-values: siftlog or clinpgx-qa.

No function here raises on model output: an unreadable reply is a `ParseFailure`.

The rules of clinpgx-qa reproduce recorded verdicts, quirks included, and must not be
improved: improvements belong in the default rules.

A p-value is a number with the operator directly before it. The comparison depends only
on the expected one: a text without a number, a value, or a bound. A bound never matches
a value, because "p < 0.05" is true of both 0.03 and 0.0001.
"""

from __future__ import annotations

import functools
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.paper_investigation import parsing
from jobs.paper_investigation.data import LETTERS, NOT_FOUND, Options, QuestionKind
from jobs.paper_investigation.parsing import (
    BatchedAnswers,
    Letter,
    StudyAnswer,
    VariantList,
    number_answers,
    unread,
)
from jobs.paper_investigation.settings import Rules
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply, wellformed

_SUPERSCRIPTS = "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED = re.compile(f"[{_SUPERSCRIPTS}]+")
_LOWERED = str.maketrans(_SUPERSCRIPTS, "+-0123456789")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d", "-"),
        "≤": "<=",
        "≥": ">=",
    }
)

# Converted to e-notation. The caret may be missing before a sign ("x 10-5"), but not
# both: "x 100" is no power.
_POWER = r"10(?:\s*\^\s*[({]?\s*|\s*(?=[+-]))([+-]?\d+)"
_TIMES_POWER = re.compile(rf"(?<=[\d.])\s*[x×⋅·*]\s*{_POWER}")
_BARE_POWER = re.compile(r"(?<![\d.])10\s*\^\s*[({]?\s*([+-]?\d+)")

# Both match whole runs of digits, so that "0.03,0.04" remains two numbers.
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![.,]?\d)")

_STATED = re.compile(r"([<>]=?|==?)?\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)")
_INTRODUCED = re.compile(
    r"(?<![a-z0-9])p(?:[\s_-]*value)?(?:[\s_-]*\(?adj[a-z]*\.?\)?)?"
    r"\s*(?::|(?:of|is|was)\b|(?=[<>=]))\s*(?=[<>=.\d])"
)

_NOT_SIGNIFICANT = re.compile(r"n\.?s\.?|not significant|non[ -]?significant")

BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Comparison of a number with the threshold of a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPValue:
    """A number and its operator."""

    operator: str  #: "=", "<", "<=", ">" or ">="
    value: float

    @property
    def is_bound(self) -> bool:
        """Whether it is a bound of the p-value, not a value."""
        return self.operator != "="


def is_not_found(text: str) -> bool:
    """Return whether *text* states that the study has no such association."""
    return text.strip().lower() == NOT_FOUND


# Recorded answers and expected values repeat; the limit bounds memory.
@functools.lru_cache(maxsize=1 << 15)
def read_p_value(text: str) -> StatedPValue | None:
    """Parse the p-value in *text*; None if it has no number.

    Of several numbers, the one after "p", "p-value" or "p adj" counts, else the first.
    """
    text = _plain(text)
    stated = next(
        (
            match
            for intro in _INTRODUCED.finditer(text)
            if (match := _STATED.match(text, intro.end()))
        ),
        _STATED.search(text),
    )
    if stated is None:
        return None
    sign = (stated[1] or "=").replace("==", "=")
    return StatedPValue(operator=sign, value=float(stated[2]))


def p_value_right_robust(expected: str, answer: str, tolerance: float) -> bool:
    """Return whether *answer* states the *expected* p-value.

    A value requires a value within *tolerance*, relative to it. A bound requires a
    bound of the same direction that is within *tolerance* or tighter, or a value that
    satisfies it. A text without a number requires the same text.
    """
    if is_not_found(expected) or is_not_found(answer):
        return is_not_found(expected) and is_not_found(answer)
    target, stated = read_p_value(expected), read_p_value(answer)
    if target is None:
        return _same_text(expected, answer)
    if stated is None:
        return False
    if not target.is_bound:
        return not stated.is_bound and _is_close(stated.value, target.value, tolerance)
    satisfies = BOUNDS[target.operator](stated.value, target.value)
    if not stated.is_bound:
        return satisfies
    return stated.operator[0] == target.operator[0] and (
        satisfies or _is_close(stated.value, target.value, tolerance)
    )


def significance_right(expected: str, answer: str) -> bool:
    """Return whether *answer* states the *expected* significance, by all rules."""
    return expected.strip().lower() == answer.strip().lower()


def _plain(text: str) -> str:
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_LOWERED), text)
    text = text.translate(_SIGNS).lower()
    text = _BARE_POWER.sub(r"1e\1", _TIMES_POWER.sub(r"e\1", text))
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _is_close(stated: float, target: float, tolerance: float) -> bool:
    # The last factor admits a value exactly at the limit except for rounding.
    return abs(stated - target) <= tolerance * abs(target) * (1 + 1e-9)


def _same_text(expected: str, answer: str) -> bool:
    left, right = (_plain(text).strip() for text in (expected, answer))
    return left == right or all(map(_NOT_SIGNIFICANT.fullmatch, (left, right)))


#: Value of a field of a study answer that is missing in the reply.
PARSE_ERROR = "parse_error"

_FENCE_MARK = re.compile(r"```(?:json)?")
_NUMBERED_LINE = re.compile(r"^\s*(\d{1,9})[.)](.*)$", re.MULTILINE)

_CLINPGX_SIGNS = str.maketrans("\u2212\u2013×⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--x+-0123456789")
_CLINPGX_COMMA = re.compile(r"(?<=\d),(?=\d)")
_CLINPGX_DECIMAL = r"-?(?:\d+\.?\d*|\.\d+)"
_CLINPGX_POWER = re.compile(
    rf"({_CLINPGX_DECIMAL})\s*x\s*10\s*\^?\s*\(?\s*([+-]?\d+)\)?", re.IGNORECASE
)
_CLINPGX_SCIENTIFIC = re.compile(rf"{_CLINPGX_DECIMAL}e[+-]?\d+", re.IGNORECASE)
_CLINPGX_PLAIN = re.compile(_CLINPGX_DECIMAL)

_CLINPGX_BOUND = re.compile(r"\s*([<>]=?)")


def read_list_clinpgx(reply: Reply) -> VariantList | ParseFailure:
    """Parse the reply as a JSON array, else the text between its outermost brackets.

    An entry that is not text is converted as Python prints it.
    """
    text = reply.text
    outermost = text[text.find("[") : text.rfind("]") + 1]
    for rule, candidate in (("whole", text), ("outermost_brackets", outermost)):
        array = _decoded(candidate)
        if isinstance(array, list):
            entries = [wellformed(str(entry)) for entry in array]
            names = tuple(entry for entry in entries if entry.strip())
            return VariantList(
                entries=names, dropped=len(entries) - len(names), rule=rule
            )
    return unread(reply, "no_list")


def read_letter_clinpgx(
    reply: Reply, _options: tuple[str, ...] | None
) -> Letter | ParseFailure:
    """Parse the letter alone, or leading, or the first of a to d between blanks."""
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


def needs_options_clinpgx(_read: Letter | ParseFailure) -> bool:
    """Return False: no rule here uses the options' texts."""
    return False


def read_study_clinpgx(reply: Reply) -> StudyAnswer | ParseFailure:
    """Parse the first object without nested braces; missing is "parse_error"."""
    text = _FENCE_MARK.sub("", reply.text)
    start = max(0, text.find("{"))
    answer_object = _decoded(text[start : text.find("}", start) + 1])
    if not isinstance(answer_object, dict):
        return unread(reply, "no_object")
    return StudyAnswer(
        p_value=wellformed(str(answer_object.get("p_value", PARSE_ERROR))),
        significance=wellformed(str(answer_object.get("significance", PARSE_ERROR))),
        rule="first_object",
    )


def split_batch_clinpgx(reply: Reply, count: int) -> BatchedAnswers:
    """Split lines that start with a number and a dot or bracket."""
    lines = _NUMBERED_LINE.finditer(reply.text)
    return number_answers(((int(m[1]), Reply(text=m[2])) for m in lines), count)


def p_value_right_clinpgx(expected: str, answer: str, tolerance: float) -> bool:
    """Return whether *answer* agrees with *expected*, mostly ignoring its operators.

    Two numbers agree within *tolerance* of the larger. A bound requires a bound of the
    same direction at the front, or any number that satisfies it; a value requires any
    number that agrees with it.
    """
    if is_not_found(expected) or is_not_found(answer):
        return is_not_found(expected) and is_not_found(answer)
    target = next(_numbers(expected), None)
    if target is None:
        return expected.strip().lower() == answer.strip().lower()
    stated_numbers = list(_numbers(answer))
    bound = _CLINPGX_BOUND.match(expected)
    if bound is None:
        return _agrees(target, stated_numbers, tolerance)
    front = _CLINPGX_BOUND.match(answer)
    if (
        front
        and front[1][0] == bound[1][0]
        and _agrees(target, stated_numbers[:1], tolerance)
    ):
        return True
    return any(BOUNDS[bound[1]](number, target) for number in stated_numbers)


def _agrees(target: float, stated_numbers: Iterable[float], tolerance: float) -> bool:
    return any(
        math.isclose(target, number, rel_tol=tolerance) for number in stated_numbers
    )


def _decoded(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _numbers(text: str) -> Iterator[float]:
    """Yield powers of ten, then e-notation, then plain numbers, without overlap."""
    text = _CLINPGX_COMMA.sub("", text.translate(_CLINPGX_SIGNS))
    for match in _CLINPGX_POWER.finditer(text):
        yield float(f"{match[1]}e{match[2]}")
    text = _CLINPGX_POWER.sub(" ", text)
    for match in _CLINPGX_SCIENTIFIC.finditer(text):
        yield float(match[0])
    for match in _CLINPGX_PLAIN.finditer(_CLINPGX_SCIENTIFIC.sub(" ", text)):
        yield float(match[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """A set of rules to parse replies and judge the answers."""

    read_list: Callable[[Reply], VariantList | ParseFailure]
    read_letter: Callable[[Reply, Options | None], Letter | ParseFailure]
    needs_options: Callable[[Letter | ParseFailure], bool]
    read_study: Callable[[Reply], StudyAnswer | ParseFailure]
    split_batch: Callable[[Reply, int], parsing.BatchedAnswers]
    p_value_right: Callable[[str, str, float], bool]


RULE_SETS: Mapping[Rules, RuleSet] = {
    "robust": RuleSet(
        read_list=parsing.read_list,
        read_letter=parsing.read_letter,
        needs_options=parsing.letter_needs_options,
        read_study=parsing.read_study,
        split_batch=parsing.split_batch,
        p_value_right=p_value_right_robust,
    ),
    "clinpgx-qa": RuleSet(
        read_list=read_list_clinpgx,
        read_letter=read_letter_clinpgx,
        needs_options=needs_options_clinpgx,
        read_study=read_study_clinpgx,
        split_batch=split_batch_clinpgx,
        p_value_right=p_value_right_clinpgx,
    ),
}


@guarded
def parse_list(reply: Reply, rules: Rules) -> VariantList | ParseFailure:
    """Parse the variants in an extraction reply."""
    return RULE_SETS[rules].read_list(reply)


@guarded
def parse_letter(
    reply: Reply, rules: Rules, options: Options | None
) -> Letter | ParseFailure:
    """Parse the option in a reply; *options* are None if they are unknown."""
    return RULE_SETS[rules].read_letter(reply, options)


def needs_options(read: Letter | ParseFailure, rules: Rules) -> bool:
    """Return whether *read*, parsed without options, may differ with them.

    Most replies are bare letters: parsed without options, they are the same for all
    questions and need to be parsed only once.
    """
    return RULE_SETS[rules].needs_options(read)


@guarded
def parse_study(reply: Reply, rules: Rules) -> StudyAnswer | ParseFailure:
    """Parse the p-value and significance in a reply."""
    return RULE_SETS[rules].read_study(reply)


def parse_batch(
    reply: Reply,
    kinds: Sequence[QuestionKind],
    *,
    letter_rules: Rules,
    p_rules: Rules,
    options: Sequence[Options | None],
) -> tuple[Letter | StudyAnswer | ParseFailure, ...]:
    """Parse the answer to each question of a batch, in the order of the request.

    A question without an answer in a complete reply is `missing_in_batch`.
    """
    batches = {
        "mcq": _split(reply, len(kinds), letter_rules),
        "study": _split(reply, len(kinds), p_rules),
    }

    def parse(index: int, kind: QuestionKind) -> Letter | StudyAnswer | ParseFailure:
        batched = batches[kind]
        if isinstance(batched, ParseFailure):
            return batched
        part = batched[index]
        if part is None:
            return unread(reply, "missing_in_batch")
        if kind == "study":
            return parse_study(part, p_rules)
        return parse_letter(part, letter_rules, options[index])

    return tuple(parse(index, kind) for index, kind in enumerate(kinds))


@guarded
def _split(reply: Reply, count: int, rules: Rules) -> parsing.BatchedAnswers:
    """Split a batched reply into answers."""
    return RULE_SETS[rules].split_batch(reply, count)


def p_value_right(expected: str, answer: str, rules: Rules, tolerance: float) -> bool:
    """Return whether *answer* states the *expected* p-value, within *tolerance*."""
    return RULE_SETS[rules].p_value_right(expected, answer, tolerance)
