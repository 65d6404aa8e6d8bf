"""Scores a run that read a review's text: files, metrics and a summary.

Where there is truth made by hand, the extraction is scored against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from jobs.metrics import MatchCounts, prf, ratio, string_ratio
from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.extraction.checks import FLAG_MEANINGS
from jobs.review_benchmark.extraction.result import (
    ReviewExtraction,
    excluded_table,
    extract_review,
    files,
)
from jobs.review_benchmark.extraction.review_text import ExtractionInputs
from jobs.review_benchmark.inputs import MATCHING
from jobs.review_benchmark.lookup import RecordListPool
from jobs.review_benchmark.matching import (
    MatchingRules,
    Normaliser,
    lookup_keys,
    match_papers,
    pmid_of,
)
from jobs.review_benchmark.measures import EXTRACTION
from jobs.review_benchmark.settings import INPUTS
from jobs.text import clip, one_line, plural, slugs
from runner.job import Answer, Answers
from runner.scorecard import Finding, Metric, Scorecard

FIELDS = ("title", "question", "conclusion")
"""Fields of a review that are compared as texts."""


def found(
    papers: Sequence[TruthPaper], among: Sequence[TruthPaper], rules: MatchingRules
) -> tuple[TruthPaper | None, ...]:
    """The paper among others that each one matches, by the rules of a run."""
    pool = RecordListPool.of(
        (
            AgentRecord(
                document=str(place), pmid=own.pmid, doi=own.doi, title=own.title
            )
            for place, own in enumerate(among)
        ),
        rules.normal,
        cutoff=rules.title_cutoff,
        autojunk=rules.autojunk,
    )
    sought = [lookup_keys(own, rules.normal) for own in papers]
    hits = match_papers(sought, [pool] * len(sought), rules, range(len(among))).hits
    return tuple(None if hit is None else among[hit.place] for hit in hits)


def against_metrics(
    own: ReviewExtraction, truth: Review, rules: MatchingRules
) -> Iterator[Metric]:
    """Recall and precision of studies, accuracy of identifiers, likeness of texts."""
    papers = [each.paper for each in own.included.kept]
    pairs = [
        (each, hit)
        for each, hit in zip(
            truth.studies, found(truth.studies, papers, rules), strict=True
        )
        if hit is not None
    ]
    hits, n = len(pairs), len(truth.studies)
    yield Metric(
        path="studies.recall",
        value=prf(MatchCounts(tp=hits, fp=0, fn=n - hits)).recall,
        n=n,
        definition="recall@1(truth papers that were extracted; matching as a run's)",
    )
    missed = sum(hit is None for hit in found(papers, truth.studies, rules))
    yield Metric(
        path="studies.precision",
        value=prf(MatchCounts(tp=len(papers) - missed, fp=missed, fn=0)).precision,
        n=len(papers),
        definition="precision@1(extracted papers that match a truth paper)",
    )
    normal = Normaliser()
    values = {
        "pmid": [(pmid_of(a.pmid), pmid_of(b.pmid)) for a, b in pairs],
        "doi": [(normal.doi(a.doi), normal.doi(b.doi)) for a, b in pairs],
    }
    for name, ids in values.items():
        given = [pair for pair in ids if pair[0]]
        equal = sum(first == second for first, second in given)
        yield Metric(
            path=f"identifiers.{name}",
            value=ratio(equal, len(given)),
            n=len(given),
            definition=f"accuracy@1({name} of matched papers whose truth has one)",
        )
    review = own.review
    for name in FIELDS:
        wanted = normal.title(getattr(truth, name))
        read = "" if review is None else normal.title(getattr(review, name))
        yield Metric(
            path=f"similarity.{name}",
            value=string_ratio(wanted, read) if wanted else None,
            n=1,
            definition="string_ratio@1(Indel; lower case, without marks)",
        )


SHOWN = 20
"""Flags that are listed; all of them stand in extraction_{id}.json."""

WIDTH = 60
"""Cells of what a flag is about."""


def extraction_text(
    own: ReviewExtraction, extract: ExtractionInputs, compared: Sequence[Metric] = ()
) -> str:
    """What a terminal shows of one model's extraction, and how it stands to truth."""
    values = (
        f"  {each.path:24} {'n/a' if each.value is None else f'{each.value:.4f}'}"
        f"  (n {each.n})"
        for each in compared
    )
    against = ("Against the truth:", *values) if compared else ()
    return "\n".join((*_lines(own, extract), *against))


def _lines(own: ReviewExtraction, extract: ExtractionInputs) -> Iterator[str]:
    meta, included = own.recorded.meta, own.included
    document = extract.document
    status = own.status(accept=extract.settings.accept)
    yield f"Extraction: {status.upper()}"
    yield f"Source: {document.name}, {plural(len(document.starts), 'page')}"
    yield f"Model: {one_line(own.model)}"
    yield f"Cochrane ID: {one_line(meta.id) or 'not found'}"
    yield f"Title: {one_line(meta.title) or 'not found'}"
    stated = "" if own.stated is None else f" (abstract: {own.stated})"
    yield (
        f"Included: {plural(len(included.kept), 'reference')} of "
        f"{plural(own.studies, 'study', 'studies')}{stated}; "
        f"{len(included.dropped)} dropped, {included.repeated} repeated"
    )
    if extract.settings.with_excluded:
        listed = sum(bool(each.paper.pmid) for each in own.excluded.kept)
        yield (
            f"Excluded: {plural(len(own.excluded.kept), 'reference')}, {listed} with "
            "the PMID that a table for screening needs"
        )
    if own.placed:
        yield f"Sections without a heading, found by the model: {', '.join(own.placed)}"
    if own.flags:
        yield f"To look at: {len(own.flags)}"
    for flag in own.flags[:SHOWN]:
        detail = f" ({clip(flag.detail, WIDTH)})" if flag.detail else ""
        yield f"  - {clip(flag.where, WIDTH)}: {FLAG_MEANINGS[flag.code]}{detail}"
    if len(own.flags) > SHOWN:
        yield f"  - and {len(own.flags) - SHOWN} more"


HEADLINE: Final = "references.grounded"

SETTINGS: Final = frozenset(
    {"with_excluded", "accept", "chunk_references", *MATCHING} - {"precision"}
)
"""Settings that an extraction depends on."""


def score(extract: ExtractionInputs, answers: Answers) -> Scorecard:
    """All metrics and files of an extraction; pure."""
    by_model: dict[str, list[Answer]] = {model: [] for model in answers.models}
    for answer in chain.from_iterable(answers.families()):
        by_model[answer.task.model].append(answer)
    found = [extract_review(extract, model, own) for model, own in by_model.items()]
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


def _metrics(own: ReviewExtraction, extract: ExtractionInputs) -> Iterator[Metric]:
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


def _compared(own: ReviewExtraction, extract: ExtractionInputs) -> tuple[Metric, ...]:
    """How it stands to the truth of the same review, where there is one."""
    return tuple(
        metric
        for truth in extract.against
        if truth.id == own.recorded.meta.id
        for metric in against_metrics(own, truth, extract.settings.rules)
    )


def _findings(own: ReviewExtraction, extract: ExtractionInputs) -> Iterator[Finding]:
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
    for code, meaning in FLAG_MEANINGS.items():
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


def _failure(own: ReviewExtraction, extract: ExtractionInputs) -> str:
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


def _file_name(own: ReviewExtraction) -> str:
    """The review's id, which the text gave, as a file name."""
    review = own.recorded.meta.id or "unknown"
    return slugs([review])[review]
