"""Reads the two layouts of a stored summary: lists, and predictions by fold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from jobs.evidence_retrieval.inputs import natural_order
from jobs.evidence_retrieval.verification.definitions import (
    MetricDefinitions,
    Queries,
    QueryRow,
    Variants,
)
from jobs.evidence_retrieval.verification.figures import (
    STATISTICS,
    NotComputableError,
    QueryScope,
    SummaryFigure,
    deployment_figure,
    dynamic_k_figure,
    gate_figure,
    ranking_figure,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """One key of a stored summary; without `compute` it cannot be recomputed."""

    path: str
    stored: object
    compute: Callable[[MetricDefinitions], float | None] | None = None
    variants: Variants = field(default_factory=dict)
    meaning: str = ""
    reason: str = ""
    """Reason why the rows cannot give it; empty: the key is unknown."""
    is_count: bool = False  #: of queries or folds, not a figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSummary:
    """A stored summary in one layout."""

    stored_keys: tuple[StoredKey, ...]
    failures: tuple[str, ...] = ()
    """One sentence for each block that is missing, or contradicts itself."""


def figure_key(
    path: str, stored: object, figure: SummaryFigure | None, scope: QueryScope
) -> StoredKey:
    """Return the key *path*, as *figure* of a scope; None: an unknown key."""
    if figure is None:
        return StoredKey(path=path, stored=stored)
    return StoredKey(
        path=path,
        stored=stored,
        compute=partial(scope.value, figure),
        variants=figure.variants,
        meaning=figure.meaning,
    )


def count_key(path: str, stored: object, n: int, meaning: str) -> StoredKey:
    """Return the key of a count of queries or folds."""
    return StoredKey(
        path=path,
        stored=stored,
        compute=lambda _: n,
        meaning=meaning,
        is_count=True,
    )


FigureLookup: TypeAlias = Callable[[str], SummaryFigure | None]
"""Finds the figure of a name such as `ne_gate.auroc`, or None."""

UNCHECKED = {
    "config": "it is a setting of the run, not a result",
    "definitions": "it is a text",
    "n_defined": "it counts what scoring saw",
}
"""Keys of a summary that are not recomputed, with the reason."""

_RESAMPLED = "it is drawn by resampling; only whether it holds its value is looked at"


def uncheckable_numbers(path: str, value: object, reason: str) -> Iterator[StoredKey]:
    """Yield the numbers at and below a key, which cannot be recomputed."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from uncheckable_numbers(f"{path}.{key}", below, reason)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield StoredKey(path=path, stored=value, reason=reason)


def _of_either_layout(
    top: str, block: object, figure_of: FigureLookup, scope: QueryScope
) -> Iterator[StoredKey]:
    """Yield the keys that are no block of figures: intervals, texts, unknown ones."""
    if top in UNCHECKED:
        yield from uncheckable_numbers(top, block, UNCHECKED[top])
        return
    if top != "intervals":
        yield StoredKey(path=top, stored=block)
        return
    for name, interval in items(block):
        figure = figure_of(name)
        for key, value in items(interval):
            path = f"intervals.{name}.{key}"
            if key == "value" and figure is not None:
                yield figure_key(path, value, figure, scope)
            else:
                yield from uncheckable_numbers(path, value, _RESAMPLED)


def misplaced_intervals(
    block: object,
    figure_of: FigureLookup,
    scope: QueryScope,
    choices: MetricDefinitions,
) -> Iterator[str]:
    """Yield a sentence for each interval that does not contain its value.

    The value is the one stored with it, which is verified separately and may have
    another definition; otherwise the recomputed one.
    """
    for name, interval in items(block):
        ends = dict(items(interval))
        lo, hi, value = ends.get("lo"), ends.get("hi"), ends.get("value")
        if value is None and (figure := figure_of(name)) is not None:
            with suppress(NotComputableError):
                value = scope.value(figure, choices)
        if lo is None or hi is None or value is None:
            continue
        if not lo <= value <= hi:
            yield f"The interval of {name}, {lo} to {hi}, does not hold {value}."


def items(block: object) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a block, if it is one."""
    return iter(block.items() if isinstance(block, Mapping) else ())


LISTS = ("retriever", "reranked")
"""Lists that such a summary has, if the rows have them."""

_DENOMINATORS: Mapping[str, Queries] = {
    "positives_only": "positives",
    "all_queries": "all",
}
_WORDS = ("eval_split", "eval_mode")


def read_lists(
    stored: Mapping[str, Any], scope: QueryScope, choices: MetricDefinitions
) -> ParsedSummary:
    """Parse *stored*, and report missing or contradictory blocks."""
    list_names = {name for query in scope.queries for name in query.lists}
    stored_keys: list[StoredKey] = []
    failures: list[str] = []
    for key, value in stored.items():
        if isinstance(value, Mapping) and key in {*LISTS, *list_names}:
            stored_keys += _list(key, value, scope)
            failures += _missing_blocks(key, value)
        elif key not in _WORDS:
            stored_keys += _of_either_layout(key, value, _list_figure, scope)
    failures += [
        f"The rows have {name} lists and the summary has no block {name}."
        for name in LISTS
        if name in list_names and not stored.get(name)
    ]
    failures += misplaced_intervals(
        stored.get("intervals"), _list_figure, scope, choices
    )
    return ParsedSummary(stored_keys=tuple(stored_keys), failures=tuple(failures))


def _list_figure(name: str) -> SummaryFigure | None:
    """Return the figure of `list.metric`."""
    list_name, _, key = name.rpartition(".")
    return ranking_figure(key, list_name)


def _list(
    name: str, block: Mapping[str, Any], scope: QueryScope
) -> Iterator[StoredKey]:
    if not set(_DENOMINATORS).intersection(block):
        # a block of one denominator states which it is
        skips = block.get("skip_no_positives", True)
        yield from _figures(name, name, block, scope, "positives" if skips else "all")
        return
    for key, value in block.items():
        path = f"{name}.{key}"
        if key in _DENOMINATORS and isinstance(value, Mapping):
            yield from _figures(name, path, value, scope, _DENOMINATORS[key])
        else:
            yield StoredKey(path=path, stored=value)


def _missing_blocks(name: str, block: Mapping[str, Any]) -> Iterator[str]:
    parts = {name: block}
    if set(_DENOMINATORS).intersection(block):
        parts = {f"{name}.{key}": block.get(key) or {} for key in _DENOMINATORS}
    for path, part in parts.items():
        if all(ranking_figure(key, name) is None for key in part):
            yield f"The summary's block {path} is missing or holds no figure."


def _figures(
    name: str, path: str, block: Mapping[str, Any], scope: QueryScope, queries: Queries
) -> Iterator[StoredKey]:
    truths = [query.truth for query in scope.queries]
    judged, positive = len(truths) - truths.count(None), truths.count(True)
    counts = {
        "queries_total": (judged, "judged queries"),
        "queries_with_positives": (positive, "queries that have evidence"),
        "queries_evaluated": (
            positive if queries == "positives" else judged,
            "queries that the means divide by",
        ),
    }
    for key, value in block.items():
        below = f"{path}.{key}"
        if key in counts:
            yield count_key(below, value, *counts[key])
        elif key != "skip_no_positives":
            figure = ranking_figure(key, name, queries=queries)
            yield figure_key(below, value, figure, scope)


Groups: TypeAlias = Mapping[str, FigureLookup]
"""By the name of a group: finds the figure of a key in it."""


def _groups(ranking: str) -> Groups:
    return {
        "ne_gate": gate_figure,
        "deployment": deployment_figure,
        "evidence": partial(ranking_figure, list_name=ranking),
        "dynamic_k": dynamic_k_figure,
    }


_WITNESSES: Mapping[str, Callable[[QueryRow], bool]] = {
    "ne_gate": lambda query: query.p is not None,
    "deployment": lambda query: None not in (query.tau_neg, query.tau_pos),
    "evidence": lambda query: bool(query.lists or query.stated_values),
    "dynamic_k": lambda query: query.selected is not None,
}
"""Data that the rows must have for a group to be expected in a summary."""

_TUNED = "it describes the queries that thresholds were chosen on, which are not here"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldScopes:
    """The queries, in total and by fold, in natural order of the folds' names."""

    every: QueryScope
    by_name: Mapping[str, QueryScope]

    @classmethod
    def of(cls, every: QueryScope) -> FoldScopes:
        """Split *every* query by its fold."""
        by_name: dict[str, list[QueryRow]] = {}
        for query in every.queries:
            by_name.setdefault(query.fold, []).append(query)
        names = natural_order(by_name)
        return cls(every=every, by_name={n: QueryScope(by_name[n]) for n in names})

    def value(
        self, figure: SummaryFigure, statistic: str, choices: MetricDefinitions
    ) -> float | None:
        """Return a statistic of a figure over the folds in which it is defined."""
        if choices.over == "pooled" and statistic == "mean":
            return self.every.value(figure, choices)
        of_folds = [fold.value(figure, choices) for fold in self.by_name.values()]
        # a threshold of inf means that there is none
        finite = [v for v in of_folds if v is not None and math.isfinite(v)]
        return STATISTICS[statistic](finite, choices)


def read_folds(
    stored: Mapping[str, Any],
    every: QueryScope,
    choices: MetricDefinitions,
    ranking: str,
) -> ParsedSummary:
    """Parse *stored*, and report missing or contradictory blocks.

    Args:
        stored: the summary.
        every: all queries.
        choices: the definitions to recompute the values of intervals.
        ranking: the list that its group `evidence` is about.
    """
    folds = FoldScopes.of(every)
    groups = _groups(ranking)
    figure_of = partial(_fold_figure, groups)
    stored_keys: list[StoredKey] = []
    for key, value in stored.items():
        match key, value:
            case "n_folds", _:
                n = len(folds.by_name)
                stored_keys.append(count_key(key, value, n, "folds in the rows"))
            case "fold_results", list():
                for i, entry in enumerate(value):
                    scope = _scope_of(i, entry, folds)
                    stored_keys += _fold(f"{key}[{i}]", entry, scope, groups)
            case "aggregated_metrics", Mapping():
                stored_keys += _aggregated(key, value, folds, figure_of)
            case _:
                stored_keys += _of_either_layout(key, value, figure_of, every)
    missing = _missing(stored, folds)
    outside = misplaced_intervals(stored.get("intervals"), figure_of, every, choices)
    return ParsedSummary(stored_keys=tuple(stored_keys), failures=(*missing, *outside))


def _scope_of(i: int, entry: object, folds: FoldScopes) -> QueryScope | None:
    """Return the queries of an entry: of its named fold, or by its index."""
    fold_name = (
        entry.get("fold", entry.get("fold_id")) if isinstance(entry, Mapping) else i
    )
    names = list(folds.by_name)
    if fold_name is not None and isinstance(entry, Mapping):
        return folds.by_name.get(str(fold_name))
    return folds.by_name[names[i]] if i < len(names) else None


def _fold(
    path: str, entry: object, scope: QueryScope | None, groups: Groups
) -> Iterator[StoredKey]:
    for key, value in items(entry):
        below = f"{path}.{key}"
        if key in {"fold", "fold_id"}:
            continue
        if key == "threshold_selection":
            yield from _selection(below, value, scope)
        elif key == "test_metrics":
            for group, figures in items(value):
                figure_of = groups.get(group)
                yield from _group(f"{below}.{group}", figures, scope, figure_of)
        else:
            yield StoredKey(path=below, stored=value)


def _group(
    path: str, figures: object, scope: QueryScope | None, figure_of: FigureLookup | None
) -> Iterator[StoredKey]:
    if figure_of is None:
        yield StoredKey(path=path, stored=figures)
        return
    reason = "the rows have no such fold"
    for key, value in items(figures):
        below = f"{path}.{key}"
        if scope is None:
            yield StoredKey(path=below, stored=value, reason=reason)
        else:
            yield figure_key(below, value, figure_of(key), scope)


def _selection(
    path: str, block: object, scope: QueryScope | None
) -> Iterator[StoredKey]:
    """Yield the thresholds, which rows have, and their metrics, which rows lack."""
    for key, value in items(block):
        below = f"{path}.{key}"
        if key in {"tau_neg", "tau_pos"} and scope is not None:
            figure = SummaryFigure(
                name=key,
                compute=partial(_tau, key),
                meaning="the threshold that the fold's rows were judged by",
            )
            yield figure_key(below, value, figure, scope)
        else:
            yield from uncheckable_numbers(below, value, _TUNED)


def _tau(name: str, scope: QueryScope, choices: MetricDefinitions) -> float | None:
    del choices
    taus = {getattr(query, name) for query in scope.queries} - {None}
    if len(taus) != 1:
        raise NotComputableError(f"the rows of the fold hold {len(taus)} values of it")
    (tau,) = taus
    return float(tau)


def _aggregated(
    path: str, block: Mapping[str, Any], folds: FoldScopes, figure_of: FigureLookup
) -> Iterator[StoredKey]:
    for name, statistics in block.items():
        figure = figure_of(name)
        for key, value in items(statistics):
            below = f"{path}.{name}.{key}"
            if figure is None or key not in STATISTICS:
                yield StoredKey(path=below, stored=value)
                continue
            variants = dict(figure.variants)
            if key == "std":
                variants["ddof"] = (1, 0)
            if key == "mean":
                variants["over"] = ("folds", "pooled")
            yield StoredKey(
                path=below,
                stored=value,
                compute=partial(folds.value, figure, key),
                variants=variants,
                meaning=f"{key} over the folds: {figure.meaning}",
            )


def _fold_figure(groups: Groups, name: str) -> SummaryFigure | None:
    """Return the figure of `group.metric`."""
    group, _, key = name.partition(".")
    return groups[group](key) if group in groups else None


def _missing(stored: Mapping[str, Any], folds: FoldScopes) -> Iterator[str]:
    """Yield sentences about missing blocks that the rows have data for."""
    entries = stored.get("fold_results")
    if not entries or not isinstance(entries, list):
        yield "The summary has no block fold_results."
        entries = []
    if entries and len(entries) != len(folds.by_name):
        yield (
            f"The summary has results of {len(entries)} folds and the rows have "
            f"{len(folds.by_name)}."
        )
    if not stored.get("aggregated_metrics"):
        yield "The summary has no block aggregated_metrics."
    due = [
        group
        for group, is_witness in _WITNESSES.items()
        if any(map(is_witness, folds.every.queries))
    ]
    for i, entry in enumerate(entries):
        blocks = dict(items(dict(items(entry)).get("test_metrics")))
        for group in due:
            if not blocks.get(group):
                yield f"fold_results[{i}].test_metrics has no block {group}."
