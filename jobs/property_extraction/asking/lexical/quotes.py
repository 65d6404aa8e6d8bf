"""Quotes for values that lack one: the sentence that has the value and most words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobs.lexical import tokens
from jobs.property_extraction.asking.lexical.sentences import (
    Sentence,
    quoted,
    sentences,
)


def requoted(text: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A quote for each row, or its withdrawal."""
    said = list(sentences(text))
    return {"rows": [_requoted(said, row) for row in rows]}


def _requoted(said: Sequence[Sentence], row: Mapping[str, Any]) -> dict[str, Any]:
    value = re.compile(rf"(?<![\w.]){re.escape(row['value'])}(?![\w]|\.[0-9])")
    words = set(tokens(f"{row['property']} {row['unit']}"))
    found = [(each, match) for each in said if (match := value.search(each.text))]
    if not found:
        return {"id": row["id"], "quote": None, "withdraw": True}
    best, match = max(found, key=lambda pair: len(words & set(tokens(pair[0].text))))
    quote = quoted(best.text, match.start())
    return {"id": row["id"], "quote": quote, "withdraw": False}
