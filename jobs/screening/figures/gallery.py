"""All figures of a scoring, made when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.screening.measuring.results import Results
from runner.figure import Figure


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures that the input has something for, in the order of the report."""

    results: Results

    def __iter__(self) -> Iterator[Figure]:
        yield from ()
