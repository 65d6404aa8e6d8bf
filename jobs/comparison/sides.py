"""Which models a command line means: RUN or RUN:MODEL, once or twice.

Pure: what a run holds is given by its models' names.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from runner.errors import UsageError

Chosen: TypeAlias = tuple[str, str]
"""A run as it was typed, and one of its models."""


@dataclass(frozen=True, slots=True)
class Named:
    """A word of the command line."""

    run: str
    model: str | None

    @classmethod
    def of(cls, word: str) -> Named:
        """The run and the model of *word*.

        No run's id holds a colon, and a model's name may; a folder's is looked for.
        """
        run, colon, model = word.partition(":")
        if not colon or Path(word).is_dir():
            return cls(word, None)
        return cls(run, model)


def chosen(
    named: Sequence[Named], models: Mapping[str, Sequence[str]]
) -> tuple[tuple[Chosen, Chosen], ...]:
    """The pairs, A before B, that one or two words mean.

    Args:
        named: one word (the models of a run against each other) or two.
        models: of each run that a word names.

    Raises:
        UsageError: a run has no such model, or the words leave open which are meant.
    """
    for each in named:
        if each.model is not None and each.model not in models[each.run]:
            raise UsageError(
                f"Run {each.run} has no model {each.model!r}; "
                f"it has: {', '.join(models[each.run])}."
            )
    if len(named) == 1:
        (only,) = named
        pairs = _within(only, models[only.run])
        return tuple(((only.run, left), (only.run, right)) for left, right in pairs)
    a, b = named
    pairs = _across(a, b, models[a.run], models[b.run])
    return tuple(((a.run, left), (b.run, right)) for left, right in pairs)


def _within(named: Named, models: Sequence[str]) -> list[tuple[str, str]]:
    """Every two models of a run, or the one that was named against each other one."""
    if len(models) == 1:
        raise UsageError(
            f"Run {named.run} has one model only, {models[0]}; name a second run to "
            "compare it with."
        )
    if named.model is None:
        return list(itertools.combinations(models, 2))
    return [(named.model, other) for other in models if other != named.model]


def _across(
    a: Named, b: Named, in_a: Sequence[str], in_b: Sequence[str]
) -> list[tuple[str, str]]:
    """Each model of both runs with itself, or the two that the words single out."""
    shared = [model for model in in_a if model in in_b]
    if a.model is None and b.model is None and shared:
        return [(model, model) for model in shared]
    left = _meant(a.model, b.model, in_a)
    right = _meant(b.model, a.model, in_b)
    if not (left and right):
        raise UsageError(
            f"Run {a.run} has {', '.join(in_a)} and run {b.run} has {', '.join(in_b)}; "
            "say which to compare as RUN:MODEL."
        )
    return list(itertools.product(left, right))


def _meant(own: str | None, other: str | None, models: Sequence[str]) -> Sequence[str]:
    """The model that a side names, or else the other's; none if that is unclear."""
    wanted = other if own is None else own
    return [model for model in models if model == wanted] or (
        models if len(models) == 1 else ()
    )
