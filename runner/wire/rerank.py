"""Cohere's form of rerank, which Jina, vLLM and others speak too."""

from __future__ import annotations

from typing import Final

import msgspec

from runner.errors import MalformedReply
from runner.parameters import decoded
from runner.reply import Ranked, Ranking, Usage
from runner.request import RerankRequest
from runner.wire.reading import UNREADABLE, read_body, usage_of
from runner.wire.texts import quoted

RERANK: Final = "cohere.rerank"
"""The form of Cohere's rerank."""


def encode_rerank(request: RerankRequest, model: str) -> bytes:
    """The body of a rerank request; *model* by the name the endpoint knows."""
    body: dict[str, object] = {
        "model": model,
        "query": quoted(request.query),
        "documents": [quoted(text) for text in request.documents],
    }
    if request.top_n is not None:
        body["top_n"] = request.top_n
    return msgspec.json.encode({**body, **decoded(request.parameters.extra_body)})


def encode_ranking(ranking: Ranking) -> bytes:
    """Scores that never crossed a wire, in the form `RERANK`."""
    body: dict[str, object] = {
        "results": [
            {"index": each.index, "relevance_score": each.score}
            for each in ranking.results
        ]
    }
    if ranking.usage is not None:
        body["usage"] = {"total_tokens": ranking.usage.tokens_in}
    return msgspec.json.encode(body)


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Billed(msgspec.Struct):
    input_tokens: float | None = None


class _Meta(msgspec.Struct):
    tokens: _Billed | None = None
    billed_units: _Billed | None = None


class _Ranking(msgspec.Struct):
    results: list[_Result]
    usage: _Usage | None = None  #: of Jina and vLLM
    meta: _Meta | None = None  #: of Cohere


_ranking: Final = msgspec.json.Decoder(_Ranking)


def decode_ranking(body: bytes) -> Ranking:
    """The scores in a body; raise `MalformedReply` where it has none."""
    try:
        found = read_body(_ranking, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a ranking ({error}).", body=body
        ) from error
    results = tuple(
        Ranked(index=each.index, score=each.relevance_score) for each in found.results
    )
    return Ranking(results=results, usage=_usage(found))


def _usage(found: _Ranking) -> Usage | None:
    """Tokens, where the endpoint counts any: Cohere's own bills by the search."""
    counted = found.usage.total_tokens if found.usage else None
    if counted is None and found.meta is not None:
        for billed in (found.meta.tokens, found.meta.billed_units):
            if billed is not None and billed.input_tokens is not None:
                counted = round(billed.input_tokens)
                break
    return None if counted is None else usage_of(counted)
