"""Figures that put things side by side: criteria, and configurations in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.evidence_retrieval.measuring.results import ModelResults, Results
from runner.figure import Axis, Figure, Panel, Points
from runner.scorecard import Metric

MOST_MODELS = 4
"""Side by side in one picture; the tables hold all."""

CRITERION_PATHS: Mapping[str, str] = {
    "auroc": "AUROC",
    "ndcg@10": "nDCG@10",
    "evidence_recall@K": "evidence recall@K",
}
STEP_STEMS: Mapping[str, str] = {
    "auroc": "AUROC",
    "ndcg@10": "nDCG@10",
    "evidence_recall": "evidence recall",
}


def figures(results: Results) -> Iterator[Figure]:
    """Criteria by model, and the steps of the ablation."""
    models = dict(list(results.models.items())[:MOST_MODELS])
    panels = tuple(
        _criteria(models, path, word)
        for path, word in CRITERION_PATHS.items()
        if any(_of_criteria(own, path) for own in models.values())
    )
    if panels:
        yield Figure(
            name="criteria",
            title="Criterion by criterion",
            caption="Intervals are drawn by post; n is the number of queries with "
            "evidence, of which few say little of others.",
            columns=len(panels),
            panels=panels,
        )
    if compared := [
        model for model in models if any(s.model == model for s in results.steps)
    ]:
        yield _steps(results, compared)


def _of_criteria(own: ModelResults, path: str) -> dict[str, Metric]:
    return {
        criterion: each
        for criterion, metrics in own.criteria.items()
        for each in metrics
        if each.path == f"criterion.{criterion}.{path}"
    }


def _criteria(models: Mapping[str, ModelResults], path: str, word: str) -> Panel:
    first = next(iter(models.values()))
    names = [
        f"{criterion}\nn = {_positives(metrics):,}"
        for criterion, metrics in first.criteria.items()
    ]
    columns = {
        model: [_of_criteria(own, path).get(name) for name in first.criteria]
        for model, own in models.items()
    }
    return Panel(
        title=word,
        x=Axis(label=word, lo=0, hi=1),
        y=Axis(names=tuple(names)),
        marks=_side_by_side(columns),
    )


def _positives(metrics: Sequence[Metric]) -> int:
    return next(int(m.value or 0) for m in metrics if m.path.endswith(".n_positive"))


def _steps(results: Results, models: Sequence[str]) -> Figure:
    configs = list(dict.fromkeys(step.config for step in results.steps))
    panels = []
    for stem, word in STEP_STEMS.items():
        columns = {
            model: [
                next(
                    (
                        step.metric
                        for step in results.steps
                        if (step.model, step.config) == (model, config)
                        and _stem(step.metric.path) == stem
                    ),
                    None,
                )
                for config in configs
            ]
            for model in models
        }
        panels.append(
            Panel(
                title=word,
                x=Axis(label=word, lo=0, hi=1),
                y=Axis(names=tuple(configs)),
                marks=_side_by_side(columns),
            )
        )
    return Figure(
        name="ablation",
        title="What each stage adds",
        caption="Configurations in their order, each with its interval drawn by post. "
        "Without a gate AUROC goes by the largest stage score; evidence recall is at "
        "the K that each configuration shows.",
        columns=len(panels),
        panels=tuple(panels),
    )


def _stem(path: str) -> str:
    return path.partition("@")[0] if path.startswith("evidence_") else path


def _side_by_side(
    columns: Mapping[str, Sequence[Metric | None]],
) -> tuple[Points, ...]:
    """A point with its interval for each model at each place, none over another."""
    gap = 0.7 / len(columns)
    marks = []
    for series, (model, found) in enumerate(columns.items()):
        begin = (series - (len(columns) - 1) / 2) * gap
        marks.append(
            Points(
                x=tuple(m.value if m else None for m in found),
                y=tuple(place + begin for place in range(len(found))),
                lo=tuple(m.lo if m else None for m in found),
                hi=tuple(m.hi if m else None for m in found),
                label=model,
                series=series,
            )
        )
    return tuple(marks)
