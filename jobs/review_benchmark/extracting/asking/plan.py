"""What is asked of a review's text, in which order.

Where headings tell the places of all sections, everything is asked at once; else a
model is asked for those that are lacking first. Pure: the plan is derived again from
the text and stored replies whenever a run is resumed or scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from jobs.chat import is_longer_than
from jobs.inputs.documents import Document, TextSpan
from jobs.review_benchmark.asking.keys import DIGEST
from jobs.review_benchmark.extracting.asking import request as asking
from jobs.review_benchmark.extracting.asking.answers import Places
from jobs.review_benchmark.extracting.asking.context import carrying
from jobs.review_benchmark.extracting.cutting.entries import chunks, entries
from jobs.review_benchmark.extracting.cutting.sections import Section, Sections, lines
from jobs.review_benchmark.extracting.extract import Extract
from runner.job import Answer, TaskSpec
from runner.messages import ChatRequest


def plan(extract: Extract) -> Iterator[TaskSpec]:
    """The places that are lacking, or all that is to be read."""
    if extract.lacking:
        asked = asking.places(extract)
        yield TaskSpec(
            stage="x.places", key=extract.document.key, skip=_skip(extract, asked)
        )
        return
    yield from _readings(extract, extract.sections)


def follow_up(extract: Extract, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """What is read where a model has found it; what it has not found is left out."""
    answer = group[0]
    if answer.task.stage == "x.places":
        yield from _readings(extract, sections_of(extract, answer.parsed))


def reaches(extract: Extract) -> frozenset[str]:
    """The stages that the text and the settings ask for."""
    found = {"x.meta", "x.refs"}
    if extract.lacking:
        found.add("x.places")
    if extract.settings.with_excluded:
        found.add("x.excluded")
    return frozenset(found)


def sections_of(extract: Extract, parsed: object) -> dict[Section, TextSpan]:
    """All sections: those with headings, and those that a reply has found."""
    found = dict(extract.sections)
    if not isinstance(parsed, Places):
        return found
    for name in extract.lacking:
        span = _placed(extract.document, *parsed.lines.get(name, (0, None)))
        if span is not None:
            found[name] = span
    return found


def _placed(document: Document, begin: int, end: int | None) -> TextSpan | None:
    """What stands after one numbered line and before another."""
    known = list(lines(document))
    if not 1 <= begin <= len(known) or (end is not None and end <= begin):
        return None
    stop = (
        known[end - 1].span.start
        if end is not None and end <= len(known)
        else len(document.text)
    )
    span = TextSpan(start=known[begin - 1].span.end, end=stop)
    return span if document.piece(span) else None


def _readings(extract: Extract, spans: Sections) -> Iterator[TaskSpec]:
    """One task for the record, and one a chunk of references."""
    own = {name: spans[name] for name in asking.META if name in spans}
    yield TaskSpec(
        stage="x.meta",
        key=extract.document.key,
        skip=_skip(extract, asking.meta(extract, own)),
        context=carrying(own),
    )
    if "included" not in spans:
        yield TaskSpec(stage="x.refs", key=extract.document.key, skip="no_references")
    for span in _chunks(extract, spans, "included"):
        yield TaskSpec(
            stage="x.refs",
            key=_key(extract.document, span),
            skip=_skip(extract, asking.references(extract, span)),
            context=carrying({"included": span}),
        )
    if extract.settings.with_excluded:
        for span in _chunks(extract, spans, "excluded"):
            chunk: dict[Section, TextSpan] = {"excluded": span}
            if "reasons" in spans:
                chunk["reasons"] = spans["reasons"]
            yield TaskSpec(
                stage="x.excluded",
                key=_key(extract.document, span),
                skip=_skip(extract, asking.excluded(extract, chunk)),
                context=carrying(chunk),
            )


def _chunks(extract: Extract, spans: Sections, name: Section) -> tuple[TextSpan, ...]:
    if name not in spans:
        return ()
    found = entries(extract.document, spans[name])
    return chunks(extract.document, found, extract.settings.chunk_references)


def _key(document: Document, span: TextSpan) -> str:
    """The key of a chunk: by its words, so that another cut makes other tasks.

    They are the same in PDF and text, whose lines and pages differ.
    """
    words = " ".join(document.piece(span).split())
    return f"{document.key}#{sha256(words.encode()).hexdigest()[:DIGEST]}"


def _skip(extract: Extract, asked: ChatRequest) -> str | None:
    is_long = is_longer_than(asked, extract.settings.max_prompt_tokens)
    return "too_long" if is_long else None
