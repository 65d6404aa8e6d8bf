"""Groups values by a key without sorting them.

>>> grouped((len(word), word) for word in ("one", "three", "two"))
{3: ['one', 'two'], 5: ['three']}
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Returns the values of each key; keys and values keep the order of the pairs."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
