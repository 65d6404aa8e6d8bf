"""How far conclusions of the same review stand apart from those of two reviews."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jobs.review_benchmark.figures.curves import thinned
from jobs.review_benchmark.figures.shown import Shown
from jobs.review_benchmark.settings import VerdictKind
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import Axis, Figure, LineSeries, Mark, Panel, ReferenceLine

_BY: Mapping[VerdictKind, str] = {
    "direction": "tfidf",
    "tfidf": "tfidf",
    "judge": "judge",
    "embedding": "embedding",
}
"""What gives the similarity, by the kind of verdict."""


def likeness(shown: Shown, concluded: Sequence[Verdicts]) -> Figure | None:
    """The share of matched and of mismatched pairs above each similarity."""
    known = {own.model: own for own in concluded if own.compared}
    there = [known[model.name] for model in shown.models if model.name in known]
    if not there:
        return None
    return Figure(
        name="verdicts",
        title="Conclusions of the same review and of others",
        caption="Share of the pairs of conclusions that are more alike than each "
        "similarity: matched are an agent's and the authors' of one review, mismatched "
        "those of two. The further apart the lines, the more a verdict says. Dashed: "
        f"the threshold, if there is one.{shown.rest}",
        columns=min(2, len(there)),
        panels=tuple(map(_panel, there)),
    )


def _panel(own: Verdicts) -> Panel:
    marks: list[Mark] = []
    if own.threshold is not None:
        marks.append(ReferenceLine(way="vertical", at=own.threshold.value))
    pairs = {"matched": own.compared.values(), "mismatched": own.mismatched.values()}
    for series, (name, likenesses) in enumerate(pairs.items()):
        if likenesses:
            label = f"{name} ({len(likenesses):,})"
            marks.append(_above(likenesses, label, series))
    return Panel(
        title=own.model,
        x=Axis(label=f"similarity ({_BY[own.kind]})", hi=1),
        y=Axis(label="share of pairs above", lo=0, hi=1),
        marks=tuple(marks),
    )


def _above(likenesses: Collection[float], label: str, series: int) -> LineSeries:
    """A step down at each similarity that occurs."""
    ordered = sorted(likenesses)
    steps = {
        similarity: 1 - place / len(ordered)
        for place, similarity in enumerate(ordered, start=1)
    }
    points = thinned(((min(0.0, ordered[0]), 1.0), *steps.items()))
    return LineSeries(
        x=tuple(x for x, _ in points),
        y=tuple(y for _, y in points),
        label=label,
        series=series,
        steps=True,
    )
