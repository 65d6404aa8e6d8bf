"""The rules for values that are no quantities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from jobs.property_extraction.values.comparison import Compared, Edge, Stated

T = TypeVar("T")


class Keyed:
    """Two values are the same just if they are read as one thing."""

    def __init__(self, read: Callable[[str, str], Hashable | None]) -> None:
        """Take how the value of a property is read, from its name and text.

        What is read as None is never the same.
        """
        self._read = read

    def compare(self, name: str, prediction: Stated, truth: Stated) -> Compared:
        """Compare one pair of a property."""
        found = self._read(name, prediction.value)
        match = found is not None and found == self._read(name, truth.value)
        return Compared(reason="equal" if match else "different")

    def edges(
        self, name: str, predictions: Sequence[Stated], truths: Sequence[Stated]
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
        places: dict[Hashable, list[int]] = {}
        for truth, row in enumerate(truths):
            places.setdefault(self._read(name, row.value), []).append(truth)
        places.pop(None, None)
        for prediction, row in enumerate(predictions):
            for truth in places.get(self._read(name, row.value), ()):
                yield Edge(prediction, truth)


class Paired(Generic[T]):
    """Any two texts may be alike; distinct ones of a group are compared once."""

    def __init__(
        self, read: Callable[[str, str], T], are_alike: Callable[[T, T], bool]
    ) -> None:
        """Take how the value of a property is read, and when two of them are alike."""
        self._read = read
        self._are_alike = are_alike
        self._known: dict[tuple[str, str], T] = {}

    def compare(self, name: str, prediction: Stated, truth: Stated) -> Compared:
        """Compare one pair of a property."""
        found, true = self._once(name, prediction.value), self._once(name, truth.value)
        match = self._are_alike(found, true)
        return Compared(reason="equal" if match else "different")

    def edges(
        self, name: str, predictions: Sequence[Stated], truths: Sequence[Stated]
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
        places: dict[str, list[int]] = {}
        for truth, row in enumerate(truths):
            places.setdefault(row.value, []).append(truth)
        known = [(self._once(name, text), own) for text, own in places.items()]
        alike: dict[str, list[int]] = {}
        for prediction, row in enumerate(predictions):
            if row.value not in alike:
                found = self._once(name, row.value)
                own = (at for true, at in known if self._are_alike(found, true))
                alike[row.value] = sorted(place for at in own for place in at)
            for truth in alike[row.value]:
                yield Edge(prediction, truth)

    def _once(self, name: str, text: str) -> T:
        if (name, text) not in self._known:
            self._known[name, text] = self._read(name, text)
        return self._known[name, text]
