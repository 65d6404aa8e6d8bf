"""Draws the figures of a scoring as values that the report renders.

A figure plots the first models of a scoring, each in a style of its own, and is made
when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from jobs.kit import shared_figures
from jobs.kit.metrics import reliability
from jobs.kit.metrics.calibration import Bin
from jobs.kit.metrics.classification import curve
from jobs.kit.metrics.columns import Floats
from jobs.kit.metrics.screening import recall_curve
from jobs.kit.shared_figures import (
    SIDE_BY_SIDE,
    ReliabilitySeries,
    ReliabilityWords,
    build_figures,
    reliability_panels,
    thinned_points,
)
from jobs.kit.text_format import plural
from jobs.screening.decisions import ALL, EXCLUDE, DecisionView, strata
from jobs.screening.ranking import rank_reviews
from jobs.screening.results import ScreeningModelResults, ScreeningResults
from runner.scorecard import (
    Axis,
    Bars,
    FailedFigure,
    Figure,
    LineSeries,
    Metric,
    Panel,
    Points,
    ReferenceLine,
)

Model: TypeAlias = shared_figures.ModelSeries[ScreeningModelResults]
"""One of the models that are shown."""


PlottedScreening: TypeAlias = shared_figures.PlottedModels[
    ScreeningResults, ScreeningModelResults
]


def plotted_models(results: ScreeningResults) -> PlottedScreening:
    """The models that figures have room for."""
    settings = results.dataset.settings
    reviews = plural(len(results.predictions.records.reviews), "review")
    note = shared_figures.bootstrap_note(
        settings.level, "review", reviews, settings.boot_b
    )
    return shared_figures.plotted_models(results, results.columns, interval_note=note)


def interval_ends(metrics: Sequence[Metric]) -> dict[str, tuple[float | None, ...]]:
    """The interval ends of metrics, as marks take them."""
    return {
        "lo": tuple(metric.lo for metric in metrics),
        "hi": tuple(metric.hi for metric in metrics),
    }


BINS = 20


def fpr(plotted: PlottedScreening) -> Figure | None:
    """The false positive rate against each kind, with intervals."""
    names = _kinds(plotted)
    if not names:
        return None
    marks = []
    for model in plotted.models:
        metrics = [model.column.strata[name].by_path["micro.fpr"] for name in names]
        marks.append(
            Bars(
                values=tuple(metric.value for metric in metrics),
                label=model.name,
                series=model.series,
                **interval_ends(metrics),
            )
        )
    return Figure(
        name="fpr-by-kind",
        title="Wrongly included, by kind of negative",
        caption="Share of decided negatives that the model includes. Near misses are "
        f"unjudged: some may be eligible. Bars: {plotted.interval_note}.{plotted.rest}",
        panels=(
            Panel(
                x=Axis(names=names),
                y=Axis(label="false positive rate", lo=0, hi=1),
                marks=tuple(marks),
            ),
        ),
    )


def _kinds(plotted: PlottedScreening) -> tuple[str, ...]:
    return tuple(
        kind for kind in plotted.results.predictions.records.kinds if kind != "included"
    )


def roc(plotted: PlottedScreening) -> Figure | None:
    """The ROC curve against each kind, over all records of the kind."""
    panels = tuple(
        panel for model in plotted.models if (panel := _roc(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="roc-by-kind",
        title="Included papers against each kind of negative",
        caption="All reviews together, by p_include; what has none ranks by its "
        "decision. The printed AUROC is the mean over reviews, which this curve is "
        f"not.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(panels)],
        panels=panels,
    )


def _roc(model: Model) -> Panel | None:
    view = model.column.view
    kinds: tuple[str, ...] = view.records.kinds  # a look each, in every figure
    marks: list[LineSeries] = []
    for name, rows in strata(view.records).items():
        label = view.records.label[rows]
        if name == ALL or label.all() or not label.any():
            continue
        points = curve(label, view.height[rows])
        some = thinned_points(len(points.tp))
        marks.append(
            LineSeries(
                x=tuple(points.fpr[some].tolist()),
                y=tuple(points.tpr[some].tolist()),
                label=name,
                series=kinds.index(name),
            )
        )
    if not marks:
        return None
    return Panel(
        title=model.name,
        x=Axis(label="false positive rate", lo=0, hi=1),
        y=Axis(label="sensitivity", lo=0, hi=1),
        square=True,
        marks=(ReferenceLine(way="diagonal"), *marks),
    )


def similarity(plotted: PlottedScreening) -> Figure | None:
    """How similar each kind is to its review's included papers."""
    validation_set = plotted.results.dataset.validation_set
    if validation_set is None:
        return None
    similarities: dict[str, list[float]] = {}
    for record in validation_set.records:
        if record.similarity is not None:
            similarities.setdefault(record.kind, []).append(record.similarity)
    if not similarities:
        return None
    top = max(max(values) for values in similarities.values()) or 1.0
    edges = np.linspace(0, top, BINS + 1)
    middles = tuple(((edges[1:] + edges[:-1]) / 2).tolist())
    return Figure(
        name="similarity",
        title="Topic similarity by kind",
        caption="Cosine of a record's words (TF-IDF) with those of the review's other "
        f"included papers, as shares of the records of its kind in {BINS} bins. Kinds "
        "that lie apart are told apart by topic alone.",
        panels=(
            Panel(
                x=Axis(label="similarity", lo=0, hi=top),
                y=Axis(label="share of the kind", lo=0),
                marks=tuple(
                    LineSeries(
                        x=middles,
                        y=tuple(
                            (np.histogram(values, edges)[0] / len(values)).tolist()
                        ),
                        label=f"{kind} (n = {len(values):,})",
                        series=series,
                        marked=True,
                    )
                    for series, (kind, values) in enumerate(similarities.items())
                ),
            ),
        ),
    )


def candidates(plotted: PlottedScreening) -> Figure | None:
    """How many near-miss candidates the reviews have."""
    validation_set = plotted.results.dataset.validation_set
    if validation_set is None or not any(validation_set.candidates.values()):
        return None
    names = tuple(validation_set.candidates)
    return Figure(
        name="candidates",
        title="Near-miss candidates of a review",
        caption="Reviews by how many papers of related reviews they do not include; "
        "of all reviews that were analysed, drawn or not.",
        panels=(
            Panel(
                x=Axis(label="candidates", names=names),
                y=Axis(label="reviews", lo=0),
                height=0.7,
                marks=(
                    Bars(
                        values=tuple(validation_set.candidates[name] for name in names)
                    ),
                ),
            ),
        ),
    )


MOST_CURVES = 200
"""Of single reviews; beyond, they are one surface and say nothing."""

MOST_ROWS = 40
"""Of a dot plot; a page has no more."""

GRID = np.linspace(0, 1, 101)


def recall(plotted: PlottedScreening) -> Figure | None:
    """One thin curve a review, and the mean of all."""
    panels = tuple(
        panel for model in plotted.models if (panel := _curves(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="recall",
        title="Recall while reading in the model's order",
        caption="Thin: single reviews, where there are no more than "
        f"{MOST_CURVES}. Bold: their mean at each share of the records. The dashed "
        f"diagonal is reading in random order.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(panels)],
        panels=panels,
    )


def _curves(model: Model) -> Panel | None:
    view = model.column.view
    curves: list[tuple[Floats, Floats]] = []
    for ranked in rank_reviews(view, np.ones(len(view.records), dtype=np.bool_)):
        recalls = recall_curve(ranked.label)
        if recalls is not None and ranked.has_both:
            x = np.arange(len(recalls) + 1) / len(recalls)
            curves.append((x, np.concatenate(([0.0], recalls))))
    if not curves:
        return None
    mean = np.mean([np.interp(GRID, x, y) for x, y in curves], axis=0)
    singles = curves if len(curves) <= MOST_CURVES else []
    return Panel(
        title=f"{model.name}, {plural(len(curves), 'review')}",
        x=Axis(label="share of records read", lo=0, hi=1),
        y=Axis(label="recall", lo=0, hi=1),
        square=True,
        marks=(
            ReferenceLine(way="diagonal"),
            *_singles(singles),
            LineSeries(x=tuple(GRID.tolist()), y=tuple(mean.tolist()), label="mean"),
        ),
    )


def _singles(curves: list[tuple[Floats, Floats]]) -> Iterator[LineSeries]:
    for number, (x, y) in enumerate(curves):
        some = thinned_points(len(x))
        yield LineSeries(
            x=tuple(x[some].tolist()),
            y=tuple(y[some].tolist()),
            label="" if number else "single reviews",
            faint=True,
        )


def saved(plotted: PlottedScreening) -> Figure | None:
    """The reading saved in each review."""
    reviews = plotted.results.predictions.records.reviews
    by_model = [
        (model, model.column.strata["all"].by_review["wss95"])
        for model in plotted.models
    ]
    # where it is defined depends on the labels alone, and one order for all models
    # makes a review a row across the panels
    _, first = by_model[0]
    order = sorted((value, at) for at, value in enumerate(first) if value is not None)
    if not order:
        return None
    rows = [at for _, at in order[:MOST_ROWS]]
    left = len(order) - len(rows)
    every = [values[at] or 0.0 for _, values in by_model for at in rows]
    which = f" Of {len(order):,} reviews, those that save least." if left else ""
    return Figure(
        name="wss95",
        title="Reading saved by review",
        caption="Work saved over sampling at 95% recall (WSS@95, "
        f"{plotted.results.dataset.settings.wss}): the share of records left "
        "unread when 95% of the included papers are found, less 5%. It goes by "
        "this set's ratio of negatives. The dashed line at 0 is reading in random "
        f"order. Reviews in the order of the first model.{which}{plotted.rest}",
        columns=SIDE_BY_SIDE[len(by_model)],
        panels=tuple(
            Panel(
                title=model.name,
                x=Axis(label="WSS@95", lo=min(0.0, *every), hi=max(0.0, *every)),
                y=Axis(names=tuple(reviews[at] for at in rows)),
                marks=(
                    ReferenceLine(way="vertical"),
                    Points(
                        x=tuple(values[at] for at in rows),
                        y=tuple(range(len(rows))),
                        series=model.series,
                    ),
                ),
            )
            for model, values in by_model
        ),
    )


def funnel(plotted: PlottedScreening) -> Figure | None:
    """How many records reach each stage, and how many included papers it loses."""
    staged = [
        model for model in plotted.models if len(model.column.view.decisions.stages) > 1
    ]
    if not staged:
        return None
    stages = staged[0].column.view.decisions.stages
    return Figure(
        name="funnel",
        title="Stages",
        caption="Left: records that reach each stage. Right: included papers whose "
        f"decision is an exclusion at that stage.{plotted.rest}",
        columns=2,
        panels=(
            Panel(
                x=Axis(names=stages),
                y=Axis(label="records", lo=0),
                marks=tuple(_reaching(model, stages) for model in staged),
            ),
            Panel(
                x=Axis(names=stages),
                y=Axis(label="included papers lost", lo=0),
                marks=tuple(_lost(model, stages) for model in staged),
            ),
        ),
    )


def _reaching(model: Model, stages: tuple[str, ...]) -> Bars:
    ended = model.column.view.decisions.ended
    return Bars(
        values=tuple(int((ended >= at).sum()) for at in range(len(stages))),
        label=model.name,
        series=model.series,
    )


def _lost(model: Model, stages: tuple[str, ...]) -> Bars:
    view = model.column.view
    lost = (view.records.label == 1) & (view.decisions.outcome == EXCLUDE)
    counts = np.bincount(view.decisions.stage[lost], minlength=len(stages))
    return Bars(values=tuple(counts.tolist()), label=model.name, series=model.series)


def calibration(plotted: PlottedScreening) -> Figure | None:
    """Stated probabilities against what was observed, counts below."""
    models = [model for model in plotted.models if not model.column.view.imputed.all()]
    if not models:
        return None
    return Figure(
        name="reliability",
        title="Whether p_include means what it says",
        caption="Records by their p_include in ten bins: the share that reviews "
        "include, with Wilson's 95% interval, which takes records as independent. "
        "Below, how many. Observed shares go by this set's ratio of negatives."
        f"{plotted.rest}",
        columns=SIDE_BY_SIDE[len(models)],
        panels=reliability_panels(
            [
                ReliabilitySeries(
                    name=model.name,
                    series=model.series,
                    bins=_bins(model.column.view),
                )
                for model in models
            ],
            ReliabilityWords(
                share="share included", probability="p_include", counted="records"
            ),
        ),
    )


def _bins(view: DecisionView) -> Sequence[Bin]:
    rows = ~view.imputed
    return reliability(view.records.label[rows], view.decisions.p[rows])


@dataclass(frozen=True, slots=True)
class ScreeningFigures:
    """The figures that the input has something for, in the order of the report."""

    results: ScreeningResults

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (
            recall,
            fpr,
            roc,
            calibration,
            funnel,
            saved,
            similarity,
            candidates,
        )
        return build_figures(lambda: plotted_models(self.results), draws)
