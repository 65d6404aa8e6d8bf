"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from jobs.measures import add_baselines
from jobs.review_benchmark.artifacts.benchmark_json import result_files
from jobs.review_benchmark.artifacts.documents import documents
from jobs.review_benchmark.artifacts.long import LongFiles
from jobs.review_benchmark.artifacts.tables import short_tables
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.figures import Gallery
from jobs.review_benchmark.gathering.gathering import sheet_of
from jobs.review_benchmark.history.kept import kept
from jobs.review_benchmark.history.lines import history_csv
from jobs.review_benchmark.measures import MEASURES
from jobs.review_benchmark.measuring.pairs import pairs
from jobs.review_benchmark.measuring.results import Results, measured
from jobs.review_benchmark.measuring.trivial import trivial
from jobs.review_benchmark.scoring.comparable import comparable
from jobs.review_benchmark.scoring.verdicts import TaskVerdicts
from jobs.review_benchmark.settings import INPUTS
from jobs.review_benchmark.summary.terminal import MOST_REVIEWS, run_text
from jobs.review_benchmark.verdicts.findings import findings, not_available
from jobs.review_benchmark.verdicts.measured import measured as compared
from jobs.review_benchmark.verdicts.metrics import metrics
from jobs.review_benchmark.verdicts.tables import VerdictFiles
from runner.job import Answers
from runner.scorecard import Detail, Scorecard, Verdict

HEADLINE = "macro.recall"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """Everything with a line of its own, made while it is written."""

    files: LongFiles
    conclusions: VerdictFiles
    verdicts: Iterable[Verdict]

    def __iter__(self) -> Iterator[Detail]:
        yield from self.verdicts
        yield from self.files
        yield from self.conclusions


def score(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run; pure."""
    sheet = sheet_of(dataset, answers)
    results = measured(dataset, sheet)
    columns = results.columns
    comparables = {model: comparable(results, own) for model, own in columns.items()}
    results = replace(results, pairs=pairs(columns, comparables, dataset.settings))
    concluded = compared(dataset, sheet)
    verdicts = {own.model: tuple(metrics(own, dataset.settings)) for own in concluded}
    models = {
        model: MEASURES.describe((*own.metrics, *verdicts.get(model, ())))
        for model, own in columns.items()
    }
    noticed = (*results.findings, *findings(dataset, concluded))
    files = LongFiles(results)
    remembered = kept(results, concluded)
    conclusions = VerdictFiles(concluded, sheet.reviews)
    summary = run_text(results, concluded, noticed, MOST_REVIEWS)
    card = Scorecard(
        models=models,
        summary=summary,
        headline=HEADLINE,
        worth_explaining=_worst(results),
        tables=(
            *short_tables(results),
            *files.tables(),
            *conclusions.tables(),
        ),
        findings=noticed,
        artifacts=(
            *documents(results, models, run_text(results, concluded, noticed)),
            *result_files(results, concluded),
            history_csv(remembered.milestone),
        ),
        figures=Gallery(results, concluded),
        details=_Details(
            files=files,
            conclusions=conclusions,
            verdicts=TaskVerdicts(results=results, answers=answers),
        ),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        not_available=(*_not_available(results), *not_available(concluded)),
        missing=sheet.missing,
        stale=sheet.stale,
        comparable=comparables,
        kept=remembered,
    )
    baselines = {model: [*trivial(own)] for model, own in columns.items()}
    return add_baselines(card, baselines, MEASURES)


def _worst(results: Results) -> str:
    """Where the first model that loses any study loses the most; empty: none does."""
    for own in results.columns.values():
        lost = {review: len(own.lost(review)) for review in own.rebuilt}
        worst = max(lost, key=lambda review: lost[review], default="")
        if lost.get(worst):
            return worst
    return ""


def _not_available(results: Results) -> Iterator[str]:
    if results.sheet.imported:
        yield "recall by rank: imported results do not say how papers ranked"
    if not any(own.overall for own in results.columns.values()):
        yield "recall by threshold: no paper has a score"
