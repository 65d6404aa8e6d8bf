"""Predictions put together from several, each query's from the one its fold chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.queries import Predictions
from jobs.metrics.columns import Ints

_Value = TypeVar("_Value")
_Kind = TypeVar("_Kind", bound=np.generic)


def by_fold(parts: Sequence[Predictions], which: Ints) -> Predictions:
    """One configuration's predictions under several constants, as one.

    Args:
        parts: all of them about all queries.
        which: for each query the part that says what is predicted of it.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        status=_rows([part.status for part in parts], which),
        prob_raw=_column([part.prob_raw for part in parts], which),
        prob=_column([part.prob for part in parts], which),
        score=_column([part.score for part in parts], which),
        tau_neg=_column([part.tau_neg for part in parts], which),
        tau_pos=_column([part.tau_pos for part in parts], which),
        state=_column([part.state for part in parts], which),
        k=_column([part.k for part in parts], which),
        sweep={
            gamma: _stacked([part.sweep[gamma] for part in parts], which)
            for gamma in first.sweep
        },
        lists={
            name: _rows([part.lists[name] for part in parts], which)
            for name in first.lists
        },
        scores={
            name: _rows([part.scores[name] for part in parts], which)
            for name in first.scores
        },
    )


def _column(
    columns: Sequence[npt.NDArray[_Kind] | None], which: Ints
) -> npt.NDArray[_Kind] | None:
    there = [column for column in columns if column is not None]
    return _stacked(there, which) if there else None


def _stacked(columns: Sequence[npt.NDArray[_Kind]], which: Ints) -> npt.NDArray[_Kind]:
    return np.stack(columns)[which, np.arange(len(which))]


def _rows(columns: Sequence[Sequence[_Value]], which: Ints) -> Sequence[_Value]:
    # a step before the one that a grid touches stays the object that others share
    if all(column is columns[0] for column in columns):
        return columns[0]
    return [columns[own][i] for i, own in enumerate(which.tolist())]
