"""How many models a figure has room for, how each looks, and how panels stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Measured = TypeVar("Measured")
"""What a job has measured of a model."""

MOST_MODELS = 4
"""In one figure; more lines or panels cannot be told apart. The tables hold all."""

SIDE_BY_SIDE: Mapping[int, int] = {1: 1, 2: 2, 3: 3, 4: 2}
"""Panels beside one another, by how many models have one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Generic[Measured]):
    """One of the models that are shown."""

    name: str
    series: int  #: its look, the same in every figure
    column: Measured


def first_models(columns: Mapping[str, Measured]) -> tuple[Model[Measured], ...]:
    """The models that figures have room for, in their order."""
    first = list(columns.items())[:MOST_MODELS]
    return tuple(
        Model(name=name, series=series, column=own)
        for series, (name, own) in enumerate(first)
    )


def left_out(shown: int, every: int) -> str:
    """The end of a caption; empty where all models are shown."""
    if shown == every:
        return ""
    return f" The first {shown} of {every} models; the tables hold all."
