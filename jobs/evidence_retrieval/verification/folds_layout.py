"""The summary of predictions by fold, and their spread over the folds.

`{n_folds, config, fold_results[{threshold_selection, test_metrics{ne_gate, deployment,
evidence, dynamic_k}}], aggregated_metrics{"group.metric": {mean, std, ...}}}`; that of
siftlog adds `definitions`, `intervals` and `n_defined`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from jobs.evidence_retrieval.verification import beside
from jobs.evidence_retrieval.verification.beside import Named, items, numbers
from jobs.evidence_retrieval.verification.choices import Choices
from jobs.evidence_retrieval.verification.evidence import ranking_figure
from jobs.evidence_retrieval.verification.figures import (
    Figure,
    NotComputableError,
    Scope,
    mean,
    median,
)
from jobs.evidence_retrieval.verification.gates import (
    deployment_figure,
    dynamic_k_figure,
    gate_figure,
)
from jobs.evidence_retrieval.verification.held import Held, Reading, counted, over
from jobs.evidence_retrieval.verification.queries import Query

Groups: TypeAlias = Mapping[str, Named]
"""By the name of a group: the figure that a key in it stands for."""


def _groups(ranking: str) -> Groups:
    return {
        "ne_gate": gate_figure,
        "deployment": deployment_figure,
        "evidence": partial(ranking_figure, listed=ranking),
        "dynamic_k": dynamic_k_figure,
    }


_WITNESSES: Mapping[str, Callable[[Query], bool]] = MappingProxyType(
    {
        "ne_gate": lambda query: query.p is not None,
        "deployment": lambda query: (
            query.tau_neg is not None and query.tau_pos is not None
        ),
        "evidence": lambda query: bool(query.lists or query.given),
        "dynamic_k": lambda query: query.selected is not None,
    }
)
"""What the rows must hold somewhere for a group to be due in a summary."""

_TUNED = "it describes the queries that thresholds were chosen on, which are not here"


class Folds:
    """The queries as a whole and by fold."""

    def __init__(self, every: Scope) -> None:
        """Split *every* query by its fold, in natural order of the folds' names."""
        self.every = every
        by_name: dict[str, list[Query]] = {}
        for query in every.queries:
            by_name.setdefault(query.fold, []).append(query)
        self.by_name = {
            name: Scope(by_name[name]) for name in sorted(by_name, key=_natural)
        }

    def value(self, figure: Figure, statistic: str, choices: Choices) -> float | None:
        """A statistic of a figure over the folds in which it is defined."""
        if choices.over == "pooled" and statistic == "mean":
            return self.every.value(figure, choices)
        of_folds = [fold.value(figure, choices) for fold in self.by_name.values()]
        # a threshold of inf says that there is none
        there = [v for v in of_folds if v is not None and math.isfinite(v)]
        return STATISTICS[statistic](there, choices)


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts fold 2 before fold 10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _std(values: list[float], choices: Choices) -> float | None:
    freedom = len(values) - choices.ddof
    if freedom < 1:
        return None
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / freedom)


STATISTICS: Mapping[str, Callable[[list[float], Choices], float | None]] = (
    MappingProxyType(
        {
            "mean": mean,
            "std": _std,
            "median": median,
            "min": lambda values, _: min(values, default=None),
            "max": lambda values, _: max(values, default=None),
        }
    )
)


def read_folds(
    stored: Mapping[str, Any], every: Scope, choices: Choices, ranking: str
) -> Reading:
    """What *stored* holds, and what it lacks or contradicts by itself.

    Args:
        stored: the summary.
        every: all queries.
        choices: by which the values of intervals are recomputed.
        ranking: the list that its group `evidence` is about.
    """
    folds = Folds(every)
    groups = _groups(ranking)
    named = partial(_named, groups)
    held: list[Held] = []
    for key, value in stored.items():
        match key, value:
            case "n_folds", _:
                n = len(folds.by_name)
                held.append(counted(key, value, n, "folds in the rows"))
            case "fold_results", list():
                for i, entry in enumerate(value):
                    scope = _scope_of(i, entry, folds)
                    held += _fold(f"{key}[{i}]", entry, scope, groups)
            case "aggregated_metrics", Mapping():
                held += _aggregated(key, value, folds, named)
            case "intervals", _:
                held += beside.intervals(value, named, every)
            case _ if key in beside.UNCHECKED:
                held += beside.numbers(key, value, beside.UNCHECKED[key])
            case _:
                held.append(Held(path=key, stored=value))
    lacking = _missing(stored, folds)
    outside = beside.astray(stored.get("intervals"), named, every, choices)
    return Reading(held=tuple(held), failures=(*lacking, *outside))


def _scope_of(i: int, entry: object, folds: Folds) -> Scope | None:
    """The queries of an entry: of the fold it names, or of the fold at its place."""
    named = entry.get("fold", entry.get("fold_id")) if isinstance(entry, Mapping) else i
    names = list(folds.by_name)
    if named is not None and isinstance(entry, Mapping):
        return folds.by_name.get(str(named))
    return folds.by_name[names[i]] if i < len(names) else None


def _fold(
    path: str, entry: object, scope: Scope | None, groups: Groups
) -> Iterator[Held]:
    for key, value in items(entry):
        below = f"{path}.{key}"
        if key in {"fold", "fold_id"}:
            continue
        if key == "threshold_selection":
            yield from _selection(below, value, scope)
        elif key == "test_metrics":
            for group, figures in items(value):
                named = groups.get(group)
                yield from _group(f"{below}.{group}", figures, scope, named)
        else:
            yield Held(path=below, stored=value)


def _group(
    path: str, figures: object, scope: Scope | None, named: Named | None
) -> Iterator[Held]:
    if named is None:
        yield Held(path=path, stored=figures)
        return
    for key, value in items(figures):
        below = f"{path}.{key}"
        if scope is None:
            yield Held(path=below, stored=value, why="the rows have no such fold")
        else:
            yield over(below, value, named(key), scope)


def _selection(path: str, block: object, scope: Scope | None) -> Iterator[Held]:
    """The thresholds stand in every row; what they reached was measured elsewhere."""
    for key, value in items(block):
        below = f"{path}.{key}"
        if key in {"tau_neg", "tau_pos"} and scope is not None:
            figure = Figure(
                name=key,
                compute=partial(_tau, key),
                meaning="the threshold that the fold's rows were judged by",
            )
            yield over(below, value, figure, scope)
        else:
            yield from numbers(below, value, _TUNED)


def _tau(name: str, scope: Scope, choices: Choices) -> float | None:
    del choices
    taus = {getattr(query, name) for query in scope.queries} - {None}
    if len(taus) != 1:
        raise NotComputableError(f"the rows of the fold hold {len(taus)} values of it")
    (tau,) = taus
    return float(tau)


def _aggregated(
    path: str, block: Mapping[str, Any], folds: Folds, named: Named
) -> Iterator[Held]:
    for name, statistics in block.items():
        figure = named(name)
        for key, value in items(statistics):
            below = f"{path}.{name}.{key}"
            if figure is None or key not in STATISTICS:
                yield Held(path=below, stored=value)
                continue
            tries = dict(figure.tries)
            if key == "std":
                tries["ddof"] = (1, 0)
            if key == "mean":
                tries["over"] = ("folds", "pooled")
            yield Held(
                path=below,
                stored=value,
                compute=partial(folds.value, figure, key),
                tries=tries,
                meaning=f"{key} over the folds: {figure.meaning}",
            )


def _named(groups: Groups, name: str) -> Figure | None:
    """The figure of `group.metric`."""
    group, _, key = name.partition(".")
    return groups[group](key) if group in groups else None


def _missing(stored: Mapping[str, Any], folds: Folds) -> Iterator[str]:
    """The blocks that should be there, by what the rows hold."""
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
        there = dict(items(dict(items(entry)).get("test_metrics")))
        for group in due:
            if not there.get(group):
                yield f"fold_results[{i}].test_metrics has no block {group}."
