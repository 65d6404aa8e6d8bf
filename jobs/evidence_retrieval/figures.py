"""Makes the figures of a scoring, as values that the report draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.evidence_retrieval.curve_figures import (
    Model,
    PlottedEvidenceModels,
    plotted_models,
    reliability,
    risk_coverage,
    separations,
    states_by_fold,
    with_ends,
)
from jobs.evidence_retrieval.curve_figures import k_by_state as counted
from jobs.evidence_retrieval.metrics.breakdowns import FEW_POSITIVES
from jobs.evidence_retrieval.metrics.paired_differences import AblationStep
from jobs.evidence_retrieval.metrics.results import EvidenceResults
from jobs.kit.metrics.selective import STATES
from jobs.kit.shared_figures import SIDE_BY_SIDE, build_figures
from runner.scorecard import (
    Axis,
    Bars,
    FailedFigure,
    Figure,
    Histogram,
    LineSeries,
    Metric,
    Panel,
    Points,
    ReferenceLine,
    Stack,
)


def k_by_state(plotted: PlottedEvidenceModels) -> Figure | None:
    """How many sentences are shown, by the state of the query."""
    counts_by_model = [
        (model, state_counts)
        for model in plotted.models
        # a K that is the same for all queries has no distribution
        if (chosen := model.column.block.chosen) is not None
        and chosen.rule == "K"
        and (state_counts := counted(model.column.block))
    ]
    if not counts_by_model:
        return None
    most = max(
        k
        for _, state_counts in counts_by_model
        for ks in state_counts.values()
        for k in (*ks, 1)
    )
    columns = max(len(state_counts) for _, state_counts in counts_by_model)
    return Figure(
        name="k-by-state",
        title="Sentences shown",
        caption="How many queries are shown how many sentences (K), by the state of "
        f"the query. Each panel has a scale of its own.{plotted.rest}",
        columns=columns,
        panels=tuple(
            _histogram(state, model, ks, most)
            for model, state_counts in counts_by_model
            for state, ks in state_counts.items()
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


def gamma_sweep(plotted: PlottedEvidenceModels) -> Figure | None:
    """What a larger share of the scores' mass costs, and what it finds."""
    swept = [model for model in plotted.models if model.column.sweep]
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
        f"queries with evidence. Bars: {plotted.interval_note}.{plotted.rest}",
        columns=2,
        panels=panels,
    )


def _swept(path: str, gammas: Sequence[float], models: list[Model]) -> Panel | None:
    marks: list[LineSeries | Points] = []
    most = 1.0  # shares have one scale, so that they compare
    for model in models:
        by_gamma: dict[float, Metric] = {
            gamma: metric for gamma, metric in model.column.sweep if metric.path == path
        }
        if any(metric.value is not None for metric in by_gamma.values()):
            ends = (
                end for metric in by_gamma.values() for end in (metric.value, metric.hi)
            )
            most = max(most, *(end for end in ends if end is not None))
            x = tuple(map(gammas.index, by_gamma))
            y = tuple(metric.value for metric in by_gamma.values())
            marks += [
                LineSeries(
                    x=x, y=y, marked=True, label=model.name, series=model.series
                ),
                Points(
                    x=x,
                    y=y,
                    lo=tuple(metric.lo for metric in by_gamma.values()),
                    hi=tuple(metric.hi for metric in by_gamma.values()),
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


def states(plotted: PlottedEvidenceModels) -> Figure | None:
    """The shares of the three states in each fold."""
    folds_by_model = [
        (m, fold_counts)
        for m in plotted.models
        if (fold_counts := states_by_fold(m.column.block))
    ]
    if not folds_by_model:
        return None
    return Figure(
        name="states-by-fold",
        title="States by fold",
        caption="Shares of queries that are skipped (NEG), read with care (UNCERTAIN) "
        "and raise an alert (POS), among the queries n of each fold that have a state. "
        f"Thresholds are those of the fold.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(folds_by_model)],
        panels=tuple(
            _stacked(model.name, fold_counts) for model, fold_counts in folds_by_model
        ),
    )


def _stacked(title: str, folds: Mapping[str, Mapping[str, int]]) -> Panel:
    sizes = {fold: sum(counts.values()) for fold, counts in folds.items()}
    return Panel(
        title=title,
        x=Axis(label="share of queries", lo=0, hi=1),
        y=Axis(
            names=tuple(f"fold {fold}\nn = {n:,}" for fold, n in sizes.items()),
        ),
        marks=tuple(
            Stack(
                values=tuple(
                    counts[state] / sizes[fold] if sizes[fold] else None
                    for fold, counts in folds.items()
                ),
                label=state,
                series=series,
            )
            for series, state in enumerate(STATES)
        ),
    )


MEASURE_LABELS: Mapping[str, str] = {
    "ndcg": "nDCG@10",
    "auroc": "AUROC",
    "evidence_recall": "evidence recall",
    "k.mean": "sentences shown, mean",
}
"""Measures by their names, without the cut-off, and their axes."""

BREADTH = 0.7
"""Of a row, what models side by side take."""

MIN_CONFIGS = 2
"""Configurations that a measure needs to be compared."""


def ablation(plotted: PlottedEvidenceModels) -> Figure | None:
    """Each measure of each configuration, and its difference to the one before."""
    measured = [step for step in plotted.results.steps if step.is_measured]
    models_with_steps = {step.model for step in measured}
    models = [model for model in plotted.models if model.name in models_with_steps]
    names = {model.name for model in models}
    steps = [step for step in measured if step.model in names]
    panels = []
    for measure, label in MEASURE_LABELS.items():
        metric_steps = [
            step for step in steps if step.metric.path.partition("@")[0] == measure
        ]
        configs = list(dict.fromkeys(step.config for step in metric_steps))
        if len(configs) >= MIN_CONFIGS:
            panels += [
                _values(metric_steps, configs, label, models),
                _differences(metric_steps, configs, models),
            ]
    if not panels:
        return None
    return Figure(
        name="ablation",
        title="What each stage adds",
        caption="Left: each configuration. Right: what it adds to the one before, on "
        "the same draws; an interval that misses 0 is a change beyond chance, before "
        f"any correction for many tests. Bars: {plotted.interval_note}. Without a gate "
        "AUROC goes by the largest stage score; without a chosen K evidence recall is "
        "that of the first 10 sentences. Sentences shown are those that the posts "
        "have: a K above the length of a post shows no more. Further "
        f"measures are in ablation.csv.{plotted.rest}",
        columns=2,
        panels=tuple(panels),
    )


def _by_config(
    steps: Sequence[AblationStep], configs: Sequence[str], model: Model
) -> list[AblationStep | None]:
    by_config = {step.config: step for step in steps if step.model == model.name}
    return [by_config.get(config) for config in configs]


def _values(
    steps: Sequence[AblationStep],
    configs: Sequence[str],
    label: str,
    models: Sequence[Model],
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
                ys,
                model,
            )
            for model, ys in _model_rows(models, len(configs))
        ),
    )


def _differences(
    steps: Sequence[AblationStep], configs: Sequence[str], models: Sequence[Model]
) -> Panel:
    marks = []
    for model, ys in _model_rows(models, len(configs)):
        gaps = [
            step.gap if step else None for step in _by_config(steps, configs, model)
        ]
        ends = [gap.interval if gap else None for gap in gaps]
        marks.append(
            Points(
                x=tuple(gap.value if gap else None for gap in gaps),
                y=ys,
                lo=tuple(interval.lo if interval else None for interval in ends),
                hi=tuple(interval.hi if interval else None for interval in ends),
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


def _model_rows(
    models: Sequence[Model], configs: int
) -> Iterator[tuple[Model, tuple[float, ...]]]:
    """The models, each with its places in the rows, so that none hides another."""
    gap = BREADTH / len(models)
    for i, model in enumerate(models):
        begin = (i - (len(models) - 1) / 2) * gap
        yield model, tuple(row + begin for row in range(configs))


MOST_CRITERIA = 16
"""Side by side; the tables hold all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CriterionMetric:
    path: str
    label: str
    rules: tuple[ReferenceLine, ...] = ()


PANELS = (
    _CriterionMetric(
        path="auroc",
        label="AUROC",
        rules=(ReferenceLine(way="horizontal", at=0.5, label="AUROC by chance"),),
    ),
    _CriterionMetric(path="ndcg@10", label="nDCG@10"),
    _CriterionMetric(path="evidence_recall@K", label="evidence recall@K"),
)


def criteria(plotted: PlottedEvidenceModels) -> Figure | None:
    """Bars of each criterion with their intervals, n under the label."""
    by_model = [
        {
            criterion: {
                metric.path.removeprefix(f"criterion.{criterion}."): metric
                for metric in metrics
            }
            for criterion, metrics in model.column.criteria.items()
        }
        for model in plotted.models
    ]
    every = list(by_model[0]) if by_model else []
    names = every[:MOST_CRITERIA]
    panels = tuple(
        panel
        for measured in PANELS
        if (panel := _panel(measured, names, by_model, plotted)) is not None
    )
    if not panels:
        return None
    is_cut = len(names) < len(every)
    left = f" The first {len(names)} of {len(every)} criteria." if is_cut else ""
    return Figure(
        name="criteria",
        title="Criterion by criterion",
        caption="n is the number of queries that a bar speaks of: for AUROC those with "
        "evidence of all judged, otherwise those with evidence; * marks fewer than "
        f"{FEW_POSITIVES} with evidence, which say little of others. Bars: "
        f"{plotted.interval_note}.{left}{plotted.rest}",
        panels=panels,
    )


_OfCriteria = Mapping[str, Mapping[str, Metric]]


def _panel(
    measured: _CriterionMetric,
    names: Sequence[str],
    by_model: Sequence[_OfCriteria],
    plotted: PlottedEvidenceModels,
) -> Panel | None:
    bars = []
    for model, criteria in zip(plotted.models, by_model, strict=True):
        metrics = [criteria[name].get(measured.path) for name in names]
        if any(metric is not None and metric.value is not None for metric in metrics):
            bars.append(
                Bars(
                    values=tuple(
                        metric.value if metric else None for metric in metrics
                    ),
                    lo=tuple(metric.lo if metric else None for metric in metrics),
                    hi=tuple(metric.hi if metric else None for metric in metrics),
                    label=model.name,
                    series=model.series,
                )
            )
    if not bars:
        return None
    return Panel(
        x=Axis(names=tuple(_with_n(name, measured.path, by_model) for name in names)),
        y=Axis(label=measured.label, lo=0, hi=1),
        height=0.75,
        marks=(*measured.rules, *bars),
    )


def _with_n(name: str, path: str, by_model: Sequence[_OfCriteria]) -> str:
    """A criterion with its n; the largest, where a model has not answered all."""
    criterion_metrics = [
        criteria[name] for criteria in by_model if path in criteria[name]
    ]
    if not criterion_metrics:  # ranking measures need a query with evidence
        return f"{name}\nn = 0"
    positive = max(
        int(metrics["n_positive"].value or 0) for metrics in criterion_metrics
    )
    few = "*" if positive < FEW_POSITIVES else ""
    if path == "auroc":
        total = max(metrics[path].n for metrics in criterion_metrics)
        return f"{name}\n{positive:,}{few} of\n{total:,}"
    n = max(metrics[path].n_defined or metrics[path].n for metrics in criterion_metrics)
    return f"{name}\nn = {n:,}{few}"


@dataclass(frozen=True, slots=True)
class EvidenceFigures:
    """The figures that the input has something for, in the order of the report.

    Each pass makes them anew and yields the same.
    """

    results: EvidenceResults

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (
            separations,
            reliability,
            criteria,
            k_by_state,
            risk_coverage,
            gamma_sweep,
            states,
            ablation,
        )
        return build_figures(lambda: plotted_models(self.results), draws)
