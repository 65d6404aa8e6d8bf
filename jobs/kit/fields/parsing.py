"""Reads a reply into one answer per field: value, quotes with places, or a failure.

The reply is a JSON object with a key per field. A field without quote or unit holds its
value; others hold an object: `{"quote": ..., "value": ..., "unit": ...}`. Null means
that the text does not report the field. Forms that endpoints without schema support
return are read too: a bare value, numbers as text, "yes" for true. No value is guessed:
a field whose value does not fit its type is unparsed, and the others keep theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from jobs.kit.fields.spec import FieldSpec
from jobs.kit.fields.values import Unparsed, Value, read_value
from jobs.kit.grounding import GROUNDED, GroundingLevel
from jobs.kit.replies import objects, parse_failure, reply_content
from runner.messages import ParseFailure, Reply, wellformed

REASONING: Final = "reasoning"
"""Key of the explanation, before the fields."""

VERDICT_WORDS: Final = ("supported", "not_supported", "unclear")

Failure: TypeAlias = str
"""Reason why a field has no value although the reply was read. One of:

`missing`: the reply has no such key; `required`: null, but the recipe requires a value;
`not_a_text`, `not_an_integer`, `not_a_number`, `not_a_boolean`, `not_a_date`,
`not_an_option`, `not_a_list`, `not_an_object`: the value does not fit the type;
`other_unit`: a unit that cannot be converted to the field's.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuote:
    """A quote and its position in the item's text."""

    text: str  #: as the model wrote it
    level: GroundingLevel = GroundingLevel.NO_TEXT
    """Quality of the match: from EXACT to NEAR (90 % alike or more); ABSENT: it is not
    in the text."""
    start: int | None = None  #: offset in the document's text; None: not located
    end: int | None = None  #: exclusive
    page: int | None = None  #: from 1; None: the document has no pages
    section: str = ""  #: title of the section, if the document has any

    @property
    def is_grounded(self) -> bool:
        """Return whether the words of the quote are the document's."""
        return self.level in GROUNDED

    @property
    def is_located(self) -> bool:
        """Return whether the quote, or something much like it, is in the document."""
        return self.start is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAnswer:
    """The answer to one field.

    Exactly one of three states: a value (`is_answered`); not reported (`value` is None
    without a failure); unparsed (`failure`).
    """

    value: Value = None
    """str, int, float or bool; an ISO date (`2021`, `2021-05`, `2021-05-17`) for type
    date; a tuple for lists; a dict of parts for objects."""
    quotes: tuple[AnswerQuote, ...] = ()
    """One for a single value or object, at most one per element for a list; empty if
    the field asks for none or the reply has none."""
    failure: Failure = ""  #: why the value is unparsed; "": it is not
    detail: str = ""  #: the unread text, or the conversion of a unit
    chunk: int = 0  #: the chunk that the value is from, from 1; 0: the whole text

    @property
    def is_answered(self) -> bool:
        """Return whether there is a value."""
        return self.value is not None

    @property
    def is_unparsed(self) -> bool:
        """Return whether the reply's value could not be read."""
        return bool(self.failure)

    @property
    def is_grounded(self) -> bool | None:
        """Return whether all its quotes are in the text; None: without quotes."""
        if not self.quotes:
            return None
        return all(quote.is_grounded for quote in self.quotes)


NOT_REPORTED: Final = FieldAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    """A parsed reply: an answer for every field of its request, in declared order."""

    fields: Mapping[str, FieldAnswer]
    reasoning: str = ""  #: empty unless the recipe says `explain = true`

    def values(self) -> dict[str, Value]:
        """Return the plain values, for conditions."""
        return {name: answer.value for name, answer in self.fields.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCheck:
    """A model's verdict on a value and its quote."""

    verdict: str  #: "supported", "not_supported" or "unclear"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCheck:
    """A parsed reply of a check: a verdict by field."""

    verdicts: Mapping[str, FieldCheck] = field(default_factory=dict)


def read_fields(
    reply: Reply, specs: Mapping[str, FieldSpec]
) -> ParsedReply | ParseFailure:
    """Read a reply to a request for *specs*; its quotes are not located yet.

    Failures: `empty`, `refusal`, `truncated`, `no_json`, and `no_field` for a JSON
    object without any of the fields.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    read = _object_with(text, specs)
    if read is None:
        has_object = next(objects(text, lambda _: True), None) is not None
        return parse_failure(reply, "no_field" if has_object else "no_json")
    reasoning = read.get(REASONING)
    return ParsedReply(
        fields={name: _field(read, name, spec) for name, spec in specs.items()},
        reasoning=wellformed(reasoning) if isinstance(reasoning, str) else "",
    )


def _object_with(text: str, names: Iterable[str]) -> Mapping[str, Any] | None:
    """Return the last object with any of the names: drafts come before it."""
    read = None
    for candidate in objects(text, lambda value: any(n in value for n in names)):
        read = candidate
    return read


def _field(read: Mapping[str, Any], name: str, spec: FieldSpec) -> FieldAnswer:
    if name not in read:
        return FieldAnswer(failure="missing")
    if not spec.is_list:
        return _one(read[name], spec)
    elements = read[name]
    if isinstance(elements, Mapping) and "value" in elements:
        elements = elements["value"]
    if elements is None:
        elements = []
    if not isinstance(elements, list):
        return FieldAnswer(failure="not_a_list", detail=_excerpt(elements))
    return _list([_one(element, spec) for element in elements], spec)


def _list(answers: list[FieldAnswer], spec: FieldSpec) -> FieldAnswer:
    """Join the elements of a list; one that cannot be read makes it unparsed."""
    for answer in answers:
        if answer.is_unparsed and answer.failure != "required":
            return answer
    # elements of the same value are one; the first has the quote
    unique: dict[str, FieldAnswer] = {}
    for answer in answers:
        if answer.is_answered:
            unique.setdefault(repr(answer.value), answer)
    if not unique:
        return FieldAnswer(failure="required") if spec.required else NOT_REPORTED
    return FieldAnswer(
        value=tuple(answer.value for answer in unique.values()),
        quotes=tuple(quote for answer in unique.values() for quote in answer.quotes),
        detail="; ".join(filter(None, (answer.detail for answer in unique.values()))),
    )


def _one(raw: object, spec: FieldSpec) -> FieldAnswer:
    """Read a single value, or one element of a list."""
    value, quote, unit = raw, None, None
    if isinstance(raw, Mapping) and (spec.quote or spec.unit) and "value" in raw:
        value, quote, unit = raw["value"], raw.get("quote"), raw.get("unit")
    elif isinstance(raw, Mapping) and spec.quote and spec.element == "object":
        # the parts beside the quote, without an object of their own
        quote = raw.get("quote")
        value = {key: part for key, part in raw.items() if key != "quote"}
    try:
        read, note = read_value(value, spec, unit if isinstance(unit, str) else None)
    except Unparsed as error:
        return FieldAnswer(failure=error.reason, detail=_excerpt(value))
    if read is None:
        return FieldAnswer(failure="required") if spec.required else NOT_REPORTED
    has_quote = spec.quote and isinstance(quote, str) and quote.strip()
    quotes = (AnswerQuote(text=wellformed(str(quote)).strip()),) if has_quote else ()
    return FieldAnswer(value=read, quotes=quotes, detail=note)


EXCERPT_CHARS: Final = 200


def _excerpt(value: object) -> str:
    text = wellformed(str(value))
    return re.sub(r"\s+", " ", text)[:EXCERPT_CHARS]


def read_check(reply: Reply, names: Iterable[str]) -> ParsedCheck | ParseFailure:
    """Read a reply of a check: `{"FIELD": {"reason": ..., "verdict": ...}}`."""
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    wanted = tuple(names)
    read = _object_with(text, wanted)
    if read is None:
        return parse_failure(reply, "no_json")
    verdicts = {}
    for name in wanted:
        raw = read.get(name)
        verdict = raw.get("verdict") if isinstance(raw, Mapping) else raw
        word = re.sub(r"[\s-]+", "_", str(verdict).strip().lower())
        if word in VERDICT_WORDS:
            reason = raw.get("reason") if isinstance(raw, Mapping) else ""
            verdicts[name] = FieldCheck(
                verdict=word, reason=wellformed(str(reason or ""))
            )
    if not verdicts:
        return parse_failure(reply, "no_verdict")
    return ParsedCheck(verdicts=verdicts)
