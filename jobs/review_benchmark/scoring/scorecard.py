"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.gathering import sheet_of
from jobs.review_benchmark.measuring.metrics import column
from jobs.review_benchmark.settings import INPUTS
from jobs.review_benchmark.summary.terminal import run_text
from runner.job import Answers
from runner.scorecard import Scorecard

HEADLINE = "macro.recall"


def score(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run; pure."""
    sheet = sheet_of(dataset, answers)
    columns = [
        column(
            model,
            [own for own in sheet.rebuilt if own.model == model],
            dataset.settings,
        )
        for model in sheet.models
    ]
    return Scorecard(
        models={own.model: own.metrics for own in columns},
        summary=run_text(columns, dataset.settings),
        headline=HEADLINE,
        findings=(*dataset.findings, *sheet.findings),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=sheet.missing,
        stale=sheet.stale,
    )
