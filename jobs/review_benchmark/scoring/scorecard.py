"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.gathering import sheet_of
from jobs.review_benchmark.measuring.metrics import column
from jobs.review_benchmark.settings import INPUTS
from jobs.review_benchmark.summary.terminal import run_text
from jobs.review_benchmark.summary.verdicts import verdict_text
from jobs.review_benchmark.verdicts.findings import findings, not_available
from jobs.review_benchmark.verdicts.measured import measured
from jobs.review_benchmark.verdicts.metrics import metrics
from jobs.review_benchmark.verdicts.tables import tables
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
    verdicts = measured(dataset, sheet)
    of_verdicts = {own.model: tuple(metrics(own, dataset.settings)) for own in verdicts}
    return Scorecard(
        models={
            own.model: (*own.metrics, *of_verdicts.get(own.model, ()))
            for own in columns
        },
        summary="\n".join(
            [run_text(columns, dataset.settings), *verdict_text(verdicts)]
        ),
        headline=HEADLINE,
        tables=tuple(tables(verdicts, sheet.reviews)) if verdicts else (),
        findings=(*dataset.findings, *sheet.findings, *findings(dataset, verdicts)),
        not_available=tuple(not_available(verdicts)),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=sheet.missing,
        stale=sheet.stale,
    )
