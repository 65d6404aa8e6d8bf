"""A few of many: what a summary shows as examples, kept while everything passes by."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from hashlib import sha256
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[float | int | str, ...]


class Smallest(Generic[T]):
    """The *n* items with the smallest keys, ascending."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._kept: list[tuple[Key, int, T]] = []
        self._seen = 0

    def add(self, key: Key, item: T) -> None:
        """Keep *item* if its key is small enough; the earlier of equal ones wins."""
        self._seen += 1
        # the number keeps items themselves from being compared
        bisect.insort(self._kept, (key, self._seen, item))
        del self._kept[self._n :]

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def drawn(seed: int, model: str, question: str) -> Key:
    """A place in a random order that is the same wherever and whenever it is drawn."""
    return (sha256(f"{seed}/{model}/{question}".encode()).hexdigest(),)
