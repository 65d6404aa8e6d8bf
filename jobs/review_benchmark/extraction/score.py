"""Scores a run that extracted a review: files, metrics and a summary.

If there is hand-made truth, the extraction is scored against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from jobs.kit.measurements import MeasuredValue, count, share, with_intervals
from jobs.kit.measures import Measures, ValueMeasure, measured
from jobs.kit.metrics import string_ratio
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
from jobs.review_benchmark.settings import INPUTS, QUESTION
from runner.job import Answer, Answers
from runner.scorecard import Finding, Metric, Scorecard
from store.printable import clip, one_line

NORMAL = Normaliser()


def matching_papers(
    papers: Sequence[TruthPaper], among: Sequence[TruthPaper], rules: MatchingRules
) -> tuple[TruthPaper | None, ...]:
    """Return the match of each paper among others, by the matching rules of a run."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthComparison:
    """An extraction compared with the truth of the same review."""

    truth: Review
    review: Review | None  #: as extracted; None: a field is missing
    pairs: Sequence[tuple[TruthPaper, TruthPaper]]  #: truth papers that were extracted
    extracted: int  #: papers
    missed: int  #: of these, papers that match no truth paper

    def identifiers(self, of: Callable[[TruthPaper], str]) -> MeasuredValue:
        """Return the share of matched papers with the truth's identifier.

        Papers whose truth has no identifier do not count.
        """
        ids = [(of(a), of(b)) for a, b in self.pairs if of(a)]
        return share(sum(first == second for first, second in ids), len(ids))

    def similarity(self, of: Callable[[Review], str]) -> MeasuredValue:
        """Return the similarity of a field in the two reviews."""
        expected = NORMAL.title(of(self.truth))
        read = "" if self.review is None else NORMAL.title(of(self.review))
        return count(string_ratio(expected, read) if expected else None, 1)


AGAINST: Mapping[str, ValueMeasure[TruthComparison]] = {
    "studies.recall": ValueMeasure(
        "Recall of studies",
        "Share of the truth's studies that were extracted",
        "higher",
        of=lambda c: share(len(c.pairs), len(c.truth.studies)),
        definition="recall@1(truth papers that were extracted; matching as a run's)",
    ),
    "studies.precision": ValueMeasure(
        "Precision of studies",
        "Share of the extracted studies that the truth has",
        "higher",
        of=lambda c: share(c.extracted - c.missed, c.extracted),
        definition="precision@1(extracted papers that match a truth paper)",
    ),
    "identifiers.{id}": ValueMeasure(
        "Right identifiers, {id}",
        "Share of matched studies with the truth's {id}, among those whose truth has "
        "one",
        "higher",
        of=lambda c: {
            "pmid": c.identifiers(lambda paper: pmid_of(paper.pmid)),
            "doi": c.identifiers(lambda paper: NORMAL.doi(paper.doi)),
        },
        definition="accuracy@1({id} of matched papers whose truth has one)",
    ),
    "similarity.{field}": ValueMeasure(
        "Similarity, {field}",
        "Similarity of the extracted {field} to the truth's own",
        "higher",
        of=lambda c: {
            "title": c.similarity(lambda review: review.title),
            "question": c.similarity(lambda review: review.question),
            "conclusion": c.similarity(lambda review: review.conclusion),
        },
        definition="string_ratio@1(Indel; lower case, without marks)",
    ),
}

EXTRACTED: Mapping[str, ValueMeasure[ReviewExtraction]] = {
    "references.grounded": ValueMeasure(
        "Grounded references",
        "Share of the references that occur in the review's text",
        "higher",
        of=lambda e: share(len(e.included.references), _references(e)),
        definition="grounded@1(kept / (kept + dropped), repeated ones once)",
    ),
}

COUNTS: Mapping[str, ValueMeasure[ReviewExtraction]] = {
    "references": ValueMeasure(
        "References kept",
        "References that are kept",
        of=lambda e: count(len(e.included.references), _references(e)),
    ),
    "references_dropped": ValueMeasure(
        "References dropped",
        "References that do not occur in the review's text",
        "lower",
        of=lambda e: count(len(e.included.dropped), _references(e)),
    ),
    "references_repeated": ValueMeasure(
        "References repeated",
        "References that an earlier one repeats",
        of=lambda e: count(e.included.repeated, _references(e)),
    ),
    "studies": ValueMeasure(
        "Studies",
        "Studies that were extracted",
        of=lambda e: count(e.studies, _references(e)),
    ),
    "studies_in_abstract": ValueMeasure(
        "Studies by the abstract",
        "Number of studies that the abstract states",
        of=lambda e: count(e.stated, _references(e)),
    ),
    "flags": ValueMeasure(
        "Flags",
        "Doubts that checks raise",
        "lower",
        of=lambda e: count(len(e.flags), _references(e)),
    ),
    "sections_placed": ValueMeasure(
        "Sections placed",
        "Sections of the review that were found in its text",
        of=lambda e: count(len(e.placed), _references(e)),
    ),
    "excluded": ValueMeasure(
        "Excluded studies",
        "References of the review's excluded studies",
        of=lambda e: count(len(e.excluded.references), _references(e)),
    ),
}

EXTRACTION = Measures(
    headlines=("references.grounded", "studies.recall", "studies.precision"),
    measures={
        **EXTRACTED,
        **AGAINST,
        **{f"count.{key}": measure for key, measure in COUNTS.items()},
    },
)
"""Metrics of `siftlog run review-benchmark --no-score`."""


def _references(extraction: ReviewExtraction) -> int:
    """Count the references, also dropped ones; repeated ones count once."""
    return len(extraction.included.references) + len(extraction.included.dropped)


def truth_comparison(
    extraction: ReviewExtraction, truth: Review, rules: MatchingRules
) -> TruthComparison:
    """Match the studies of an extraction with those of the truth."""
    papers = [reference.paper for reference in extraction.included.references]
    hits = matching_papers(truth.studies, papers, rules)
    missed = matching_papers(papers, truth.studies, rules).count(None)
    return TruthComparison(
        truth=truth,
        review=extraction.review,
        pairs=[
            (paper, hit)
            for paper, hit in zip(truth.studies, hits, strict=True)
            if hit is not None
        ],
        extracted=len(papers),
        missed=missed,
    )


MOST_FLAGS = 20
"""Number of flags in the summary; extraction_{id}.json has all."""

WIDTH = 60
"""Cells of a flag's subject and detail."""


def extraction_text(
    extraction: ReviewExtraction,
    extract: ExtractionInputs,
    compared: Sequence[Metric] = (),
) -> str:
    """Return a text about one model's extraction and its comparison with the truth."""
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
        yield f"To check: {len(extraction.flags)}"
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
    """Return all metrics and files of an extraction; pure."""
    by_model: dict[str, list[Answer]] = {model: [] for model in answers.models}
    for answer in chain.from_iterable(answers.families()):
        by_model[answer.task.model].append(answer)
    extractions = [
        extract_review(extract, model, model_answers)
        for model, model_answers in by_model.items()
    ]
    compared = {
        extraction.model: _compared(extraction, extract) for extraction in extractions
    }
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
    settings = extract.settings.model_dump(mode="json", exclude={*INPUTS, *QUESTION})
    return Scorecard(
        models={
            extraction.model: EXTRACTION.describe(
                (*_metrics(extraction), *compared[extraction.model])
            )
            for extraction in extractions
        },
        summary="\n\n".join(
            extraction_text(extraction, extract, compared[extraction.model])
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


def _metrics(extraction: ReviewExtraction) -> Iterator[Metric]:
    yield from with_intervals(measured(EXTRACTED, extraction))
    yield from with_intervals(measured(COUNTS, extraction, path="count."))


def _compared(
    extraction: ReviewExtraction, extract: ExtractionInputs
) -> tuple[Metric, ...]:
    """Return metrics against the truth of the same review, if there is one."""
    comparisons = (
        truth_comparison(extraction, truth, extract.settings.rules)
        for truth in extract.against
        if truth.id == extraction.recorded.meta.id
    )
    return tuple(
        metric
        for comparison in comparisons
        for metric in with_intervals(measured(AGAINST, comparison))
    )


def _findings(
    extraction: ReviewExtraction, extract: ExtractionInputs
) -> Iterator[Finding]:
    """Yield a finding for each kind of flag, and one if no truth has this review."""
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
    """Return why no truth file is written; empty if one is."""
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
                f"{extract.document.name}: cochrane_{name}.json was not "
                f"written, since {plural(len(extraction.flags), 'thing')} "
                f"should be checked (extraction_{name}.json); siftlog score "
                "RUN --accept --output-dir DIR writes it nevertheless."
            )
        case "accepted":
            return ""


def _folders(models: Sequence[str]) -> dict[str, str]:
    """Return the folder of each model's files: a separate one if there are several."""
    if len(models) == 1:
        return dict.fromkeys(models, "")
    return {model: f"{slug}/" for model, slug in slugs(models).items()}


def _file_name(extraction: ReviewExtraction) -> str:
    """Return the review's id, which comes from the text, as a file name."""
    review = extraction.recorded.meta.id or "unknown"
    return slugs([review])[review]
