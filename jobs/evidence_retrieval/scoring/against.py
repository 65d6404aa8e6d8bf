"""Stored results (`--against`) beside the rows that a scoring writes.

What is verified is what lies on disk afterwards: the rows are those of `per_query.csv`
and `per_query_lists.csv`, cell by cell, and nothing that scoring has in hand besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from jobs.evidence_retrieval.artifacts.columns import PER_QUERY, per_query, rows
from jobs.evidence_retrieval.artifacts.long import SEPARATOR
from jobs.evidence_retrieval.importing.forms import stored_pairs
from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.results import ModelResults, Results
from jobs.evidence_retrieval.scoring.foreign import (
    compared,
    joined,
    mapped_paths,
    unknown_keys,
    without,
)
from jobs.evidence_retrieval.verification.choices import choices_of
from jobs.evidence_retrieval.verification.verdicts import verify
from jobs.evidence_retrieval.verification.verification import COLUMNS, Verification
from runner.scorecard import Cell, Finding, Scorecard, Table


def checked(
    card: Scorecard, results: Results, stored: Mapping[str, Any] | None
) -> Scorecard:
    """The scorecard with what became of each stored number; as it is without them.

    A summary is of one model: the one that it names, or else the first of the run.
    """
    if stored is None or not results.models:
        return card
    own = _model(results.models, stored)
    model = own.block.prediction.model
    metrics = {metric.path: metric for metric in reversed(card.models[model])}
    paths = mapped_paths(stored, stored_pairs(results.settings), metrics)
    rest = without(stored, paths)
    tolerance = results.settings.tolerance
    found = joined(
        verified(own.block, rest, results),
        rest,
        tuple(compared(stored, paths, metrics, tolerance)),
    )
    comparisons, unknown = unknown_keys(found, metrics)
    found = replace(found, comparisons=comparisons)
    table = Table(
        name="verification",
        columns=COLUMNS,
        rows=tuple(each.cells for each in found.comparisons),
        caption=f"Stored results recomputed from the rows of {model}: {found.summary}.",
    )
    return replace(
        card,
        summary=f"{card.summary}\nstored results  {found.summary}",
        tables=(*card.tables, table),
        findings=(*card.findings, *_findings(found), *unknown),
        failures=(*card.failures, *found.failures),
    )


def _model(
    models: Mapping[str, ModelResults], stored: Mapping[str, Any]
) -> ModelResults:
    config = stored.get("config")
    named = config.get("model") if isinstance(config, Mapping) else None
    return models.get(str(named)) or next(iter(models.values()))


def verified(block: Block, stored: Mapping[str, Any], results: Results) -> Verification:
    """What became of each stored number, under the definitions that were scored by."""
    return verify(
        written(block),
        stored,
        choices=choices_of(results.settings),
        ranking=block.prediction.final,
        tolerance=results.settings.tolerance,
    )


def written(block: Block) -> Iterator[dict[str, str]]:
    """A query's cells of both per-query files, as they are read back."""
    for i, cells in enumerate(rows(per_query(block))):
        row = dict(zip(PER_QUERY, map(_text, cells), strict=True))
        for step, lists in block.prediction.lists.items():
            row[f"{step}_topk"] = SEPARATOR.join(lists[i])
        yield row


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _findings(found: Verification) -> Iterator[Finding]:
    for sentence in found.failures:
        yield Finding(
            code="not_verified",
            severity="error",
            where="against",
            message=sentence,
        )
