"""Kinds of negatives side by side: false positives, ROC, and how alike their topics."""

from __future__ import annotations

import numpy as np

from jobs.figures import SIDE_BY_SIDE, thinned_points
from jobs.metrics.classification import curve
from jobs.screening.figures.shown import Model, Shown, ends
from jobs.screening.measuring.strata import ALL, strata
from runner.scorecard import Axis, Bars, Figure, LineSeries, Panel, ReferenceLine

BINS = 20


def fpr(shown: Shown) -> Figure | None:
    """The false positive rate against each kind, with intervals."""
    names = _kinds(shown)
    if not names:
        return None
    marks = []
    for model in shown.models:
        found = [model.column.strata[name].by_path["micro.fpr"] for name in names]
        marks.append(
            Bars(
                values=tuple(own.value for own in found),
                label=model.name,
                series=model.series,
                **ends(found),
            )
        )
    return Figure(
        name="fpr-by-kind",
        title="Wrongly included, by kind of negative",
        caption="Share of decided negatives that the model includes. Near misses are "
        f"unjudged: some may be eligible. Bars: {shown.drawn}.{shown.rest}",
        panels=(
            Panel(
                x=Axis(names=names),
                y=Axis(label="false positive rate", lo=0, hi=1),
                marks=tuple(marks),
            ),
        ),
    )


def _kinds(shown: Shown) -> tuple[str, ...]:
    return tuple(
        kind for kind in shown.results.sheet.records.kinds if kind != "included"
    )


def roc(shown: Shown) -> Figure | None:
    """The ROC curve against each kind, over all records of the kind."""
    panels = tuple(
        panel for model in shown.models if (panel := _roc(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="roc-by-kind",
        title="Included papers against each kind of negative",
        caption="All reviews together, by p_include; what has none ranks by its "
        "decision. The printed AUROC is the mean over reviews, which this curve is "
        f"not.{shown.rest}",
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


def similarity(shown: Shown) -> Figure | None:
    """How similar each kind is to its review's included papers."""
    drawn = shown.results.dataset.validation_set
    if drawn is None:
        return None
    found: dict[str, list[float]] = {}
    for record in drawn.records:
        if record.similarity is not None:
            found.setdefault(record.kind, []).append(record.similarity)
    if not found:
        return None
    top = max(max(own) for own in found.values()) or 1.0
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
                        y=tuple((np.histogram(own, edges)[0] / len(own)).tolist()),
                        label=f"{kind} (n = {len(own):,})",
                        series=series,
                        marked=True,
                    )
                    for series, (kind, own) in enumerate(found.items())
                ),
            ),
        ),
    )


def candidates(shown: Shown) -> Figure | None:
    """How many near-miss candidates the reviews have."""
    drawn = shown.results.dataset.validation_set
    if drawn is None or not any(drawn.candidates.values()):
        return None
    names = tuple(drawn.candidates)
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
                marks=(Bars(values=tuple(drawn.candidates[name] for name in names)),),
            ),
        ),
    )
