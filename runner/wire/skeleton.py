"""A request as it is stored: parameters, and its texts by their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, assert_never

import msgspec

from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.wire.texts import blob, encoded_part
from store.events import Blob


class Skeleton(NamedTuple):
    """A request as it is stored: small, with its texts by reference."""

    body: bytes  #: JSON: model, parameters, and the hashes of texts
    blobs: tuple[Blob, ...]  #: the texts, and the schema, behind the hashes
    sha256: str  #: hex, of the body: what makes two requests the same


def skeleton(request: Request, model: str) -> Skeleton:
    """What is stored beside `AttemptStarted`: the request with its texts by hash.

    The hash depends on the model, the parameters, the texts and the schema, and on
    nothing that may differ between two sendings of the same question: neither the
    endpoint nor the way the schema is put to it.
    """
    blobs: dict[bytes, Blob] = {}

    def reference(found: Blob) -> str:
        blobs.setdefault(found.sha256, found)
        return found.sha256.hex()

    facts = {"model": model, **_facts(request, reference)}
    if parameters := request.parameters.facts():
        # only where some are set: logs of before there were any go on
        facts["parameters"] = parameters
    body = msgspec.json.encode(facts)
    return Skeleton(body, tuple(blobs.values()), hashlib.sha256(body).hexdigest())


def _facts(request: Request, reference: Callable[[Blob], str]) -> dict[str, Any]:
    """All of *request*, each text replaced by its *reference*.

    A chat's facts name no kind: they were the first, and their hashes stand in logs.
    """
    match request:
        case ChatRequest():
            return _chat_facts(request, reference)
        case EmbedRequest():
            return {
                "kind": "embed",
                "dimensions": request.dimensions,
                "purpose": request.purpose,
                "texts": [reference(blob(text)) for text in request.texts],
            }
        case RerankRequest():
            return {
                "kind": "rerank",
                "top_n": request.top_n,
                "query": reference(blob(request.query)),
                "documents": [reference(blob(text)) for text in request.documents],
            }
        case _:
            assert_never(request)


def _chat_facts(
    request: ChatRequest, reference: Callable[[Blob], str]
) -> dict[str, Any]:
    def part(text: str) -> str:
        return reference(encoded_part(text).blob)

    return {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "schema": request.schema
        and {"name": request.schema.name, "sha256": part(request.schema.json)},
        "messages": [
            {"role": message.role, "parts": [part(text.text) for text in message.parts]}
            for message in request.messages
        ],
    }
