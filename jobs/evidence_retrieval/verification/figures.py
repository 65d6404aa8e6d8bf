"""Maps each name of a stored summary to a figure that rows can recompute."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from operator import add
from typing import TypeAlias, TypeVar

import numpy as np

from jobs.evidence_retrieval.verification.definitions import (
    Cut,
    EdgeRule,
    MetricDefinitions,
    Queries,
    QueryRow,
    Variants,
)
from jobs.kit.metrics.calibration import BinRule, ece, mce
from jobs.kit.metrics.classification import auprc, auroc, tpr_at_fpr
from jobs.kit.metrics.columns import Bools, Floats, std
from jobs.kit.metrics.ranking import RankedHits, RankingRules, evaluate, hits
from jobs.kit.metrics.selective import (
    NEG,
    POS,
    STATES,
    UNCERTAIN,
    GateShare,
    gate_metrics,
)

Item = TypeVar("Item")


class NotComputableError(Exception):
    """The rows lack the data for a figure; the message names it."""


Rankings: TypeAlias = Mapping[str, Mapping[int, float]]
"""Values of a measure by name, then by index of the query."""


class QueryScope:
    """A subset of the queries, which caches data that several figures share."""

    def __init__(self, queries: Sequence[QueryRow]) -> None:
        """Take all *queries* of a file, or those of one fold."""
        self.queries = queries
        self._values: dict[tuple[str, MetricDefinitions], float | None] = {}
        self._stated: dict[tuple[object, ...], list[tuple[QueryRow, int]]] = {}
        self._hits: dict[str, tuple[list[int], RankedHits]] = {}
        self._rankings: dict[tuple[str, Cut, RankingRules], Rankings] = {}

    def value(self, figure: SummaryFigure, choices: MetricDefinitions) -> float | None:
        """Return a figure over these queries; None if it is undefined.

        Raises:
            NotComputableError: the queries lack its data.
        """
        key = (figure.name, choices)
        if key not in self._values:
            self._values[key] = figure.compute(self, choices)
        return self._values[key]

    @cached_property
    def judged(self) -> tuple[Bools, Floats]:
        """Label and probability of the queries that have both."""
        rows = [
            (query.truth, query.p)
            for query in self.queries
            if query.truth is not None and query.p is not None
        ]
        truths, probabilities = zip(
            *needed(rows, "no probability of a judged query"), strict=True
        )
        return np.array(truths, dtype=np.bool_), np.array(probabilities)

    @cached_property
    def positives(self) -> list[tuple[int, QueryRow]]:
        """Queries with evidence, with their index."""
        return [(i, query) for i, query in enumerate(self.queries) if query.truth]

    @cached_property
    def n_negatives(self) -> int:
        """Number of queries without evidence."""
        return sum(query.truth is False for query in self.queries)

    def stated(self, choices: MetricDefinitions) -> list[tuple[QueryRow, int]]:
        """Return the judged queries that have a state, with its index in `STATES`."""
        key = (choices.states, choices.gate_edge, choices.strict)
        if key not in self._stated:
            self._stated[key] = [
                (query, state)
                for query in self.queries
                if query.truth is not None
                and (state := state_of(query, choices)) is not None
            ]
        return needed(self._stated[key], "no state of a judged query")

    def rankings(self, list_name: str, cut: Cut, rules: RankingRules) -> Rankings:
        """Return the measures of positive queries with this list, cut at *cut*.

        A query without a selected K has no value at that cut.
        """
        key = (list_name, cut, rules)
        if key not in self._rankings:
            self._rankings[key] = self._measured(list_name, cut, rules)
        return self._rankings[key]

    def _measured(self, list_name: str, cut: Cut, rules: RankingRules) -> Rankings:
        if list_name not in self._hits:
            rows = [
                (index, query)
                for index, query in self.positives
                if list_name in query.lists
            ]
            ranked_hits = hits(
                [query.gold for _, query in rows],
                [query.lists[list_name] for _, query in rows],
                dedupe="first",
            )
            self._hits[list_name] = [index for index, _ in rows], ranked_hits
        indices, ranked_hits = self._hits[list_name]
        if cut == "whole list":
            column = evaluate(ranked_hits, (), rules)["mrr"].tolist()
            return {"mrr": dict(zip(indices, column, strict=True))}
        ks = {
            i: self.queries[i].selected if cut == "selected" else cut for i in indices
        }
        cuts = sorted({k for k in ks.values() if k})
        columns = evaluate(ranked_hits, cuts, rules)
        return {
            measure: {
                # no sentences are shown at K = 0
                index: float(columns[f"{measure}@{k}"][row]) if k else 0.0
                for row, (index, k) in enumerate(ks.items())
                if k is not None
            }
            for measure in _MEANINGS
        }


def state_of(query: QueryRow, choices: MetricDefinitions) -> int | None:
    """Return the state by probability and thresholds, or the file's; None without.

    POS from tau_pos on, NEG below tau_neg; at both, POS.
    """
    if choices.states == "column":
        return STATES.index(query.state) if query.state in STATES else None
    p, low, high = query.p, query.tau_neg, query.tau_pos
    if p is None or low is None or high is None:
        return None
    if p > high or (p == high and not choices.strict):
        return POS
    if p < low or (p == low and (choices.strict or choices.gate_edge == "le")):
        return NEG
    return UNCERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFigure:
    """A named figure of a summary."""

    name: str  #: unique among the figures of a layout
    compute: Callable[[QueryScope, MetricDefinitions], float | None]
    meaning: str
    variants: Variants = field(default_factory=dict)


def needed(items: list[Item], contents: str) -> list[Item]:
    """Return the *items*; raise `NotComputableError` if there are none."""
    if not items:
        raise NotComputableError(f"the rows hold {contents}")
    return items


def mean(
    values: Iterable[float], choices: MetricDefinitions, *, over: int | None = None
) -> float | None:
    """Return the mean, divided by *over* if given; the sum is exact, or a loop's."""
    numbers = list(values)
    is_exact = choices.sums == "exact"
    total = math.fsum(numbers) if is_exact else reduce(add, numbers, 0.0)
    divisor = len(numbers) if over is None else over
    return total / divisor if divisor else choices.of_nothing


def _described(
    describe: Callable[[Sequence[float]], float],
) -> Callable[[Sequence[float], MetricDefinitions], float | None]:
    return lambda values, choices: describe(values) if values else choices.of_nothing


STATISTICS: Mapping[
    str, Callable[[Sequence[float], MetricDefinitions], float | None]
] = {
    "mean": mean,
    "std": lambda values, choices: std(values, ddof=choices.ddof),
    "median": _described(statistics.median),
    "min": _described(min),
    "max": _described(max),
}


CUTS = (1, 3, 5, 10, 20)
"""Cut-offs to try if a figure may use another one."""

_NAME = re.compile(r"(recall|precision|hit|mrr|map|ndcg)(?:@(K|[1-9]\d*))?")

_MEANINGS = {
    "recall": "share of a query's evidence sentences among those shown",
    "precision": "share of the shown sentences that are evidence",
    "hit": "share of queries with at least one evidence sentence among those shown",
    "mrr": "1 / rank of the first evidence sentence",
    "map": "precision at each evidence sentence, averaged over all of them",
    "ndcg": "how close the order comes to the best possible one",
}

_STATED: Mapping[tuple[str, Cut], str] = {
    ("recall", "selected"): "evidence_recall_at_k",
    ("precision", "selected"): "evidence_precision_at_k",
    ("mrr", "whole list"): "mrr",
}
"""Columns that a file may have by query without the lists behind them."""


def ranking_figure(
    key: str, list_name: str, *, queries: Queries = "positives"
) -> SummaryFigure | None:
    """Return the figure named *key*, over the list *list_name*, or None.

    `recall@5` is cut at 5, `recall@K` at the K that was selected for each query, and
    `mrr` is not cut. *queries* are the denominator that its block states.
    """
    match = _NAME.fullmatch(key)
    if match is None:
        return None
    measure, cut_text = match.groups()
    if cut_text is None and measure != "mrr":
        return None
    cut: Cut
    match cut_text:
        case None:
            cut, cut_words = "whole list", "in the whole list"
        case "K":
            cut, cut_words = "selected", "at the selected K"
        case _:
            cut, cut_words = int(cut_text), f"@{cut_text}"
    return SummaryFigure(
        name=f"{list_name}.{queries}.{key}",
        compute=partial(
            _ranked_mean,
            measure=measure,
            list_name=list_name,
            named_cut=cut,
            named_queries=queries,
        ),
        meaning=f"{_MEANINGS[measure]}, {cut_words}",
        variants=_variants(measure, cut),
    )


def _variants(measure: str, cut: Cut) -> Variants:
    """Return other definitions that occur under this name.

    A fixed cut-off is never replaced by another one: a table with swapped columns would
    pass.
    """
    variants: dict[str, tuple[object, ...]] = {
        "queries": ("positives", "all"),
        "of_nothing": (None, 0.0),
    }
    if measure == "mrr":
        variants["k"] = CUTS if cut == "whole list" else ("whole list",)
    elif cut == "selected":
        variants["k"] = CUTS
        variants["skip_empty"] = (False, True)
    else:
        variants["k"] = ("selected",)
    if measure == "map":
        variants["ap_denominator"] = ("gold", "min", "found")
    if measure == "precision":
        variants["precision_over"] = ("k", "k_eff")
    return variants


def _ranked_mean(
    scope: QueryScope,
    choices: MetricDefinitions,
    *,
    measure: str,
    list_name: str,
    named_cut: Cut,
    named_queries: Queries,
) -> float | None:
    """Return a measure's mean over queries; included ones without evidence add 0."""
    cut = named_cut if choices.k == "named" else choices.k
    positive = [
        (index, query)
        for index, query in scope.positives
        # a stated value without a list is used unchanged
        if not (
            choices.skip_empty
            and cut == "selected"
            and query.selected == 0
            and list_name in query.lists
        )
    ]
    rules = RankingRules(
        empty="zero",
        # a list that ends before K shows fewer sentences, as the reader saw
        precision_over=choices.precision_over
        or ("k_eff" if cut == "selected" else "k"),
        ap_over=choices.ap_denominator,
    )
    of_lists = scope.rankings(list_name, cut, rules)[measure]
    stated_column = _STATED.get((measure, cut), "") if choices.k == "named" else ""
    of_queries = [
        of_lists.get(index)
        if list_name in query.lists
        else query.stated_values.get(stated_column)
        for index, query in positive
    ]
    measured = [value for value in of_queries if value is not None]
    if positive and not measured:
        raise NotComputableError(
            f"the rows of positive queries hold no {list_name} from which "
            f"{measure} could be taken at this cut-off"
        )
    queries = named_queries if choices.queries == "named" else choices.queries
    divisor = len(measured) + (scope.n_negatives if queries == "all" else 0)
    return mean(measured, choices, over=divisor)


_AT_FPR = re.compile(r"(tpr|threshold)_at_(\d+(?:\.\d+)?)pct_fpr")
_OF_K = re.compile(r"(?:(NEG|UNCERTAIN|POS)_)?(mean|median|min|max)_([kn])")

_TPR_RULES: Variants = {
    "tpr_rule": ("last", "interpolate", "drop_collinear", "nearest")
}
_ECE_EDGES: Variants = {
    "ece_edges": ("right", "left", "right_drop_zero", "left_drop_one", "right_midpoint")
}
_BIN_RULES: Mapping[EdgeRule, BinRule] = {
    "right": {},
    "left": {"closed": "left"},
    "right_drop_zero": {"drop_zero": True},
    "left_drop_one": {"closed": "left", "drop_one": True},
    "right_midpoint": {"reference": "midpoint"},
}
_STATES: Variants = {
    "gate_edge": ("lt", "le"),
    "strict": (False, True),
    "states": ("recomputed", "column"),
}
_OF_NOTHING: Variants = {"of_nothing": (None, 0.0)}

_CURVES: Mapping[
    str, tuple[Callable[[QueryScope, MetricDefinitions], float | None], str, Variants]
] = {
    "auroc": (
        lambda scope, _: auroc(*scope.judged),
        "chance that a query with evidence is ranked above one without",
        {},
    ),
    "auprc": (
        lambda scope, _: auprc(*scope.judged),
        "average precision; its floor is the share of positives",
        {},
    ),
    "ece": (
        lambda scope, choices: ece(
            *scope.judged, choices.ece_bins, **_BIN_RULES[choices.ece_edges]
        ),
        "how far probabilities lie from what happens, on average",
        _ECE_EDGES,
    ),
    "mce": (
        lambda scope, choices: mce(
            *scope.judged, choices.ece_bins, **_BIN_RULES[choices.ece_edges]
        ),
        "how far they lie from it in the worst bin",
        _ECE_EDGES,
    ),
}

_RATE_MEANINGS = {
    "neg_rate": "share of queries that are skipped",
    "uncertain_rate": "share of queries to read with care",
    "pos_rate": "share of queries that raise an alert",
    "screening_sensitivity": "share of queries with evidence that are not skipped",
    "screening_specificity": "share of queries without evidence that are skipped",
    "screening_fpr": "share of queries without evidence that are not skipped",
    "screening_npv": "share of skipped queries that have no evidence",
    "screening_fn_per_1000": "missed cases in 1,000 queries",
    "screening_fn_per_1000_positive": "missed cases in 1,000 with evidence",
    "alert_precision": "share of alerts that have evidence",
    "alert_recall": "share of queries with evidence that raise an alert",
    "alert_fpr": "share of queries without evidence that raise an alert",
    "alerts_per_1000": "alerts in 1,000 queries",
}
"""By the names of state rates and of the fields of `GateMetrics`."""


def gate_figure(key: str) -> SummaryFigure | None:
    """Return the figure *key* of the group `ne_gate`, or None."""
    if match := _AT_FPR.fullmatch(key):
        kind, percent = match.groups()
        return SummaryFigure(
            name=f"ne_gate.{key}",
            compute=partial(_at_fpr, kind, float(percent) / 100),
            meaning={
                "tpr": "sensitivity where that share of the rest is let through",
                "threshold": "the probability that does so",
            }[kind],
            variants={**_TPR_RULES, **_OF_NOTHING},
        )
    if key not in _CURVES:
        return None
    compute, meaning, variants = _CURVES[key]
    return SummaryFigure(
        name=f"ne_gate.{key}",
        compute=partial(_defined, compute),
        meaning=meaning,
        variants={**_OF_NOTHING, **variants},
    )


def _defined(
    compute: Callable[[QueryScope, MetricDefinitions], float | None],
    scope: QueryScope,
    choices: MetricDefinitions,
) -> float | None:
    value = compute(scope, choices)
    return choices.of_nothing if value is None else value


def _at_fpr(
    kind: str, target: float, scope: QueryScope, choices: MetricDefinitions
) -> float | None:
    rule = choices.tpr_rule
    point = tpr_at_fpr(*scope.judged, target, vertex=rule)
    if point is None:
        return choices.of_nothing
    if kind == "tpr":
        return point.tpr
    if point.threshold is None:  # between two points, or no positives
        return math.nan if rule == "interpolate" else math.inf
    return point.threshold


def deployment_figure(key: str) -> SummaryFigure | None:
    """Return the figure *key* of the group `deployment`, or None."""
    if key not in _RATE_MEANINGS:
        return None
    variants = {**_STATES, "zero_division": (None, 0.0)}
    if key == "screening_fn_per_1000":
        variants["fn_per_1000"] = ("all", "positives")
    return SummaryFigure(
        name=f"deployment.{key}",
        compute=partial(_rate, key),
        meaning=_RATE_MEANINGS[key],
        variants=variants,
    )


def _rate(key: str, scope: QueryScope, choices: MetricDefinitions) -> float | None:
    stated = scope.stated(choices)
    gate = gate_metrics(
        [bool(query.truth) for query, _ in stated],
        np.array([state for _, state in stated], dtype=np.int8),
    )
    name = key
    if key == "screening_fn_per_1000" and choices.fn_per_1000 == "positives":
        name = "screening_fn_per_1000_positive"
    state = key.removesuffix("_rate").upper()
    rate: GateShare | float | None = gate.rates.get(state) or getattr(gate, name)
    value = rate.value if isinstance(rate, GateShare) else rate
    return choices.zero_division if value is None else value


def dynamic_k_figure(key: str) -> SummaryFigure | None:
    """Return the figure *key* of the group `dynamic_k`, or None."""
    match = _OF_K.fullmatch(key)
    if match is None:
        return None
    state, statistic, quantity = match.groups()
    subject = "sentences selected" if quantity == "k" else "sentences to choose from"
    of_state = f" of {state} queries" if state else ""
    return SummaryFigure(
        name=f"dynamic_k.{key}",
        compute=partial(_of_k, state, statistic, quantity),
        meaning=f"{statistic} number of {subject}{of_state}",
        variants={**(_STATES if state else {}), **_OF_NOTHING},
    )


def _of_k(
    state: str | None,
    statistic: str,
    quantity: str,
    scope: QueryScope,
    choices: MetricDefinitions,
) -> float | None:
    queries = (
        [
            query
            for query, state_index in scope.stated(choices)
            if STATES[state_index] == state
        ]
        if state
        else [query for query in scope.queries if query.truth is not None]
    )
    values = [
        float(value)
        for query in queries
        if (value := query.selected if quantity == "k" else query.pool) is not None
    ]
    if queries:
        needed(values, "no selected K" if quantity == "k" else "no size of a pool")
    return STATISTICS[statistic](values, choices)
