"""Makes the figures of a scoring, as values that the report draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.evidence_retrieval.curve_figures import (
    Model,
    PlottedEvidenceModels,
    reliability,
    risk_coverage,
    separations,
    shown,
    states_by_fold,
    with_ends,
)
from jobs.evidence_retrieval.curve_figures import k_by_state as counted
from jobs.evidence_retrieval.metrics.breakdowns import FEW_POSITIVES
from jobs.evidence_retrieval.metrics.comparisons import AblationStep
from jobs.evidence_retrieval.metrics.results import EvidenceResults
from jobs.figures import SIDE_BY_SIDE, build_figures
from jobs.metrics.selective import STATES
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


def k_by_state(shown: PlottedEvidenceModels) -> Figure | None:
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


def gamma_sweep(shown: PlottedEvidenceModels) -> Figure | None:
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


def states(shown: PlottedEvidenceModels) -> Figure | None:
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


def ablation(shown: PlottedEvidenceModels) -> Figure | None:
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
    steps: Sequence[AblationStep], configs: Sequence[str], model: Model
) -> list[AblationStep | None]:
    own = {step.config: step for step in steps if step.model == model.name}
    return [own.get(config) for config in configs]


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
                places,
                model,
            )
            for model, places in _beside(models, len(configs))
        ),
    )


def _differences(
    steps: Sequence[AblationStep], configs: Sequence[str], models: Sequence[Model]
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


def criteria(shown: PlottedEvidenceModels) -> Figure | None:
    """Bars of each criterion with their intervals, n under the label."""
    by_model = [
        {
            criterion: {
                each.path.removeprefix(f"criterion.{criterion}."): each
                for each in metrics
            }
            for criterion, metrics in model.column.criteria.items()
        }
        for model in shown.models
    ]
    every = list(by_model[0]) if by_model else []
    names = every[:MOST_CRITERIA]
    panels = tuple(
        panel
        for each in PANELS
        if (panel := _panel(each, names, by_model, shown)) is not None
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
        f"{shown.drawn}.{left}{shown.rest}",
        panels=panels,
    )


_OfCriteria = Mapping[str, Mapping[str, Metric]]


def _panel(
    measured: _CriterionMetric,
    names: Sequence[str],
    by_model: Sequence[_OfCriteria],
    shown: PlottedEvidenceModels,
) -> Panel | None:
    bars = []
    for model, criteria in zip(shown.models, by_model, strict=True):
        found = [criteria[name].get(measured.path) for name in names]
        if any(each is not None and each.value is not None for each in found):
            bars.append(
                Bars(
                    values=tuple(each.value if each else None for each in found),
                    lo=tuple(each.lo if each else None for each in found),
                    hi=tuple(each.hi if each else None for each in found),
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
    own = [criteria[name] for criteria in by_model if path in criteria[name]]
    if not own:  # ranking measures need a query with evidence
        return f"{name}\nn = 0"
    positive = max(int(each["n_positive"].value or 0) for each in own)
    few = "*" if positive < FEW_POSITIVES else ""
    if path == "auroc":
        total = max(each[path].n for each in own)
        return f"{name}\n{positive:,}{few} of\n{total:,}"
    found = max(each[path].n_defined or each[path].n for each in own)
    return f"{name}\nn = {found:,}{few}"


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
        return build_figures(lambda: shown(self.results), draws)
