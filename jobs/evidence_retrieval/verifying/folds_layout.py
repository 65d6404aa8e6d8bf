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
from typing import Any

from jobs.evidence_retrieval.verifying.choices import Choices
from jobs.evidence_retrieval.verifying.evidence import ranking_figure
from jobs.evidence_retrieval.verifying.figures import (
    Figure,
    NotComputableError,
    Scope,
    mean,
    median,
)
from jobs.evidence_retrieval.verifying.gates import (
    deployment_figure,
    dynamic_k_figure,
    gate_figure,
)
from jobs.evidence_retrieval.verifying.held import Held, Reading, counted, over
from jobs.evidence_retrieval.verifying.queries import RANKING, Query

GROUPS: Mapping[str, Callable[[str], Figure | None]] = MappingProxyType(
    {
        "ne_gate": gate_figure,
        "deployment": deployment_figure,
        "evidence": lambda key: ranking_figure(key, RANKING),
        "dynamic_k": dynamic_k_figure,
    }
)

_WITNESSES: Mapping[str, Callable[[Query], bool]] = MappingProxyType(
    {
        "ne_gate": lambda query: query.p is not None,
        "deployment": lambda query: (
            query.tau_neg is not None and query.tau_pos is not None
        ),
        "evidence": lambda query: RANKING in query.lists or bool(query.given),
        "dynamic_k": lambda query: query.selected is not None,
    }
)
"""What the rows must hold somewhere for a group to be due in a summary."""

_TUNED = "it describes the queries that thresholds were chosen on, which are not here"
_SETTING = "it is a setting of the run, not a result"
_DRAWN = "it is drawn by resampling; only whether it holds its value is looked at"
_COUNTED = "it counts what scoring saw"


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
        return STATISTICS[statistic]([v for v in of_folds if v is not None], choices)


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


def read_folds(stored: Mapping[str, Any], every: Scope, choices: Choices) -> Reading:
    """What *stored* holds, and what it lacks or contradicts by itself."""
    folds = Folds(every)
    held: list[Held] = []
    for key, value in stored.items():
        match key, value:
            case "n_folds", _:
                n = len(folds.by_name)
                held.append(counted(key, value, n, "folds in the rows"))
            case "fold_results", list():
                for i, entry in enumerate(value):
                    held += _fold(f"{key}[{i}]", entry, _scope_of(i, entry, folds))
            case "aggregated_metrics", Mapping():
                held += _aggregated(key, value, folds)
            case "intervals", Mapping():
                held += _intervals(key, value, folds)
            case "config" | "n_defined" | "definitions", _:
                why = _SETTING if key == "config" else _COUNTED
                held += _beside(key, value, why)
            case _:
                held.append(Held(path=key, stored=value))
    failures = (*_missing(stored, folds), *_outside(stored, folds, choices))
    return Reading(held=tuple(held), failures=failures)


def _scope_of(i: int, entry: object, folds: Folds) -> Scope | None:
    """The queries of an entry: of the fold it names, or of the fold at its place."""
    named = entry.get("fold", entry.get("fold_id")) if isinstance(entry, Mapping) else i
    names = list(folds.by_name)
    if named is not None and isinstance(entry, Mapping):
        return folds.by_name.get(str(named))
    return folds.by_name[names[i]] if i < len(names) else None


def _fold(path: str, entry: object, scope: Scope | None) -> Iterator[Held]:
    for key, value in _items(entry):
        below = f"{path}.{key}"
        if key in {"fold", "fold_id"}:
            continue
        if key == "threshold_selection":
            yield from _selection(below, value, scope)
        elif key == "test_metrics":
            for group, figures in _items(value):
                yield from _group(f"{below}.{group}", group, figures, scope)
        else:
            yield Held(path=below, stored=value)


def _group(
    path: str, group: str, figures: object, scope: Scope | None
) -> Iterator[Held]:
    if group not in GROUPS:
        yield Held(path=path, stored=figures)
        return
    for key, value in _items(figures):
        below, figure = f"{path}.{key}", GROUPS[group](key)
        if scope is None:
            yield Held(path=below, stored=value, why="the rows have no such fold")
        else:
            yield over(below, value, figure, scope)


def _selection(path: str, block: object, scope: Scope | None) -> Iterator[Held]:
    """The thresholds stand in every row; what they reached was measured elsewhere."""
    for key, value in _items(block):
        below = f"{path}.{key}"
        if key in {"tau_neg", "tau_pos"} and scope is not None:
            figure = Figure(
                name=key,
                compute=partial(_tau, key),
                meaning="the threshold that the fold's rows were judged by",
            )
            yield over(below, value, figure, scope)
        else:
            yield from _beside(below, value, _TUNED)


def _tau(name: str, scope: Scope, choices: Choices) -> float | None:
    del choices
    taus = {getattr(query, name) for query in scope.queries} - {None}
    if len(taus) != 1:
        raise NotComputableError(f"the rows of the fold hold {len(taus)} values of it")
    (tau,) = taus
    return float(tau)


def _aggregated(path: str, block: Mapping[str, Any], folds: Folds) -> Iterator[Held]:
    for name, statistics in block.items():
        figure = _named(name)
        for key, value in _items(statistics):
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


def _named(name: str) -> Figure | None:
    """The figure of `group.metric`."""
    group, _, key = name.partition(".")
    return GROUPS[group](key) if group in GROUPS else None


def _intervals(path: str, block: Mapping[str, Any], folds: Folds) -> Iterator[Held]:
    for name, interval in block.items():
        for key, value in _items(interval):
            below, figure = f"{path}.{name}.{key}", _named(name)
            if key == "value" and figure is not None:
                yield over(below, value, figure, folds.every)
            else:
                yield from _beside(below, value, _DRAWN)


def _outside(
    stored: Mapping[str, Any], folds: Folds, choices: Choices
) -> Iterator[str]:
    """Intervals that do not hold the value of all rows together."""
    for name, interval in _items(stored.get("intervals")):
        figure, ends = _named(name), dict(_items(interval))
        if figure is None:
            continue
        try:
            value = folds.every.value(figure, choices)
        except NotComputableError:
            continue
        lo, hi = ends.get("lo"), ends.get("hi")
        if value is None or lo is None or hi is None:
            continue
        if not lo <= value <= hi:
            yield f"The interval of {name}, {lo} to {hi}, does not hold {value}."


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
        there = dict(_items(dict(_items(entry)).get("test_metrics")))
        for group in due:
            if not there.get(group):
                yield f"fold_results[{i}].test_metrics has no block {group}."


def _beside(path: str, value: object, why: str) -> Iterator[Held]:
    """The numbers below a key that nothing recomputes."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _beside(f"{path}.{key}", below, why)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield Held(path=path, stored=value, why=why)


def _items(block: object) -> Iterator[tuple[str, Any]]:
    """The keys of a block; nothing where it is none."""
    return iter(block.items() if isinstance(block, Mapping) else ())
