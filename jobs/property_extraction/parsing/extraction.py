"""Which values a reply states: rules in order, the first that applies wins.

The object that was asked for, wherever it stands; else a bare list of objects. Of a
reply that ends at the token limit the complete rows are kept and the reply is marked as
partial; under `partial=fail` such a reply is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from jobs.property_extraction.answered import Extraction, Found
from jobs.property_extraction.parsing.fields import scalar, text_of
from jobs.property_extraction.parsing.units import is_unit
from jobs.replies import Object, arrays, is_cut, objects, reply_content, whole_object
from jobs.text import plural
from runner.job import guarded
from runner.messages import ParseFailure, Reply

MOST_ROWS: Final = 2_000
"""Rows of one reply that are kept."""

OTHER: Final = "other"
"""The name of a property that the list lacks; its own stands in `label`."""

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
# 2D, 6H and 4f are words, however much their letter looks like a unit
_WORD: Final = re.compile(r"\s*[0-9]+[A-Za-z]\s*")


@guarded
def parse_extraction(
    reply: Reply,
    *,
    partial: Literal["fail", "keep"],
) -> Extraction | ParseFailure:
    """The values in a reply; an empty list is a legal one.

    Failures: `empty`, `refusal`, `no_properties`, and `truncated`, with the number of
    complete rows.

    Args:
        reply: of the model.
        partial: whether the whole objects of a reply that was cut short count.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = _whole(text)
    if found is None and not reply.is_truncated:
        found = _listed(text)
    if found is not None:
        return _read(found)
    if not reply.is_truncated and not _is_cut(text):
        return ParseFailure(reason="no_properties")
    remains = list(objects(text, lambda each: "property" in each))
    kept = _read(remains)
    if partial == "keep" and kept.rows:
        return replace(kept, is_partial=True)
    return ParseFailure(reason="truncated", detail=plural(len(remains), "whole object"))


def _whole(text: str) -> list[object] | None:
    """The list of a reply that is an object from end to end, or has one in a fence."""
    for piece in (text, *(match[1] for match in _FENCE.finditer(text))):
        if (own := _properties(whole_object(piece.strip()))) is not None:
            return own
    return None


def _listed(text: str) -> list[object] | None:
    """The list of the first object that has one, else the first list of properties.

    An empty list counts where nothing else stands: inside a broken object it may be
    anything.
    """
    first = next(objects(text, lambda each: _properties(each) is not None), None)
    if first is not None:
        return _properties(first)
    for found in arrays(text, as_written=True):
        if any(isinstance(each, dict) and "property" in each for each in found):
            return found
        if not found and "{" not in text:
            return found
    return None


def _is_cut(text: str) -> bool:
    """Whether the first object or list that the text begins is cut off by its end."""
    begun = _BEGUN.search(text)
    return begun is not None and is_cut(text, begun.start())


def _properties(value: Object | None) -> list[object] | None:
    given = None if value is None else value.get("properties")
    return given if isinstance(given, list) else None


def _read(given: Sequence[object]) -> Extraction:
    rows: list[Found] = []
    dropped = 0
    for entry in given:
        own = list(_rows(entry)) if isinstance(entry, dict) else []
        rows += own
        dropped += not own
    return Extraction(
        rows=tuple(rows[:MOST_ROWS]),
        dropped=dropped,
        cut=max(len(rows) - MOST_ROWS, 0),
    )


def _rows(entry: Object) -> Iterator[Found]:
    """A row for each value of an entry that has a name and any value at all."""
    name = text_of(entry.get("property"))
    if name.casefold() == OTHER:
        name = text_of(entry.get("label")) or name
    given = entry.get("value")
    for each in given if isinstance(given, list) else [given]:
        value, unit = scalar(each), text_of(entry.get("unit"))
        if not name or not value:
            continue
        if not unit:
            value, unit = _parted(value)
        yield Found(
            name=name,
            value=value,
            unit=unit,
            material=text_of(entry.get("material")),
            condition=text_of(entry.get("condition")),
            quote=text_of(entry.get("quote")),
        )


def _parted(value: str) -> tuple[str, str]:
    """A value such as "2.8 K" as number and unit; others as they are."""
    match = _NUMBERED.fullmatch(value)
    if match is None or _WORD.fullmatch(value):
        return value, ""
    number, unit = match["value"].strip(), match["unit"].strip()
    return (number, unit) if is_unit(unit) else (value, "")
