"""Resolves models named on a command line: RUN, RUN:MODEL, RUN@N, RUN@N:MODEL.

Pure: what a run holds is given by its models' names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from runner.errors import UsageError

_RECORDED = re.compile(r"(?P<run>[^@]+)@(?P<number>[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class RunReference:
    """A run as it was typed, and which of its scorings."""

    run: str
    number: int | None = None  #: None: as the run stands

    def __str__(self) -> str:
        return self.run if self.number is None else f"{self.run}@{self.number}"


RunModel: TypeAlias = tuple[RunReference, str]
"""One of a source's models."""


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A word of the command line."""

    source: RunReference
    model: str | None = None

    @classmethod
    def of(cls, word: str) -> ModelReference:
        """The run, the scoring and the model of *word*.

        No run's id holds a colon or an @, and a model's name may; a folder's is looked
        for.
        """
        run, colon, model = word.partition(":")
        if not colon or Path(word).is_dir():
            return cls(_run_reference(word))
        return cls(_run_reference(run), model)


def _run_reference(word: str) -> RunReference:
    match = None if Path(word).is_dir() else _RECORDED.fullmatch(word)
    return (
        RunReference(match["run"], int(match["number"]))
        if match
        else RunReference(word)
    )


def paired_models(
    references: Sequence[ModelReference], models: Mapping[RunReference, Sequence[str]]
) -> tuple[tuple[RunModel, RunModel], ...]:
    """The pairs, A before B, that the words mean; each once.

    Args:
        references: one word (the models of a run against each other) or several,
            compared in pairs.
        models: of each source that a word names.

    Raises:
        UsageError: a run has no such model, or the words leave open which are meant.
    """
    for reference in references:
        if (
            reference.model is not None
            and reference.model not in models[reference.source]
        ):
            raise UsageError(
                f"Run {reference.source} has no model {reference.model!r}; "
                f"it has: {', '.join(models[reference.source])}."
            )
    if len(references) == 1:
        (only,) = references
        within = _within(only, models[only.source])
        return tuple(
            ((only.source, left), (only.source, right)) for left, right in within
        )
    across = (
        ((a.source, left), (b.source, right))
        for a, b in itertools.combinations(references, 2)
        for left, right in _across(a, b, models[a.source], models[b.source])
    )
    return tuple(dict.fromkeys(across))


def _within(reference: ModelReference, models: Sequence[str]) -> list[tuple[str, str]]:
    """Every two models of a run, or the one that was named against each other one."""
    if len(models) == 1:
        raise UsageError(
            f"Run {reference.source} has one model only, {models[0]}; name a "
            "second run to compare it with."
        )
    if reference.model is None:
        return list(itertools.combinations(models, 2))
    return [(reference.model, other) for other in models if other != reference.model]


def _across(
    a: ModelReference, b: ModelReference, in_a: Sequence[str], in_b: Sequence[str]
) -> list[tuple[str, str]]:
    """Each model of both runs with itself, or the two that the words single out."""
    shared = [model for model in in_a if model in in_b]
    if a.model is None and b.model is None and shared:
        return [(model, model) for model in shared]
    left = _meant(a.model, b.model, in_a)
    right = _meant(b.model, a.model, in_b)
    if not (left and right):
        raise UsageError(
            f"Run {a.source} has {', '.join(in_a)} and run {b.source} has "
            f"{', '.join(in_b)}; say which to compare as RUN:MODEL."
        )
    return list(itertools.product(left, right))


def _meant(
    model_name: str | None, other: str | None, models: Sequence[str]
) -> Sequence[str]:
    """The model that a side names, or else the other's; none if that is unclear."""
    target = other if model_name is None else model_name
    return [model for model in models if model == target] or (
        models if len(models) == 1 else ()
    )
