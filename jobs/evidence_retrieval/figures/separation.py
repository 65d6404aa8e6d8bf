"""How well queries with evidence are told from those without: ROC, precision-recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.evidence_retrieval.figures.shown import Model, Shown, numbers
from jobs.evidence_retrieval.measuring.curves import Operating, Separation, separation
from runner.scorecard import (
    Axis,
    Band,
    Figure,
    LineSeries,
    Mark,
    Panel,
    Points,
    ReferenceLine,
)

BY_FOLD = " (off the curve where folds have thresholds of their own)"
"""How a caption speaks of a point that no single threshold has."""


def separations(shown: Shown) -> Iterator[Figure]:
    """The two curves of each model that has scores of queries of both kinds."""
    found = [
        (model, curves)
        for model in shown.models
        if (curves := separation(model.column.block, shown.results.draws)) is not None
    ]
    if found:
        yield _roc(found, shown)
        yield _precision_recall(found, shown)


_Found = Sequence[tuple[Model, Separation]]


def _roc(found: _Found, shown: Shown) -> Figure:
    marks: list[Mark] = [ReferenceLine(way="diagonal", label="chance")]
    for model, curves in found:
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
                x=tuple(each.fpr for each in curves.operating),
                y=tuple(each.tpr for each in curves.operating),
                notes=_notes(curves.operating, found),
                series=model.series,
            ),
        ]
    return Figure(
        name="roc",
        title="ROC: evidence or none",
        caption="Share of the queries with evidence that are found (up), against the "
        "share of the queries without that raise a false alarm (right), over every "
        "threshold; the nearer to the upper left, the better. Bands: "
        f"{shown.drawn}, at each false positive rate. {_marked(found)}{shown.rest}",
        panels=_square(
            "false positive rate", "true positive rate (sensitivity)", marks
        ),
    )


def _precision_recall(found: _Found, shown: Shown) -> Figure:
    marks: list[Mark] = [
        ReferenceLine(way="horizontal", at=at, label=f"share with evidence: {at:.3f}")
        for at in dict.fromkeys(curves.prevalence for _, curves in found)
    ]
    for model, curves in found:
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
                x=tuple(each.tpr for each in curves.operating),
                y=tuple(each.precision for each in curves.operating),
                notes=_notes(curves.operating, found),
                series=model.series,
            ),
        ]
    return Figure(
        name="precision-recall",
        title="Precision and recall: evidence or none",
        caption="Share of the found queries that have evidence (up), against the share "
        "of the queries with evidence that are found (right), over every threshold; "
        "the nearer to the upper right, the better. By chance "
        f"precision is the share with evidence, not 0.5. {_marked(found)}{shown.rest}",
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


def _notes(operating: Sequence[Operating], found: _Found) -> tuple[str, ...]:
    """The points' names; beside several lines, letters that the caption explains."""
    if len(found) == 1:
        return tuple(each.name for each in operating)
    return tuple(_letter(each) for each in operating)


def _letter(point: Operating) -> str:
    return point.name[0].upper()


def _marked(found: _Found) -> str:
    names = dict.fromkeys(each for _, own in found for each in own.operating)
    if not names:
        return "No threshold was deployed."
    if len(found) == 1:
        return f"Points are where thresholds were set{BY_FOLD}."
    words = dict.fromkeys(f"{_letter(each)} {each.name}" for each in names)
    return f"Points are where thresholds were set{BY_FOLD}: {', '.join(words)}."
