"""Requests in litellm's words: the keywords of its functions.

Pure, and without litellm itself; what is the same for every request, such as the key,
is not in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from runner.request import ChatRequest, EmbedRequest, Message, RerankRequest
from runner.wire import Structure

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


def completion(
    request: ChatRequest, model: str, structure: Structure
) -> dict[str, Any]:
    """A chat, its schema put as *structure* says."""
    words: dict[str, Any] = {
        "messages": messages(request, model),
        "max_tokens": request.max_tokens,
    }
    if request.temperature is not None:
        words["temperature"] = request.temperature
    if request.schema is not None and structure is not Structure.TEXT:
        asked: dict[str, Any] = {"type": structure.value}
        if structure is Structure.SCHEMA:
            asked["json_schema"] = {
                "name": request.schema.name,
                "strict": True,
                "schema": msgspec.json.decode(request.schema.json),
            }
        words["response_format"] = asked
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
    return words


def rerank(request: RerankRequest) -> dict[str, Any]:
    """Documents to rank; they need not be sent back."""
    words: dict[str, Any] = {
        "query": request.query,
        "documents": list(request.documents),
        "return_documents": False,
    }
    if request.top_n is not None:
        words["top_n"] = request.top_n
    return words


def messages(request: ChatRequest, model: str) -> list[dict[str, Any]]:
    """The messages, with marks for Anthropic's prompt cache where they are known.

    Other providers cache by themselves, or, as Gemini, through requests of their own
    that litellm would make for the same marks.
    """
    if "claude" not in model.lower():
        return [
            {"role": message.role, "content": message.text}
            for message in request.messages
        ]
    spare = sum(part.cache for each in request.messages for part in each.parts)
    messages = []
    for message in request.messages:
        blocks, spare = _blocks(message, spare)
        messages.append({"role": message.role, "content": blocks})
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
