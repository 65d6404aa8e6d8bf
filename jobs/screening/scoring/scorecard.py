"""Scores a run: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from jobs.measures import add_baselines
from jobs.screening.artifacts.long import LongFiles
from jobs.screening.artifacts.tables import short_tables
from jobs.screening.dataset import Dataset
from jobs.screening.figures import Gallery
from jobs.screening.gathering.gathering import sheet_of
from jobs.screening.gathering.records import screened
from jobs.screening.measures import MEASURES
from jobs.screening.measuring.pairs import pairs
from jobs.screening.measuring.results import Column, Results, measured
from jobs.screening.measuring.trivial import trivial
from jobs.screening.scoring.comparable import comparable, labels
from jobs.screening.scoring.verdicts import Verdicts
from jobs.screening.settings import INPUTS
from jobs.screening.summary.terminal import run_text
from runner.job import Answers
from runner.scorecard import Detail, Finding, Scorecard, Verdict

HEADLINE = "all.micro.sensitivity"


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
    found = screened(dataset, answers)
    sheet = sheet_of(dataset, answers, found)
    results = measured(dataset, sheet)
    comparables = {model: comparable(own) for model, own in results.columns.items()}
    views = {model: own.view for model, own in results.columns.items()}
    results = replace(results, pairs=pairs(views, comparables, dataset.settings))
    files = LongFiles(results)
    findings = (
        *_of_inputs(dataset, answers),
        *sheet.findings,
        *results.findings,
    )
    card = Scorecard(
        models={
            model: MEASURES.describe(own.metrics)
            for model, own in results.columns.items()
        },
        summary=run_text(results, findings),
        headline=HEADLINE,
        worth_explaining=_missed_first(results),
        tables=tuple(map(MEASURES.titled, (*short_tables(results), *files.tables()))),
        findings=findings,
        figures=Gallery(results),
        details=_Details(files=files, verdicts=Verdicts(found=found, answers=answers)),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS, "records"}),
        not_available=tuple(_not_available(results)),
        missing=sheet.missing,
        stale=sheet.stale,
        comparable=comparables,
        labelled={
            model: partial(labels, own) for model, own in results.columns.items()
        },
        units={model: _units(results.columns[model]) for model in sheet.models},
    )
    baselines = {model: [*trivial(own)] for model, own in results.columns.items()}
    return add_baselines(card, baselines, MEASURES)


def _of_inputs(dataset: Dataset, answers: Answers) -> tuple[Finding, ...]:
    """What the inputs brought to light; who decided elsewhere was told nothing here."""
    if not answers.imported:
        return dataset.findings
    drawn = dataset.validation_set
    return () if drawn is None else drawn.findings


def _missed_first(results: Results) -> str:
    """The review in which the first model misses the most; empty where none is lost."""
    for column in results.columns.values():
        lost = column.strata["all"].counts.decided.fn
        return results.sheet.records.reviews[int(lost.argmax())] if lost.any() else ""
    return ""


def _units(column: Column) -> Mapping[str, int]:
    """What a model's cost is told by: who saves reading, excludes rightly."""
    found = column.strata["all"].counts
    return {
        "record": int(found.records.sum()),
        "correctly excluded record": int(found.decided.tn.sum()),
    }


def _not_available(results: Results) -> Iterator[str]:
    kinds = results.sheet.records.kinds
    if "near-miss" not in kinds:
        yield "kinds compared: the records have no near misses"
    elif "true-excluded" not in kinds:
        yield "implied contamination: the set has no true exclusions"
    if results.dataset.settings.ensemble and len(results.sheet.models) == 1:
        yield "ensembles: there is one model only"
    if all(column.reasons is None for column in results.columns.values()):
        yield "reason agreement: no true exclusion has a coded reason"
