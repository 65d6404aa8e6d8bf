"""Scores a run that read a review's text: files, metrics and a summary.

Where there is truth made by hand, the extraction is scored against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from jobs.kit.metrics import MatchCounts, prf, ratio, string_ratio
from jobs.kit.text_format import plural, slugs
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
from runner.job import Answer, Answers
from runner.scorecard import Finding, Metric, Scorecard
from store.printable import clip, one_line

FIELDS = ("title", "question", "conclusion")
"""Fields of a review that are compared as texts."""


def matching_papers(
    papers: Sequence[TruthPaper], among: Sequence[TruthPaper], rules: MatchingRules
) -> tuple[TruthPaper | None, ...]:
    """The paper among others that each one matches, by the rules of a run."""
    pool = RecordListPool.of(
        (
            AgentRecord(
                document=str(index), pmid=paper.pmid, doi=paper.doi, title=paper.title
            )
            for index, paper in enumerate(among)
        ),
        rules.normal,
        cutoff=rules.title_cutoff,
        autojunk=rules.autojunk,
    )
    paper_keys = [lookup_keys(paper, rules.normal) for paper in papers]
    hits = match_papers(
        paper_keys, [pool] * len(paper_keys), rules, range(len(among))
    ).hits
    return tuple(None if hit is None else among[hit.index] for hit in hits)


def against_metrics(
    extraction: ReviewExtraction, truth: Review, rules: MatchingRules
) -> Iterator[Metric]:
    """Recall and precision of studies, accuracy of identifiers, likeness of texts."""
    papers = [reference.paper for reference in extraction.included.references]
    pairs = [
        (paper, hit)
        for paper, hit in zip(
            truth.studies, matching_papers(truth.studies, papers, rules), strict=True
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
    missed = sum(hit is None for hit in matching_papers(papers, truth.studies, rules))
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
        id_pairs = [pair for pair in ids if pair[0]]
        equal = sum(first == second for first, second in id_pairs)
        yield Metric(
            path=f"identifiers.{name}",
            value=ratio(equal, len(id_pairs)),
            n=len(id_pairs),
            definition=f"accuracy@1({name} of matched papers whose truth has one)",
        )
    review = extraction.review
    for name in FIELDS:
        expected = normal.title(getattr(truth, name))
        read = "" if review is None else normal.title(getattr(review, name))
        yield Metric(
            path=f"similarity.{name}",
            value=string_ratio(expected, read) if expected else None,
            n=1,
            definition="string_ratio@1(Indel; lower case, without marks)",
        )


MOST_FLAGS = 20
"""Flags that are listed; all of them stand in extraction_{id}.json."""

WIDTH = 60
"""Cells of what a flag is about."""


def extraction_text(
    extraction: ReviewExtraction,
    extract: ExtractionInputs,
    compared: Sequence[Metric] = (),
) -> str:
    """What a terminal shows of one model's extraction, and how it stands to truth."""
    values = (
        f"  {metric.path:24} {'n/a' if metric.value is None else f'{metric.value:.4f}'}"
        f"  (n {metric.n})"
        for metric in compared
    )
    against = ("Against the truth:", *values) if compared else ()
    return "\n".join((*_lines(extraction, extract), *against))


def _lines(extraction: ReviewExtraction, extract: ExtractionInputs) -> Iterator[str]:
    meta, included = extraction.recorded.meta, extraction.included
    document = extract.document
    status = extraction.status(accept=extract.settings.accept)
    yield f"Extraction: {status.upper()}"
    yield f"Source: {document.name}, {plural(len(document.starts), 'page')}"
    yield f"Model: {one_line(extraction.model)}"
    yield f"Cochrane ID: {one_line(meta.id) or 'not found'}"
    yield f"Title: {one_line(meta.title) or 'not found'}"
    stated = "" if extraction.stated is None else f" (abstract: {extraction.stated})"
    yield (
        f"Included: {plural(len(included.references), 'reference')} of "
        f"{plural(extraction.studies, 'study', 'studies')}{stated}; "
        f"{len(included.dropped)} dropped, {included.repeated} repeated"
    )
    if extract.settings.with_excluded:
        with_pmid = sum(
            bool(reference.paper.pmid) for reference in extraction.excluded.references
        )
        yield (
            "Excluded: "
            f"{plural(len(extraction.excluded.references), 'reference')}, {with_pmid} "
            "with the PMID that a table for screening needs"
        )
    if extraction.placed:
        yield (
            "Sections without a heading, found by the model: "
            f"{', '.join(extraction.placed)}"
        )
    if extraction.flags:
        yield f"To look at: {len(extraction.flags)}"
    for flag in extraction.flags[:MOST_FLAGS]:
        detail = f" ({clip(flag.detail, WIDTH)})" if flag.detail else ""
        yield f"  - {clip(flag.where, WIDTH)}: {FLAG_MEANINGS[flag.code]}{detail}"
    if len(extraction.flags) > MOST_FLAGS:
        yield f"  - and {len(extraction.flags) - MOST_FLAGS} more"


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
    extractions = [
        extract_review(extract, model, model_answers)
        for model, model_answers in by_model.items()
    ]
    folders = _folders(list(by_model))
    written = [
        replace(artifact, name=f"{folders[extraction.model]}{artifact.name}")
        for extraction in extractions
        for artifact in files(extraction, extract, _file_name(extraction))
    ]
    tables = [
        excluded_table(extraction, _file_name(extraction), folders[extraction.model])
        for extraction in extractions
        if extract.settings.with_excluded
    ]
    settings = extract.settings.model_dump(mode="json", exclude={*INPUTS})
    return Scorecard(
        models={
            extraction.model: EXTRACTION.describe(_metrics(extraction, extract))
            for extraction in extractions
        },
        summary="\n\n".join(
            extraction_text(extraction, extract, _compared(extraction, extract))
            for extraction in extractions
        ),
        headline=HEADLINE,
        findings=(
            *extract.findings,
            *(
                finding
                for extraction in extractions
                for finding in _findings(extraction, extract)
            ),
        ),
        failures=tuple(
            sentence
            for extraction in extractions
            if (sentence := _failure(extraction, extract))
        ),
        tables=tuple(tables),
        artifacts=tuple(written),
        built=(
            *(artifact.name for artifact in written),
            *(f"{table.name}.csv" for table in tables),
        ),
        settings={name: settings[name] for name in settings if name in SETTINGS},
        missing=sum(extraction.missing for extraction in extractions),
        stale=sum(extraction.stale for extraction in extractions),
    )


def _metrics(
    extraction: ReviewExtraction, extract: ExtractionInputs
) -> Iterator[Metric]:
    grounded, dropped = (
        len(extraction.included.references),
        len(extraction.included.dropped),
    )
    total = grounded + dropped
    yield Metric(
        path=HEADLINE,
        value=ratio(grounded, total),
        n=total,
        definition="grounded@1(kept / (kept + dropped), repeated ones once)",
    )
    numbers: Mapping[str, int | None] = {
        "references": grounded,
        "references_dropped": dropped,
        "references_repeated": extraction.included.repeated,
        "studies": extraction.studies,
        "studies_in_abstract": extraction.stated,
        "flags": len(extraction.flags),
        "sections_placed": len(extraction.placed),
        "excluded": len(extraction.excluded.references),
    }
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=total, definition=f"count@1({name})"
        )
    yield from _compared(extraction, extract)


def _compared(
    extraction: ReviewExtraction, extract: ExtractionInputs
) -> tuple[Metric, ...]:
    """How it stands to the truth of the same review, where there is one."""
    return tuple(
        metric
        for truth in extract.against
        if truth.id == extraction.recorded.meta.id
        for metric in against_metrics(extraction, truth, extract.settings.rules)
    )


def _findings(
    extraction: ReviewExtraction, extract: ExtractionInputs
) -> Iterator[Finding]:
    """One a kind of flag, and truth that is of other reviews."""
    review = extraction.recorded.meta.id
    if extract.against and all(truth.id != review for truth in extract.against):
        yield Finding(
            code="no_truth",
            severity="warn",
            where="against",
            message="The truth to score by has no such review.",
            example=review,
        )
    for code, meaning in FLAG_MEANINGS.items():
        flags = [flag for flag in extraction.flags if flag.code == code]
        if flags:
            yield Finding(
                code=code,
                severity="warn",
                where=extraction.model,
                message=f"{meaning[0].upper()}{meaning[1:]}.",
                n=len(flags),
                example=flags[0].where,
            )


def _failure(extraction: ReviewExtraction, extract: ExtractionInputs) -> str:
    """Why no truth file is written, where none is."""
    name = _file_name(extraction)
    match extraction.status(accept=extract.settings.accept):
        case "incomplete":
            missing = [
                flag.where for flag in extraction.flags if flag.code == "missing"
            ]
            return (
                f"{extract.document.name}: cochrane_{name}.json cannot be written, "
                f"since {', '.join(missing)} could not be read (extraction_{name}.json "
                "says why)."
            )
        case "needs review":
            return (
                f"{extract.document.name}: cochrane_{name}.json was not written, since "
                f"{plural(len(extraction.flags), 'thing')} should be looked at "
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


def _file_name(extraction: ReviewExtraction) -> str:
    """The review's id, which the text gave, as a file name."""
    review = extraction.recorded.meta.id or "unknown"
    return slugs([review])[review]
