"""Answers offline as `baseline/lexical`, from the words of the request alone.

It is the floor of every experiment and the first run without key or network. It sees
the prompt only, costs nothing, and always gives the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jobs.kit.chat import read_blocks, text_outside_blocks
from jobs.kit.lexical import content_words, hashed_vector
from jobs.review_benchmark.data import PICO, QuestionParts
from jobs.review_benchmark.search import deterministic_plan
from runner.messages import ChatRequest, Content, EmbedRequest, Request, Vectors

TEXT, TITLE = 0.6, 0.4
"""What the two parts of a score weigh."""

SENTENCES_FROM = 3
"""Papers of which a conclusion is made, best first."""

_LINE = re.compile(r"([A-Z][^:\n]*): (.*)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FINDING = re.compile(r"\b(?:evidence|conclude|significant)", re.IGNORECASE)
_FOR = re.compile(r"\b(?:improve|reduce|effective)", re.IGNORECASE)
_AGAINST = re.compile(r"\bno difference\b|\bnot\b", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]+")
_SHARE = re.compile(r'"maximum":1\b|\b0(?: to |[-\u2013])1\b')


def baseline(request: Request) -> Content:
    """The reply to a request; nothing here asks for an order of documents.

    Raises:
        TypeError: it does.
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
    """Whether the reply is to have a key, by its schema or by the prompt's words."""
    return f'"{key}"' in _form(request)


def _is_share(request: ChatRequest) -> bool:
    """Whether a score is to be from 0 to 1 and not from 1 to 5."""
    return bool(_SHARE.search(_form(request)))


def _form(request: ChatRequest) -> str:
    """What is said of the reply's form."""
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
    """Shares of the question's words; a first estimate on either scale."""
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
    """The first sentence that states one."""
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
    """The fields of a block; of several with one label the last."""
    matches = (_LINE.fullmatch(line) for line in text.split("\n"))
    return {match[1]: match[2] for match in matches if match}
