"""Declares the figures of a scoring: reading order, decisions, stages, the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from jobs.kit import charts
from jobs.kit.charts import (
    Chart,
    ChartFigures,
    Drawing,
    bootstrap_note,
    first_rows,
    reliability,
    rows_panel,
    thinned_line,
)
from jobs.kit.metrics import calibration
from jobs.kit.metrics.calibration import Bin
from jobs.kit.metrics.classification import curve
from jobs.kit.metrics.columns import Floats
from jobs.kit.metrics.screening import recall_curve
from jobs.kit.text_format import n_text, plural
from jobs.screening.decisions import ALL, EXCLUDE, DecisionView, strata
from jobs.screening.ranking import rank_reviews
from jobs.screening.results import ScreeningModelResults, ScreeningResults
from jobs.screening.worklist import EDGES, binned
from runner.scorecard import (
    Axis,
    Bars,
    Category,
    Histogram,
    LineSeries,
    Panel,
    Points,
    ReferenceLine,
)

Plot: TypeAlias = charts.Plot[ScreeningResults, ScreeningModelResults]

MOST_CURVES = 200
"""Maximum number of curves of single reviews; more would blend into one surface."""

MOST_ROWS = 40
"""Maximum number of rows of a dot plot; a page has no space for more."""

BINS = 20
"""Number of bins of similarities."""

GRID = np.linspace(0, 1, 101)


def _recall(plot: Plot) -> Iterator[Panel]:
    """Yield a thin curve for each review, and the mean of all."""
    for model in plot.models:
        curves = list(_recall_curves(model.data.view))
        if not curves:
            continue
        mean = np.mean([np.interp(GRID, x, y) for x, y in curves], axis=0)
        singles = curves if len(curves) <= MOST_CURVES else []
        yield Panel(
            title=model.name,
            x=Axis(label="share of records read", lo=0, hi=1),
            y=Axis(
                label=f"recall, mean of {plural(len(curves), 'review')}", lo=0, hi=1
            ),
            square=True,
            marks=(
                ReferenceLine(way="diagonal"),
                *(thinned_line(x, y, faint=True) for x, y in singles),
                thinned_line(GRID, mean, series=model.series),
            ),
        )


def _recall_curves(view: DecisionView) -> Iterator[tuple[Floats, Floats]]:
    for ranked in rank_reviews(view, np.ones(len(view.records), dtype=np.bool_)):
        recalls = recall_curve(ranked.label)
        if recalls is not None and ranked.has_both:
            x = np.arange(len(recalls) + 1) / len(recalls)
            yield x, np.concatenate(([0.0], recalls))


def _fpr(plot: Plot) -> Iterator[Panel]:
    """Yield the false positive rate against each kind, with intervals."""
    kinds = plot.results.frame.records.kinds
    if names := tuple(kind for kind in kinds if kind != "included"):
        rates = [
            [model.data.strata[name].by_path["micro.fpr"] for name in names]
            for model in plot.models
        ]
        yield rows_panel(
            [
                f"{name}\n{n_text(of_kind)}"
                for name, of_kind in zip(names, zip(*rates, strict=True), strict=True)
            ],
            zip(plot.models, rates, strict=True),
            Axis(label="false positive rate", lo=0, hi=1),
        )


def _roc(plot: Plot) -> Iterator[Panel]:
    """Yield the ROC curve against each kind, over all records of the kind."""
    for model in plot.select(lambda data: list(_kind_curves(data.view))):
        yield Panel(
            title=model.name,
            x=Axis(label="false positive rate", lo=0, hi=1),
            y=Axis(label="sensitivity", lo=0, hi=1),
            square=True,
            marks=(ReferenceLine(way="diagonal"), *model.data),
        )


def _kind_curves(view: DecisionView) -> Iterator[LineSeries]:
    kinds: tuple[str, ...] = view.records.kinds  # the same style in every figure
    for name, rows in strata(view.records).items():
        label = view.records.label[rows]
        if name != ALL and label.any() and not label.all():
            points = curve(label, view.height[rows])
            yield thinned_line(
                points.fpr, points.tpr, label=name, series=Category(kinds.index(name))
            )


def _calibration(plot: Plot) -> Drawing:
    """Draw stated probabilities against observed shares, with counts below."""
    return reliability(
        plot.select(lambda data: _bins(data.view)),
        share="share included",
        probability="p_include",
        unit="records",
    )


def _bins(view: DecisionView) -> tuple[Bin, ...]:
    rows = ~view.imputed
    if not rows.any():
        return ()
    return calibration.reliability(view.records.label[rows], view.decisions.p[rows])


def _distribution(plot: Plot) -> Iterator[Panel]:
    """Yield a histogram of p_include for each model."""
    for model in plot.models:
        yield Panel(
            title=model.name,
            x=Axis(label="p_include", lo=0, hi=1),
            y=Axis(label="records", lo=0),
            marks=(
                Histogram(
                    edges=EDGES,
                    counts=tuple(map(float, binned(model.data.view))),
                    series=model.series,
                ),
            ),
        )


def _funnel(plot: Plot) -> Iterator[Panel]:
    """Yield the records that reach each stage, and the included papers it loses."""
    staged = [m for m in plot.models if len(m.data.view.decisions.stages) > 1]
    if not staged:
        return
    x = Axis(names=staged[0].data.view.decisions.stages)
    for label, counts in (("records", _reaching), ("included papers lost", _lost)):
        yield Panel(
            x=x,
            y=Axis(label=label, lo=0),
            marks=tuple(
                model.bars(counts(model.data.view, len(x.names))) for model in staged
            ),
        )


def _reaching(view: DecisionView, stages: int) -> list[int]:
    return [int((view.decisions.ended >= at).sum()) for at in range(stages)]


def _lost(view: DecisionView, stages: int) -> list[int]:
    lost = (view.records.label == 1) & (view.decisions.outcome == EXCLUDE)
    counts: list[int] = np.bincount(
        view.decisions.stage[lost], minlength=stages
    ).tolist()
    return counts


def _saved(plot: Plot) -> Drawing:
    """Draw the reading saved in each review."""
    by_model = [
        (model, model.data.strata["all"].by_review["wss95"]) for model in plot.models
    ]
    # whether it is defined depends only on the labels, and the same order for all
    # models makes a review a row across the panels
    _, first = by_model[0]
    order = sorted((value, at) for at, value in enumerate(first) if value is not None)
    if not order:
        return Drawing(panels=())
    rows, selected = first_rows(
        [at for _, at in order],
        MOST_ROWS,
        " Of {all:,} reviews, those that save least.",
    )
    every = [values[at] or 0.0 for _, values in by_model for at in rows]
    x = Axis(label="WSS@95", lo=min(0.0, *every), hi=max(0.0, *every))
    reviews = plot.results.predictions.records.reviews
    return Drawing(
        panels=[
            Panel(
                title=model.name,
                x=x,
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
        ],
        facts={"wss": plot.results.dataset.settings.wss, "selected": selected},
    )


def _similarity(plot: Plot) -> Iterator[Panel]:
    """Yield the similarity of each kind to its review's included papers."""
    validation_set = plot.results.dataset.validation_set
    similarities: dict[str, list[float]] = {}
    for record in validation_set.records if validation_set else ():
        if record.similarity is not None:
            similarities.setdefault(record.kind, []).append(record.similarity)
    if not similarities:
        return
    top = max(max(values) for values in similarities.values()) or 1.0
    edges = np.linspace(0, top, BINS + 1)
    yield Panel(
        x=Axis(label="similarity", lo=0, hi=top),
        y=Axis(label="share of the kind", lo=0),
        marks=tuple(
            thinned_line(
                (edges[1:] + edges[:-1]) / 2,
                np.histogram(values, edges)[0] / len(values),
                label=f"{kind} (n = {len(values):,})",
                series=Category(index),
                marked=True,
            )
            for index, (kind, values) in enumerate(similarities.items())
        ),
    )


def _candidates(plot: Plot) -> Iterator[Panel]:
    """Yield a histogram of near-miss candidates per review."""
    validation_set = plot.results.dataset.validation_set
    if validation_set is not None and any(validation_set.candidates.values()):
        yield Panel(
            x=Axis(label="candidates", names=tuple(validation_set.candidates)),
            y=Axis(label="reviews", lo=0),
            height=0.7,
            marks=(Bars(values=tuple(validation_set.candidates.values())),),
        )


CHARTS = (
    Chart(
        name="recall",
        title="Recall while reading in the model's order",
        caption="Thin: single reviews, where there are no more than "
        f"{MOST_CURVES}. Bold: their mean at each share of the records. The dashed "
        "diagonal is reading in random order.",
        panels=_recall,
    ),
    Chart(
        name="fpr-by-kind",
        title="Wrongly included, by kind of negative",
        caption="Share of decided negatives that the model includes. Near misses are "
        "unjudged: some may be eligible. n is the number of decided negatives. "
        "Intervals: {intervals}.",
        panels=_fpr,
    ),
    Chart(
        name="roc-by-kind",
        title="Included papers against each kind of negative",
        caption="All reviews together, by p_include; what has none ranks by its "
        "decision. The printed AUROC is the mean over reviews, which this curve is "
        "not.",
        panels=_roc,
    ),
    Chart(
        name="reliability",
        title="Calibration of p_include",
        caption="Records by their p_include in ten bins: the share that "
        "reviews include, with Wilson's 95% interval, which treats "
        "records as independent. Below: number of records. Observed "
        "shares depend on this set's ratio of negatives.",
        panels=_calibration,
    ),
    Chart(
        name="funnel",
        title="Stages",
        caption="Left: records that reach each stage. Right: included papers whose "
        "decision is an exclusion at that stage.",
        panels=_funnel,
    ),
    Chart(
        name="wss95",
        title="Reading saved by review",
        caption="Work saved over sampling at 95% recall (WSS@95, {wss}): the "
        "share of records left unread when 95% of the included papers "
        "are found, less 5%. It depends on this set's ratio of "
        "negatives. The dashed line at 0 is reading in random order. "
        "Reviews in the order of the first model.{selected}",
        panels=_saved,
    ),
    Chart(
        name="similarity",
        title="Topic similarity by kind",
        caption="Cosine of a record's words (TF-IDF) with those of the "
        "review's other included papers, as shares of the records of "
        f"its kind in {BINS} bins. Kinds that differ here can be "
        "separated by topic alone.",
        panels=_similarity,
    ),
    Chart(
        name="candidates",
        title="Near-miss candidates of a review",
        caption="Reviews by how many papers of related reviews they do not include; "
        "of all reviews that were analysed, drawn or not.",
        panels=_candidates,
    ),
)
"""In the order of the report."""

UNLABELLED_CHARTS = (
    Chart(
        name="p-include",
        title="Stated probabilities",
        caption="Records by p_include, in ten bins. Records without one are left out.",
        panels=_distribution,
    ),
)
"""Charts of a scoring without labels."""


def figures(
    results: ScreeningResults,
) -> ChartFigures[ScreeningResults, ScreeningModelResults]:
    """Return the figures that the input has data for."""

    def plot() -> Plot:
        settings = results.dataset.settings
        reviews = plural(len(results.predictions.records.reviews), "review")
        note = bootstrap_note(settings.level, "review", reviews, settings.boot_b)
        return Plot.of(results, results.columns, note)

    charts = CHARTS if results.has_truth else UNLABELLED_CHARTS
    return ChartFigures(charts, plot)
