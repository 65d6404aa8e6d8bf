"""Plans the questions about a review's text, and builds the request of each task.

If headings mark all sections, everything is requested in one step; else a model first
locates the missing sections. Pure: the plan is derived again from the text and stored
replies whenever a run is resumed or scored. A task carries its place in the text, since
that may come from a model's reply and cannot be derived from the key.

Models fill the fields of a reply in the order of their declaration: a reference is
quoted before its fields are read from the quote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

import msgspec
from pydantic import BaseModel

from jobs.kit.chat import chat_request, data_block, is_longer_than
from jobs.kit.inputs.documents import Document, TextSpan
from jobs.review_benchmark.extraction.parsing import SectionPlaces
from jobs.review_benchmark.extraction.review_text import (
    LONGEST,
    ExtractionInputs,
    Section,
    Sections,
    chunks,
    entries,
    lines,
)
from jobs.review_benchmark.requests import DIGEST
from runner.job import Answer, Task, TaskSpec
from runner.messages import ChatRequest, Schema
from runner.structured import schema_of

_section_decoder: Final = msgspec.json.Decoder(dict[Section, tuple[int, int]])


def sections_to_context(spans: Sections) -> str:
    """Encode sections as the context of a task."""
    bounds = {name: (span.start, span.end) for name, span in spans.items()}
    return msgspec.json.encode(bounds).decode()


def sections_from_context(context: str | None) -> dict[Section, TextSpan]:
    """Decode the sections in a context; raise `KeyError` if there are none."""
    if context is None:
        raise KeyError("context")
    bounds = _section_decoder.decode(context)
    return {
        name: TextSpan(start=start, end=end) for name, (start, end) in bounds.items()
    }


class FoundPlace(BaseModel):
    """Between which numbered lines a section stands."""

    section: Section
    begin: int
    end: int | None


class PlacesReply(BaseModel):
    """Where sections stand; one that the text does not have is left out."""

    places: list[FoundPlace]


class ReadPico(BaseModel):
    """The question in parts."""

    population: str | None
    intervention: str | None
    comparison: str | None
    outcome: str | None


class ReadMeta(BaseModel):
    """What a review says of itself, in its own words."""

    cochrane_id: str | None
    title: str | None
    research_question: str | None
    pico: ReadPico | None
    inclusion_criteria: list[str]
    exclusion_criteria: list[str]
    authors_conclusion: str | None
    date_range: list[int] | None


class ReadReference(BaseModel):
    """One reference, in the words of the list."""

    cochrane_ref_id: str | None
    quote: str
    authors: list[str]
    title: str | None
    year: int | None
    journal: str | None
    doi: str | None
    pmid: str | None


class ReadReferences(BaseModel):
    """All references of the list, in its order."""

    references: list[ReadReference]


class ExcludedReference(ReadReference):
    """One reference to an excluded study, with the reason that the review gives."""

    reason: str | None


class ExcludedReferences(BaseModel):
    """All references of the list, in its order."""

    references: list[ExcludedReference]


PLACES = schema_of(PlacesReply, "places")
META = schema_of(ReadMeta, "review")
REFERENCES = schema_of(ReadReferences, "references")
EXCLUDED = schema_of(ExcludedReferences, "excluded_references")


META_SECTIONS: Final[tuple[Section, ...]] = ("objectives", "criteria", "conclusions")
"""Sections from which a review's record is read."""

PROMPT_HEAD = 8_000
"""Characters at the document's beginning that contain title, id and abstract."""

_SENTENCE_ENDS = (".", ",", ";")
"""Characters that end no heading."""


def request(extract: ExtractionInputs, task: Task) -> ChatRequest:
    """Return the request of *task*; raise `KeyError` if it carries no place."""
    match task.stage:
        case "x.places":
            return places(extract)
        case "x.meta":
            return meta(extract, sections_from_context(task.context))
        case "x.refs":
            return references(extract, sections_from_context(task.context)["included"])
        case "x.excluded":
            return excluded(extract, sections_from_context(task.context))
        case _:
            raise KeyError(task.stage)


def places(extract: ExtractionInputs) -> ChatRequest:
    """Request the places of the sections without a heading."""
    numbered_lines = "\n".join(
        f"{number}: {text}" for number, text in _possible_headings(extract.document)
    )
    texts = {"wanted": ", ".join(extract.missing_sections), "lines": numbered_lines}
    return _chat(extract, "x.places", texts, PLACES)


def meta(extract: ExtractionInputs, spans: Sections) -> ChatRequest:
    """Request the review's statements about itself."""
    document = extract.document
    head = document.piece(TextSpan(start=0, end=PROMPT_HEAD))
    texts = {"head": head}
    for name in META_SECTIONS:
        texts[name] = _piece(document, spans, name)
    return _chat(extract, "x.meta", texts, META)


def references(extract: ExtractionInputs, span: TextSpan) -> ChatRequest:
    """Request the references in a chunk of the list."""
    texts = {"references": extract.document.piece(span)}
    return _chat(extract, "x.refs", texts, REFERENCES)


def excluded(extract: ExtractionInputs, spans: Sections) -> ChatRequest:
    """Request the references in a chunk of the excluded studies, with reasons."""
    document = extract.document
    texts = {
        "reasons": _piece(document, spans, "reasons"),
        "references": _piece(document, spans, "excluded"),
    }
    return _chat(extract, "x.excluded", texts, EXCLUDED)


def _piece(document: Document, spans: Sections, name: Section) -> str:
    """Return the text of a section; empty if the review lacks it."""
    return document.piece(spans[name]) if name in spans else ""


def _possible_headings(document: Document) -> Iterator[tuple[int, str]]:
    """Yield lines that may be headings, by their number from 1."""
    for number, line in enumerate(lines(document), start=1):
        text = line.text
        if text and len(text) <= LONGEST and not text.endswith(_SENTENCE_ENDS):
            yield number, text


def _chat(
    extract: ExtractionInputs, prompt: str, texts: Mapping[str, str], schema: Schema
) -> ChatRequest:
    """Return a request with texts, each between marks; empty ones are left out."""
    blocks = {
        name: data_block(name, text) if text else "" for name, text in texts.items()
    }
    messages, settings = extract.prompts.messages(prompt, **blocks), extract.settings
    return chat_request(settings, messages, schema, max_tokens=settings.extract_tokens)


def plan(extract: ExtractionInputs) -> Iterator[TaskSpec]:
    """Yield the task that locates missing sections, or the tasks that read them."""
    if extract.missing_sections:
        chat = places(extract)
        yield TaskSpec(
            stage="x.places", key=extract.document.key, skip=_skip(extract, chat)
        )
        return
    yield from _readings(extract, extract.sections)


def follow_up(
    extract: ExtractionInputs, group: tuple[Answer, ...]
) -> Iterator[TaskSpec]:
    """Yield the tasks that read the sections in a reply; missing ones are left out."""
    answer = group[0]
    if answer.task.stage == "x.places":
        yield from _readings(extract, sections_of(extract, answer.parsed))


def reaches(extract: ExtractionInputs) -> frozenset[str]:
    """Return the stages that the text and the settings need."""
    stages = {"x.meta", "x.refs"}
    if extract.missing_sections:
        stages.add("x.places")
    if extract.settings.with_excluded:
        stages.add("x.excluded")
    return frozenset(stages)


def sections_of(extract: ExtractionInputs, parsed: object) -> dict[Section, TextSpan]:
    """Return all sections: those with headings, and those that a reply locates."""
    spans = dict(extract.sections)
    if not isinstance(parsed, SectionPlaces):
        return spans
    for name in extract.missing_sections:
        span = _placed(extract.document, *parsed.lines.get(name, (0, None)))
        if span is not None:
            spans[name] = span
    return spans


def _placed(document: Document, begin: int, end: int | None) -> TextSpan | None:
    """Return the text after one numbered line and before another."""
    document_lines = list(lines(document))
    if not 1 <= begin <= len(document_lines) or (end is not None and end <= begin):
        return None
    stop = (
        document_lines[end - 1].span.start
        if end is not None and end <= len(document_lines)
        else len(document.text)
    )
    span = TextSpan(start=document_lines[begin - 1].span.end, end=stop)
    return span if document.piece(span) else None


def _readings(extract: ExtractionInputs, spans: Sections) -> Iterator[TaskSpec]:
    """Yield one task for the record, and one for each chunk of references."""
    meta_spans = {name: spans[name] for name in META_SECTIONS if name in spans}
    yield TaskSpec(
        stage="x.meta",
        key=extract.document.key,
        skip=_skip(extract, meta(extract, meta_spans)),
        context=sections_to_context(meta_spans),
    )
    if "included" not in spans:
        yield TaskSpec(stage="x.refs", key=extract.document.key, skip="no_references")
    for span in _chunks(extract, spans, "included"):
        yield TaskSpec(
            stage="x.refs",
            key=_key(extract.document, span),
            skip=_skip(extract, references(extract, span)),
            context=sections_to_context({"included": span}),
        )
    if extract.settings.with_excluded:
        for span in _chunks(extract, spans, "excluded"):
            chunk: dict[Section, TextSpan] = {"excluded": span}
            if "reasons" in spans:
                chunk["reasons"] = spans["reasons"]
            yield TaskSpec(
                stage="x.excluded",
                key=_key(extract.document, span),
                skip=_skip(extract, excluded(extract, chunk)),
                context=sections_to_context(chunk),
            )


def _chunks(
    extract: ExtractionInputs, spans: Sections, name: Section
) -> tuple[TextSpan, ...]:
    if name not in spans:
        return ()
    entry_spans = entries(extract.document, spans[name])
    return chunks(extract.document, entry_spans, extract.settings.chunk_references)


def _key(document: Document, span: TextSpan) -> str:
    """Return the key of a chunk, from its words, so that other chunks make other tasks.

    The words are the same in PDF and text, whose lines and pages differ.
    """
    words = " ".join(document.piece(span).split())
    return f"{document.key}#{sha256(words.encode()).hexdigest()[:DIGEST]}"


def _skip(extract: ExtractionInputs, chat: ChatRequest) -> str | None:
    is_long = is_longer_than(chat, extract.settings.max_prompt_tokens)
    return "too_long" if is_long else None
