"""How much is read: sentences by state, under other gammas, and states by fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.evidence_retrieval.figures.shown import Model, Shown
from jobs.evidence_retrieval.measuring.curves import k_by_state as counted
from jobs.evidence_retrieval.measuring.curves import states_by_fold
from jobs.figures import SIDE_BY_SIDE
from jobs.metrics.selective import STATES
from runner.scorecard import (
    Axis,
    Figure,
    Histogram,
    LineSeries,
    Metric,
    Panel,
    Points,
    Stack,
)


def k_by_state(shown: Shown) -> Figure | None:
    """How many sentences are shown, by the state of the query."""
    found = [
        (model, own)
        for model in shown.models
        # a K that is the same for all queries has no distribution
        if (chosen := model.column.block.chosen) is not None
        and chosen.rule == "K"
        and (own := counted(model.column.block))
    ]
    if not found:
        return None
    most = max(k for _, own in found for ks in own.values() for k in (*ks, 1))
    columns = max(len(own) for _, own in found)
    return Figure(
        name="k-by-state",
        title="Sentences shown",
        caption="How many queries are shown how many sentences (K), by the state of "
        f"the query. Each panel has a scale of its own.{shown.rest}",
        columns=columns,
        panels=tuple(
            _histogram(state, model, ks, most)
            for model, own in found
            for state, ks in own.items()
        ),
    )


def _histogram(state: str, model: Model, ks: Mapping[int, int], most: int) -> Panel:
    total = sum(ks.values())
    return Panel(
        title=f"{state} (n = {total:,})",
        x=Axis(label="K, sentences", lo=-1, hi=most + 1),
        y=Axis(label="queries", lo=0, hi=None if total else 1),
        height=0.75,
        marks=(
            Histogram(
                edges=tuple(k - 0.5 for k in range(most + 2)),
                counts=tuple(ks.get(k, 0) for k in range(most + 1)),
                label=model.name,
                series=model.series,
            ),
        ),
    )


SWEPT: Mapping[str, str] = {
    "k.mean": "sentences shown, all queries",
    "k.has_evidence.mean": "sentences shown, with evidence",
    "evidence_recall@K": "evidence recall@K",
    "evidence_precision@K": "evidence precision@K",
}
"""What other gammas change, and its axis."""


def gamma_sweep(shown: Shown) -> Figure | None:
    """What a larger share of the scores' mass costs, and what it finds."""
    swept = [model for model in shown.models if model.column.sweep]
    gammas = sorted({gamma for model in swept for gamma, _ in model.column.sweep})
    panels = tuple(
        panel for path in SWEPT if (panel := _swept(path, gammas, swept)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="gamma-sweep",
        title="Sentences shown under other gammas",
        caption="Gamma is the share of the scores' mass that the shown sentences hold. "
        "Sentences shown (K) and what they find: recall and precision are means over "
        f"queries with evidence. Bars: {shown.drawn}.{shown.rest}",
        columns=2,
        panels=panels,
    )


def _swept(path: str, gammas: Sequence[float], models: list[Model]) -> Panel | None:
    marks: list[LineSeries | Points] = []
    most = 1.0  # shares have one scale, so that they compare
    for model in models:
        own: dict[float, Metric] = {
            gamma: each for gamma, each in model.column.sweep if each.path == path
        }
        if any(each.value is not None for each in own.values()):
            ends = (end for each in own.values() for end in (each.value, each.hi))
            most = max(most, *(end for end in ends if end is not None))
            x = tuple(map(gammas.index, own))
            y = tuple(each.value for each in own.values())
            marks += [
                LineSeries(
                    x=x, y=y, marked=True, label=model.name, series=model.series
                ),
                Points(
                    x=x,
                    y=y,
                    lo=tuple(each.lo for each in own.values()),
                    hi=tuple(each.hi for each in own.values()),
                    series=model.series,
                ),
            ]
    if not marks:
        return None
    return Panel(
        x=Axis(label="gamma", names=tuple(f"{gamma:g}" for gamma in gammas)),
        y=Axis(label=SWEPT[path], lo=0, hi=most),
        height=0.8,
        marks=tuple(marks),
    )


def states(shown: Shown) -> Figure | None:
    """The shares of the three states in each fold."""
    found = [(m, own) for m in shown.models if (own := states_by_fold(m.column.block))]
    if not found:
        return None
    return Figure(
        name="states-by-fold",
        title="States by fold",
        caption="Shares of queries that are skipped (NEG), read with care (UNCERTAIN) "
        "and raise an alert (POS), among the queries n of each fold that have a state. "
        f"Thresholds are those of the fold.{shown.rest}",
        columns=SIDE_BY_SIDE[len(found)],
        panels=tuple(_stacked(model.name, own) for model, own in found),
    )


def _stacked(title: str, folds: Mapping[str, Mapping[str, int]]) -> Panel:
    sizes = {fold: sum(own.values()) for fold, own in folds.items()}
    return Panel(
        title=title,
        x=Axis(label="share of queries", lo=0, hi=1),
        y=Axis(
            names=tuple(f"fold {fold}\nn = {n:,}" for fold, n in sizes.items()),
        ),
        marks=tuple(
            Stack(
                values=tuple(
                    own[state] / sizes[fold] if sizes[fold] else None
                    for fold, own in folds.items()
                ),
                label=state,
                series=series,
            )
            for series, state in enumerate(STATES)
        ),
    )
