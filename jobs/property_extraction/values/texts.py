"""The rules for values that are no quantities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeAlias

from jobs.property_extraction.values.comparison import Compared, Edge, Stated

Read: TypeAlias = Callable[[str, str], Hashable | None]
"""What a value of a property is, from the property's name and the value; or None."""


class Keyed:
    """Values are the same just if they are one thing; None is never the same."""

    def __init__(self, read: Read) -> None:
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


class Paired:
    """Any two distinct texts may be alike, and are asked about once a group."""

    def __init__(
        self, read: Callable[[str, str], str], are_alike: Callable[[str, str], bool]
    ) -> None:
        self._read = read
        self._are_alike = are_alike

    def compare(self, name: str, prediction: Stated, truth: Stated) -> Compared:
        """Compare one pair of a property."""
        texts = (self._read(name, row.value) for row in (prediction, truth))
        match = self._are_alike(*texts)
        return Compared(reason="equal" if match else "different")

    def edges(
        self, name: str, predictions: Sequence[Stated], truths: Sequence[Stated]
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
        places: dict[str, list[int]] = {}
        for truth, row in enumerate(truths):
            places.setdefault(self._read(name, row.value), []).append(truth)
        alike: dict[str, list[int]] = {}
        for prediction, row in enumerate(predictions):
            text = self._read(name, row.value)
            if text not in alike:
                own = (
                    at for other, at in places.items() if self._are_alike(text, other)
                )
                alike[text] = sorted(place for at in own for place in at)
            for truth in alike[text]:
                yield Edge(prediction, truth)
