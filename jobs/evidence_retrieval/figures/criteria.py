"""Criterion by criterion: where the gate, the ranking and the shown sentences fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.evidence_retrieval.figures.shown import Shown
from jobs.evidence_retrieval.measuring.criteria import FEW_POSITIVES
from runner.scorecard import Axis, Bars, Figure, Metric, Panel, ReferenceLine

MOST_CRITERIA = 16
"""Side by side; the tables hold all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    path: str
    label: str
    rules: tuple[ReferenceLine, ...] = ()


PANELS = (
    _Measured(
        path="auroc",
        label="AUROC",
        rules=(ReferenceLine(way="horizontal", at=0.5, label="AUROC by chance"),),
    ),
    _Measured(path="ndcg@10", label="nDCG@10"),
    _Measured(path="evidence_recall@K", label="evidence recall@K"),
)


def criteria(shown: Shown) -> Figure | None:
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
    measured: _Measured,
    names: Sequence[str],
    by_model: Sequence[_OfCriteria],
    shown: Shown,
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
