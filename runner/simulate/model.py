"""The simulated model: what a reply says depends on the seed and the request alone."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from runner.job import Job
from runner.reply import Content
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.simulate.asked import Asked, said
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

    def answer(self, asked: Asked, digest: str, choice: int = 0) -> Content:
        """What the reply to *asked* says, whose body has the hash *digest*.

        As with a job's baseline: a text, vectors or scores, as was asked.

        Args:
            asked: the request.
            digest: what chance depends on.
            choice: which of several answers to the same request, from 0.
        """
        chance = Chance("answer", self._seed, digest, *([choice] if choice else ()))
        if self._job is not None:
            share = WORST_SHARE * Chance("share", self._seed, asked.model).unit()
            if chance.unit() >= share:
                baseline = _baseline(self._job, asked.request)
                if baseline is not None:
                    return baseline
        match asked.request:
            case ChatRequest():
                return _text(asked.request, chance)
            case EmbedRequest():
                return vectors(asked.request, self._seed)
            case RerankRequest():
                return ranking(asked.request, self._seed)
            case _:
                assert_never(asked.request)


def _baseline(job: Job, request: Request) -> Content | None:
    """The job's own answer; None: the request is none of this job's."""
    try:
        answer = job.baseline(request)
    except Exception:  # noqa: BLE001 - a baseline may fail anyhow on foreign requests
        return None
    is_chat = isinstance(request, ChatRequest)
    return answer if isinstance(answer, str) is is_chat else None


def _text(request: ChatRequest, chance: Chance) -> str:
    """A text that fits the request's schema, if it has one."""
    if request.schema is None:
        return plain_text(said(request), chance)
    schema = msgspec.json.decode(request.schema.json)
    return msgspec.json.encode(fitting(schema, said(request), chance)).decode()


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
