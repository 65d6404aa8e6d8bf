"""What each stage adds: configurations in a row, each beside the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.evidence_retrieval.figures.shown import Model, Shown, with_ends
from jobs.evidence_retrieval.measuring.ablation import Step
from runner.scorecard import Axis, Figure, Panel, Points, ReferenceLine

COMPARED: Mapping[str, str] = {
    "ndcg": "nDCG@10",
    "auroc": "AUROC",
    "evidence_recall": "evidence recall",
    "k.mean": "sentences shown, mean",
}
"""Measures by their names, without the cut-off, and their axes."""

BREADTH = 0.7
"""Of a row, what models side by side take."""

LEAST = 2
"""Configurations that a measure needs to be compared."""


def ablation(shown: Shown) -> Figure | None:
    """Each measure of each configuration, and its difference to the one before."""
    measured = [step for step in shown.results.steps if step.is_measured]
    with_steps = {step.model for step in measured}
    models = [model for model in shown.models if model.name in with_steps]
    names = {model.name for model in models}
    steps = [step for step in measured if step.model in names]
    panels = []
    for name, label in COMPARED.items():
        own = [step for step in steps if step.metric.path.partition("@")[0] == name]
        configs = list(dict.fromkeys(step.config for step in own))
        if len(configs) >= LEAST:
            panels += [
                _values(own, configs, label, models),
                _differences(own, configs, models),
            ]
    if not panels:
        return None
    return Figure(
        name="ablation",
        title="What each stage adds",
        caption="Left: each configuration. Right: what it adds to the one before, on "
        "the same draws; an interval that misses 0 is a change beyond chance, before "
        f"any correction for many tests. Bars: {shown.drawn}. Without a gate "
        "AUROC goes by the largest stage score; without a chosen K evidence recall is "
        "that of the first 10 sentences. Sentences shown are those that the posts "
        "have: a K above the length of a post shows no more. Further "
        f"measures are in ablation.csv.{shown.rest}",
        columns=2,
        panels=tuple(panels),
    )


def _by_config(
    steps: Sequence[Step], configs: Sequence[str], model: Model
) -> list[Step | None]:
    own = {step.config: step for step in steps if step.model == model.name}
    return [own.get(config) for config in configs]


def _values(
    steps: Sequence[Step], configs: Sequence[str], label: str, models: Sequence[Model]
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
                places,
                model,
            )
            for model, places in _beside(models, len(configs))
        ),
    )


def _differences(
    steps: Sequence[Step], configs: Sequence[str], models: Sequence[Model]
) -> Panel:
    marks = []
    for model, places in _beside(models, len(configs)):
        gaps = [
            step.gap if step else None for step in _by_config(steps, configs, model)
        ]
        ends = [gap.interval if gap else None for gap in gaps]
        marks.append(
            Points(
                x=tuple(gap.value if gap else None for gap in gaps),
                y=places,
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
        marks=(ReferenceLine(way="vertical", at=0), *marks),
    )


def _beside(
    models: Sequence[Model], configs: int
) -> Iterator[tuple[Model, tuple[float, ...]]]:
    """The models, each with its places in the rows, so that none hides another."""
    gap = BREADTH / len(models)
    for i, model in enumerate(models):
        begin = (i - (len(models) - 1) / 2) * gap
        yield model, tuple(row + begin for row in range(configs))
