"""Scores a sheet: everything measured, as metrics, tables, files and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from jobs.evidence_retrieval.artifacts.checks import checks_table
from jobs.evidence_retrieval.artifacts.documents import documents
from jobs.evidence_retrieval.artifacts.long import LongFiles
from jobs.evidence_retrieval.artifacts.naming import Places
from jobs.evidence_retrieval.artifacts.summary_json import summary_json
from jobs.evidence_retrieval.artifacts.tables import short_tables
from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.figures import Gallery
from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.measuring.results import Results, measured
from jobs.evidence_retrieval.measuring.trivial import trivial
from jobs.evidence_retrieval.queries import Sheet
from jobs.evidence_retrieval.scoring.against import checked
from jobs.evidence_retrieval.scoring.comparable import comparable, labels
from jobs.evidence_retrieval.scoring.verdicts import Verdicts
from jobs.evidence_retrieval.settings import INPUTS
from jobs.evidence_retrieval.sheet import sheet_of
from jobs.evidence_retrieval.summary.terminal import run_text
from jobs.measures import add_baselines
from runner.job import Answers
from runner.scorecard import Artifact, Detail, Scorecard, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """Everything with a line of its own, made while it is written."""

    files: LongFiles
    verdicts: Iterable[Verdict]

    def __iter__(self) -> Iterator[Detail]:
        yield from self.verdicts
        yield from self.files


def score_run(dataset: Dataset, answers: Answers) -> Scorecard:
    """Scores the answers of a run, with a verdict for each task."""
    sheet = sheet_of(dataset, answers)
    return score(
        dataset, sheet, Verdicts(dataset=dataset, answers=answers, sheet=sheet)
    )


def score(
    dataset: Dataset, sheet: Sheet, verdicts: Iterable[Verdict] = ()
) -> Scorecard:
    """All metrics, tables and artifacts of a sheet, with *verdicts* by task; pure."""
    settings = dataset.settings
    results = measured(sheet, settings)
    models = {model: results.metrics(model) for model in results.models}
    tables = tuple(short_tables(results))
    contradictions = check(sheet, settings, models, tables)
    findings = (
        *dataset.findings,
        *sheet.findings,
        *sheet.leakage,
        *contradictions,
    )
    places = Places(tuple(models))
    long_files = LongFiles(results)
    card = Scorecard(
        models=models,
        summary=run_text(results, findings),
        headline=_headline(results),
        worth_explaining=_worst(results),
        tables=tuple(
            map(
                MEASURES.titled,
                (
                    *tables,
                    checks_table(sheet, contradictions),
                    *long_files.tables(),
                ),
            )
        ),
        findings=findings,
        artifacts=(
            *documents(sheet, (*sheet.findings, *contradictions), places),
            *(
                Artifact(
                    name=places.one(model, "summary.json"),
                    text=summary_json(own, sheet, settings),
                )
                for model, own in results.models.items()
            ),
            *long_files.artifacts(),
        ),
        figures=Gallery(results),
        details=_Details(files=long_files, verdicts=verdicts),
        not_available=_not_available(results),
        settings=settings.model_dump(mode="json", exclude=set(INPUTS)),
        missing=sheet.missing,
        stale=sheet.stale,
        comparable={model: comparable(own) for model, own in results.models.items()},
        labelled={model: partial(labels, own) for model, own in results.models.items()},
    )
    checks = checked(card, results, dataset.stored)
    own = {model: [*trivial(each)] for model, each in results.models.items()}
    return add_baselines(checks, own, MEASURES)


def _headline(results: Results) -> str:
    """The area of the gate, or where there is none how well the final list is ordered.

    The first of them that the first model has; empty where it has none.
    """
    for own in results.models.values():
        known = own.by_path()
        final = own.block.prediction.final
        paths = ("auroc", "ndcg@10", f"{final}.ndcg@10")
        return next((path for path in paths if path in known), "")
    return ""


def _not_available(results: Results) -> tuple[str, ...]:
    """What no model has is said once."""
    parts = {m: own.not_available for m, own in results.models.items()}
    every = dict.fromkeys(part for own in parts.values() for part in own)
    shared = [part for part in every if all(part in own for own in parts.values())]
    own = [f"{m}: {p}" for m, found in parts.items() for p in found if p not in shared]
    return (*shared, *own)


def _worst(results: Results) -> str:
    """A query with evidence that the first model with a list found the least of."""
    for own in results.models.values():
        final = own.block.final
        if final is not None and len(final.rows):
            found = final.values["mrr"]
            return own.block.queries.key(int(final.rows[int(found.argmin())]))
    return ""
