"""The simulated model: what a reply says depends on the seed and the request alone."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final, assert_never

import msgspec

from runner.job import Job
from runner.reply import Content, Ranking, Vectors
from runner.request import ChatRequest, EmbedRequest, RerankRequest
from runner.simulate.asked import BYTES_PER_TOKEN, Asked, said
from runner.simulate.chance import Chance
from runner.simulate.content import fitting, plain_text
from runner.simulate.likeness import ranking, vectors

WORST_SHARE: Final = 0.4
"""With a job, up to this share of a model's answers is spoiled, the share drawn by its
name: models then differ, as real ones do."""


class SimulatedModel:
    """Answers requests, with a job's baseline where one is given."""

    def __init__(self, seed: int, job: Job | None) -> None:
        self._seed = seed
        self._job = job

    def answer(self, asked: Asked, digest: str) -> Content:
        """What the reply to *asked* says, whose body has the hash *digest*.

        As with a job's baseline: a text, vectors or scores, as was asked.
        """
        chance = Chance("answer", self._seed, digest)
        if self._job is not None:
            share = WORST_SHARE * Chance("share", self._seed, asked.model).unit()
            if chance.unit() >= share:
                return self._job.baseline(asked.request)
        match asked.request:
            case ChatRequest():
                return _text(asked.request, chance)
            case EmbedRequest():
                return vectors(asked.request, self._seed)
            case RerankRequest():
                return ranking(asked.request, self._seed)
            case _:
                assert_never(asked.request)


def _text(request: ChatRequest, chance: Chance) -> str:
    """A text that fits the request's schema, if it has one."""
    if request.schema is None:
        return plain_text(said(request), chance)
    schema = msgspec.json.decode(request.schema.json)
    return msgspec.json.encode(fitting(schema, said(request), chance)).decode()


def tokens_of(answer: Content) -> int:
    """Tokens of a reply, by its length; only texts have any."""
    return 1 + len(answer) // BYTES_PER_TOKEN if isinstance(answer, str) else 0


def reply_body(asked: Asked, digest: str, answer: Content) -> bytes:
    """The reply's body, without a time, so that it never varies."""
    match answer:
        case str():
            body = _completion(asked, digest, answer)
        case Vectors():
            body = _embeddings(asked, answer)
        case Ranking():
            body = _ranking(asked, digest, answer)
        case _:
            assert_never(answer)
    return msgspec.json.encode(body)


def _embeddings(asked: Asked, answer: Vectors) -> dict[str, Any]:
    """Vectors in OpenAI's form."""
    listed: list[str] | list[tuple[float, ...]] = (
        [b64encode(vector).decode() for vector in answer.packed]
        if asked.packed
        else answer.numbers()
    )
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(listed)
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": asked.tokens, "total_tokens": asked.tokens},
    }


def _ranking(asked: Asked, digest: str, answer: Ranking) -> dict[str, Any]:
    """Scores in the form of Cohere, Jina and vLLM."""
    return {
        "id": f"rerank-{digest[:24]}",
        "model": asked.model,
        "results": [
            {"index": each.index, "relevance_score": each.score}
            for each in answer.results
        ],
        "usage": {"total_tokens": asked.tokens},
    }


def _completion(asked: Asked, digest: str, text: str) -> dict[str, Any]:
    """A text in OpenAI's form."""
    tokens_out = tokens_of(text)
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": asked.tokens,
            "completion_tokens": tokens_out,
            "total_tokens": asked.tokens + tokens_out,
        },
    }


def malformed(body: bytes, shape: float) -> bytes:
    """A body that is no reply; *shape* in [0, 1) chooses how it is spoiled."""
    kinds = (
        b"",
        b"<html><body>502 Bad Gateway</body></html>",
        body[: len(body) // 2],
        b'{"object":"chat.completion","choices":[]}',
        b'{"error":{"message":"upstream failure"}}',
    )
    return kinds[int(shape * len(kinds))]
