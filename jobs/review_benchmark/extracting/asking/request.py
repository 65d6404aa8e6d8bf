"""The request of a task: a part of the review, and what is to be read from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.chat import chat_request, data_block
from jobs.inputs.documents import Document, TextSpan
from jobs.review_benchmark.extracting.asking import schemas
from jobs.review_benchmark.extracting.asking.context import carried
from jobs.review_benchmark.extracting.cutting.sections import (
    LONGEST,
    Section,
    Sections,
    lines,
)
from jobs.review_benchmark.extracting.extract import Extract
from runner.job import Task
from runner.messages import ChatRequest, Schema

META: Final[tuple[Section, ...]] = ("objectives", "criteria", "conclusions")
"""The sections that a review's record is read from."""

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
    shown = {"wanted": ", ".join(extract.lacking), "lines": told}
    return _chat(extract, "x.places", shown, schemas.PLACES)


def meta(extract: Extract, spans: Sections) -> ChatRequest:
    """What does the review say of itself?"""
    document = extract.document
    head = document.piece(TextSpan(start=0, end=HEAD))
    shown = {"head": head}
    for name in META:
        shown[name] = _piece(document, spans, name)
    return _chat(extract, "x.meta", shown, schemas.META)


def references(extract: Extract, span: TextSpan) -> ChatRequest:
    """Which references does a chunk of the list hold?"""
    shown = {"references": extract.document.piece(span)}
    return _chat(extract, "x.refs", shown, schemas.REFERENCES)


def excluded(extract: Extract, spans: Sections) -> ChatRequest:
    """Which references does a chunk of the excluded hold, and why?"""
    document = extract.document
    shown = {
        "reasons": _piece(document, spans, "reasons"),
        "references": _piece(document, spans, "excluded"),
    }
    return _chat(extract, "x.excluded", shown, schemas.EXCLUDED)


def _piece(document: Document, spans: Sections, name: Section) -> str:
    """The text of a section; nothing where the review lacks it."""
    return document.piece(spans[name]) if name in spans else ""


def _possible_headings(document: Document) -> Iterator[tuple[int, str]]:
    """Lines that may be headings, by their number from 1."""
    for number, line in enumerate(lines(document), start=1):
        text = line.text
        if text and len(text) <= LONGEST and not text.endswith(_SENTENCE_ENDS):
            yield number, text


def _chat(
    extract: Extract, prompt: str, shown: Mapping[str, str], schema: Schema
) -> ChatRequest:
    """A request that shows texts, each between marks; empty ones are left out."""
    blocks = {
        name: data_block(name, text) if text else "" for name, text in shown.items()
    }
    messages, settings = extract.prompts.messages(prompt, **blocks), extract.settings
    return chat_request(settings, messages, schema, max_tokens=settings.extract_tokens)
