"""Builds a review with its truth from one model's answers, with evidence and flags.

Its files are the truth, the evidence for it, and the excluded studies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import structs

from jobs.kit.inputs.documents import TextSpan
from jobs.kit.tables import TableOf, count, text
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.extraction import parsing
from jobs.review_benchmark.extraction.checks import (
    CheckedReview,
    ExtractionFlag,
    SourceText,
    checked_record,
    issue_year,
    other_titles,
    stated_count,
)
from jobs.review_benchmark.extraction.parsing import Reference, References, ReviewMeta
from jobs.review_benchmark.extraction.plan import (
    follow_up,
    plan,
    sections_from_context,
    sections_of,
)
from jobs.review_benchmark.extraction.references import (
    CheckedReferences,
    GroundedReference,
    ReferenceChecker,
)
from jobs.review_benchmark.extraction.review_text import (
    NEEDED,
    ExtractionInputs,
    Section,
    Sections,
    entries,
)
from jobs.review_benchmark.truth_files import json_file, review_to_json
from runner.job import Answer, TaskSpec
from runner.messages import ParseFailure
from runner.scorecard import Artifact, Table

Status: TypeAlias = Literal["accepted", "needs review", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewExtraction:
    """A review as one model extracted it."""

    model: str
    review: Review | None  #: None: a field is missing that a truth file needs
    recorded: CheckedReview
    included: CheckedReferences
    excluded: CheckedReferences
    flags: tuple[ExtractionFlag, ...]  #: all faults for a person to review
    placed: tuple[Section, ...] = ()  #: sections that the model located
    stated: int | None = None  #: studies according to the abstract
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: stored answers that the current plan no longer needs

    @property
    def studies(self) -> int:
        """Number of distinct studies; a reference without a name counts as one."""
        papers = [reference.paper for reference in self.included.references]
        ref_ids = {paper.ref_id for paper in papers if paper.ref_id}
        return len(ref_ids) + sum(not paper.ref_id for paper in papers)

    def status(self, *, accept: bool) -> Status:
        """Return whether a truth file is written."""
        if self.review is None:
            return "incomplete"
        return "needs review" if self.flags and not accept else "accepted"


@dataclass(slots=True)
class _Gathered:
    """Parsed answers of one model."""

    spans: dict[Section, TextSpan] = field(default_factory=dict)
    meta: ReviewMeta | None = None
    included: list[tuple[TextSpan, Sequence[Reference]]] = field(default_factory=list)
    excluded: list[tuple[TextSpan, Sequence[Reference]]] = field(default_factory=list)
    flags: list[ExtractionFlag] = field(default_factory=list)
    placed: tuple[Section, ...] = ()
    missing: int = 0
    stale: int = 0


def extract_review(
    extract: ExtractionInputs, model: str, answers: Sequence[Answer]
) -> ReviewExtraction:
    """Build the review from a model's answers of all replicates."""
    document = extract.document
    grounds = SourceText.of(document)
    read = _gathered(extract, answers)
    checker = ReferenceChecker(
        document=document, grounds=grounds, latest=issue_year(document)
    )
    included = checker.check(read.included, _entries(extract, read.spans, "included"))
    excluded = checker.check(
        read.excluded,
        _entries(extract, read.spans, "excluded"),
        read.spans.get("reasons"),
    )
    recorded = checked_record(read.meta or ReviewMeta(), document, grounds, read.spans)
    review, missing = _review(recorded.meta, included)
    extraction = ReviewExtraction(
        model=model,
        review=review,
        recorded=recorded,
        included=included,
        excluded=excluded,
        flags=(
            *read.flags,
            *_not_found(extract, read.spans),
            *recorded.flags,
            *included.flags,
            *excluded.flags,
            *missing,
        ),
        placed=read.placed,
        stated=stated_count(document),
        missing=read.missing,
        stale=read.stale,
    )
    return replace(
        extraction,
        flags=(*extraction.flags, *_count(extraction), *_titles(extract, extraction)),
    )


def _gathered(extract: ExtractionInputs, answers: Sequence[Answer]) -> _Gathered:
    read = _Gathered(spans=dict(extract.sections))
    for replicate in sorted({answer.task.replicate for answer in answers}):
        answers_by_task = {
            (answer.task.stage, answer.task.key): answer
            for answer in answers
            if answer.task.replicate == replicate
        }
        for spec in _planned_specs(extract, answers_by_task, read):
            answer = answers_by_task.pop((spec.stage, spec.key), None)
            if answer is None:
                read.missing += 1
            else:
                _take(answer, spec, read)
        read.stale += len(answers_by_task)
    return read


def _planned_specs(
    extract: ExtractionInputs,
    answers_by_task: dict[tuple[str, str], Answer],
    read: _Gathered,
) -> Iterator[TaskSpec]:
    """Yield the reading tasks of a replicate, once its sections are known."""
    for spec in plan(extract):
        if spec.stage != "x.places":
            yield spec
            continue
        answer = answers_by_task.pop((spec.stage, spec.key), None)
        if answer is None:
            read.missing += 1
            continue
        if answer.chat is None:
            _no_answer(answer, answer.error or answer.skip or "open", read)
            continue
        parsed = parsing.parse_places(answer.chat)
        if isinstance(parsed, ParseFailure):
            _no_answer(answer, parsed.reason, read)
        spans = sections_of(extract, parsed)
        if not read.placed:
            read.spans = spans
            read.placed = tuple(
                name for name in extract.missing_sections if name in spans
            )
        yield from follow_up(extract, (structs.replace(answer, parsed=parsed),))


def _take(answer: Answer, spec: TaskSpec, read: _Gathered) -> None:
    """Parse an answer; flag one that cannot be parsed."""
    if answer.chat is None:
        _no_answer(answer, answer.error or answer.skip or "open", read)
        return
    stage = answer.task.stage
    parsed: ReviewMeta | References | ParseFailure = (
        parsing.parse_meta(answer.chat)
        if stage == "x.meta"
        else parsing.parse_references(answer.chat)
    )
    if isinstance(parsed, ParseFailure):
        _no_answer(answer, parsed.reason, read)
    elif isinstance(parsed, ReviewMeta):
        read.meta = read.meta or parsed
    else:
        name: Section = "included" if stage == "x.refs" else "excluded"
        chunks = read.included if stage == "x.refs" else read.excluded
        chunks.append((sections_from_context(spec.context)[name], parsed.read))
        if parsed.unusable:
            where = f"{stage} {answer.task.key}"
            flag = ExtractionFlag("unusable", where, str(parsed.unusable))
            read.flags.append(flag)


def _no_answer(answer: Answer, reason: str, read: _Gathered) -> None:
    where = f"{answer.task.stage} {answer.task.key}"
    read.flags.append(ExtractionFlag("no_answer", where, reason))


def _entries(
    extract: ExtractionInputs, spans: Sections, name: Section
) -> tuple[TextSpan, ...]:
    """Return the entries of a list, if the settings include it."""
    if name not in spans or (name == "excluded" and not extract.settings.with_excluded):
        return ()
    return entries(extract.document, spans[name])


def _not_found(extract: ExtractionInputs, spans: Sections) -> Iterator[ExtractionFlag]:
    required_sections = (
        *NEEDED,
        *(("excluded",) if extract.settings.with_excluded else ()),
    )
    for name in required_sections:
        if name not in spans:
            yield ExtractionFlag("section_not_found", name)


def _review(
    meta: ReviewMeta, included: CheckedReferences
) -> tuple[Review | None, tuple[ExtractionFlag, ...]]:
    """Return the review for a truth file, or None and a flag for each missing field."""
    needed = {
        "cochrane_id": meta.id,
        "title": meta.title,
        "research_question": meta.question,
        "included_studies": included.references,
    }
    missing = tuple(
        ExtractionFlag("missing", name) for name, value in needed.items() if not value
    )
    if missing:
        return None, missing
    return (
        Review(
            id=meta.id,
            title=meta.title,
            question=meta.question,
            studies=tuple(reference.paper for reference in included.references),
            pico=meta.pico,
            inclusion=meta.inclusion,
            exclusion=meta.exclusion,
            conclusion=meta.conclusion,
            date_range=meta.date_range,
        ),
        (),
    )


def _count(extraction: ReviewExtraction) -> Iterator[ExtractionFlag]:
    """Yield a flag if neither studies nor references agree with the abstract."""
    if extraction.stated not in {
        None,
        extraction.studies,
        len(extraction.included.references),
    }:
        detail = f"{extraction.stated} in the abstract, {extraction.studies} read"
        yield ExtractionFlag("study_count", "included_studies", detail)


def _titles(
    extract: ExtractionInputs, extraction: ReviewExtraction
) -> Iterator[ExtractionFlag]:
    if extract.database is not None:
        papers = [reference.paper for reference in extraction.included.references]
        yield from other_titles(papers, extract.database, extract.settings.rules)


class _ExcludedRow(NamedTuple):
    review: str
    study: GroundedReference


EXCLUDED = TableOf[_ExcludedRow](
    name="excluded",
    columns=(
        text("review_pmid", lambda row: row.review),
        text("pmid", lambda row: row.study.paper.pmid),
        text("status", lambda _: "excluded"),
        text("reason", lambda row: row.study.reason),
        text("study_id", lambda row: row.study.paper.ref_id),
        text("title", lambda row: row.study.paper.title),
        count("year", lambda row: row.study.paper.year),
    ),
)
"""Columns as the screening job reads them; a review's id is that of Cochrane."""


def files(
    extraction: ReviewExtraction, extract: ExtractionInputs, name: str
) -> Iterator[Artifact]:
    """Yield the files of an extraction; the truth only if it is accepted."""
    status = extraction.status(accept=extract.settings.accept)
    if extraction.review is not None and status == "accepted":
        yield json_file(f"cochrane_{name}.json", review_to_json(extraction.review))
    yield json_file(f"extraction_{name}.json", _evidence(extraction, extract, status))


def excluded_table(extraction: ReviewExtraction, name: str, folder: str = "") -> Table:
    """Return the excluded studies with a PMID, which screening needs."""
    review = extraction.recorded.meta.id
    return EXCLUDED.table(
        (
            _ExcludedRow(review, reference)
            for reference in extraction.excluded.references
            if reference.paper.pmid
        ),
        name=f"{folder}excluded_{name}",
    )


def _evidence(
    extraction: ReviewExtraction, extract: ExtractionInputs, status: str
) -> dict[str, Any]:
    return {
        "status": status,
        "source": {
            "file": extract.document.name,
            "pages": len(extract.document.starts),
            "characters": len(extract.document.text),
        },
        "model": extraction.model,
        "studies": {
            "references": len(extraction.included.references),
            "studies": extraction.studies,
            "in_abstract": extraction.stated,
            "repeated": extraction.included.repeated,
            "dropped": len(extraction.included.dropped),
        },
        "sections_placed_by_model": list(extraction.placed),
        "flags": [asdict(flag) for flag in extraction.flags],
        "evidence": [asdict(evidence) for evidence in extraction.recorded.evidence],
        "included": [
            _reference_json(reference) for reference in extraction.included.references
        ],
        "dropped": list(_dropped(extraction.included)),
        "excluded": [
            _reference_json(reference) for reference in extraction.excluded.references
        ],
        "excluded_dropped": list(_dropped(extraction.excluded)),
    }


def _reference_json(reference: GroundedReference) -> dict[str, Any]:
    paper = reference.paper
    return {
        "cochrane_ref_id": paper.ref_id,
        "title": paper.title,
        "pmid": paper.pmid,
        "doi": paper.doi,
        "page": reference.page,
        "ratio": reference.ratio,
        "quote": reference.quote,
    }


def _dropped(checked: CheckedReferences) -> Iterator[Mapping[str, Any]]:
    for dropped_reference in checked.dropped:
        reference = asdict(dropped_reference.reference)
        name = reference.pop("ref_id")
        yield {
            "code": dropped_reference.flag.code,
            "cochrane_ref_id": name,
            **reference,
        }
