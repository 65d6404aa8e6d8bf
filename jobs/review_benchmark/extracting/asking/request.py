"""The request of a task: a part of the review, and what is to be read from it."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.chat import chat
from jobs.review_benchmark.extracting.asking import prompts, schemas
from jobs.review_benchmark.extracting.asking.context import carried
from jobs.review_benchmark.extracting.cutting.sections import (
    LONGEST,
    Sections,
    lines,
)
from jobs.review_benchmark.extracting.extract import Extract
from jobs.source.document import Document, Span
from runner.request import ChatRequest, Schema
from runner.task import Task

HEAD = 8_000
"""Characters of the document's beginning that hold title, id and abstract."""

_SENTENCE_ENDS = (".", ",", ";")
"""No heading ends so."""


def request(extract: Extract, task: Task) -> ChatRequest:
    """The request of *task*; `KeyError` where it carries no place."""
    match task.stage:
        case "x.places":
            return places(extract)
        case "x.meta":
            return meta(extract, carried(task.context))
        case "x.refs":
            return references(extract, carried(task.context)["included"])
        case "x.excluded":
            return excluded(extract, carried(task.context))
        case _:
            raise KeyError(task.stage)


def places(extract: Extract) -> ChatRequest:
    """Where do the sections stand that no heading tells?"""
    told = "\n".join(
        f"{number}: {text}" for number, text in _possible_headings(extract.document)
    )
    blocks = (("wanted", ", ".join(extract.lacking)), ("lines", told))
    return _chat(extract, prompts.PLACES_SYSTEM, blocks, schemas.PLACES)


def meta(extract: Extract, spans: Sections) -> ChatRequest:
    """What does the review say of itself?"""
    document = extract.document
    head = document.piece(Span(start=0, end=HEAD))
    blocks: tuple[tuple[str, str], ...] = (
        ("head", head),
        *((name, document.piece(span)) for name, span in spans.items()),
    )
    return _chat(extract, prompts.META_SYSTEM, blocks, schemas.META)


def references(extract: Extract, span: Span) -> ChatRequest:
    """Which references does a chunk of the list hold?"""
    blocks = (("references", extract.document.piece(span)),)
    return _chat(extract, prompts.REFERENCES_SYSTEM, blocks, schemas.REFERENCES)


def excluded(extract: Extract, spans: Sections) -> ChatRequest:
    """Which references does a chunk of the excluded hold, and why?"""
    document = extract.document
    blocks = (
        *(
            (("reasons", document.piece(spans["reasons"])),)
            if "reasons" in spans
            else ()
        ),
        ("references", document.piece(spans["excluded"])),
    )
    return _chat(extract, prompts.EXCLUDED_SYSTEM, blocks, schemas.EXCLUDED)


def _possible_headings(document: Document) -> Iterator[tuple[int, str]]:
    """Lines that may be headings, by their number from 1."""
    for number, line in enumerate(lines(document), start=1):
        text = line.text
        if text and len(text) <= LONGEST and not text.endswith(_SENTENCE_ENDS):
            yield number, text


def _chat(
    extract: Extract,
    system: str,
    blocks: tuple[tuple[str, str], ...],
    schema: Schema,
) -> ChatRequest:
    messages, settings = prompts.messages(system, blocks), extract.settings
    return chat(settings, messages, schema, max_tokens=settings.extract_tokens)
