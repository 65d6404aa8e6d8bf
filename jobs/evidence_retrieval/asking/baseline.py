"""baseline/lexical: a model that knows the request's words and nothing else.

It is the floor of every experiment and the first run without key or network. It sees
the request only, costs nothing, and always gives the same answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from jobs.chat import read_blocks
from jobs.evidence_retrieval.asking.lexical import content_words, matches, stated_scores
from jobs.evidence_retrieval.stages.ordering import ranked
from jobs.lexical import hashed_vector
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


def baseline(request: Request) -> Content:
    """The reply to a request of any kind."""
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
    asked = next(each.text for each in request.messages if each.role == "user")
    shown = dict(read_blocks(asked))
    criterion = shown.get("criterion", "")
    if "candidates" in shown:
        scores = stated_scores(_numbered(shown["candidates"]), criterion)
        return _json({"ranking": [place + 1 for place in ranked(scores)]})
    sentences = _numbered(shown.get("sentences", ""))
    if "criteria" not in shown:
        return _json(_assessment(sentences, criterion))
    criteria = map(json.loads, shown["criteria"].split("\n"))
    assessed = [
        {"id": each["id"], **_assessment(sentences, each["text"])} for each in criteria
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
    scores = [math.fsum(each.values()) for each in shares]
    best = ranked(scores)[: request.top_n]
    return Ranking(
        results=tuple(RankedDocument(index=n, score=scores[n]) for n in best)
    )


def _numbered(text: str) -> list[str]:
    """The sentences listed; one may run over several lines."""
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
