"""The simulated model: what a reply says depends on the seed and the request alone."""

from __future__ import annotations

from typing import Final

import msgspec

from runner.job import Job
from runner.simulate.asked import BYTES_PER_TOKEN, Asked
from runner.simulate.chance import Chance
from runner.simulate.content import fitting, plain_text

WORST_SHARE: Final = 0.4
"""With a job, up to this share of a model's answers is spoiled, the share drawn by its
name: models then differ, as real ones do."""


class SimulatedModel:
    """Answers requests, with a job's baseline where one is given."""

    def __init__(self, seed: int, job: Job | None) -> None:
        self._seed = seed
        self._job = job

    def answer(self, asked: Asked, digest: str) -> str:
        """The text of the reply to *asked*, whose body has the hash *digest*."""
        chance = Chance("answer", self._seed, digest)
        if self._job is not None:
            share = WORST_SHARE * Chance("share", self._seed, asked.model).unit()
            if chance.unit() >= share:
                return self._job.baseline(asked.request)
        if asked.request.schema is None:
            return plain_text(asked.text, chance)
        schema = msgspec.json.decode(asked.request.schema.json)
        return msgspec.json.encode(fitting(schema, asked.text, chance)).decode()


def tokens_of(text: str) -> int:
    """Tokens of a reply, by its length."""
    return 1 + len(text) // BYTES_PER_TOKEN


def completion(asked: Asked, digest: str, text: str) -> bytes:
    """The reply's body, in OpenAI's form; without a time, so that it never varies."""
    tokens_out = tokens_of(text)
    return msgspec.json.encode(
        {
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
    )


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
