"""Plots the gate of each model: ROC, precision-recall, reliability, risk, states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import PostBootstrap
from jobs.evidence_retrieval.metrics.gate import closed_edge
from jobs.evidence_retrieval.metrics.judged_predictions import (
    GateScores,
    JudgedPredictions,
)
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.evidence_retrieval.metrics.retrieval import fold_masks
from jobs.evidence_retrieval.metrics.states import decided_queries
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit import charts
from jobs.kit.charts import Drawing, bootstrap_note, thinned_line
from jobs.kit.metrics import calibration, selective
from jobs.kit.metrics.areas import tpr_of
from jobs.kit.metrics.calibration import Bin
from jobs.kit.metrics.classification import Curve, at_threshold, curve
from jobs.kit.metrics.columns import Ints
from jobs.kit.metrics.selective import STATES, RiskCoverage
from runner.scorecard import (
    Axis,
    Band,
    Mark,
    Number,
    Panel,
    Points,
    ReferenceLine,
)

Plot: TypeAlias = charts.Plot[EvidenceResults, ModelResults]
Model: TypeAlias = charts.PlottedModel[ModelResults]

BAND_POINTS = 101

MOST_BANDS = 2
"""Maximum number of bands; more would cover each other."""

MOST_LETTERS = 3
"""Maximum number of curves with letters at their points; more would overlap."""

BY_FOLD = " (off the curve where folds have thresholds of their own)"
"""Caption of a point that has no single threshold."""


def plotted_models(results: EvidenceResults) -> Plot:
    """Select the models of the figures."""
    settings, posts = results.settings, f"{results.draws.clusters.size:,} posts"
    note = bootstrap_note(settings.level, "post", posts, settings.boot_b)
    return Plot.of(results, results.models, note)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedPoint:
    """A deployed decision rule, as a point on the curves; None if undefined."""

    name: str
    fpr: float | None
    tpr: float | None
    precision: float | None

    @property
    def initial(self) -> str:
        """Letter that replaces the name if there are several lines."""
        return self.name[0].upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCurve:
    """ROC and precision-recall of a gate."""

    gated: GateScores
    points: Curve
    operating: tuple[DeployedPoint, ...]


def gate_curve(block: JudgedPredictions) -> GateCurve | None:
    """Return the curve of a block; None without both classes."""
    gated = block.gated
    if gated is None or not 0 < gated.y.sum() < len(gated.y):
        return None
    return GateCurve(
        gated=gated,
        points=curve(gated.y, gated.p),
        operating=tuple(_operating(block)),
    )


def roc_band(gated: GateScores, draws: PostBootstrap, series: int) -> Band:
    """Return the interval of the sensitivity at each false positive rate."""
    grid = np.linspace(0, 1, BAND_POINTS)
    clusters = draws.clusters.of_query[gated.rows]
    ends = draws.by_post.band_of(tpr_of(gated.y, gated.p, clusters, grid), BAND_POINTS)
    return Band(
        x=tuple(grid.tolist()),
        lo=tuple(end.lo for end in ends),
        hi=tuple(end.hi for end in ends),
        series=series,
    )


def _operating(block: JudgedPredictions) -> Iterator[DeployedPoint]:
    names = {
        "at_tau": f"p >= {block.settings.tau:g}",
        "at_screening": "screening: not NEG",
        "at_alert": "alert: POS",
    }
    for decided in decided_queries(block.gated, block.stated, block.settings):
        yield DeployedPoint(
            name=names[decided.way],
            fpr=decided.values["fpr"],
            tpr=decided.values["sensitivity"],
            precision=decided.values["precision"],
        )


def bins(block: JudgedPredictions) -> tuple[Bin, ...]:
    """Return the reliability of the probabilities; empty without probabilities."""
    gated, settings = block.gated, block.settings
    if gated is None or not gated.is_probability:
        return ()
    return calibration.reliability(
        gated.y,
        gated.p,
        settings.ece_bins,
        closed=closed_edge(settings),
        level=settings.level,
    )


def risk(block: JudgedPredictions) -> RiskCoverage | None:
    """Return the errors at tau by the share of queries decided, most certain first."""
    gated = block.gated
    if gated is None or not gated.is_probability or not len(gated.y):
        return None
    wrong = at_threshold(gated.p, block.settings.tau) != gated.y
    return selective.risk_coverage(np.maximum(gated.p, 1 - gated.p), wrong)


def k_by_state(block: JudgedPredictions) -> dict[str, dict[int, int]]:
    """Return the number of queries by state and number of sentences."""
    chosen, stated = block.chosen, block.stated
    if chosen is None:
        return {}
    if stated is None:
        return {"all": _counts(chosen.k)}
    k = np.full(len(block.queries), UNKNOWN, dtype=np.int64)
    k[chosen.rows] = chosen.k
    stated_k = k[stated.rows]
    return {
        name: _counts(stated_k[(stated.state == i) & (stated_k != UNKNOWN)])
        for i, name in enumerate(STATES)
    }


def _counts(values: Ints) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def states_by_fold(block: JudgedPredictions) -> dict[str, dict[str, int]]:
    """Return the number of queries by fold and state."""
    if block.stated is None:
        return {}
    by_fold = {}
    for fold, mask in fold_masks(block).items():
        fold_states = block.stated.within(mask)
        counts = np.bincount(fold_states.state, minlength=len(STATES)).tolist()
        by_fold[fold] = dict(zip(STATES, counts, strict=True))
    return by_fold


_Curves: TypeAlias = Sequence[tuple[Model, GateCurve]]


def _curves(plot: Plot) -> _Curves:
    """Return the models with scores of queries of both kinds, and their curves."""
    return [
        (model, gate)
        for model in plot.models
        if (gate := gate_curve(model.data.block)) is not None
    ]


def roc(plot: Plot) -> Drawing:
    """Plot the ROC curve of each model with its band, and the deployed thresholds."""
    curves = _curves(plot)
    has_bands = len(curves) <= MOST_BANDS
    marks: list[Mark] = [ReferenceLine(way="diagonal", label="chance")]
    for model, gate in curves:
        label = _area_label(model, "AUROC")
        points = {point: (point.fpr, point.tpr) for point in gate.operating}
        if has_bands:
            marks.append(roc_band(gate.gated, plot.results.draws, model.series))
        marks += [
            thinned_line(
                gate.points.fpr, gate.points.tpr, label=label, series=model.series
            ),
            _deployed(points, model.series, curves=len(curves)),
        ]
    drawing = _drawing(
        curves, "false positive rate", "true positive rate (sensitivity)", marks
    )
    note = f" Bands: {plot.intervals}, at each false positive rate."
    return replace(drawing, facts={**drawing.facts, "bands": note if has_bands else ""})


def precision_recall(plot: Plot) -> Drawing:
    """Plot the precision at each recall, and the deployed thresholds."""
    curves = _curves(plot)
    shares = [gate.points.positives / len(gate.gated.y) for _, gate in curves]
    marks: list[Mark] = [
        ReferenceLine(way="horizontal", at=at, label=f"share with evidence: {at:.3f}")
        for at in dict.fromkeys(shares)
    ]
    for model, gate in curves:
        # precision is undefined at the start
        line = thinned_line(
            gate.points.tpr[1:],
            gate.points.precision[1:],
            label=_area_label(model, "AUPRC"),
            series=model.series,
        )
        points = {point: (point.tpr, point.precision) for point in gate.operating}
        marks += [
            # the precision of a threshold applies to the recall that it adds
            replace(line, x=(0.0, *line.x), y=(*line.y, line.y[-1]), steps=True),
            _deployed(points, model.series, curves=len(curves)),
        ]
    return _drawing(curves, "recall (sensitivity)", "precision", marks)


def _area_label(model: Model, name: str) -> str:
    area = model.data.by_path()[name.lower()].value
    return f"{name} {area:.3f}: {model.name}"  # long names are truncated


def _deployed(
    points: Mapping[DeployedPoint, tuple[Number, Number]],
    series: int,
    *,
    curves: int,
) -> Points:
    """Return the points, labelled with names, or letters for several curves."""
    notes: tuple[str, ...] = ()
    if curves <= MOST_LETTERS:
        notes = tuple(point.name if curves == 1 else point.initial for point in points)
    return Points(
        x=tuple(x for x, _ in points.values()),
        y=tuple(y for _, y in points.values()),
        notes=notes,
        series=series,
    )


def _drawing(curves: _Curves, x: str, y: str, marks: Sequence[Mark]) -> Drawing:
    """Return the panel of two rates, with a caption for its points."""
    panel = Panel(
        x=Axis(label=x, lo=0, hi=1),
        y=Axis(label=y, lo=0, hi=1),
        marks=tuple(marks),
        square=True,
    )
    return Drawing(
        panels=[panel] if curves else [],
        facts={"points": _points_note(curves)},
    )


def _points_note(curves: _Curves) -> str:
    points = dict.fromkeys(point for _, gate in curves for point in gate.operating)
    if not points:
        return "No threshold was deployed."
    if len(curves) == 1:
        return f"Points are where thresholds were set{BY_FOLD}."
    words = dict.fromkeys(
        f"{point.initial} {point.name}" if len(curves) <= MOST_LETTERS else point.name
        for point in points
    )
    return f"Points are where thresholds were set{BY_FOLD}: {', '.join(words)}."


def reliability(plot: Plot) -> Drawing:
    """Plot stated probabilities against observed shares, counts below."""
    drawing = charts.reliability(
        plot.select(lambda data: bins(data.block)),
        share="share with evidence",
        probability="probability of evidence",
        unit="queries",
    )
    return replace(drawing, facts={"percent": 100 * plot.results.settings.level})


def risk_coverage(plot: Plot) -> Drawing:
    """Plot wrong decisions among the most certain queries, by the number decided."""
    risks = [
        (model, risk_curve)
        for model in plot.models
        if (risk_curve := risk(model.data.block)) is not None
    ]
    most = max((float(risk_curve.risk.max()) for _, risk_curve in risks), default=0.0)
    panel = Panel(
        x=Axis(label="share of queries decided (coverage)", lo=0, hi=1),
        y=Axis(label="share of wrong decisions (risk)", lo=0, hi=most or 1),
        marks=tuple(
            thinned_line(
                risk_curve.coverage,
                risk_curve.risk,
                marked=len(risk_curve.risk) == 1,
                label=_area_label(model, "AURC"),
                series=model.series,
            )
            for model, risk_curve in risks
        ),
    )
    return Drawing(
        panels=[panel] if risks else [], facts={"tau": plot.results.settings.tau}
    )
