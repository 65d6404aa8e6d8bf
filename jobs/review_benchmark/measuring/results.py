"""Everything that was measured of a sheet, before it becomes tables and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.identity import matching_options, truth_hash
from jobs.review_benchmark.measuring.column import Column, column
from jobs.review_benchmark.measuring.drawing import Draws
from jobs.review_benchmark.measuring.findings import findings
from jobs.review_benchmark.measuring.pairs import Pair
from jobs.review_benchmark.rebuilt import Sheet
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A sheet, measured."""

    dataset: Dataset
    sheet: Sheet
    columns: Mapping[str, Column]  #: by model, in the run's order
    truth: Mapping[str, str]  #: hash of what is looked for, by review
    matching: str  #: how papers were matched, in one line
    database: str | None  #: hash of the papers; None of an import
    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...] = ()  #: only a scorecard compares agents


def measured(dataset: Dataset, sheet: Sheet) -> Results:
    """Measure every agent."""
    draws = Draws(settings=dataset.settings)
    reviews = {review.id: review for review in sheet.reviews}
    columns = {
        model: column(
            model,
            [own for own in sheet.rebuilt if own.model == model],
            reviews,
            dataset.settings,
            draws,
        )
        for model in sheet.models
    }
    database = dataset.database
    return Results(
        dataset=dataset,
        sheet=sheet,
        columns=columns,
        truth={review.id: truth_hash(review) for review in sheet.reviews},
        matching=matching_options(dataset.settings),
        database=None if database is None or sheet.imported else database.content_hash,
        findings=(
            *dataset.findings,
            *sheet.findings,
            *findings(columns, sheet, dataset.settings),
        ),
    )
