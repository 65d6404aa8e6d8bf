"""Stored results whose keys are not siftlog's: mapped to metrics, or reported.

A summary of another program has other keys and another layout. `--map KEY=METRIC` says
which metric a key states; every other key that is not known is reported with the
nearest metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.evidence_retrieval.verification.verification import Comparison, Verification
from jobs.inputs.column_map import ColumnMap, column_map, near_words
from runner.scorecard import Finding, Metric

_PLACE = re.compile(r"\[[0-9]+\]")
"""Of an entry of a list; a key is reported once for all entries."""


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """All values that are no object or list, with their paths such as `a.b[0].c`."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from leaves(below, f"{path}[{i}]")
    else:
        yield path, value


def mapped_paths(
    stored: Mapping[str, Any], pairs: Sequence[str], metrics: Mapping[str, Metric]
) -> ColumnMap:
    """The metric that each mapped path of a summary states.

    A key is named by its path, or by itself where it occurs once.

    Raises:
        UsageError: there is no such key or metric.
    """
    if not pairs:
        return {}
    paths = [path for path, _ in leaves(stored)]
    places: dict[str, list[str]] = {path: [path] for path in paths}
    for path in paths:
        places.setdefault(path.rpartition(".")[2], []).append(path)
    names = {name: own[0] for name, own in places.items() if len(set(own)) == 1}
    found = column_map(pairs, list(metrics), names, unseen="--against has no key")
    return {names[old]: new for old, new in found.items()}


def without(value: Any, paths: ColumnMap, path: str = "") -> Any:  # noqa: ANN401 - JSON
    """A summary without the values at some *paths*."""
    if not isinstance(value, Mapping):
        return value
    rest = {}
    for key, below in value.items():
        own = f"{path}.{key}" if path else str(key)
        if own not in paths:
            rest[key] = without(below, paths, own)
    return rest


def compared(
    stored: Mapping[str, Any],
    paths: ColumnMap,
    metrics: Mapping[str, Metric],
    tolerance: float,
) -> Iterator[Comparison]:
    """Each mapped value with the metric that it states."""
    for path, value in leaves(stored):
        if path in paths:
            yield _compared(path, value, metrics[paths[path]], tolerance)


def _compared(path: str, value: object, metric: Metric, tolerance: float) -> Comparison:
    own = None if metric.value is None else float(metric.value)
    bare = Comparison(
        path=path,
        kind="figure",
        stored=None if value is None else str(value),
        recomputed=own,
        verdict="differs",
        why=f"mapped to {metric.path}",
        meaning=metric.meaning,
    )
    try:
        number = float(str(value))
    except ValueError:
        is_equal = value is None and own is None
        return replace(bare, verdict="equal") if is_equal else bare
    bare = replace(bare, stored=number)
    if own is None or math.isnan(number):
        return bare
    bare = replace(bare, difference=own - number)
    if abs(own - number) <= tolerance:
        return replace(bare, verdict="equal")
    decimals = len(str(value).partition(".")[2])
    if decimals and "e" not in str(value).lower() and round(own, decimals) == number:
        why = f"{bare.why}; equal when rounded to {decimals} decimals"
        return replace(bare, verdict="equal", why=why)
    return bare


def joined(
    found: Verification, stored: Mapping[str, Any], known: Sequence[Comparison]
) -> Verification:
    """A verification with the mapped keys, and with every unknown key by itself.

    Args:
        found: of the keys that are not mapped.
        stored: those keys.
        known: the comparisons of mapped keys.
    """
    unknown = [own.path for own in found.comparisons if own.verdict == "unknown key"]
    below = {
        path: value
        for path, value in leaves(stored)
        if any(f"{path}.".startswith((f"{own}.", f"{own}[")) for own in unknown)
    }
    others = [own for own in found.comparisons if own.verdict != "unknown key"]
    expanded = [
        Comparison(
            path=path,
            kind="figure",
            stored=value if isinstance(value, int | float) else str(value),
            verdict="unknown key",
        )
        for path, value in below.items()
    ]
    # blocks that siftlog's layout has are not missing in a summary of another layout
    is_foreign = bool(known) and not others
    return Verification(
        comparisons=(*known, *others, *expanded),
        contradictions=() if is_foreign else found.contradictions,
    )


def unknown_keys(
    found: Verification, metrics: Mapping[str, Metric]
) -> tuple[tuple[Comparison, ...], tuple[Finding, ...]]:
    """The comparisons with the nearest metric of each unknown key, and the findings.

    A key that entries of a list share is one finding.
    """
    near: dict[str, str] = {}
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    comparisons = []
    for own in found.comparisons:
        if own.verdict != "unknown key":
            comparisons.append(own)
            continue
        key = _PLACE.sub("[]", own.path)
        if key not in near:
            near[key] = _near(key, metrics)
            first[key] = own.path
        counts[key] = counts.get(key, 0) + 1
        why = f"nearest of ours: {near[key]}" if near[key] else ""
        comparisons.append(replace(own, why=why))
    findings = (
        Finding(
            code="unknown_key",
            severity="warn",
            where="against",
            message=f"The key {key} is not known and was not compared; "
            + (
                f"the nearest metrics are {near[key]} (--map {first[key]}=METRIC)."
                if near[key]
                else f"no metric is near (--map {first[key]}=METRIC)."
            ),
            n=n,
            example=first[key],
        )
        for key, n in counts.items()
    )
    return tuple(comparisons), tuple(findings)


def _near(key: str, metrics: Mapping[str, Metric]) -> str:
    return near_words(key.rpartition(".")[2], metrics) or near_words(key, metrics)
