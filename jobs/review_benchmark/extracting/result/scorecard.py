"""Scores a run that read a review: its files, and how much of it stands in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from jobs.metrics import ratio
from jobs.review_benchmark.extracting.checking.flags import MEANINGS
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.extracting.result.against import against_metrics
from jobs.review_benchmark.extracting.result.extraction import Extraction, extraction
from jobs.review_benchmark.extracting.result.files import excluded_table, files
from jobs.review_benchmark.extracting.result.summary import extraction_text
from jobs.review_benchmark.identity import MATCHING
from jobs.review_benchmark.measures import EXTRACTION
from jobs.review_benchmark.settings import INPUTS
from jobs.text import plural, slugs
from runner.job import Answer, Answers
from runner.scorecard import Finding, Metric, Scorecard

HEADLINE: Final = "references.grounded"

SETTINGS: Final = frozenset(
    {"with_excluded", "accept", "chunk_references", *MATCHING} - {"precision"}
)
"""Settings that an extraction depends on."""


def score(extract: Extract, answers: Answers) -> Scorecard:
    """All metrics and files of an extraction; pure."""
    by_model: dict[str, list[Answer]] = {model: [] for model in answers.models}
    for answer in chain.from_iterable(answers.families()):
        by_model[answer.task.model].append(answer)
    found = [extraction(extract, model, own) for model, own in by_model.items()]
    folders = _folders(list(by_model))
    written = [
        replace(each, name=f"{folders[own.model]}{each.name}")
        for own in found
        for each in files(own, extract, _file_name(own))
    ]
    tables = [
        excluded_table(own, _file_name(own), folders[own.model])
        for own in found
        if extract.settings.with_excluded
    ]
    settings = extract.settings.model_dump(mode="json", exclude={*INPUTS})
    return Scorecard(
        models={
            own.model: EXTRACTION.describe(_metrics(own, extract)) for own in found
        },
        summary="\n\n".join(
            extraction_text(own, extract, _compared(own, extract)) for own in found
        ),
        headline=HEADLINE,
        findings=(
            *extract.findings,
            *(each for own in found for each in _findings(own, extract)),
        ),
        failures=tuple(
            sentence for own in found if (sentence := _failure(own, extract))
        ),
        tables=tuple(tables),
        artifacts=tuple(written),
        built=(
            *(each.name for each in written),
            *(f"{each.name}.csv" for each in tables),
        ),
        settings={name: settings[name] for name in settings if name in SETTINGS},
        missing=sum(own.missing for own in found),
        stale=sum(own.stale for own in found),
    )


def _metrics(own: Extraction, extract: Extract) -> Iterator[Metric]:
    kept, dropped = len(own.included.kept), len(own.included.dropped)
    total = kept + dropped
    yield Metric(
        path=HEADLINE,
        value=ratio(kept, total),
        n=total,
        definition="grounded@1(kept / (kept + dropped), repeated ones once)",
    )
    numbers: Mapping[str, int | None] = {
        "references": kept,
        "references_dropped": dropped,
        "references_repeated": own.included.repeated,
        "studies": own.studies,
        "studies_in_abstract": own.stated,
        "flags": len(own.flags),
        "sections_placed": len(own.placed),
        "excluded": len(own.excluded.kept),
    }
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=total, definition=f"count@1({name})"
        )
    yield from _compared(own, extract)


def _compared(own: Extraction, extract: Extract) -> tuple[Metric, ...]:
    """How it stands to the truth of the same review, where there is one."""
    return tuple(
        metric
        for truth in extract.against
        if truth.id == own.recorded.meta.id
        for metric in against_metrics(own, truth, extract.settings.rules)
    )


def _findings(own: Extraction, extract: Extract) -> Iterator[Finding]:
    """One a kind of flag, and truth that is of other reviews."""
    review = own.recorded.meta.id
    if extract.against and all(truth.id != review for truth in extract.against):
        yield Finding(
            code="no_truth",
            severity="warn",
            where="against",
            message="The truth to score by has no such review.",
            example=review,
        )
    for code, meaning in MEANINGS.items():
        flags = [flag for flag in own.flags if flag.code == code]
        if flags:
            yield Finding(
                code=code,
                severity="warn",
                where=own.model,
                message=f"{meaning[0].upper()}{meaning[1:]}.",
                n=len(flags),
                example=flags[0].where,
            )


def _failure(own: Extraction, extract: Extract) -> str:
    """Why no truth file is written, where none is."""
    name = _file_name(own)
    match own.status(accept=extract.settings.accept):
        case "incomplete":
            lacking = [flag.where for flag in own.flags if flag.code == "missing"]
            return (
                f"{extract.document.name}: cochrane_{name}.json cannot be written, "
                f"since {', '.join(lacking)} could not be read (extraction_{name}.json "
                "says why)."
            )
        case "needs review":
            return (
                f"{extract.document.name}: cochrane_{name}.json was not written, since "
                f"{plural(len(own.flags), 'thing')} should be looked at "
                f"(extraction_{name}.json); siftlog score RUN --accept --output-dir "
                "DIR writes it nevertheless."
            )
        case "accepted":
            return ""


def _folders(models: Sequence[str]) -> dict[str, str]:
    """Where the files of each model go: of several, each has a folder of its own."""
    if len(models) == 1:
        return dict.fromkeys(models, "")
    return {model: f"{slug}/" for model, slug in slugs(models).items()}


def _file_name(own: Extraction) -> str:
    """The review's id, which the text gave, as a file name."""
    review = own.recorded.meta.id or "unknown"
    return slugs([review])[review]
