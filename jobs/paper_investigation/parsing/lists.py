"""The list of variants in an extraction reply."""

from __future__ import annotations

from typing import Any

from jobs.json_scan import arrays, wellformed
from jobs.paper_investigation.parsing.values import VariantList, unread
from runner.messages import ParseFailure, Reply

#: Where an entry that is an object may hold its variant; the first with text wins.
_NAME_KEYS = ("variant", "name", "id")


def read_list(reply: Reply) -> VariantList | ParseFailure:
    """The first JSON array that is empty or names at least one variant.

    Arrays of numbers are citations and passed over. A cut array is never repaired: a
    list of unknown length would look like a complete one.
    """
    has_other_array = False
    for array in arrays(reply.text):
        named = [name for entry in array if (name := _name(entry)) is not None]
        if named or not array:
            return VariantList(
                entries=tuple(named), dropped=len(array) - len(named), rule="array"
            )
        has_other_array = has_other_array or not all(map(_is_number, array))
    if has_other_array:
        return ParseFailure(reason="no_strings")
    return unread(reply, "no_list")


def _name(entry: object) -> str | None:
    candidates: list[Any] = [entry]
    if isinstance(entry, dict):
        candidates = [entry.get(key) for key in _NAME_KEYS]
    for text in candidates:
        if isinstance(text, str) and text.strip():
            return wellformed(text)
    return None


def _is_number(entry: object) -> bool:
    return isinstance(entry, int | float) and not isinstance(entry, bool)
