"""Answers an extraction offline as `baseline/lexical`, by patterns over the prompt.

It is the floor, and does well on a Cochrane review's own layout: study headings, then
`Authors. Title. Journal Year;...` with identifiers in brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from jobs.kit.chat import read_blocks
from jobs.kit.inputs.documents import Document
from jobs.review_benchmark.extraction.review_text import (
    PUBLICATION,
    entries,
    study_name,
)
from runner.messages import ChatRequest

_CITATION: Final = re.compile(
    r"(?:\*\s*)?(?P<authors>[^.]+)\.\s+(?P<title>.+?)[.?!]\s+"
    r"(?P<journal>[^.]*?)[.,;]?\s+(?P<year>(?:18|19|20)\d\d)\b"
)
_CITED: Final = 1_500
"""Characters of a reference that its pattern is tried on; it takes their square."""

_DOI: Final = re.compile(r"\b10\.\d{4,9}/[^\s\];,]+")
_PMID: Final = re.compile(r"(?:PMID|PubMed|MEDLINE)\s*:?\s*(\d{1,8})", re.IGNORECASE)
_ID: Final = re.compile(r"\bCD\d{6}\b")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_NUMBERED: Final = re.compile(r"(\d+): (.*)")
_TITLE_WORDS: Final = 4
_SERIES: Final = "Cochrane Database"

_PARTS: Final = {
    "population": "types of participants",
    "intervention": "types of interventions",
    "comparison": "types of comparisons",
    "outcome": "types of outcome measures",
}
_SECTION_PATTERNS: Final = {
    "objectives": re.compile(r"\b(?:objectives?|aims?|purpose)\b", re.IGNORECASE),
    "criteria": re.compile(r"\b(?:eligib|criteria)", re.IGNORECASE),
    "conclusions": re.compile(r"\bconclusions?\b", re.IGNORECASE),
    "included": re.compile(
        r"\bincluded (?:stud|trial)|\bstudies included", re.IGNORECASE
    ),
}


_BLOCK_NAMES: Final = frozenset({"wanted", "head", "references"})
"""Blocks of which every prompt of an extraction shows one, and no other prompt."""


def is_extraction_prompt(request: ChatRequest) -> bool:
    """Whether a prompt is one of an extraction."""
    return not _BLOCK_NAMES.isdisjoint(
        name for name, _ in read_blocks(_user_text(request))
    )


def baseline(request: ChatRequest) -> str:
    """The reply to a prompt, by what it shows."""
    blocks = dict(read_blocks(_user_text(request)))
    answer: dict[str, Any]
    if "wanted" in blocks:
        answer = {
            "places": list(_section_lines(blocks["wanted"], blocks.get("lines", "")))
        }
    elif "head" in blocks:
        answer = _meta(blocks)
    else:
        reasons = blocks.get("reasons")
        answer = {"references": list(_references(blocks["references"], reasons))}
    return json.dumps(answer, ensure_ascii=False)


def _user_text(request: ChatRequest) -> str:
    return "".join(
        message.text for message in request.messages if message.role == "user"
    )


def _section_lines(section_names: str, numbered_lines: str) -> Iterator[dict[str, Any]]:
    """The last line that sounds like each section, up to the next one that is said."""
    lines = [(int(m[1]), m[2]) for m in _NUMBERED.finditer(numbered_lines)]
    begins = {}
    for name in section_names.split(", "):
        fitting = [
            number for number, text in lines if _SECTION_PATTERNS[name].search(text)
        ]
        if fitting:
            begins[name] = fitting[-1]
    for name, begin in begins.items():
        later = [number for number in begins.values() if number > begin]
        yield {"section": name, "begin": begin, "end": min(later, default=None)}


def _meta(blocks: Mapping[str, str]) -> dict[str, Any]:
    head, criteria = blocks.get("head", ""), blocks.get("criteria", "")
    match = _ID.search(head)
    sentences = _SENTENCE.split(_flat(criteria))
    pico = {name: _part(criteria, title) for name, title in _PARTS.items()}
    return {
        "cochrane_id": match.group() if match else None,
        "title": _title(head),
        "research_question": _flat(blocks.get("objectives", "")) or None,
        "pico": pico if any(pico.values()) else None,
        "inclusion_criteria": [s for s in sentences if re.search(r"\binclu", s)],
        "exclusion_criteria": [s for s in sentences if re.search(r"\bexclu", s)],
        "authors_conclusion": _conclusion(blocks.get("conclusions", "")),
        "date_range": None,
    }


def _title(head: str) -> str | None:
    """The first line of several words, with the next where it goes on there."""
    lines = [line.strip() for line in head.split("\n") if line.strip()]
    for line, after in pairwise((*lines, "")):
        if len(line.split()) >= _TITLE_WORDS and not line.startswith(_SERIES):
            return f"{line} {after}" if after[:1].islower() else line
    return None


def _part(criteria: str, title: str) -> str | None:
    """The paragraph under a heading."""
    _, heading, rest = criteria.partition(_line_of(criteria, title))
    if not heading:
        return None
    return _flat(re.split(r"\n\s*(?:\n|Types of )", rest.strip(), maxsplit=1)[0])


def _line_of(text: str, title: str) -> str:
    headings = (line for line in text.split("\n") if line.strip().lower() == title)
    return next(headings, "\0")


def _conclusion(text: str) -> str | None:
    _, practice, rest = text.partition("Implications for practice")
    conclusion = rest if practice else text
    return _flat(conclusion.partition("Implications for research")[0]) or None


def _references(text: str, reasons: str | None) -> Iterator[dict[str, Any]]:
    document = Document(name="", text=text, starts=(0,))
    for span in entries(document, document.whole):
        entry = document.piece(span)
        name = study_name(entry) or None
        # a study's name has the first line to itself
        body = entry.partition("\n")[2] if name else entry
        for quote in _publications(body):
            reference = _reference(name, quote)
            reason = {} if reasons is None else {"reason": _reason(name, reasons)}
            yield reference | reason


def _publications(entry: str) -> Iterator[str]:
    """The references of a study, each in one line."""
    starts = [match.start() for match in PUBLICATION.finditer(entry)]
    bounds = [0, *(start for start in starts if start), len(entry)]
    for start, end in pairwise(bounds):
        if publication := _flat(entry[start:end]):
            yield publication


def _reference(name: str | None, quote: str) -> dict[str, Any]:
    cited = _CITATION.match(quote[:_CITED])
    doi, pmid = _DOI.search(quote), _PMID.search(quote)
    return {
        "cochrane_ref_id": name,
        "quote": quote,
        "authors": [author.strip() for author in cited["authors"].split(",")]
        if cited
        else [],
        "title": cited["title"] if cited else None,
        "year": int(cited["year"]) if cited else None,
        "journal": cited["journal"] if cited else None,
        "doi": doi.group().rstrip(".)") if doi else None,
        "pmid": pmid[1] if pmid else None,
    }


def _reason(name: str | None, reasons: str) -> str | None:
    """What stands after a study's name in the table, up to the end of the line."""
    for line in reasons.split("\n"):
        if name and line.strip().startswith(name):
            return line.strip()[len(name) :].strip() or None
    return None


def _flat(text: str) -> str:
    return " ".join(text.split())
