"""Counts of values by bucket, one histogram for each set of attributes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runner.telemetry.span import Attributes, Value


@dataclass(slots=True, kw_only=True)
class Histogram:
    """The values with one set of attributes, as far as they were counted."""

    attributes: Attributes
    buckets: list[int]  #: bucket i holds values up to bound i and above the one before
    count: int = 0
    sum: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def add(self, bucket: int, value: float) -> None:
        """Count a value in its bucket."""
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value) if self.count else value
        self.buckets[bucket] += 1
        self.count += 1
        self.sum += value


class Histograms:
    """The values of one instrument: as many numbers as there are sets of attributes."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """Histograms without values.

        Args:
            bounds: upper ends of the buckets, ascending; one more bucket has no end.
        """
        self.bounds = bounds
        self._found: dict[tuple[tuple[str, Value], ...], Histogram] = {}

    def add(self, value: float, attributes: Attributes) -> None:
        """Count a value."""
        key = tuple(sorted(attributes.items()))
        if key not in self._found:
            self._found[key] = Histogram(
                attributes=dict(attributes), buckets=[0] * (len(self.bounds) + 1)
            )
        self._found[key].add(bisect_left(self.bounds, value), value)

    def __len__(self) -> int:
        """How many sets of attributes there are."""
        return len(self._found)

    def __iter__(self) -> Iterator[Histogram]:
        """The histograms in the order of their attributes."""
        return (self._found[key] for key in sorted(self._found))
