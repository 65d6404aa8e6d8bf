"""Every check of consistency, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jobs.evidence_retrieval.consistency import (
    rankings,
    selection,
    stated,
    states,
    truth,
)
from jobs.evidence_retrieval.consistency.printed import printed
from jobs.evidence_retrieval.consistency.rule import Rule, View
from jobs.evidence_retrieval.consistency.tables import check_tables
from jobs.evidence_retrieval.queries import Sheet
from jobs.evidence_retrieval.settings import Settings
from runner.scorecard import Finding, Metric, Table

BY_PREDICTION: tuple[Rule[View], ...] = (
    *states.RULES,
    *selection.RULES,
    *stated.RULES,
    *rankings.RULES,
)


OF_ROWS = (
    *(rule.code for rule in truth.RULES),
    *(rule.code for rule in BY_PREDICTION),
)
"""The code of every rule that rows must keep; figures and tables have further ones."""


def check(
    sheet: Sheet,
    settings: Settings,
    metrics: Mapping[str, Sequence[Metric]],
    tables: Sequence[Table] = (),
) -> tuple[Finding, ...]:
    """All contradictions in what is scored and in what was made of it.

    Rows are checked under the headline configuration: the others share its lists and
    its truth.

    Args:
        sheet: what is scored.
        settings: of the job.
        metrics: of each model.
        tables: as they will be written.
    """
    return (
        *_rows(sheet, settings),
        *_figures(sheet, metrics),
        *check_tables(tables, sheet.headline),
    )


def _rows(sheet: Sheet, settings: Settings) -> Iterator[Finding]:
    queries = sheet.queries
    for of_truth in truth.RULES:
        yield from of_truth.findings(queries, queries, "")
    for prediction in sheet.predictions:
        if prediction.config == sheet.headline:
            view = View(queries=queries, prediction=prediction, settings=settings)
            for rule in BY_PREDICTION:
                yield from rule.findings(view, queries, view.name)


def _figures(
    sheet: Sheet, metrics: Mapping[str, Sequence[Metric]]
) -> Iterator[Finding]:
    for model, own in metrics.items():
        for found in printed(own, sheet.queries):
            yield replace(found, where=f"{model} {found.where}")
