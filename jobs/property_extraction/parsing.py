"""Parses the replies of each stage; never raises on model output.

It reads the requested object, anywhere in the reply; else a bare list of objects. Of a
reply that ends at the token limit the complete rows are used and the reply is marked as
partial; under `partial=fail` such a reply is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from jobs.kit.replies import (
    Object,
    arrays,
    first_object_with,
    is_cut,
    objects,
    parse_failure,
    reply_content,
    whole_object,
)
from jobs.kit.text_format import plural
from jobs.property_extraction.values.units import is_unit
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply, wellformed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedValue:
    """One value that a reply states; the texts are the model's, trimmed.

    Rows that are equal in all of these are one row.
    """

    name: str
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedExtraction:
    """Parsed reply of stage `extract`: its values in order, with repeats."""

    rows: tuple[ReportedValue, ...]
    dropped: int = 0  #: entries without a property or a value
    cut: int = 0  #: rows beyond the limit of one reply
    is_partial: bool = False  #: whether the reply was cut short


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuotes:
    """Parsed reply of stage `requote`: quotes and withdrawals of the requested rows."""

    quotes: Mapping[int, str]  #: by the number of the row
    withdrawn: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedVerdict:
    """Parsed verdict: whether two names mean one property."""

    is_match: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedChoice:
    """Parsed choice: the target that a name means."""

    target: int | None  #: index among the offered targets, from 0; None: none of them
    reason: str = ""


def text_of(value: object) -> str:
    """Return the text of a value, trimmed; empty if it is null, or nested deeper.

    A list becomes its texts and an object its fields, joined by semicolons: a condition
    often comes as `{"temperature": "4 K"}`.
    """
    match value:
        case list():
            return "; ".join(filter(None, map(scalar, value)))
        case dict():
            fields = ((scalar(key), scalar(item)) for key, item in value.items())
            return "; ".join(f"{key}={text}" for key, text in fields if text)
        case _:
            return scalar(value)


def scalar(value: object) -> str:
    """Return a text, number or boolean as a text; empty for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return wellformed(value).strip() if isinstance(value, str) else ""


MOST_ROWS: Final = 2_000
"""Most rows of one reply."""

OTHER: Final = "other"
"""Name of a property that is not listed; `label` has the actual name."""

_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_BEGUN: Final = re.compile(r'\{\s*"|\[\s*\{')

_NUMBERED: Final = re.compile(
    r"(?P<value>"
    r"(?:(?:ca\.?|about|approx(?:imately|\.)?|up to|below|above|at least|less than"
    r"|more than)\s)?"
    r"[\s<>~\u2248\u2243\u223c\u2264\u2265+\u00b1\u2212\u2013x*\u00d7\u00b7.,()^{}e0-9"
    r"\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b-]*[0-9)}])"
    r"\s*(?P<unit>(?:[^\W\d_]|[%\u00b0\u2030]).*)",
    re.DOTALL | re.IGNORECASE,
)
# 2D, 6H and 4f are words, although their letters look like units
_NAME_WORD: Final = re.compile(r"\s*[0-9]+[A-Za-z]\s*")


@guarded
def parse_extraction(
    reply: Reply,
    *,
    partial: Literal["fail", "keep"],
) -> ParsedExtraction | ParseFailure:
    """Parse the values in a reply; the list may be empty.

    Failures: `empty`, `refusal`, `no_properties`, and `truncated`, with the number of
    complete rows.

    Args:
        reply: of the model.
        partial: whether complete objects of a reply that was cut short count.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    entries = _whole(text)
    if entries is None and not reply.is_truncated:
        entries = _entry_list(text)
    if entries is not None:
        return _read(entries)
    if not reply.is_truncated and not _is_cut(text):
        return ParseFailure(reason="no_properties")
    remains = list(objects(text, lambda entry: "property" in entry))
    extraction = _read(remains)
    if partial == "keep" and extraction.rows:
        return replace(extraction, is_partial=True)
    return ParseFailure(reason="truncated", detail=plural(len(remains), "whole object"))


def _whole(text: str) -> list[object] | None:
    """Return the list of a reply that is one object, or has one in a code fence."""
    for piece in (text, *(match[1] for match in _FENCE.finditer(text))):
        if (entries := _properties(whole_object(piece.strip()))) is not None:
            return entries
    return None


def _entry_list(text: str) -> list[object] | None:
    """Return the list of the first object that has one, else the first of properties.

    An empty list counts only if there is no object: inside a broken object it may be
    anything.
    """
    first = next(objects(text, lambda entry: _properties(entry) is not None), None)
    if first is not None:
        return _properties(first)
    for entries in arrays(text, as_written=True):
        if any(isinstance(entry, dict) and "property" in entry for entry in entries):
            return entries
        if not entries and "{" not in text:
            return entries
    return None


def _is_cut(text: str) -> bool:
    """Return whether the end of the text cuts off its first object or list."""
    begun = _BEGUN.search(text)
    return begun is not None and is_cut(text, begun.start())


def _properties(value: Object | None) -> list[object] | None:
    entries = None if value is None else value.get("properties")
    return entries if isinstance(entries, list) else None


def _read(entries: Sequence[object]) -> ParsedExtraction:
    rows: list[ReportedValue] = []
    dropped = 0
    for entry in entries:
        entry_rows = list(_rows(entry)) if isinstance(entry, dict) else []
        rows += entry_rows
        dropped += not entry_rows
    return ParsedExtraction(
        rows=tuple(rows[:MOST_ROWS]),
        dropped=dropped,
        cut=max(len(rows) - MOST_ROWS, 0),
    )


def _rows(entry: Object) -> Iterator[ReportedValue]:
    """Yield a row for each value of an entry with a name and any value."""
    name = text_of(entry.get("property"))
    if name.casefold() == OTHER:
        name = text_of(entry.get("label")) or name
    stated = entry.get("value")
    for stated_value in stated if isinstance(stated, list) else [stated]:
        value, unit = scalar(stated_value), text_of(entry.get("unit"))
        if not name or not value:
            continue
        if not unit:
            value, unit = _parted(value)
        yield ReportedValue(
            name=name,
            value=value,
            unit=unit,
            material=text_of(entry.get("material")),
            condition=text_of(entry.get("condition")),
            quote=text_of(entry.get("quote")),
        )


def _parted(value: str) -> tuple[str, str]:
    """Split a value such as "2.8 K" into number and unit; others are unchanged."""
    match = _NUMBERED.fullmatch(value)
    if match is None or _NAME_WORD.fullmatch(value):
        return value, ""
    number, unit = match["value"].strip(), match["unit"].strip()
    return (number, unit) if is_unit(unit) else (value, "")


_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@guarded
def parse_requote(reply: Reply) -> ParsedQuotes | ParseFailure:
    """Parse the quotes and withdrawals in a reply.

    Only `true` withdraws a row; of two entries for one row the first counts, and
    entries for no row are ignored. Failures: `empty`, `refusal`, `truncated`,
    `no_rows`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    reply_object = first_object_with("rows", text)
    entries = _quote_list(text) if reply_object is None else reply_object["rows"]
    if not isinstance(entries, list):
        return parse_failure(reply, "no_rows")
    quotes: dict[int, str] = {}
    withdrawn: set[int] = set()
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        number = _number(entry)
        if number is None or number in quotes or number in withdrawn:
            continue
        if text_of(entry.get("withdraw")).casefold() == "true":
            withdrawn.add(number)
        elif quote := text_of(entry.get("quote")):
            quotes[number] = quote
    return ParsedQuotes(quotes=quotes, withdrawn=frozenset(withdrawn))


def _quote_list(text: str) -> list[Object] | None:
    """Return the first list that contains only objects."""
    return next(
        (
            entries
            for entries in arrays(text, as_written=True)
            if entries and all(isinstance(entry, dict) for entry in entries)
        ),
        None,
    )


def _number(entry: Object) -> int | None:
    written = text_of(entry.get("id"))
    return int(written) if _NUMBER.fullmatch(written) else None


WORDS: Final[Mapping[str, bool]] = {
    "true": True,
    "yes": True,
    "false": False,
    "no": False,
}

NONE: Final = "none"
"""Reply that chooses no target."""

_VERDICT_WORD: Final = re.compile(r"\b(true|yes|false|no)\b", re.IGNORECASE)
# "no difference" and "not true" negate something: they decide nothing
_LACK: Final = re.compile(
    r"\bno\s+\w|(?:\bnot|n['\u2019]t)\s+(?:true|false|yes)\b", re.IGNORECASE
)
_EDGES: Final = " \t\r\n.,:;()[]\"'*_`"


@guarded
def parse_verdict(reply: Reply) -> ParsedVerdict | ParseFailure:
    """Parse the verdict in a reply: from its objects, else from its words.

    Failures: `empty`, `refusal`, `truncated`, `bad_verdict`, `ambiguous`, `no_verdict`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    entries = list(objects(text, lambda entry: "is_match" in entry))
    if entries:
        verdicts = {WORDS.get(_word(entry["is_match"])) for entry in entries}
    else:
        verdicts = {
            WORDS[word.lower()] for word in _VERDICT_WORD.findall(_LACK.sub("", text))
        }
    if len(verdicts) > 1:
        return ParseFailure(reason="ambiguous")
    if not verdicts:
        return parse_failure(reply, "no_verdict")
    (is_match,) = verdicts
    if is_match is None:
        return ParseFailure(reason="bad_verdict")
    return ParsedVerdict(is_match=is_match, reason=_reason(entries))


@guarded
def parse_choice(reply: Reply, targets: Sequence[str]) -> ParsedChoice | ParseFailure:
    """Parse the choice in a reply: a letter, the target's name, or none.

    Failures: `empty`, `refusal`, `truncated`, `bad_target`, `ambiguous`, `no_target`.

    Args:
        reply: of the model.
        targets: names that were offered, in the order of their letters.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    entries = list(objects(text, lambda entry: "target" in entry))
    if not entries and "{" in text:
        return parse_failure(reply, "no_target")
    meant = _meanings(targets)
    choices = [entry["target"] for entry in entries] or [text]
    chosen = {
        None if choice is None else meant.get(_word(choice), len(targets))
        for choice in choices
    }
    if len(chosen) > 1:
        return ParseFailure(reason="ambiguous")
    (target,) = chosen
    if target == len(targets):
        return parse_failure(reply, "bad_target" if entries else "no_target")
    return ParsedChoice(target=target, reason=_reason(entries))


def letter(index: int) -> str:
    """Return the letter of a target: A to Z, then AA, AB, ..., as in a spreadsheet."""
    before, remainder = divmod(index, 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + remainder)


def _meanings(targets: Sequence[str]) -> dict[str, int | None]:
    """Return the index that each word means; a letter precedes an equal name."""
    letters = {letter(index).casefold(): index for index in range(len(targets))}
    names = {_word(name): index for index, name in enumerate(targets)}
    return {**names, NONE: None, **letters}


def _word(value: object) -> str:
    return text_of(value).strip(_EDGES).casefold()


def _reason(entries: Sequence[Object]) -> str:
    return text_of(entries[-1].get("reason")) if entries else ""
