"""Requests in litellm's words: the keywords of its functions.

Pure, and without litellm itself; what is the same for every request, such as the key,
is not in here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from runner.parameters import decoded
from runner.request import ChatRequest, EmbedRequest, Message, RerankRequest
from runner.wire import Shape, Structure
from runner.wire.chat import response_format
from runner.wire.shape import chat_fields, messages_in

MOST_BREAKPOINTS: Final = 4
"""Anthropic refuses a request with more (its documentation, "Prompt caching")."""

PURPOSES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "cohere": {
        "query": {"input_type": "search_query"},
        "document": {"input_type": "search_document"},
    },
    "gemini": {
        "query": {"taskType": "RETRIEVAL_QUERY"},
        "document": {"taskType": "RETRIEVAL_DOCUMENT"},
    },
    "nvidia_nim": {
        "query": {"input_type": "query"},
        "document": {"input_type": "passage"},
    },
}
"""How a provider is told what texts to embed are for. NVIDIA and Cohere insist on
being told something, so without a purpose the texts are documents there."""


def completion(request: ChatRequest, model: str, shape: Shape) -> dict[str, Any]:
    """A chat, written as *shape* says."""
    fields = chat_fields(request, shape)
    extra = {
        name: fields.pop(name)
        for name in decoded(request.parameters.extra_body)
        if name in fields
    }
    words: dict[str, Any] = {
        "messages": messages(messages_in(request, shape), model),
        **fields,
    }
    if extra:
        words["extra_body"] = extra
    if request.schema is not None and shape.structure is not Structure.TEXT:
        words["response_format"] = msgspec.json.decode(
            msgspec.json.encode(response_format(request.schema, shape))
        )
    return words


def embedding(request: EmbedRequest, model: str) -> dict[str, Any]:
    """Texts to embed."""
    provider = model.partition("/")[0]
    purposes = PURPOSES.get(provider, {})
    words: dict[str, Any] = {"input": list(request.texts)}
    if request.dimensions is not None:
        words["dimensions"] = request.dimensions
    if request.purpose is not None or provider != "gemini":
        words |= purposes.get(request.purpose or "document", {})
    return {**words, **decoded(request.parameters.extra_body)}


def rerank(request: RerankRequest) -> dict[str, Any]:
    """Documents to rank; they need not be sent back."""
    words: dict[str, Any] = {
        "query": request.query,
        "documents": list(request.documents),
        "return_documents": False,
    }
    if request.top_n is not None:
        words["top_n"] = request.top_n
    return {**words, **decoded(request.parameters.extra_body)}


def messages(asked: Sequence[tuple[str, Message]], model: str) -> list[dict[str, Any]]:
    """Messages by role, with marks for Anthropic's prompt cache where they are known.

    Other providers cache by themselves, or, as Gemini, through requests of their own
    that litellm would make for the same marks.
    """
    if "claude" not in model.lower():
        return [{"role": role, "content": message.text} for role, message in asked]
    spare = sum(part.cache for _, each in asked for part in each.parts)
    messages = []
    for role, message in asked:
        blocks, spare = _blocks(message, spare)
        messages.append({"role": role, "content": blocks})
    return messages


def _blocks(message: Message, marks: int) -> tuple[list[dict[str, Any]], int]:
    """The message cut after its breakpoints; the last few of all *marks* are set."""
    blocks: list[dict[str, Any]] = []
    text = ""
    for part in message.parts:
        text += part.text
        if part.cache:
            block: dict[str, Any] = {"type": "text", "text": text}
            if marks <= MOST_BREAKPOINTS:
                block["cache_control"] = {"type": "ephemeral"}
            marks -= 1
            blocks.append(block)
            text = ""
    if text or not blocks:
        blocks.append({"type": "text", "text": text})
    return blocks, marks
