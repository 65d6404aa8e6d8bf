"""Compares stored results (`--against`) with the rows that a scoring writes.

The rows are the cells of `per_query.csv` and `per_query_lists.csv`, and no other data
of the scoring. A summary of another program has other keys and another layout: `--map
KEY=METRIC` assigns a metric to a key; every other unknown key is reported with the
nearest metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.evidence_retrieval.import_columns import stored_pairs
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.evidence_retrieval.per_query import PER_QUERY, SEPARATOR, query_rows
from jobs.evidence_retrieval.verification.definitions import definitions_of
from jobs.evidence_retrieval.verification.verify import (
    COLUMNS,
    StoredComparison,
    SummaryVerification,
    verify,
)
from jobs.kit.inputs.column_map import ColumnMap, column_map, near_words
from runner.scorecard import Cell, Finding, Metric, Scorecard, Table
from store.document import PageText, blocks_of

_INDEX = re.compile(r"\[[0-9]+\]")
"""Index of a list entry; a key is reported once for all entries."""


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield all values that are no object or list, with paths such as `a.b[0].c`."""
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
    """Return the metric of each mapped path of a summary.

    A key is named by its path, or by its last part if that is unique.

    Raises:
        UsageError: there is no such key or metric.
    """
    if not pairs:
        return {}
    paths = [path for path, _ in leaves(stored)]
    paths_by_name: dict[str, list[str]] = {path: [path] for path in paths}
    for path in paths:
        paths_by_name.setdefault(path.rpartition(".")[2], []).append(path)
    names = {
        name: key_paths[0]
        for name, key_paths in paths_by_name.items()
        if len(set(key_paths)) == 1
    }
    mapped = column_map(pairs, list(metrics), names, unseen="--against has no key")
    return {names[old]: new for old, new in mapped.items()}


def without_paths(value: Any, paths: ColumnMap, path: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return a summary without the values at some *paths*."""
    if not isinstance(value, Mapping):
        return value
    rest = {}
    for key, below in value.items():
        key_path = f"{path}.{key}" if path else str(key)
        if key_path not in paths:
            rest[key] = without_paths(below, paths, key_path)
    return rest


def mapped_comparisons(
    stored: Mapping[str, Any],
    paths: ColumnMap,
    metrics: Mapping[str, Metric],
    tolerance: float,
) -> Iterator[StoredComparison]:
    """Yield each mapped value with its metric."""
    for path, value in leaves(stored):
        if path in paths:
            yield _compared(path, value, metrics[paths[path]], tolerance)


def _compared(
    path: str, value: object, metric: Metric, tolerance: float
) -> StoredComparison:
    recomputed = None if metric.value is None else float(metric.value)
    bare = StoredComparison(
        path=path,
        kind="figure",
        stored=None if value is None else str(value),
        recomputed=recomputed,
        verdict="differs",
        why=f"mapped to {metric.path}",
        meaning=metric.meaning,
    )
    try:
        number = float(str(value))
    except ValueError:
        is_equal = value is None and recomputed is None
        return replace(bare, verdict="equal") if is_equal else bare
    bare = replace(bare, stored=number)
    if recomputed is None or math.isnan(number):
        return bare
    bare = replace(bare, difference=recomputed - number)
    if abs(recomputed - number) <= tolerance:
        return replace(bare, verdict="equal")
    decimals = len(str(value).partition(".")[2])
    if (
        decimals
        and "e" not in str(value).lower()
        and round(recomputed, decimals) == number
    ):
        why = f"{bare.why}; equal when rounded to {decimals} decimals"
        return replace(bare, verdict="equal", why=why)
    return bare


def merged_verification(
    verification: SummaryVerification,
    stored: Mapping[str, Any],
    mapped: Sequence[StoredComparison],
) -> SummaryVerification:
    """Return a verification with the mapped keys, and each unknown key listed.

    Args:
        verification: verification of the unmapped keys.
        stored: those keys.
        mapped: the comparisons of mapped keys.
    """
    unknown = [
        comparison.path
        for comparison in verification.comparisons
        if comparison.verdict == "unknown key"
    ]
    below = {
        path: value
        for path, value in leaves(stored)
        if any(
            f"{path}.".startswith((f"{unknown_path}.", f"{unknown_path}["))
            for unknown_path in unknown
        )
    }
    others = [
        comparison
        for comparison in verification.comparisons
        if comparison.verdict != "unknown key"
    ]
    expanded = [
        StoredComparison(
            path=path,
            kind="figure",
            stored=value if isinstance(value, int | float) else str(value),
            verdict="unknown key",
        )
        for path, value in below.items()
    ]
    # blocks of siftlog's layout are not missing in a summary of another layout
    is_foreign = bool(mapped) and not others
    return SummaryVerification(
        comparisons=(*mapped, *others, *expanded),
        contradictions=() if is_foreign else verification.contradictions,
    )


def unknown_keys(
    verification: SummaryVerification, metrics: Mapping[str, Metric]
) -> tuple[tuple[StoredComparison, ...], tuple[Finding, ...]]:
    """Return the comparisons, with the nearest metric of unknown keys, and findings.

    A key that entries of a list share is one finding.
    """
    near: dict[str, str] = {}
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    comparisons = []
    for comparison in verification.comparisons:
        if comparison.verdict != "unknown key":
            comparisons.append(comparison)
            continue
        key = _INDEX.sub("[]", comparison.path)
        if key not in near:
            near[key] = _near(key, metrics)
            first[key] = comparison.path
        counts[key] = counts.get(key, 0) + 1
        why = f"nearest of ours: {near[key]}" if near[key] else ""
        comparisons.append(replace(comparison, why=why))
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


def with_verification(
    card: Scorecard,
    results: EvidenceResults,
    models: Mapping[str, Sequence[Metric]],
    stored: Mapping[str, Any] | None,
) -> Scorecard:
    """Return the scorecard with the verification of each stored number, if any.

    A summary is of one model: the one that it names, or else the first of the run.

    Args:
        card: without the verification.
        results: compared with the stored numbers.
        models: the metrics of each model.
        stored: the summary, or None.
    """
    if stored is None or not results.models:
        return card
    model_results = _model(results.models, stored)
    model = model_results.block.prediction.model
    metrics = {metric.path: metric for metric in reversed(models[model])}
    paths = mapped_paths(stored, stored_pairs(results.settings), metrics)
    rest = without_paths(stored, paths)
    tolerance = results.settings.tolerance
    verification = merged_verification(
        verification_of(model_results.block, rest, results),
        rest,
        tuple(mapped_comparisons(stored, paths, metrics, tolerance)),
    )
    comparisons, unknown = unknown_keys(verification, metrics)
    verification = replace(verification, comparisons=comparisons)
    table = Table(
        name="verification",
        columns=COLUMNS,
        rows=tuple(comparison.cells for comparison in verification.comparisons),
        caption=(
            f"Stored results recomputed from the rows of {model}: "
            f"{verification.summary}."
        ),
    )
    line = f"stored results  {verification.summary}"
    return replace(
        card,
        summary=PageText(
            f"{card.summary}\n{line}", (*blocks_of(card.summary), "", line)
        ),
        result="\n".join(filter(None, [card.result, line])),
        tables=(*card.tables, table),
        findings=(*card.findings, *_findings(verification), *unknown),
        failures=(*card.failures, *verification.failures),
    )


def _model(
    models: Mapping[str, ModelResults], stored: Mapping[str, Any]
) -> ModelResults:
    config = stored.get("config")
    model_name = config.get("model") if isinstance(config, Mapping) else None
    return models.get(str(model_name)) or next(iter(models.values()))


def verification_of(
    block: JudgedPredictions, stored: Mapping[str, Any], results: EvidenceResults
) -> SummaryVerification:
    """Verify each stored number, under the definitions of the scoring."""
    return verify(
        written_rows(block),
        stored,
        choices=definitions_of(results.settings),
        ranking=block.prediction.final,
        tolerance=results.settings.tolerance,
    )


def written_rows(block: JudgedPredictions) -> Iterator[dict[str, str]]:
    """Yield a query's cells of both per-query files, as they are read back."""
    for row in query_rows(block):
        fields = {name: _text(cell) for name, cell in PER_QUERY.fields(row).items()}
        for step, lists in block.prediction.lists.items():
            fields[f"{step}_topk"] = SEPARATOR.join(lists[row.i])
        yield fields


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _findings(verification: SummaryVerification) -> Iterator[Finding]:
    for sentence in verification.failures:
        yield Finding(
            code="not_verified",
            severity="error",
            where="against",
            message=sentence,
        )
