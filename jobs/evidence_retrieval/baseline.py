"""Answers requests offline, from their words alone, as `baseline/lexical`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from jobs.evidence_retrieval.sentence_order import ranked
from jobs.kit.chat import read_blocks
from jobs.kit.lexical import Bm25, hashed_vector, tokens
from runner.messages import (
    ChatRequest,
    Content,
    EmbedRequest,
    RankedDocument,
    Ranking,
    Request,
    RerankRequest,
    Vectors,
)

_WORDS = """
a an the this that these those and or but if because as so of to in on at by for with
from about into i me my we our you your he she it its they them their is are was were be
been am have has had do does did will would can could should not no never
"""

FUNCTION_WORDS = frozenset(_WORDS.split())
"""Words of any sentence, which do not carry its topic."""

DENIALS = frozenset({"not", "no", "never"})
REACH = 3
"""Number of following words that a negation affects."""


def content_words(text: str) -> list[str]:
    """Return the words of a text without function words."""
    return [word for word in tokens(text) if word not in FUNCTION_WORDS]


def matches(sentences: Sequence[str], query: str) -> list[dict[str, float]]:
    """Return the share of each word of *query* in the bm25 score, by sentence."""
    pool = [" ".join(content_words(sentence)) for sentence in sentences]
    return Bm25(pool).shares(" ".join(content_words(query)))


def stated_scores(sentences: Sequence[str], query: str) -> list[float]:
    """Return bm25 scores in which a negated word counts half."""
    return [
        math.fsum(
            share * (1 - denied_share(words, word) / 2)
            for word, share in shares.items()
        )
        for words, shares in zip(
            map(tokens, sentences), matches(sentences, query), strict=True
        )
    ]


def denied_share(words: Sequence[str], word: str) -> float:
    """Return the share of a word's occurrences with a negation shortly before."""
    indices = [index for index, other in enumerate(words) if other == word]
    denied = [
        index
        for index in indices
        if not DENIALS.isdisjoint(words[max(0, index - REACH) : index])
    ]
    return len(denied) / len(indices)


def baseline(request: Request) -> Content:
    """Return the reply to a request of any kind."""
    match request:
        case EmbedRequest():
            return Vectors.of(
                hashed_vector(text, content_words(text)) for text in request.texts
            )
        case RerankRequest():
            return _ranking(request)
        case ChatRequest():
            return _chat(request)


def _chat(request: ChatRequest) -> str:
    prompt = next(
        message.text for message in request.messages if message.role == "user"
    )
    blocks = dict(read_blocks(prompt))
    criterion = blocks.get("criterion", "")
    if "candidates" in blocks:
        scores = stated_scores(_numbered(blocks["candidates"]), criterion)
        return _json({"ranking": [index + 1 for index in ranked(scores)]})
    sentences = _numbered(blocks.get("sentences", ""))
    if "criteria" not in blocks:
        return _json(_assessment(sentences, criterion))
    criteria = map(json.loads, blocks["criteria"].split("\n"))
    assessed = [
        {
            "id": criterion_fields["id"],
            **_assessment(sentences, criterion_fields["text"]),
        }
        for criterion_fields in criteria
    ]
    return _json({"criteria": assessed})


def _assessment(sentences: Sequence[str], criterion: str) -> dict[str, Any]:
    scores = stated_scores(sentences, criterion)
    most = max(scores, default=0.0)
    rated = [(n, round(100 * s / most)) for n, s in enumerate(scores, 1) if s > 0]
    return {
        "sentences": [{"n": n, "relevance": rate} for n, rate in rated if rate > 0],
        "evidence_probability": round(100 * (1 - math.exp(-most / 2))),
    }


def _ranking(request: RerankRequest) -> Ranking:
    shares = matches(request.documents, request.query)
    scores = [math.fsum(by_word.values()) for by_word in shares]
    best = ranked(scores)[: request.top_n]
    return Ranking(
        results=tuple(RankedDocument(index=n, score=scores[n]) for n in best)
    )


def _numbered(text: str) -> list[str]:
    """Return the listed sentences; one may span several lines."""
    sentences: list[str] = []
    for line in text.split("\n"):
        number = f"[{len(sentences) + 1}] "
        if line.startswith(number):
            sentences.append(line.removeprefix(number))
        elif sentences:
            sentences[-1] += f"\n{line}"
    return sentences


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
