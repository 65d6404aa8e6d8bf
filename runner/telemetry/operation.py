"""What an attempt asked of whom, in the words of the conventions."""

from __future__ import annotations

from typing import Final

import msgspec

from runner.clients.route import is_offline
from runner.telemetry.conventions import (
    COMPATIBLE,
    OFFLINE,
    OPERATIONS,
    PROVIDERS,
    Name,
)
from runner.telemetry.span import Attributes, Value
from runner.wire import OPENAI_CHAT, OPENAI_EMBEDDINGS, RERANK


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a stored request; see `runner.wire.skeleton`."""

    kind: str = "chat"
    max_tokens: int | None = None
    temperature: float | None = None
    dimensions: int | None = None
    schema: dict[str, str] | None = None


_DECODER: Final = msgspec.json.Decoder(Asked)

_KINDS: Final = {OPENAI_CHAT: "chat", OPENAI_EMBEDDINGS: "embed", RERANK: "rerank"}


def asked(skeleton: bytes | None, form: str) -> Asked:
    """What was asked, by the stored request, or by its reply's form where none is.

    Answers that were imported came without a request of ours.
    """
    if skeleton is None:
        return Asked(kind=_KINDS.get(form, "chat"))
    return _DECODER.decode(skeleton)


def parties(request: Asked, model: str) -> Attributes:
    """Which operation, of which provider, by which model: what metrics are told by."""
    beginning, _, name = model.partition("/")
    if is_offline(model):
        provider, shown = OFFLINE, model
    elif beginning in PROVIDERS and name:
        provider, shown = PROVIDERS[beginning], name
    else:
        provider, shown = COMPATIBLE, model
    return {
        Name.OPERATION: OPERATIONS.get(request.kind, request.kind),
        Name.PROVIDER: provider,
        Name.REQUEST_MODEL: shown,
    }


def parameters(request: Asked) -> Attributes:
    """The parameters that were sent; no text of the request is among them."""
    given: dict[str, Value | None] = {
        Name.MAX_TOKENS: request.max_tokens,
        Name.TEMPERATURE: request.temperature,
        Name.DIMENSIONS: request.dimensions,
        Name.OUTPUT_TYPE: None if request.schema is None else "json",
    }
    return {name: value for name, value in given.items() if value is not None}
