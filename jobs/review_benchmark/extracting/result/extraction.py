"""What one model's answers come to: a review with its truth, and what is off in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from jobs.inputs.documents import TextSpan
from jobs.review_benchmark.extracting.asking import parsing
from jobs.review_benchmark.extracting.asking.answers import Meta, Reference, References
from jobs.review_benchmark.extracting.asking.context import carried
from jobs.review_benchmark.extracting.asking.plan import follow_up, plan, sections_of
from jobs.review_benchmark.extracting.checking.database import other_titles
from jobs.review_benchmark.extracting.checking.flags import Flag
from jobs.review_benchmark.extracting.checking.grounds import Grounds
from jobs.review_benchmark.extracting.checking.record import (
    Recorded,
    checked_record,
    issued,
    stated_count,
)
from jobs.review_benchmark.extracting.checking.references import Checked, Checker
from jobs.review_benchmark.extracting.cutting.entries import entries
from jobs.review_benchmark.extracting.cutting.sections import NEEDED, Section, Sections
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.review import Review
from runner.job import Answer, TaskSpec
from runner.messages import ParseFailure

Status: TypeAlias = Literal["accepted", "needs review", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one model made of a review."""

    model: str
    review: Review | None  #: None: a field is missing that a truth file needs
    recorded: Recorded
    included: Checked
    excluded: Checked
    flags: tuple[Flag, ...]  #: all that a person should look at
    placed: tuple[Section, ...] = ()  #: sections that the model has found
    stated: int | None = None  #: studies by the abstract
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for

    @property
    def studies(self) -> int:
        """Distinct studies by name; a reference without one counts by itself."""
        papers = [own.paper for own in self.included.kept]
        named = {paper.ref_id for paper in papers if paper.ref_id}
        return len(named) + sum(not paper.ref_id for paper in papers)

    def status(self, *, accept: bool) -> Status:
        """Whether a truth file is written."""
        if self.review is None:
            return "incomplete"
        return "needs review" if self.flags and not accept else "accepted"


@dataclass(slots=True)
class _Gathered:
    """The answers of one model, read."""

    spans: dict[Section, TextSpan] = field(default_factory=dict)
    meta: Meta | None = None
    included: list[tuple[TextSpan, Sequence[Reference]]] = field(default_factory=list)
    excluded: list[tuple[TextSpan, Sequence[Reference]]] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    placed: tuple[Section, ...] = ()
    missing: int = 0
    stale: int = 0


def extraction(extract: Extract, model: str, answers: Sequence[Answer]) -> Extraction:
    """What a model's answers come to, all replicates together."""
    document = extract.document
    grounds = Grounds.of(document)
    read = _gathered(extract, answers)
    checker = Checker(document=document, grounds=grounds, latest=issued(document))
    included = checker.check(read.included, _entries(extract, read.spans, "included"))
    excluded = checker.check(
        read.excluded,
        _entries(extract, read.spans, "excluded"),
        read.spans.get("reasons"),
    )
    recorded = checked_record(read.meta or Meta(), document, grounds, read.spans)
    review, lacking = _review(recorded.meta, included)
    own = Extraction(
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
            *lacking,
        ),
        placed=read.placed,
        stated=stated_count(document),
        missing=read.missing,
        stale=read.stale,
    )
    return replace(own, flags=(*own.flags, *_count(own), *_titles(extract, own)))


def _gathered(extract: Extract, answers: Sequence[Answer]) -> _Gathered:
    read = _Gathered(spans=dict(extract.sections))
    for replicate in sorted({answer.task.replicate for answer in answers}):
        own = {
            (answer.task.stage, answer.task.key): answer
            for answer in answers
            if answer.task.replicate == replicate
        }
        for spec in _wanted(extract, own, read):
            answer = own.pop((spec.stage, spec.key), None)
            if answer is None:
                read.missing += 1
            else:
                _take(answer, spec, read)
        read.stale += len(own)
    return read


def _wanted(
    extract: Extract, own: dict[tuple[str, str], Answer], read: _Gathered
) -> Iterator[TaskSpec]:
    """What a replicate was to read, once its sections are known."""
    for spec in plan(extract):
        if spec.stage != "x.places":
            yield spec
            continue
        answer = own.pop((spec.stage, spec.key), None)
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
            read.placed = tuple(name for name in extract.lacking if name in spans)
        yield from follow_up(extract, (replace(answer, parsed=parsed),))


def _take(answer: Answer, spec: TaskSpec, read: _Gathered) -> None:
    """Read one answer; one that cannot be is flagged."""
    if answer.chat is None:
        _no_answer(answer, answer.error or answer.skip or "open", read)
        return
    stage = answer.task.stage
    parsed: Meta | References | ParseFailure = (
        parsing.parse_meta(answer.chat)
        if stage == "x.meta"
        else parsing.parse_references(answer.chat)
    )
    if isinstance(parsed, ParseFailure):
        _no_answer(answer, parsed.reason, read)
    elif isinstance(parsed, Meta):
        read.meta = read.meta or parsed
    else:
        name: Section = "included" if stage == "x.refs" else "excluded"
        chunks = read.included if stage == "x.refs" else read.excluded
        chunks.append((carried(spec.context)[name], parsed.read))
        if parsed.unusable:
            where = f"{stage} {answer.task.key}"
            flag = Flag(code="unusable", where=where, detail=str(parsed.unusable))
            read.flags.append(flag)


def _no_answer(answer: Answer, reason: str, read: _Gathered) -> None:
    where = f"{answer.task.stage} {answer.task.key}"
    read.flags.append(Flag(code="no_answer", where=where, detail=reason))


def _entries(extract: Extract, spans: Sections, name: Section) -> tuple[TextSpan, ...]:
    """The entries of a list that the settings ask for."""
    if name not in spans or (name == "excluded" and not extract.settings.with_excluded):
        return ()
    return entries(extract.document, spans[name])


def _not_found(extract: Extract, spans: Sections) -> Iterator[Flag]:
    wanted = (*NEEDED, *(("excluded",) if extract.settings.with_excluded else ()))
    for name in wanted:
        if name not in spans:
            yield Flag(code="section_not_found", where=name)


def _review(meta: Meta, included: Checked) -> tuple[Review | None, tuple[Flag, ...]]:
    """The review as a truth file has it; None, and why, where a field is missing."""
    needed = {
        "cochrane_id": meta.id,
        "title": meta.title,
        "research_question": meta.question,
        "included_studies": included.kept,
    }
    lacking = tuple(
        Flag(code="missing", where=name) for name, value in needed.items() if not value
    )
    if lacking:
        return None, lacking
    return (
        Review(
            id=meta.id,
            title=meta.title,
            question=meta.question,
            studies=tuple(own.paper for own in included.kept),
            pico=meta.pico,
            inclusion=meta.inclusion,
            exclusion=meta.exclusion,
            conclusion=meta.conclusion,
            date_range=meta.date_range,
        ),
        (),
    )


def _count(own: Extraction) -> Iterator[Flag]:
    """The abstract counts studies, or, where each has one, their references."""
    if own.stated not in {None, own.studies, len(own.included.kept)}:
        detail = f"{own.stated} in the abstract, {own.studies} read"
        yield Flag(code="study_count", where="included_studies", detail=detail)


def _titles(extract: Extract, own: Extraction) -> Iterator[Flag]:
    if extract.database is not None:
        papers = [each.paper for each in own.included.kept]
        yield from other_titles(papers, extract.database, extract.settings.rules)
