"""Makes the figures of probabilities: ROC, precision-recall, reliability, risk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit import shared_figures
from jobs.kit.metrics import calibration, selective
from jobs.kit.metrics.areas import tpr_of
from jobs.kit.metrics.calibration import Bin
from jobs.kit.metrics.classification import at_threshold, confusion, curve, rates
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.selective import NEG, POS, STATES, RiskCoverage
from jobs.kit.shared_figures import (
    SIDE_BY_SIDE,
    ReliabilitySeries,
    ReliabilityWords,
    reliability_panels,
    thinned_points,
)
from runner.scorecard import (
    Axis,
    Band,
    Figure,
    LineSeries,
    Mark,
    Metric,
    Numbers,
    Panel,
    Points,
    ReferenceLine,
)

Model: TypeAlias = shared_figures.ModelSeries[ModelResults]
"""One of the models that are shown."""


PlottedEvidenceModels: TypeAlias = shared_figures.PlottedModels[
    EvidenceResults, ModelResults
]


def plotted_models(results: EvidenceResults) -> PlottedEvidenceModels:
    """The models that figures have room for."""
    settings, posts = results.settings, f"{results.draws.posts:,} posts"
    note = shared_figures.bootstrap_note(settings.level, "post", posts, settings.boot_b)
    return shared_figures.plotted_models(results, results.models, interval_note=note)


def numbers(column: Floats) -> Numbers:
    """A column for a figure; NaN is undefined."""
    return tuple(None if np.isnan(x) else x for x in column.tolist())


def with_ends(
    metrics: Sequence[Metric | None], ys: Iterable[float], model: Model
) -> Points:
    """Values with their intervals on lying rows; no point where there is no value."""
    return Points(
        x=tuple(metric.value if metric else None for metric in metrics),
        y=tuple(ys),
        lo=tuple(metric.lo if metric else None for metric in metrics),
        hi=tuple(metric.hi if metric else None for metric in metrics),
        label=model.name,
        series=model.series,
    )


BAND_POINTS = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBand:
    """An interval of the curve at each place of a grid; None where undefined."""

    x: tuple[float, ...]
    lo: tuple[float | None, ...]
    hi: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedPoint:
    """A deployed way to decide, as a point on the curves; None where undefined."""

    name: str
    fpr: float | None
    tpr: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """ROC and precision-recall of a gate."""

    fpr: Floats
    tpr: Floats
    roc_band: CurveBand
    recall: Floats
    precision: Floats
    prevalence: float
    operating: tuple[DeployedPoint, ...]


def separation(block: JudgedPredictions, draws: PostBootstrap) -> Separation | None:
    """The curves of a block; None without both classes."""
    gated = block.gated
    if gated is None or not 0 < gated.y.sum() < len(gated.y):
        return None
    points = curve(gated.y, gated.p)
    some = thinned_points(len(points.tp))
    below = (
        thinned_points(len(points.tp) - 1) + 1
    )  # at the start precision is undefined
    return Separation(
        fpr=points.fpr[some],
        tpr=points.tpr[some],
        roc_band=_roc_band(gated, draws),
        recall=points.tpr[below],
        precision=points.precision[below],
        prevalence=points.positives / (points.positives + points.negatives),
        operating=tuple(_operating(block)),
    )


def _roc_band(gated: GateScores, draws: PostBootstrap) -> CurveBand:
    """The sensitivity at each false positive rate, over draws of posts."""
    grid = np.linspace(0, 1, BAND_POINTS)
    ends = draws.band(
        lambda cluster: tpr_of(gated.y, gated.p, cluster[gated.rows], grid),
        BAND_POINTS,
    )
    return CurveBand(
        x=tuple(grid.tolist()),
        lo=tuple(end.lo for end in ends),
        hi=tuple(end.hi for end in ends),
    )


def _operating(block: JudgedPredictions) -> list[DeployedPoint]:
    gated, stated = block.gated, block.stated
    ways: list[tuple[str, Bools, Bools]] = []
    if gated is not None and gated.is_probability:
        tau = block.settings.tau
        ways.append((f"p >= {tau:g}", gated.y, at_threshold(gated.p, tau)))
    if stated is not None:
        ways.append(("screening: not NEG", stated.y, stated.state != NEG))
        ways.append(("alert: POS", stated.y, stated.state == POS))
    points = []
    for name, y, h in ways:
        rate_values = rates(confusion(y, h))
        points.append(
            DeployedPoint(
                name=name,
                fpr=rate_values["fpr"],
                tpr=rate_values["sensitivity"],
                precision=rate_values["precision"],
            )
        )
    return points


def bins(block: JudgedPredictions) -> tuple[Bin, ...]:
    """The reliability of the probabilities; none without probabilities."""
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
    """Errors at tau against how many queries are decided, the surest first."""
    gated = block.gated
    if gated is None or not gated.is_probability or not len(gated.y):
        return None
    wrong = at_threshold(gated.p, block.settings.tau) != gated.y
    return selective.risk_coverage(np.maximum(gated.p, 1 - gated.p), wrong)


def k_by_state(block: JudgedPredictions) -> dict[str, dict[int, int]]:
    """How many queries of each state show how many sentences."""
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
    """How many queries of each fold are in each state."""
    if block.stated is None:
        return {}
    by_fold = {}
    for fold, mask in fold_masks(block).items():
        fold_states = block.stated.within(mask)
        counts = np.bincount(fold_states.state, minlength=len(STATES)).tolist()
        by_fold[fold] = dict(zip(STATES, counts, strict=True))
    return by_fold


BY_FOLD = " (off the curve where folds have thresholds of their own)"
"""How a caption speaks of a point that no single threshold has."""


def separations(plotted: PlottedEvidenceModels) -> Iterator[Figure]:
    """The two curves of each model that has scores of queries of both kinds."""
    model_curves = [
        (model, curves)
        for model in plotted.models
        if (curves := separation(model.column.block, plotted.results.draws)) is not None
    ]
    if model_curves:
        yield _roc(model_curves, plotted)
        yield _precision_recall(model_curves, plotted)


_ModelCurves = Sequence[tuple[Model, Separation]]


def _roc(model_curves: _ModelCurves, plotted: PlottedEvidenceModels) -> Figure:
    marks: list[Mark] = [ReferenceLine(way="diagonal", label="chance")]
    for model, curves in model_curves:
        band = curves.roc_band
        marks += [
            Band(x=band.x, lo=band.lo, hi=band.hi, series=model.series),
            LineSeries(
                x=numbers(curves.fpr),
                y=numbers(curves.tpr),
                label=_label(model, "auroc", "AUROC"),
                series=model.series,
            ),
            Points(
                x=tuple(point.fpr for point in curves.operating),
                y=tuple(point.tpr for point in curves.operating),
                notes=_notes(curves.operating, model_curves),
                series=model.series,
            ),
        ]
    return Figure(
        name="roc",
        title="ROC: evidence or none",
        caption="Share of the queries with evidence that are found (up), against the "
        "share of the queries without that raise a false alarm (right), over every "
        "threshold; the nearer to the upper left, the better. Bands: "
        f"{plotted.interval_note}, at each false positive rate. "
        f"{_marked(model_curves)}{plotted.rest}",
        panels=_square(
            "false positive rate", "true positive rate (sensitivity)", marks
        ),
    )


def _precision_recall(
    model_curves: _ModelCurves, plotted: PlottedEvidenceModels
) -> Figure:
    marks: list[Mark] = [
        ReferenceLine(way="horizontal", at=at, label=f"share with evidence: {at:.3f}")
        for at in dict.fromkeys(curves.prevalence for _, curves in model_curves)
    ]
    for model, curves in model_curves:
        recall, precision = numbers(curves.recall), numbers(curves.precision)
        marks += [
            LineSeries(
                # a threshold's precision holds for the recall that it adds
                x=(0.0, *recall),
                y=(*precision, precision[-1]),
                steps=True,
                label=_label(model, "auprc", "AUPRC"),
                series=model.series,
            ),
            Points(
                x=tuple(point.tpr for point in curves.operating),
                y=tuple(point.precision for point in curves.operating),
                notes=_notes(curves.operating, model_curves),
                series=model.series,
            ),
        ]
    return Figure(
        name="precision-recall",
        title="Precision and recall: evidence or none",
        caption="Share of the found queries that have evidence (up), against the share "
        "of the queries with evidence that are found (right), over every threshold; "
        "the nearer to the upper right, the better. By chance "
        "precision is the share with evidence, not 0.5. "
        f"{_marked(model_curves)}{plotted.rest}",
        panels=_square("recall (sensitivity)", "precision", marks),
    )


def _square(x: str, y: str, marks: Sequence[Mark]) -> tuple[Panel]:
    """The one panel of two rates."""
    panel = Panel(
        x=Axis(label=x, lo=0, hi=1),
        y=Axis(label=y, lo=0, hi=1),
        marks=tuple(marks),
        square=True,
    )
    return (panel,)


def _label(model: Model, path: str, name: str) -> str:
    area = model.column.by_path()[path].value
    return f"{name} {area:.3f}: {model.name}"  # a long name is cut at its end


def _notes(
    operating: Sequence[DeployedPoint], model_curves: _ModelCurves
) -> tuple[str, ...]:
    """The points' names; beside several lines, letters that the caption explains."""
    if len(model_curves) == 1:
        return tuple(point.name for point in operating)
    return tuple(_initial(point) for point in operating)


def _initial(point: DeployedPoint) -> str:
    return point.name[0].upper()


def _marked(model_curves: _ModelCurves) -> str:
    names = dict.fromkeys(
        point for _, curves in model_curves for point in curves.operating
    )
    if not names:
        return "No threshold was deployed."
    if len(model_curves) == 1:
        return f"Points are where thresholds were set{BY_FOLD}."
    words = dict.fromkeys(f"{_initial(point)} {point.name}" for point in names)
    return f"Points are where thresholds were set{BY_FOLD}: {', '.join(words)}."


def reliability(plotted: PlottedEvidenceModels) -> Figure | None:
    """Stated probabilities against what was observed, counts below."""
    binned_models = [
        (m, model_bins) for m in plotted.models if (model_bins := bins(m.column.block))
    ]
    if not binned_models:
        return None
    level = 100 * plotted.results.settings.level
    return Figure(
        name="reliability",
        title="Calibration",
        caption="Share of queries with evidence against their mean probability, bin by "
        f"bin; on the diagonal probabilities mean what they say. Bars: {level:g}% "
        "Wilson intervals, which take queries as independent. Below: how many queries "
        f"are in each bin.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(binned_models)],
        panels=reliability_panels(
            [
                ReliabilitySeries(name=m.name, series=m.series, bins=model_bins)
                for m, model_bins in binned_models
            ],
            ReliabilityWords(
                share="share with evidence",
                probability="probability of evidence",
                counted="queries",
            ),
        ),
    )


def risk_coverage(plotted: PlottedEvidenceModels) -> Figure | None:
    """Wrong decisions among the surest queries, by how many are decided."""
    risk_curves = [
        (model, risk_curve)
        for model in plotted.models
        if (risk_curve := risk(model.column.block)) is not None
    ]
    if not risk_curves:
        return None
    lines, most = [], 0.0
    for model, risk_curve in risk_curves:
        most = max(most, float(risk_curve.risk.max()))
        some = thinned_points(len(risk_curve.risk))
        area = model.column.by_path()["aurc"].value
        lines.append(
            LineSeries(
                x=numbers(risk_curve.coverage[some]),
                y=numbers(risk_curve.risk[some]),
                marked=len(risk_curve.risk) == 1,
                label=f"AURC {area:.3f}: {model.name}",
                series=model.series,
            )
        )
    tau = plotted.results.settings.tau
    return Figure(
        name="risk-coverage",
        title="Risk of deciding",
        caption=f"If only the surest queries were decided at p >= {tau:g}: the share "
        "of wrong decisions among them. How sure one is of a query is max(p, 1 - p)."
        f"{plotted.rest}",
        panels=(
            Panel(
                x=Axis(label="share of queries decided (coverage)", lo=0, hi=1),
                y=Axis(label="share of wrong decisions (risk)", lo=0, hi=most or 1),
                marks=tuple(lines),
            ),
        ),
    )
