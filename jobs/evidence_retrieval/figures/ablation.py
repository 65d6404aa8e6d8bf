"""What each stage adds: configurations in a row, each beside the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.evidence_retrieval.figures.shown import Model, Shown, beside, with_ends
from jobs.evidence_retrieval.measuring.ablation import Step
from runner.figure import Axis, Figure, Panel, Points, Rule

COMPARED: Mapping[str, str] = {
    "ndcg@10": "nDCG@10",
    "auroc": "AUROC",
    "evidence_recall": "evidence recall",
    "evidence_precision": "evidence precision",
    "k.mean": "mean K, sentences",
}
"""Measures by their stems, which leave out how K came about, and their axes."""

LEAST = 2
"""Configurations that a measure needs to be compared."""


def ablation(shown: Shown) -> Figure | None:
    """Each measure of each configuration, and its difference to the one before."""
    steps = [
        step
        for step in shown.results.steps
        if step.model in {model.name for model in shown.models} and step.is_measured
    ]
    panels = []
    for stem, label in COMPARED.items():
        own = [s for s in steps if s.metric.path.partition("@")[0] == _bare(stem)]
        configs = list(dict.fromkeys(step.config for step in own))
        if len(configs) >= LEAST:
            panels += [
                _values(own, configs, label, shown),
                _differences(own, configs, shown),
            ]
    if not panels:
        return None
    return Figure(
        name="ablation",
        title="What each stage adds",
        caption="Left: each configuration. Right: what it adds to the one before, on "
        "the same draws; an interval that misses 0 is a change beyond chance, before "
        f"any correction for many tests. Bars: {shown.drawn}. Evidence recall and "
        "precision are at the first 10 sentences where a configuration chooses no K."
        f"{shown.rest}",
        columns=2,
        panels=tuple(panels),
    )


def _bare(stem: str) -> str:
    return stem.partition("@")[0]


def _by_config(
    steps: Sequence[Step], configs: Sequence[str], model: Model
) -> list[Step | None]:
    own = {step.config: step for step in steps if step.model == model.name}
    return [own.get(config) for config in configs]


def _values(
    steps: Sequence[Step], configs: Sequence[str], label: str, shown: Shown
) -> Panel:
    return Panel(
        x=Axis(label=label),
        y=Axis(names=tuple(configs)),
        marks=tuple(
            with_ends(
                [
                    step.metric if step else None
                    for step in _by_config(steps, configs, model)
                ],
                _places(model, len(configs), shown),
                model,
            )
            for model in shown.models
        ),
    )


def _differences(steps: Sequence[Step], configs: Sequence[str], shown: Shown) -> Panel:
    marks = []
    for model in shown.models:
        gaps = [
            step.gap if step else None for step in _by_config(steps, configs, model)
        ]
        ends = [gap.interval if gap else None for gap in gaps]
        marks.append(
            Points(
                x=tuple(gap.value if gap else None for gap in gaps),
                y=_places(model, len(configs), shown),
                lo=tuple(each.lo if each else None for each in ends),
                hi=tuple(each.hi if each else None for each in ends),
                label=model.name,
                series=model.series,
            )
        )
    return Panel(
        x=Axis(label="difference to the one before"),
        # the rows are those of the panel on the left
        y=Axis(names=("",) * len(configs)),
        marks=(Rule(way="vertical", at=0), *marks),
    )


def _places(model: Model, configs: int, shown: Shown) -> tuple[float, ...]:
    begin = beside(model, len(shown.models))
    return tuple(place + begin for place in range(configs))
