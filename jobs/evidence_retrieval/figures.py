"""Declares the figures of a scoring: curves, criteria, sentences, stages and states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.evidence_retrieval import curve_figures
from jobs.evidence_retrieval.curve_figures import (
    Plot,
    k_by_state,
    plotted_models,
    states_by_fold,
)
from jobs.evidence_retrieval.metrics.breakdowns import FEW_POSITIVES
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.kit.charts import (
    Chart,
    ChartFigures,
    Drawing,
    PlottedModel,
    first_rows,
    most_rows,
    rows_panel,
    stack,
    value_columns,
)
from jobs.kit.metrics.selective import STATES
from runner.scorecard import (
    Axis,
    Histogram,
    LineSeries,
    Metric,
    Panel,
    Points,
    ReferenceLine,
)

SWEPT: Mapping[str, str] = {
    "k.mean": "sentences, all queries",
    "k.has_evidence.mean": "sentences, with evidence",
    "evidence_recall@K": "evidence recall@K",
    "evidence_precision@K": "evidence precision@K",
}
"""Metrics that other gammas change, and their axes."""

COMPARED: Mapping[str, str] = {
    "ndcg": "nDCG@10",
    "auroc": "AUROC",
    "evidence_recall": "evidence recall",
    "k.mean": "sentences shown, mean",
}
"""Measures of the ablation by name, without the cut-off, and their axes."""

MIN_CONFIGS = 2
"""Minimum number of configurations to compare a measure."""

BY_CRITERION: Mapping[str, str] = {
    "auroc": "AUROC",
    "ndcg@10": "nDCG@10",
    "evidence_recall@K": "evidence recall@K",
}
"""Metrics of each criterion, and their axes."""

MOST_CRITERIA = 16
"""Maximum number of rows of a panel; the tables have all."""

DODGE = 0.07
"""Distance of two models' points at one gamma, so that intervals do not overlap."""


def _k_by_state(plot: Plot) -> Drawing:
    """Draw the number of sentences shown, by the state of the query."""
    models = plot.select(_chosen_k)
    most = max(
        (k for model in models for ks in model.data.values() for k in (*ks, 1)),
        default=1,
    )
    return Drawing(
        panels=[
            Panel(
                title=f"{state} (n = {sum(ks.values()):,})",
                x=Axis(label="K, sentences", lo=-1, hi=most + 1),
                y=Axis(label="queries", lo=0, hi=None if ks else 1),
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
            for model in models
            for state, ks in model.data.items()
        ],
        columns=max((len(model.data) for model in models), default=1),
    )


def _chosen_k(model: ModelResults) -> Mapping[str, Mapping[int, int]] | None:
    chosen = model.block.chosen
    # a constant K has no distribution
    if chosen is None or chosen.rule != "K":
        return None
    return k_by_state(model.block)


def _gamma_sweep(plot: Plot) -> Iterator[Panel]:
    """Yield the costs and gains of a larger share of the scores' mass."""
    models = plot.select(lambda data: data.sweep)
    gammas = sorted({gamma for model in models for gamma, _ in model.data})
    for path, label in SWEPT.items():
        marks: list[LineSeries | Points] = []
        most = 1.0  # shares have one scale, for comparison
        for index, model in enumerate(models):
            by_gamma = {gamma: m for gamma, m in model.data if m.path == path}
            y, lo, hi = value_columns(by_gamma.values())
            if set(y) <= {None}:
                continue
            most = max(most, *(end for end in (*y, *hi) if end is not None))
            offset = DODGE * (index - (len(models) - 1) / 2)
            x = tuple(gammas.index(gamma) + offset for gamma in by_gamma)
            marks += [
                LineSeries(
                    x=x, y=y, marked=True, label=model.name, series=model.series
                ),
                Points(x=x, y=y, lo=lo, hi=hi, series=model.series),
            ]
        if marks:
            yield Panel(
                x=Axis(label="gamma", names=tuple(f"{gamma:g}" for gamma in gammas)),
                y=Axis(label=label, lo=0, hi=most),
                height=0.8,
                marks=tuple(marks),
            )


def _states(plot: Plot) -> Iterator[Panel]:
    """Yield the shares of the three states in each fold."""
    for model in plot.select(lambda data: states_by_fold(data.block)):
        sizes = {fold: sum(counts.values()) for fold, counts in model.data.items()}
        yield Panel(
            title=model.name,
            x=Axis(label="share of queries", lo=0, hi=1),
            y=Axis(names=tuple(f"fold {fold}\nn = {n:,}" for fold, n in sizes.items())),
            marks=stack(
                {
                    state: [
                        counts[state] / sizes[fold] if sizes[fold] else None
                        for fold, counts in model.data.items()
                    ]
                    for state in STATES
                }
            ),
        )


def _ablation(plot: Plot) -> Iterator[Panel]:
    """Yield each measure of each configuration, and its change from the previous."""
    measured = [step for step in plot.results.steps if step.is_measured]
    models_with_steps = {step.model for step in measured}
    models = [model for model in plot.models if model.name in models_with_steps]
    names = {model.name for model in models}
    for measure, label in COMPARED.items():
        steps = {
            (step.model, step.config): step
            for step in measured
            if step.model in names and step.metric.path.partition("@")[0] == measure
        }
        configs = tuple(dict.fromkeys(config for _, config in steps))
        if len(configs) < MIN_CONFIGS:
            continue
        by_model = [
            (model, [steps.get((model.name, config)) for config in configs])
            for model in models
        ]
        yield rows_panel(
            configs,
            (
                (model, [step.metric if step else None for step in model_steps])
                for model, model_steps in by_model
            ),
            Axis(label=label),
        )
        yield rows_panel(
            configs,
            (
                (model, [step.gap if step else None for step in model_steps])
                for model, model_steps in by_model
            ),
            Axis(label="difference to the one before"),
            ReferenceLine(way="vertical", at=0),
        )


def _criteria(plot: Plot) -> Drawing:
    """Draw bars of each criterion with their intervals, n under the label."""
    models = [
        PlottedModel(
            name=model.name, series=model.series, data=_by_criterion(model.data)
        )
        for model in plot.models
    ]
    names, selected = first_rows(
        list(models[0].data) if models else [],
        most_rows(len(models), MOST_CRITERIA),
        " The first {n} of {all} criteria.",
    )
    return Drawing(
        panels=[
            panel
            for path, label in BY_CRITERION.items()
            if (panel := _criterion_panel(path, label, names, models)) is not None
        ],
        facts={"selected": selected},
    )


_Criteria = Mapping[str, Mapping[str, Metric]]


def _by_criterion(model: ModelResults) -> _Criteria:
    return {
        criterion: {
            metric.path.removeprefix(f"criterion.{criterion}."): metric
            for metric in metrics
        }
        for criterion, metrics in model.criteria.items()
    }


def _criterion_panel(
    path: str,
    label: str,
    names: Sequence[str],
    models: Sequence[PlottedModel[_Criteria]],
) -> Panel | None:
    rows = [(model, [model.data[name].get(path) for name in names]) for model in models]
    defined = [
        (model, metrics)
        for model, metrics in rows
        if any(metric and metric.value is not None for metric in metrics)
    ]
    if not defined:
        return None
    chance = ReferenceLine(way="vertical", at=0.5, label="AUROC by chance")
    by_model = [model.data for model in models]
    return rows_panel(
        names,
        defined,
        Axis(label=label, lo=0, hi=1),
        *((chance,) if path == "auroc" else ()),
        row_notes=[_criterion_n(name, path, by_model) for name in names],
    )


def _criterion_n(name: str, path: str, by_model: Sequence[_Criteria]) -> str:
    """Return the n of a criterion; the largest, if models differ."""
    criterion_metrics = [
        criteria[name] for criteria in by_model if path in criteria[name]
    ]
    if not criterion_metrics:  # ranking measures need a query with evidence
        return "0"
    positive = max(
        int(metrics["n_positive"].value or 0) for metrics in criterion_metrics
    )
    few = "*" if positive < FEW_POSITIVES else ""
    if path == "auroc":
        total = max(metrics[path].n for metrics in criterion_metrics)
        return f"{positive:,}{few} of {total:,}"
    n = max(metrics[path].n_defined or metrics[path].n for metrics in criterion_metrics)
    return f"{n:,}{few}"


CHARTS = (
    Chart(
        name="roc",
        title="ROC: evidence or none",
        caption="Share of the queries with evidence that are found (up), against the "
        "share of the queries without that raise a false alarm (right), over every "
        "threshold; the nearer to the upper left, the better.{bands} {points}",
        panels=curve_figures.roc,
    ),
    Chart(
        name="precision-recall",
        title="Precision and recall: evidence or none",
        caption="Share of the found queries that have evidence (up), against the share "
        "of the queries with evidence that are found (right), over every threshold; "
        "the nearer to the upper right, the better. By chance "
        "precision is the share with evidence, not 0.5. {points}",
        panels=curve_figures.precision_recall,
    ),
    Chart(
        name="reliability",
        title="Calibration",
        caption="Share of queries with evidence against their mean "
        "probability, bin by bin; on the diagonal probabilities are "
        "calibrated. Bars: {percent:g}% Wilson intervals, which treat "
        "queries as independent. Below: number of queries per bin.",
        panels=curve_figures.reliability,
    ),
    Chart(
        name="criteria",
        title="Criterion by criterion",
        caption="Beside each row the number of queries n: for AUROC those with "
        "evidence of all judged, otherwise those with evidence; * marks fewer than "
        f"{FEW_POSITIVES} with evidence, which say little of others. Intervals: "
        "{intervals}.{selected}",
        panels=_criteria,
    ),
    Chart(
        name="k-by-state",
        title="Sentences shown",
        caption="Number of queries by number of selected sentences (K) and "
        "state. Each panel has its own scale.",
        panels=_k_by_state,
    ),
    Chart(
        name="risk-coverage",
        title="Risk of deciding",
        caption="If only the surest queries were decided at p >= {tau:g}: the share "
        "of wrong decisions among them. How sure one is of a query is max(p, 1 - p).",
        panels=curve_figures.risk_coverage,
    ),
    Chart(
        name="gamma-sweep",
        title="Sentences shown under other gammas",
        caption="Gamma is the share of the scores' mass that the shown sentences hold. "
        "Sentences shown (K) and what they find: recall and precision are means over "
        "queries with evidence. Intervals: {intervals}.",
        panels=_gamma_sweep,
        columns=2,
    ),
    Chart(
        name="states-by-fold",
        title="States by fold",
        caption="Shares of queries that are skipped (NEG), read with care (UNCERTAIN) "
        "and raise an alert (POS), among the queries n of each fold that have a state. "
        "Thresholds are those of the fold.",
        panels=_states,
    ),
    Chart(
        name="ablation",
        title="What each stage adds",
        caption="Left: each configuration. Right: what it adds to the one before, on "
        "the same draws; an interval that misses 0 is a change beyond chance, before "
        "any correction for many tests. Intervals: {intervals}. Without a gate "
        "AUROC uses the largest stage score; without a chosen K evidence recall is "
        "that of the first 10 sentences. Sentences shown are those that the posts "
        "have: a K above the length of a post shows no more. Further "
        "measures are in ablation.csv.",
        panels=_ablation,
        columns=2,
    ),
)
"""In the order of the report."""


def figures(results: EvidenceResults) -> ChartFigures[EvidenceResults, ModelResults]:
    """Return the figures that the input has data for."""
    return ChartFigures(CHARTS, lambda: plotted_models(results))
