"""Figures over some of the queries: what each name of a stored summary stands for.

A figure says how it is computed, which other definitions are worth trying where the
stored value is another one, and what it means to a reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from jobs.evidence_retrieval.verification import curves, states
from jobs.evidence_retrieval.verification.choices import Choices, Tries
from jobs.evidence_retrieval.verification.queries import Query

Item = TypeVar("Item")


class NotComputableError(Exception):
    """The rows do not hold what a figure is made of; the message says what."""


class Scope:
    """Some of the queries, with what several figures share computed once."""

    def __init__(self, queries: Sequence[Query]) -> None:
        """All *queries* of a file, or those of one fold."""
        self.queries = queries
        self._values: dict[tuple[str, Choices], float | None] = {}
        self._stated: dict[Choices, list[tuple[bool, str, Query]]] = {}

    def value(self, figure: Figure, choices: Choices) -> float | None:
        """A figure over these queries; None where it is undefined.

        Raises:
            NotComputableError: the queries do not hold what it is made of.
        """
        key = (figure.name, choices)
        if key not in self._values:
            self._values[key] = figure.compute(self, choices)
        return self._values[key]

    @cached_property
    def judged(self) -> list[tuple[bool, float]]:
        """Truth and probability of the queries that have both."""
        rows = [
            (query.truth, query.p)
            for query in self.queries
            if query.truth is not None and query.p is not None
        ]
        return needed(rows, "no probability of a judged query")

    @cached_property
    def curve(self) -> list[curves.Point]:
        """Operating points of those."""
        return curves.curve(self.judged)

    def stated(self, choices: Choices) -> list[tuple[bool, str, Query]]:
        """Truth and state of the queries that have both."""
        only = Choices(
            states=choices.states, gate_edge=choices.gate_edge, strict=choices.strict
        )
        if only not in self._stated:
            self._stated[only] = [
                (query.truth, state, query)
                for query in self.queries
                if query.truth is not None and (state := states.state_of(query, only))
            ]
        return needed(self._stated[only], "no state of a judged query")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One name of a summary."""

    name: str  #: different for all figures of a layout
    compute: Callable[[Scope, Choices], float | None]
    meaning: str
    tries: Tries = field(default_factory=dict)


def needed(items: list[Item], what_is_there: str) -> list[Item]:
    """The *items*; raise `NotComputableError` where there is none."""
    if not items:
        raise NotComputableError(f"the rows hold {what_is_there}")
    return items


def mean(
    values: Iterable[float], choices: Choices, *, over: int | None = None
) -> float | None:
    """The mean, by *over* if given; its sum is exact, or that of a plain loop."""
    numbers = list(values)
    if choices.sums == "exact":
        total = math.fsum(numbers)
    else:
        total = 0.0
        for number in numbers:
            total += number
    divisor = len(numbers) if over is None else over
    return total / divisor if divisor else choices.of_nothing


def median(values: Iterable[float], choices: Choices) -> float | None:
    """The middle value, or the mean of the two in the middle."""
    numbers = sorted(values)
    if not numbers:
        return choices.of_nothing
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2
