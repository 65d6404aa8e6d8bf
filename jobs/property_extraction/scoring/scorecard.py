"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from functools import partial

from jobs.property_extraction.artifacts.candidates import (
    candidate_tables,
    draft_maps,
)
from jobs.property_extraction.artifacts.naming import Folders
from jobs.property_extraction.artifacts.rows import LongFiles
from jobs.property_extraction.artifacts.tables import short_tables
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.differing import bookable
from jobs.property_extraction.gathering.gathering import sheet_of
from jobs.property_extraction.measuring.results import measured
from jobs.property_extraction.scoring.comparable import comparable
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.summary.terminal import run_text
from runner.job import Answers
from runner.scorecard import Scorecard

HEADLINE = "f1"


def score(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run; pure."""
    sheet = sheet_of(dataset, answers)
    results = measured(dataset, sheet)
    folders = Folders(results.columns)
    files = LongFiles(results, folders)
    return Scorecard(
        models={model: own.metrics for model, own in results.columns.items()},
        summary=run_text(results),
        headline=HEADLINE,
        tables=(
            *short_tables(results, folders),
            *candidate_tables(results, folders),
            *files.tables(),
        ),
        findings=dataset.findings,
        artifacts=tuple(draft_maps(results, folders)),
        details=files,
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=sheet.missing,
        stale=sheet.stale,
        comparable={model: comparable(own) for model, own in results.columns.items()},
        bookable={
            model: partial(bookable, own.first.fates)
            for model, own in results.columns.items()
        },
        units={
            model: {"TP": own.first.counts.by_paper().totals()[0]}
            for model, own in results.columns.items()
        },
    )
