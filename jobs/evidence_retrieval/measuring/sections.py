"""All measures of a block, in the order of the report, and what cannot be measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.gate import calibration, points, separation
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.reading import (
    as_given,
    candidates,
    ranking,
    selection,
    states,
)
from jobs.evidence_retrieval.queries import UNKNOWN


def measures(block: Block) -> Iterator[Measure]:
    """Every number of a block: of the whole, of a fold, or of a criterion."""
    settings, gated, stated = block.settings, block.gated, block.stated
    if gated is not None:
        yield from separation(gated, settings)
    yield from points(gated, stated, settings)
    if gated is not None and gated.is_probability:
        yield from calibration(gated, settings)
    if block.final is not None:
        yield from ranking(block.final)
    yield from as_given(block)
    yield from candidates(block)
    if block.chosen is not None:
        yield from selection(block.chosen, stated, len(block.queries))
    if stated is not None:
        yield from states(stated, settings)


def not_available(block: Block) -> tuple[str, ...]:
    """The parts that the input has nothing for, each with what is missing."""
    has_probability = block.gated is not None and block.gated.is_probability
    checks = (
        (has_probability, "gate, calibration and risk", "no probabilities"),
        (block.stated is not None, "states", "no thresholds and no states"),
        (block.final is not None, "ranking", _why_no_ranking(block)),
        (block.chosen is not None, "dynamic K", "no K"),
        (bool(block.prediction.sweep), "gamma sweep", "no K under other gammas"),
        (bool((block.queries.fold != UNKNOWN).any()), "folds", "no folds"),
        (has_probability or block.stated is not None, "posts", "no decisions"),
    )
    return tuple(f"{part}: {why}" for there, part, why in checks if not there)


def _why_no_ranking(block: Block) -> str:
    if block.queries.gold is None:
        return "no gold sentences"
    return "no rankings"


def fold_masks(block: Block) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Which queries belong to each fold that has any, in display order."""
    queries = block.queries
    masks = {name: queries.fold == i for i, name in enumerate(queries.folds)}
    return {name: mask for name, mask in masks.items() if mask.any()}
