"""Figures of what is shown: K by state, the gamma sweep, states fold by fold."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval.measuring.curves import k_by_state, states_by_fold
from jobs.evidence_retrieval.measuring.results import ModelResults
from jobs.metrics.gate import STATES
from runner.figure import Axis, Figure, Histogram, Line, Numbers, Panel, Stack
from runner.scorecard import Metric


def figures(model: str, own: ModelResults) -> Iterator[Figure]:
    """The figures that the model has the input for."""
    ks = {name: counts for name, counts in k_by_state(own.block).items() if counts}
    if ks:
        yield _k(model, ks)
    if own.sweep:
        yield _sweep(model, own.sweep)
    folds = states_by_fold(own.block)
    if folds:
        yield _states(model, folds)


def _k(model: str, ks: dict[str, dict[int, int]]) -> Figure:
    most = max(max(counts) for counts in ks.values())
    highest = max(max(counts.values()) for counts in ks.values())
    return Figure(
        name="k",
        title="How many sentences are shown",
        caption=f"Queries of {model} by the number of sentences selected for them, in "
        "each state.",
        columns=len(ks),
        panels=tuple(
            Panel(
                title=f"{name} ({sum(counts.values()):,})",
                x=Axis(label="K", lo=-0.5, hi=most + 0.5),
                y=Axis(label="queries", lo=0, hi=highest),
                marks=(
                    Histogram(
                        edges=tuple(k - 0.5 for k in range(most + 2)),
                        counts=tuple(counts.get(k, 0) for k in range(most + 1)),
                        series=series,
                    ),
                ),
            )
            for series, (name, counts) in enumerate(ks.items())
        ),
    )


def _sweep(model: str, sweep: tuple[tuple[float, Metric], ...]) -> Figure:
    gammas = tuple(dict.fromkeys(gamma for gamma, _ in sweep))

    def column(path: str) -> Numbers:
        found = {gamma: each.value for gamma, each in sweep if each.path == path}
        return tuple(found.get(gamma) for gamma in gammas)

    return Figure(
        name="gamma-sweep",
        title="What a larger share of the mass costs and finds",
        caption=f"Mean K and the share of evidence sentences shown by {model}, with "
        "each gamma in place of the deployed ones.",
        columns=2,
        panels=(
            Panel(
                x=Axis(label="gamma"),
                y=Axis(label="mean K", lo=0),
                marks=(
                    Line(x=gammas, y=column("k.mean"), label="all", marked=True),
                    Line(
                        x=gammas,
                        y=column("k.has_evidence.mean"),
                        label="with evidence",
                        marked=True,
                        series=1,
                    ),
                ),
            ),
            Panel(
                x=Axis(label="gamma"),
                y=Axis(label="evidence recall@K", lo=0, hi=1),
                marks=(Line(x=gammas, y=column("evidence_recall@K"), marked=True),),
            ),
        ),
    )


def _states(model: str, folds: dict[str, dict[str, int]]) -> Figure:
    return Figure(
        name="states",
        title="States in each fold",
        caption=f"Queries of {model} that are skipped (NEG), read with care "
        "(UNCERTAIN) or raise an alert (POS); every fold has thresholds of its own.",
        panels=(
            Panel(
                x=Axis(label="queries", lo=0),
                y=Axis(names=tuple(f"fold {name}" for name in folds)),
                marks=tuple(
                    Stack(
                        values=tuple(counts[state] for counts in folds.values()),
                        label=state,
                        series=series,
                    )
                    for series, state in enumerate(STATES)
                ),
            ),
        ),
    )
