"""baseline/lexical: a model that knows the request's words and nothing else.

It is the floor of every experiment and the first run without key or network. It sees
the request only, costs nothing, and always gives the same answer.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.evidence_retrieval.asking.lexical import content_words, matches, stated_scores
from jobs.evidence_retrieval.asking.prompts import MARK_LENGTH
from jobs.evidence_retrieval.stages.ordering import ranked
from runner.reply import Content, Ranked, Ranking, Vectors
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest

BUCKETS = 256
"""Dimensions of a vector."""

_OPENING = re.compile(rf"<([a-z]+)-([0-9a-f]{{{MARK_LENGTH}}})>\n")


def baseline(request: Request) -> Content:
    """The reply to a request of any kind."""
    match request:
        case EmbedRequest():
            return Vectors.of(map(_vector, request.texts))
        case RerankRequest():
            return _ranking(request)
        case ChatRequest():
            return _chat(request)


def _chat(request: ChatRequest) -> str:
    asked = next(each.text for each in request.messages if each.role == "user")
    blocks = dict(_blocks(asked))
    criterion = blocks.get("criterion", "")
    if "candidates" in blocks:
        scores = stated_scores(_numbered(blocks["candidates"]), criterion)
        return _json({"ranking": [place + 1 for place in ranked(scores)]})
    sentences = _numbered(blocks.get("sentences", ""))
    if "criteria" not in blocks:
        return _json(_assessment(sentences, criterion))
    criteria = map(json.loads, blocks["criteria"].split("\n"))
    assessed = [
        {"id": each["id"], **_assessment(sentences, each["text"])} for each in criteria
    ]
    return _json({"criteria": assessed})


def _assessment(sentences: Sequence[str], criterion: str) -> dict[str, Any]:
    scores = stated_scores(sentences, criterion)
    most = max(scores, default=0.0)
    rated = [(n, round(100 * s / most)) for n, s in enumerate(scores, 1) if s > 0]
    return {
        "evidence_probability": round(100 * (1 - math.exp(-most / 2))),
        "sentences": [{"n": n, "relevance": rate} for n, rate in rated if rate > 0],
    }


def _ranking(request: RerankRequest) -> Ranking:
    shares = matches(request.documents, request.query)
    scores = [math.fsum(each.values()) for each in shares]
    best = ranked(scores)[: request.top_n]
    return Ranking(results=tuple(Ranked(index=n, score=scores[n]) for n in best))


def _vector(text: str) -> list[float]:
    """Counts of words in signed buckets, of length 1.

    A text without words, or whose words cancel out, is hashed as a whole: a vector
    without length would have no direction.
    """
    counts = _buckets(content_words(text))
    if not any(counts):
        counts = _buckets([text])
    length = math.sqrt(math.fsum(count * count for count in counts))
    return [count / length for count in counts]


def _buckets(words: Sequence[str]) -> list[int]:
    counts = [0] * BUCKETS
    for word in words:
        packed = word.encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
        bucket, rest = number % BUCKETS, number // BUCKETS
        counts[bucket] += 1 if rest % 2 else -1
    return counts


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Name and content of each block that stands between marks of its own hash."""
    at = 0
    while opening := _OPENING.search(text, at):
        name, own = opening.groups()
        closing = f"\n</{name}-{own}>"
        end = text.find(closing, opening.end())
        if end < 0:
            return
        yield name, text[opening.end() : end]
        at = end + len(closing)


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
