"""Renders a comparison for terminal and print (Markdown, LaTeX), as JSON and CSV.

It fits 80 columns: a metric takes two lines, its name with the verdict and its numbers
below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from jobs.kit import tables
from jobs.kit.comparison.difference import ComparedMetric, PValue
from jobs.kit.comparison.models import (
    DIFFERENCE,
    TEST,
    ComparedModels,
    ComparisonOptions,
    Side,
    family,
    items_of,
)
from jobs.kit.comparison.pairing import ItemGap, LabelAgreement, OutcomeCounts
from jobs.kit.comparison.pareto_front import FrontPoint, ParetoFront
from jobs.kit.metrics import Agreement, Interval
from jobs.kit.tables import Columns, TableOf, count, group, number, print_table, printed
from runner.scorecard import Cell as TableCell
from runner.table_rendering import Ends, PrintTable

BETTER = {True: "lower", False: "higher"}
"""Words for the better values, by whether lower ones are."""


def print_tables(
    matches: Sequence[ComparedModels],
    front: ParetoFront | None,
    options: ComparisonOptions,
) -> Iterator[PrintTable]:
    """A table for each match, and one of quality against cost where that is known."""
    for match in matches:
        yield _differences(match, options)
    if front is not None and front.has_expenses:
        yield _costs(front, options)


def _differences(match: ComparedModels, options: ComparisonOptions) -> PrintTable:
    return print_table(
        f"{_side_name(match.b)} (B) against {_side_name(match.a)} (A)",
        [metric for metric in match.compared if metric.overlap.n],
        (
            printed("Metric", lambda row: match.a.names.get(row.path, row.path)),
            printed("Better", lambda row: BETTER[row.lower_is_better]),
            printed("A", lambda row: row.gap.a, "number"),
            printed("B", lambda row: row.gap.b, "number"),
            printed("B - A", lambda row: row.gap.value, "change"),
            printed(
                _interval(options), lambda row: _print_ends(row.gap.interval), "changes"
            ),
            printed("p (Holm)", lambda row: row.p_holm, "number"),
            printed("n", lambda row: row.overlap.n, "number"),
            printed("Verdict on B", lambda row: row.verdict),
            printed("Key", lambda row: row.path, "key"),
        ),
        note=f"Common items only. Intervals at {options.level:.10g}, B={options.b}, "
        f"seed={options.seed}, both sides drawn alike; p corrected by Holm's method.",
    )


def _costs(front: ParetoFront, options: ComparisonOptions) -> PrintTable:
    return print_table(
        f"{front.path}, cost and latency on {front.n} common items",
        front.points,
        (
            printed("Side", lambda point: _side_name(point.side)),
            printed("value", lambda point: point.quality.value, "number", "Quality"),
            printed(
                _interval(options),
                lambda point: _print_ends(point.quality.interval),
                "interval",
                "Quality",
            ),
            printed(f"USD per {front.unit}", lambda point: point.expense.usd, "number"),
            printed("Median s", lambda point: point.expense.seconds, "number"),
        ),
    )


def _interval(options: ComparisonOptions) -> str:
    return f"{100 * options.level:.4g}% interval"


def _print_ends(interval: Interval) -> Ends | None:
    return None if interval.lo is None else (interval.lo, interval.hi)


def _side_name(side: Side) -> str:
    return " ".join(side.key)


def as_json(
    matches: Sequence[ComparedModels],
    front: ParetoFront | None,
    options: ComparisonOptions,
    item_gaps: Sequence[Sequence[ItemGap]],
) -> dict[str, Any]:
    """All matches, each with the items *item_gaps* for it, if there are any."""
    pairs = [_models_json(match) for match in matches]
    for pair, gaps in zip(pairs, item_gaps, strict=False):
        pair["items"] = [asdict(gap) for gap in gaps]
    return {
        **asdict(options),
        "family": family(matches),
        "pairs": pairs,
        "front": None if front is None else _front_json(front),
    }


def _front_json(front: ParetoFront) -> dict[str, Any]:
    return {
        "metric": front.path,
        "lower_is_better": front.lower_is_better,
        "n": front.n,
        "unit": front.unit,
        "cluster": front.cluster,
        "sides": [_point_json(point) for point in front.points],
    }


def _point_json(point: FrontPoint) -> dict[str, Any]:
    return {
        **_side_json(point.side),
        "quality": point.quality.value,
        "lo": point.quality.interval.lo,
        "hi": point.quality.interval.hi,
        **asdict(point.expense),
        "dominated_by": [
            {**_side_json(dominance.by), "quality": dominance.quality}
            for dominance in point.dominated
        ],
    }


def _models_json(match: ComparedModels) -> dict[str, Any]:
    return {
        "a": _side_json(match.a),
        "b": _side_json(match.b),
        "metrics": {
            metric.path: {
                "name": match.a.names.get(metric.path, metric.path),
                **_metric_json(metric),
            }
            for metric in match.compared
        },
        "not_compared": {refused.path: refused.reason for refused in match.refused},
        "only_a": list(match.only_a),
        "only_b": list(match.only_b),
        "labels": None
        if match.label_agreement is None
        else _labels_json(match.label_agreement),
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "run": side.run,
        "scoring": side.number,
        "model": side.model,
        "seq": side.seq,
    }


def _metric_json(metric: ComparedMetric) -> dict[str, Any]:
    gap, primary, independent = (
        metric.gap,
        metric.p_values.primary,
        metric.p_values.independent,
    )
    return {
        "a": gap.a,
        "b": gap.b,
        "difference": gap.value,
        "lo": gap.interval.lo,
        "hi": gap.interval.hi,
        "b_used": gap.interval.b_used,
        "flagged": gap.interval.flagged,
        "verdict": metric.verdict,
        "lower_is_better": metric.lower_is_better,
        "few": metric.is_from_few,
        "test": None
        if primary is None
        else {**asdict(primary), "p_holm": metric.p_holm},
        "beside": None if independent is None else asdict(independent),
        "family": metric.family,
        **asdict(metric.overlap),
        "agreement": None
        if metric.agreement is None
        else _agreement_json(metric.agreement),
        "standing": None if metric.outcomes is None else asdict(metric.outcomes),
        "cluster": metric.cluster,
        "definition": metric.definition,
    }


def _labels_json(labels: LabelAgreement) -> dict[str, Any]:
    return {"what": labels.what, "n": labels.n, **_agreement_json(labels.agreement)}


def _agreement_json(agreement: Agreement) -> dict[str, Any]:
    return {"percent": agreement.percent, "kappa": agreement.kappa, "ac1": agreement.ac}


SIDES: tuple[Columns[ComparedModels], ...] = (
    tables.text("run_a", lambda match: match.a.source),
    tables.text("model_a", lambda match: match.a.model),
    tables.text("run_b", lambda match: match.b.source),
    tables.text("model_b", lambda match: match.b.model),
)


class _MetricRow(NamedTuple):
    match: ComparedModels
    metric: ComparedMetric

    @property
    def independent(self) -> PValue | None:
        return self.metric.p_values.independent


_OUTCOMES: tuple[Columns[OutcomeCounts], ...] = (
    count("wins", lambda items: items.wins, "items on which B is better"),
    count("losses", lambda items: items.losses),
    count("ties", lambda items: items.ties),
)

_AGREEMENT: tuple[Columns[Agreement], ...] = (
    number("agreement", lambda labels: labels.percent),
    number("kappa", lambda labels: labels.kappa),
    number("ac1", lambda labels: labels.ac),
)

METRICS = TableOf[_MetricRow](
    name="comparison",
    columns=(
        group(SIDES, lambda row: row.match),
        tables.text("metric", lambda row: row.metric.path),
        number("a", lambda row: row.metric.gap.a),
        number("b", lambda row: row.metric.gap.b),
        group(DIFFERENCE, lambda row: row.metric),
        tables.text("verdict", lambda row: row.metric.verdict, "on B"),
        group(TEST, lambda row: row.metric.p_values.primary),
        number("p_holm", lambda row: row.metric.p_holm),
        tables.text("beside", lambda row: p.name if (p := row.independent) else None),
        number("beside_p", lambda row: p.p if (p := row.independent) else None),
        count("n", lambda row: row.metric.overlap.n, "common items"),
        count("clusters", lambda row: row.metric.overlap.clusters),
        count("only_a", lambda row: row.metric.overlap.only_a),
        count("only_b", lambda row: row.metric.overlap.only_b),
        count("undefined", lambda row: row.metric.overlap.undefined),
        group(_OUTCOMES, lambda row: row.metric.outcomes),
        group(_AGREEMENT, lambda row: row.metric.agreement),
        tables.text("cluster", lambda row: row.metric.cluster),
        tables.text("definition", lambda row: row.metric.definition),
    ),
)
"""The file that `--csv` writes."""


def metric_rows(matches: Sequence[ComparedModels]) -> Iterator[tuple[TableCell, ...]]:
    """The lines of a CSV: one a metric and match."""
    return METRICS.lines(
        _MetricRow(match, metric) for match in matches for metric in match.compared
    )


class _ItemRow(NamedTuple):
    match: ComparedModels
    path: str
    gap: ItemGap
    favour: int  #: 1: B is better


_OUTCOME_WORDS = {1: "win", 0: "tie", -1: "loss"}

ITEMS = TableOf[_ItemRow](
    name="items",
    columns=(
        group(SIDES, lambda row: row.match),
        tables.text("metric", lambda row: row.path),
        tables.text("item", lambda row: row.gap.item),
        tables.text("cluster", lambda row: row.gap.cluster),
        number("a", lambda row: row.gap.a),
        number("b", lambda row: row.gap.b),
        number("difference", lambda row: row.gap.b - row.gap.a),
        tables.text("outcome", lambda row: _OUTCOME_WORDS[row.favour], "of B"),
    ),
)
"""The file that `--out` writes."""


def item_rows(
    matches: Sequence[ComparedModels], path: str
) -> Iterator[tuple[TableCell, ...]]:
    """The lines of a CSV: one an item and match; all that both sides have.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    return ITEMS.lines(_items(matches, path))


def _items(matches: Sequence[ComparedModels], path: str) -> Iterator[_ItemRow]:
    for match in matches:
        paired = items_of(match, path)
        for gap in paired.every():
            yield _ItemRow(match, path, gap, paired.favour(gap))
