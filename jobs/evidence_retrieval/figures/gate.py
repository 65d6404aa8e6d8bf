"""Figures of the gate: separation, calibration, and what confidence is worth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.curves import (
    Separation,
    bins,
    risk,
    separation,
    thinned,
)
from jobs.evidence_retrieval.measuring.drawing import Draws
from jobs.metrics.calibration import Bin
from jobs.metrics.columns import Floats
from jobs.metrics.selective import RiskCoverage
from runner.figure import (
    Axis,
    Band,
    Figure,
    Histogram,
    Line,
    Numbers,
    Panel,
    Points,
    Rule,
)


def figures(model: str, block: Block, draws: Draws) -> Iterator[Figure]:
    """The figures of a gate; none without both classes."""
    curves = separation(block, draws)
    if curves is not None:
        yield _roc(model, curves, draws.posts)
        yield _precision_recall(model, curves)
    if found := bins(block):
        yield _reliability(model, found)
    points = risk(block)
    if points is not None:
        yield _risk(model, points, block.settings.tau)


def _numbers(column: Floats) -> Numbers:
    return tuple(None if np.isnan(x) else float(x) for x in column)


def _roc(model: str, curves: Separation, posts: int) -> Figure:
    band, named = curves.roc_band, curves.operating
    return Figure(
        name="roc",
        title="Queries with evidence against queries without",
        caption=f"ROC curve of {model} over all scored queries. The band is the "
        f"bootstrap interval of the sensitivity, drawn by post ({posts:,} posts); "
        "marks are deployed ways to decide. Chance is the diagonal.",
        panels=(
            Panel(
                x=Axis(label="false positive rate", lo=0, hi=1),
                y=Axis(label="sensitivity", lo=0, hi=1),
                square=True,
                marks=(
                    Rule(way="diagonal", label="chance"),
                    Band(x=band.x, lo=band.lo, hi=band.hi, label="interval by post"),
                    Line(x=_numbers(curves.fpr), y=_numbers(curves.tpr), label=model),
                    Points(
                        x=tuple(each.fpr for each in named),
                        y=tuple(each.tpr for each in named),
                        notes=tuple(each.name for each in named),
                        series=1,
                    ),
                ),
            ),
        ),
    )


def _precision_recall(model: str, curves: Separation) -> Figure:
    named = curves.operating
    return Figure(
        name="precision-recall",
        title="How pure the queries are that are called positive",
        caption=f"Precision against recall of {model} over all scored queries. A gate "
        "that knows nothing lies on the line of the prevalence, not at a half.",
        panels=(
            Panel(
                x=Axis(label="recall (sensitivity)", lo=0, hi=1),
                y=Axis(label="precision", lo=0, hi=1),
                square=True,
                marks=(
                    Rule(
                        way="horizontal",
                        at=curves.prevalence,
                        label=f"prevalence {curves.prevalence:.3f}",
                    ),
                    Line(
                        x=_numbers(curves.recall),
                        y=_numbers(curves.precision),
                        label=model,
                    ),
                    Points(
                        x=tuple(each.tpr for each in named),
                        y=tuple(each.precision for each in named),
                        notes=tuple(each.name for each in named),
                        series=1,
                    ),
                ),
            ),
        ),
    )


def _reliability(model: str, found: tuple[Bin, ...]) -> Figure:
    return Figure(
        name="reliability",
        title="Do probabilities mean what they say?",
        caption=f"Mean probability of {model} against the share that has evidence, bin "
        "by bin, with Wilson intervals; below, how many queries are in each bin. On "
        "the diagonal, what is said is what happens.",
        panels=(
            Panel(
                x=Axis(label="mean probability", lo=0, hi=1),
                y=Axis(label="share with evidence", lo=0, hi=1),
                marks=(
                    Rule(way="diagonal", label="calibrated"),
                    Points(
                        x=tuple(each.mean_p for each in found),
                        y=tuple(each.rate for each in found),
                        lo=tuple(each.interval.lo for each in found),
                        hi=tuple(each.interval.hi for each in found),
                        label=model,
                    ),
                ),
            ),
            Panel(
                x=Axis(label="probability", lo=0, hi=1),
                y=Axis(label="queries", lo=0),
                height=0.4,
                marks=(
                    Histogram(
                        edges=(*(each.lo for each in found), found[-1].hi),
                        counts=tuple(each.count for each in found),
                    ),
                ),
            ),
        ),
    )


def _risk(model: str, points: RiskCoverage, tau: float) -> Figure:
    some = thinned(len(points.coverage))
    return Figure(
        name="risk-coverage",
        title="Errors if only the surest queries are decided",
        caption=f"Share of wrong decisions of {model} at p >= {tau:g} among the "
        "queries that it is surest of, by how many are decided.",
        panels=(
            Panel(
                x=Axis(label="coverage: share of queries decided", lo=0, hi=1),
                y=Axis(label="risk: share of them wrong", lo=0),
                marks=(
                    Line(
                        x=_numbers(points.coverage[some]),
                        y=_numbers(points.risk[some]),
                        label=model,
                    ),
                ),
            ),
        ),
    )
