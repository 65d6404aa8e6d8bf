"""Divides a run's items into a fixed number of slices, and names its shards.

An item always belongs to one slice, determined by its name; a shard takes some of the
slices. So the number of shards can change between submissions while every item stays in
its slice.

A `Shard` is part of the event `RunStarted` of a log that plans a part of the run only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Self

SLICES = 1024
"""Slices of every split run: many more than shards, so each shard has about the same
number of items, and few enough to be tracked individually."""

_PART = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


def slice_of(item: str) -> int:
    """The slice of a first-stage item, the same on every machine."""
    digest = blake2b(item.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % SLICES


@dataclass(frozen=True, slots=True)
class Slices:
    """A set of slices, as ascending ranges that neither overlap nor touch."""

    ranges: tuple[tuple[int, int], ...] = ()  #: first and last slice of each

    @classmethod
    def of(cls, index: int, count: int) -> Self:
        """Return the slices of shard *index* of *count*, from 0: a contiguous part.

        Raises:
            ValueError: no such shard exists.
        """
        if not 0 <= index < count <= SLICES:
            raise ValueError(
                f"there is no shard {index} of {count}: they are numbered "
                f"from 0, with at most {SLICES}"
            )
        first, end = (-(-i * SLICES // count) for i in (index, index + 1))
        return cls(((first, end - 1),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a set written as "0-63,128".

        Raises:
            ValueError: it has another form, or a slice that does not exist.
        """
        numbers: set[int] = set()
        for part in filter(None, text.split(",")):
            match = _PART.fullmatch(part.strip())
            first = int(match[1]) if match else 1
            last = int(match[2] or first) if match else 0
            if not first <= last < SLICES:
                raise ValueError(
                    f"{part!r} names no slices: write them as 0-63,128, up to "
                    f"{SLICES - 1}"
                )
            numbers.update(range(first, last + 1))
        return cls.holding(numbers)

    @classmethod
    def holding(cls, numbers: Iterable[int]) -> Self:
        """The set of these slices."""
        ordered = sorted(set(numbers))
        gaps = [i for i, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1]
        edges = [0, *gaps, len(ordered)] if ordered else []
        return cls(tuple((ordered[a], ordered[b - 1]) for a, b in pairwise(edges)))

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}-{last}"
            for first, last in self.ranges
        )

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.ranges)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __or__(self, other: Slices) -> Slices:
        return Slices.holding((*self, *other))

    def __and__(self, other: Slices) -> Slices:
        return Slices.holding(number for number in self if number in other)


ALL = Slices(((0, SLICES - 1),))
"""Slices of a run that is not split."""


def left_by(parts: Iterable[Slices]) -> Slices:
    """Return the slices in none of *parts*."""
    covered = {number for part in parts for number in part}
    return Slices.holding(number for number in ALL if number not in covered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A requested part of a run."""

    index: int  #: from 0
    count: int  #: of how many
    slices: str  #: planned slices, as `store.slices.Slices` writes them

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
