"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from jobs.measures import add_baselines
from jobs.property_extraction.artifacts.alias_diff import alias_tables
from jobs.property_extraction.artifacts.candidates import candidate_tables, draft_maps
from jobs.property_extraction.artifacts.lint import lint_table
from jobs.property_extraction.artifacts.naming import Folders
from jobs.property_extraction.artifacts.report_text import report
from jobs.property_extraction.artifacts.rows import LongFiles
from jobs.property_extraction.artifacts.tables import short_tables
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.differing import bookable
from jobs.property_extraction.figures import Gallery
from jobs.property_extraction.gathering.gathering import sheet_of
from jobs.property_extraction.measures import MEASURES
from jobs.property_extraction.measuring.left_out import LeftOut
from jobs.property_extraction.measuring.limits import findings
from jobs.property_extraction.measuring.results import Results, measured
from jobs.property_extraction.measuring.trivial import trivial
from jobs.property_extraction.scoring.comparable import comparable
from jobs.property_extraction.scoring.verdicts import Verdicts
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.summary.terminal import run_text
from runner.job import Answers
from runner.scorecard import Detail, Scorecard, Verdict

HEADLINE = "f1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """Everything with a line of its own, made while it is written."""

    files: LongFiles
    verdicts: Iterable[Verdict]

    def __iter__(self) -> Iterator[Detail]:
        yield from self.verdicts
        yield from self.files


def score(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run; pure."""
    sheet = sheet_of(dataset, answers)
    results = measured(dataset, sheet)
    folders = Folders(results.columns)
    files = LongFiles(results, folders)
    lacking = LeftOut.of(results).note
    found = (*dataset.findings, *findings(results))
    card = Scorecard(
        models={
            model: MEASURES.describe(own.metrics)
            for model, own in results.columns.items()
        },
        summary=run_text(results, found),
        headline=HEADLINE,
        worth_explaining=_missed_most(results),
        tables=(
            *short_tables(results, folders),
            *candidate_tables(results, folders),
            *alias_tables(results, folders),
            lint_table(results),
            *files.tables(),
        ),
        findings=found,
        artifacts=(
            report(results),
            *draft_maps(results, folders),
        ),
        figures=Gallery(results),
        details=_Details(
            files=files, verdicts=Verdicts(results=results, answers=answers)
        ),
        not_available=tuple(_not_available(results)),
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
    frequent = [*trivial(results)]
    card = add_baselines(card, dict.fromkeys(results.columns, frequent), MEASURES)
    return replace(
        card,
        tables=tuple(
            replace(table, caption=table.caption + lacking) for table in card.tables
        ),
    )


def _missed_most(results: Results) -> str:
    """The paper in which the first model misses most; empty where nothing is lost."""
    for column in results.columns.values():
        missed = column.first.counts.by_paper().fn
        return column.first.counts.papers[int(missed.argmax())] if missed.any() else ""
    return ""


def _not_available(results: Results) -> Iterator[str]:
    if not len(results.dataset.papers):
        yield "fabricated quotes, values in the text: no papers are named (--papers)"
    if not results.dataset.rubric.properties:
        yield "units, numbers and categories: no rubric is named, all is exact"
