"""How three families of providers write a reply: minimal, and written for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runner.clients.client import ClientOptions, Secret

TOKENS_IN, TOKENS_CACHED, TOKENS_OUT, TOKENS_REASONING = 14, 7, 3, 2
"""What every reply of this module says it used."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider as litellm names it, and what it says."""

    model: str
    variables: str  #: how its variables begin: ..._API_KEY, ..._API_BASE
    path: str  #: where a completion is asked for
    answer: Callable[[str, str], object]  #: a text and a reason in the form's words
    reasons: dict[str, str]  #: from ours to the form's
    refuse: Callable[[str], object]  #: an error's body

    def reply(self, text: str = "rs1", reason: str = "stop") -> object:
        """A whole reply."""
        return self.answer(text, self.reasons[reason])

    def __repr__(self) -> str:
        return self.model


def _anthropic(text: str, reason: str) -> dict[str, Any]:
    fresh = TOKENS_IN - TOKENS_CACHED
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "usage": {
            "input_tokens": fresh,
            "cache_read_input_tokens": TOKENS_CACHED,
            "cache_creation_input_tokens": 0,
            "output_tokens": TOKENS_OUT,
        },
    }


def _gemini(text: str, reason: str) -> dict[str, Any]:
    return {
        "candidates": [
            {
                "index": 0,
                "content": {"role": "model", "parts": [{"text": text}]},
                "finishReason": reason,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": TOKENS_IN,
            "cachedContentTokenCount": TOKENS_CACHED,
            "candidatesTokenCount": TOKENS_OUT,
            "totalTokenCount": TOKENS_IN + TOKENS_OUT,
        },
        "modelVersion": "gemini",
    }


def _openai(text: str, reason: str) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": reason,
            }
        ],
        "usage": {
            "prompt_tokens": TOKENS_IN,
            "completion_tokens": TOKENS_OUT,
            "total_tokens": TOKENS_IN + TOKENS_OUT,
            "prompt_tokens_details": {"cached_tokens": TOKENS_CACHED},
        },
    }


def openai_vectors(*vectors: list[float]) -> dict[str, Any]:
    """Embeddings as OpenAI and most others write them; here the last one first."""
    rows = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": TOKENS_IN, "total_tokens": TOKENS_IN}
    return {"object": "list", "data": rows[::-1], "model": "m", "usage": usage}


def gemini_vectors(*vectors: list[float]) -> dict[str, Any]:
    """Embeddings as Gemini writes them."""
    return {"embeddings": [{"values": vector} for vector in vectors]}


def cohere_ranking(*scores: float) -> dict[str, Any]:
    """Scores as Cohere writes them, the best first."""
    results = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
    return {
        "id": "r-1",
        "results": sorted(results, key=lambda each: -each["relevance_score"]),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


def jina_ranking(*scores: float) -> dict[str, Any]:
    """Scores as Jina and vLLM write them."""
    return {
        "model": "m",
        "results": cohere_ranking(*scores)["results"],
        "usage": {"total_tokens": TOKENS_IN},
    }


def _openai_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "some_error", "code": None}}


ANTHROPIC = Provider(
    model="anthropic/claude-sonnet-4-5",
    variables="ANTHROPIC",
    path="/v1/messages",
    answer=_anthropic,
    reasons={"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
    refuse=lambda message: {
        "type": "error",
        "error": {"type": "some_error", "message": message},
    },
)
GEMINI = Provider(
    model="gemini/gemini-2.5-flash",
    variables="GEMINI",
    path="/models/gemini-2.5-flash:generateContent",
    answer=_gemini,
    reasons={"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"},
    refuse=lambda message: {
        "error": {"code": 0, "message": message, "status": "SOME_ERROR"}
    },
)
DEEPSEEK = Provider(
    model="deepseek/deepseek-chat",
    variables="DEEPSEEK",
    path="/chat/completions",
    answer=_openai,
    reasons={reason: reason for reason in ("stop", "length", "content_filter")},
    refuse=_openai_error,
)
NVIDIA = Provider(
    model="nvidia_nim/some-model",
    variables="NVIDIA_NIM",
    path="/chat/completions",
    answer=_openai,
    reasons={reason: reason for reason in ("stop", "length", "content_filter")},
    refuse=_openai_error,
)
"""Unlike the others, litellm asks this one through OpenAI's SDK."""

PROVIDERS = (ANTHROPIC, GEMINI, DEEPSEEK, NVIDIA)


def batches_at(form: str, url: str, **options: Any) -> ClientOptions:
    """The options that reach batches of a *form* at *url*, each in its own way."""
    key = "any-key-will-do"
    if form == "openai":
        return ClientOptions(base_url=url, api_key=Secret(key), **options)
    address = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
    return ClientOptions(environment=address, **options)


def openai_response(
    *output: dict[str, Any], status: str = "completed", **fields: object
) -> dict[str, Any]:
    """A response of OpenAI's form, with all that its own library requires."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5-pro-2025-10-06",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": status,
        "error": None,
        "incomplete_details": None,
        "service_tier": "default",
        "usage": {
            "input_tokens": TOKENS_IN,
            "input_tokens_details": {
                "cached_tokens": TOKENS_CACHED,
                "cache_write_tokens": 0,
            },
            "output_tokens": TOKENS_OUT,
            "output_tokens_details": {"reasoning_tokens": TOKENS_REASONING},
            "total_tokens": TOKENS_IN + TOKENS_OUT,
        },
        **fields,
    }


def response_message(*parts: dict[str, Any], **fields: object) -> dict[str, Any]:
    """An output item that is a message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
        **fields,
    }


def response_text(text: str) -> dict[str, Any]:
    """A part of a message that is a text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


REASONING_ITEM: dict[str, Any] = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "The paper names one variant."}],
}
