"""Answering only where one is confident: risk against coverage."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jobs.metrics.columns import Column, Floats, labels, of_one_length, scores


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """One point per distinct confidence, from the most confident on."""

    confidence: Floats
    coverage: Floats  #: share of rows at least so confident
    risk: Floats  #: share of errors among them


def risk_coverage(confidence: Column, error: Column) -> RiskCoverage:
    """The risk of answering, by how many rows are answered.

    The confidence of a binary probability p is max(p, 1 - p).
    """
    blocks = _blocks(confidence, error)
    seen, errors = np.cumsum(blocks.size), np.cumsum(blocks.errors)
    n = seen[-1] if len(seen) else 1.0
    return RiskCoverage(
        confidence=blocks.confidence, coverage=seen / n, risk=errors / seen
    )


def coverage_at_risk(confidence: Column, error: Column, risk: float) -> float | None:
    """The largest coverage with at most that *risk*; 0.0 if no point has it."""
    points = risk_coverage(confidence, error)
    if not len(points.risk):
        return None
    return float(np.max(points.coverage[points.risk <= risk], initial=0.0))


def risk_at_coverage(
    confidence: Column, error: Column, coverage: float
) -> float | None:
    """The risk at the first point that covers at least *coverage*."""
    points = risk_coverage(confidence, error)
    enough = np.flatnonzero(points.coverage >= coverage)
    return float(points.risk[enough[0]]) if len(enough) else None


def aurc(confidence: Column, error: Column) -> float | None:
    """Mean over ranks of the expected risk (Geifman and others, 2019).

    The errors of a block of tied confidences are spread evenly over it, so the order of
    rows does not matter.
    """
    blocks = _blocks(confidence, error)
    n = int(blocks.size.sum())
    if not n:
        return None
    before = np.repeat(np.cumsum(blocks.errors) - blocks.errors, blocks.size)
    share = np.repeat(blocks.errors / blocks.size, blocks.size)
    first = np.repeat(np.cumsum(blocks.size) - blocks.size, blocks.size)
    rank = np.arange(1, n + 1)
    return math.fsum((before + share * (rank - first)) / rank) / n


def excess_aurc(confidence: Column, error: Column) -> float | None:
    """How far `aurc` is above the best that so many errors allow: all of them last."""
    found = aurc(confidence, error)
    if found is None:
        return None
    wrong = labels("error", error)
    n, errors = len(wrong), int(wrong.sum())
    rank = np.arange(1, n + 1)
    return found - math.fsum(np.maximum(0, rank - (n - errors)) / rank) / n


@dataclass(frozen=True, slots=True)
class _Blocks:
    confidence: Floats
    size: np.ndarray[tuple[int], np.dtype[np.int64]]
    errors: Floats


def _blocks(confidence: Column, error: Column) -> _Blocks:
    """Rows of one confidence, the most confident first."""
    column, wrong = scores("confidence", confidence), labels("error", error)
    of_one_length(confidence=column, error=wrong)
    values, index = np.unique(-column, return_inverse=True)
    return _Blocks(
        confidence=-values,
        size=np.bincount(index, minlength=len(values)).astype(np.int64),
        errors=np.bincount(index[wrong], minlength=len(values)).astype(np.float64),
    )
