"""What a reply says of rows whose quotes are not in the paper."""

from __future__ import annotations

import re
from typing import Final

from jobs.property_extraction.answered import Requoted
from jobs.property_extraction.parsing.fields import text_of
from jobs.replies import Object, arrays, first_object_with, parse_failure, reply_content
from runner.job import guarded
from runner.messages import ParseFailure, Reply

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@guarded
def parse_requote(reply: Reply) -> Requoted | ParseFailure:
    """The quotes and withdrawals in a reply.

    A row is withdrawn by `true` alone; of two entries for one row the first counts, and
    what names no row is passed over. Failures: `empty`, `refusal`, `truncated`,
    `no_rows`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = first_object_with("rows", text)
    given = _listed(text) if found is None else found["rows"]
    if not isinstance(given, list):
        return parse_failure(reply, "no_rows")
    quotes: dict[int, str] = {}
    withdrawn: set[int] = set()
    for entry in given:
        if not isinstance(entry, dict):
            continue
        number = _number(entry)
        if number is None or number in quotes or number in withdrawn:
            continue
        if text_of(entry.get("withdraw")).casefold() == "true":
            withdrawn.add(number)
        elif quote := text_of(entry.get("quote")):
            quotes[number] = quote
    return Requoted(quotes=quotes, withdrawn=frozenset(withdrawn))


def _listed(text: str) -> list[Object] | None:
    """The first list of nothing but objects."""
    return next(
        (
            found
            for found in arrays(text, as_written=True)
            if found and all(isinstance(each, dict) for each in found)
        ),
        None,
    )


def _number(entry: Object) -> int | None:
    written = text_of(entry.get("id"))
    return int(written) if _NUMBER.fullmatch(written) else None
