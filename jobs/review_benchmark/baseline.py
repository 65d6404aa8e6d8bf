"""Answers offline as `baseline/lexical`, from only the words of the request.

It is the floor of every experiment and the first run without key or network. It sees
only the prompt, costs nothing, and always gives the same answer.

It reads a review's text with patterns, and does well on the layout of a Cochrane
review: study headings, then `Authors. Title. Journal Year;...` with identifiers in
brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from jobs.kit.chat import read_blocks, text_outside_blocks
from jobs.kit.inputs.documents import Document
from jobs.kit.lexical import content_words, hashed_vector
from jobs.review_benchmark.data import PICO, QuestionParts
from jobs.review_benchmark.extraction.review_text import (
    PUBLICATION,
    entries,
    study_name,
)
from jobs.review_benchmark.search import deterministic_plan
from runner.messages import ChatRequest, Content, EmbedRequest, Request, Vectors

TEXT, TITLE = 0.6, 0.4
"""Weights of the two parts of a score."""

SENTENCES_FROM = 3
"""Number of papers from which a conclusion is drawn, best first."""

_LINE = re.compile(r"([A-Z][^:\n]*): (.*)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FINDING = re.compile(r"\b(?:evidence|conclude|significant)", re.IGNORECASE)
_FOR = re.compile(r"\b(?:improve|reduce|effective)", re.IGNORECASE)
_AGAINST = re.compile(r"\bno difference\b|\bnot\b", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]+")
_SHARE = re.compile(r'"maximum":1\b|\b0(?: to |[-\u2013])1\b')


def baseline(request: Request) -> Content:
    """Return the reply to a request; the job never requests a reranking.

    Raises:
        TypeError: the request is for a reranking.
    """
    match request:
        case ChatRequest():
            return _chat(request)
        case EmbedRequest():
            return Vectors.of(
                hashed_vector(text, content_words(text)) for text in request.texts
            )
        case _:
            raise TypeError(request)


def _chat(request: ChatRequest) -> str:
    user_text = "".join(
        message.text for message in request.messages if message.role == "user"
    )
    blocks = list(read_blocks(user_text))
    if not _EXTRACTION_BLOCKS.isdisjoint(name for name, _ in blocks):
        return json.dumps(_extracted(dict(blocks)), ensure_ascii=False)
    fields = {name: _fields(text) for name, text in blocks}
    papers = [_fields(text) for name, text in blocks if name == "paper"]
    if "search" in fields:
        answer = _plan(fields["review"], fields["search"])
    elif "conclusions" in fields:
        answer = _judged(fields["conclusions"])
    elif _wants(request, "conclusion"):
        answer = _concluded(papers)
    else:
        answer = _scored(fields["review"], papers[0], is_share=_is_share(request))
    return json.dumps(answer, ensure_ascii=False)


def _wants(request: ChatRequest, key: str) -> bool:
    """Return whether the reply needs a key, by its schema or by the prompt's words."""
    return f'"{key}"' in _form(request)


def _is_share(request: ChatRequest) -> bool:
    """Return whether a score ranges from 0 to 1 and not from 1 to 5."""
    return bool(_SHARE.search(_form(request)))


def _form(request: ChatRequest) -> str:
    """Return the part of the request that describes the reply's form."""
    if request.schema is not None:
        return request.schema.json
    return "\n".join(text_outside_blocks(message.text) for message in request.messages)


def _plan(review: Mapping[str, str], search: Mapping[str, str]) -> dict[str, Any]:
    most = _COUNT.search(search.get("Queries", ""))
    pico = QuestionParts(**{name: review.get(name.capitalize(), "") for name in PICO})
    queries = deterministic_plan(review.get("Question", ""), pico)
    return {
        "rationale": "Content words of the question.",
        "queries": [
            {"label": query.label, "all_of": query.all_of, "none_of": query.none_of}
            for query in queries[: int(most.group()) if most else None]
        ],
    }


def _scored(
    review: Mapping[str, str], paper: Mapping[str, str], *, is_share: bool
) -> dict[str, Any]:
    """Estimate a score on either scale from the share of the question's words."""
    parts = (review.get(name.capitalize(), "") for name in ("question", *PICO))
    question_words = set(content_words(" ".join(parts)))
    title = set(content_words(paper.get("Title", "")))
    read = title | set(content_words(paper.get("Abstract", "")))
    share = TEXT * _share(question_words, read) + TITLE * _share(question_words, title)
    return {
        "rationale": (
            f"{round(100 * _share(question_words, read))}% of the question's words."
        ),
        "score": round(share, 2) if is_share else round(1 + 4 * share, 1),
    }


def _concluded(papers: list[dict[str, str]]) -> dict[str, Any]:
    sentences = [
        finding
        for paper in papers[:SENTENCES_FROM]
        if (finding := _finding(paper.get("Abstract", "")))
    ]
    text = " ".join(sentences) or "The papers allow no conclusion."
    gains, losses = len(_FOR.findall(text)), len(_AGAINST.findall(text))
    direction = "unclear"
    if gains != losses:
        direction = "improves" if gains > losses else "no_difference"
    return {"conclusion": text, "direction": direction, "certainty": "unclear"}


def _finding(abstract: str) -> str:
    """Return the first sentence that states a finding."""
    sentences = _SENTENCE.split(abstract)
    return next((sentence for sentence in sentences if _FINDING.search(sentence)), "")


def _judged(conclusions: Mapping[str, str]) -> dict[str, Any]:
    first, second = (set(content_words(conclusions.get(name, ""))) for name in "AB")
    union = first | second
    jaccard = len(first & second) / len(union) if union else 0.0
    return {
        "rationale": "Content words in common.",
        "direction": "unclear",
        "similarity": round(100 * jaccard, 1),
    }


def _share(question_words: set[str], words: set[str]) -> float:
    return len(question_words & words) / len(question_words) if question_words else 0.0


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a block; of several with one label, the last."""
    matches = (_LINE.fullmatch(line) for line in text.split("\n"))
    return {match[1]: match[2] for match in matches if match}


_CITATION: Final = re.compile(
    r"(?:\*\s*)?(?P<authors>[^.]+)\.\s+(?P<title>.+?)[.?!]\s+"
    r"(?P<journal>[^.]*?)[.,;]?\s+(?P<year>(?:18|19|20)\d\d)\b"
)
_CITED: Final = 1_500
"""Characters of a reference to match; the pattern takes quadratic time."""

_DOI: Final = re.compile(r"\b10\.\d{4,9}/[^\s\];,]+")
_PMID: Final = re.compile(r"(?:PMID|PubMed|MEDLINE)\s*:?\s*(\d{1,8})", re.IGNORECASE)
_ID: Final = re.compile(r"\bCD\d{6}\b")
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

_EXTRACTION_BLOCKS: Final = frozenset({"wanted", "head", "references"})
"""Blocks that occur in extraction prompts only; each such prompt has one of them."""


def _extracted(blocks: Mapping[str, str]) -> dict[str, Any]:
    """Return the reply to an extraction prompt, by the blocks in it."""
    if "wanted" in blocks:
        lines = blocks.get("lines", "")
        return {"places": list(_section_lines(blocks["wanted"], lines))}
    if "head" in blocks:
        return _meta(blocks)
    reasons = blocks.get("reasons")
    return {"references": list(_references(blocks["references"], reasons))}


def _section_lines(section_names: str, numbered_lines: str) -> Iterator[dict[str, Any]]:
    """Yield the last line that fits each section, and the start of the next section."""
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
    """Return the first line of several words, and the next line if it continues it."""
    lines = [line.strip() for line in head.split("\n") if line.strip()]
    for line, after in pairwise((*lines, "")):
        if len(line.split()) >= _TITLE_WORDS and not line.startswith(_SERIES):
            return f"{line} {after}" if after[:1].islower() else line
    return None


def _part(criteria: str, title: str) -> str | None:
    """Return the paragraph under a heading."""
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
        # the first line holds only the study's name
        body = entry.partition("\n")[2] if name else entry
        for quote in _publications(body):
            reference = _reference(name, quote)
            reason = {} if reasons is None else {"reason": _reason(name, reasons)}
            yield reference | reason


def _publications(entry: str) -> Iterator[str]:
    """Yield the references of a study, each in one line."""
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
    """Return the text after a study's name in the table, to the end of the line."""
    for line in reasons.split("\n"):
        if name and line.strip().startswith(name):
            return line.strip()[len(name) :].strip() or None
    return None


def _flat(text: str) -> str:
    return " ".join(text.split())
