"""Defines the dialects of OpenAI and Azure, and rules for refused fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from runner.messages import ChatRequest
from runner.simulate.billing import TIER_FACTORS
from runner.simulate.dialect import (
    ANTHROPIC_PATHS,
    CHAT,
    EMBEDDINGS,
    JSON,
    MESSAGES,
    MODELS,
    OPENAI_BATCHES,
    RERANK,
    RESPONSES,
    TEXT,
    Dialect,
    ParameterRule,
    Reasoning,
    RefusalKind,
    RefusalWords,
    RefusedRequest,
    azure_error,
    inside,
    openai_error,
    three,
    without_resets,
)
from runner.simulate.options import openai_headers, retry_after
from runner.simulate.requests import SimulatedRequest

ANTHROPIC_FIELDS: Final = frozenset(
    (
        *("cache_control", "container", "diagnostics", "inference_geo"),
        *("max_tokens", "messages", "metadata", "model", "output_config"),
        *("service_tier", "speed", "stop_sequences", "stream", "system"),
        *("temperature", "thinking", "tool_choice", "tools", "top_k", "top_p"),
        *("user_profile_id", "workspace_id"),
    )
)
"""Fields of a message (types of the anthropic package, and fields for older models)."""

MISTRAL_FIELDS: Final = frozenset(
    (
        *("frequency_penalty", "guardrails", "max_tokens", "messages"),
        *("metadata", "model", "n", "parallel_tool_calls", "prediction"),
        *("presence_penalty", "prompt_mode", "random_seed", "reasoning_effort"),
        *("response_format", "safe_prompt", "stop", "stream", "temperature"),
        *("tool_choice", "tools", "top_p"),
    )
)
"""Fields of a chat (Mistral's API reference)."""


def only_default(name: str) -> ParameterRule:
    """Refuse values other than the default, as OpenAI's reasoning models."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        value = incoming.fields.get(name)
        if value is None or value == 1:
            return None
        return RefusedRequest(
            status=400,
            message=f"Unsupported value: '{name}' does not support {value} with this "
            f"model. Only the default (1) value is supported.",
            param=name,
            code="unsupported_value",
        )

    return rule


def unsupported(name: str, instead: str = "") -> ParameterRule:
    """Refuse the parameter, as OpenAI's reasoning models."""
    hint = f" Use '{instead}' instead." if instead else ""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        if incoming.fields.get(name) is None:
            return None
        return RefusedRequest(
            status=400,
            message=f"Unsupported parameter: '{name}' is not supported with this "
            f"model.{hint}",
            param=name,
            code="unsupported_parameter",
        )

    return rule


def extra_forbidden(known: Collection[str]) -> ParameterRule:
    """Refuse all unknown fields in one validation error, as Mistral."""

    def rule(incoming: SimulatedRequest, path: str) -> RefusedRequest | None:
        if path != CHAT:
            return None
        unknown_fields = [
            {
                "type": "extra_forbidden",
                "loc": ["body", name],
                "msg": "Extra inputs are not permitted",
                "input": value,
            }
            for name, value in incoming.fields.items()
            if name not in known
        ]
        if not unknown_fields:
            return None
        body: dict[str, Any] = {
            "object": "error",
            "message": {"detail": unknown_fields},
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        return RefusedRequest(status=422, message="", body=body)

    return rule


def unknown_field(known: Collection[str]) -> ParameterRule:
    """Refuse the first unknown field, as Anthropic."""

    def rule(incoming: SimulatedRequest, path: str) -> RefusedRequest | None:
        if path != MESSAGES:
            return None  # its OpenAI form ignores unknown fields
        name = next((name for name in incoming.fields if name not in known), None)
        if name is None:
            return None
        return RefusedRequest(
            status=400, message=f"{name}: Extra inputs are not permitted"
        )

    return rule


def temperature_range(
    low: float, high: float, message: str, **words: Any
) -> ParameterRule:
    """Refuse a temperature outside (*low*, *high*]."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        value = incoming.fields.get("temperature")
        if value is None or low < value <= high:
            return None
        return RefusedRequest(message=message, **{"status": 400, **words})

    return rule


def no_schema(
    status: int, message: str, *, media: str = JSON, **words: Any
) -> ParameterRule:
    """Refuse structured output with a JSON schema."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        form = incoming.fields.get("response_format")
        if not isinstance(form, dict) or form.get("type") != "json_schema":
            return None
        body = message if media == TEXT else None
        return RefusedRequest(
            status=status, message=message, media=media, body=body, **words
        )

    return rule


def no_system_role(words: RefusalWords) -> ParameterRule:
    """Refuse system messages for models with templates like Gemma's, by name."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        request = incoming.request
        if "gemma" not in incoming.model.lower() or not isinstance(
            request, ChatRequest
        ):
            return None
        if all(message.role != "system" for message in request.messages):
            return None
        return RefusedRequest(
            status=words.status,
            message=words.message.format(model=incoming.model),
            type=words.type,
            code=words.code,
        )

    return rule


def one_choice(message: str, **words: Any) -> ParameterRule:
    """Refuse more than one answer."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        if incoming.choices == 1:
            return None
        return RefusedRequest(message=message, **{"status": 400, "param": "n", **words})

    return rule


def penalties(names: Collection[str]) -> ParameterRule:
    """Refuse penalties, as xAI's reasoning models."""

    def rule(incoming: SimulatedRequest, _path: str) -> RefusedRequest | None:
        name = next((name for name in names if incoming.fields.get(name)), None)
        if name is None:
            return None
        return RefusedRequest(
            status=400,
            message=f"Argument not supported on this model: {name}",
            type="Client specified an invalid argument",
        )

    return rule


_NEW_CLAUDE: Final = re.compile(r"claude-(\w+-)*(4-[7-9]|[5-9])\b")


def sampling_is_deprecated(
    incoming: SimulatedRequest, _path: str
) -> RefusedRequest | None:
    """Refuse sampling parameters, as Anthropic's models since Opus 4.7."""
    if _NEW_CLAUDE.search(incoming.model) is None:
        return None
    refused = {"temperature": (None, 1), "top_p": (None,), "top_k": (None,)}
    for name, allowed in refused.items():
        if incoming.fields.get(name) not in allowed:
            return RefusedRequest(
                status=400, message=f"`{name}` is deprecated for this model."
            )
    return None


def thinking_needs_room(
    incoming: SimulatedRequest, _path: str
) -> RefusedRequest | None:
    """Require default temperature and room for thinking, as Anthropic."""
    thinking = incoming.fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens", 0)
    if incoming.fields.get("temperature", 1) != 1:
        return RefusedRequest(
            status=400,
            message="`temperature` may only be set to 1 when thinking is enabled.",
        )
    if budget >= (incoming.cap(("max_tokens",)) or 0):
        return RefusedRequest(
            status=400,
            message="`max_tokens` must be greater than `thinking.budget_tokens`.",
        )
    return None


CHAT_ONLY: Final = frozenset({CHAT, MODELS})
DEAR_TIERS: Final = frozenset(TIER_FACTORS) - {"batch"}

OPENAI_WORDS: Final[Mapping[RefusalKind, RefusalWords]] = MappingProxyType(
    {
        RefusalKind.KEY: RefusalWords(
            status=401,
            message="You didn't provide an API key. You need to provide your API key "
            "in an Authorization header using Bearer auth.",
        ),
        RefusalKind.PATH: RefusalWords(status=404, message="Invalid URL (POST {path})"),
        RefusalKind.MODEL: RefusalWords(
            status=404,
            message="The model `{model}` does not exist or you do not have access to "
            "it.",
            code="model_not_found",
        ),
        RefusalKind.NO_MODEL: RefusalWords(
            status=400, message="you must provide a model parameter"
        ),
        RefusalKind.NO_MESSAGES: RefusalWords(
            status=400,
            message="Invalid 'messages': empty array. Expected an array with minimum "
            "length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        ),
        RefusalKind.BODY: RefusalWords(status=400, message="{detail}"),
        RefusalKind.FILTER: RefusalWords(
            status=400,
            message="Your request was rejected as a result of our safety system.",
            code="content_policy_violation",
        ),
        RefusalKind.RATE: RefusalWords(
            status=429,
            message="Rate limit reached for {model} in organization org-simulated. "
            "Please try again in {wait}.",
            type="requests",
            code="rate_limit_exceeded",
        ),
        RefusalKind.QUOTA: RefusalWords(
            status=429,
            message="You exceeded your current quota, please check your plan and "
            "billing details.",
            type="insufficient_quota",
            code="insufficient_quota",
        ),
        RefusalKind.SERVER: RefusalWords(
            status=500,
            message="The server had an error while processing your request. Sorry "
            "about that!",
            type="server_error",
        ),
    }
)


def words(
    changes: Mapping[RefusalKind, RefusalWords],
) -> Mapping[RefusalKind, RefusalWords]:
    """Return OpenAI's wording with changes."""
    return MappingProxyType({**OPENAI_WORDS, **changes})


PLAIN: Final = Dialect(
    name="plain",
    summary="OpenAI's form without surprises; keeps to no limit on output",
    source="none: what a test needs",
    paths=CHAT_ONLY
    | OPENAI_BATCHES
    | ANTHROPIC_PATHS
    | {EMBEDDINGS, RERANK, RESPONSES},
    words=words(
        {
            RefusalKind.PATH: RefusalWords(
                status=404, message="There is nothing at {path}."
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="Too many requests.",
                type=None,
                code="rate_limit_exceeded",
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500, message="The simulated model failed.", type=None
            ),
        }
    ),
    error=openai_error,
    usage=three,
    needs_key=False,
    caps=(),
    limits=openai_headers,
    waits=retry_after,
    statuses=(500, 502, 503, 529),
)

OPENAI: Final = Dialect(
    name="openai",
    summary="OpenAI's chat models: dated names, fingerprints, cached input, tiers",
    source="types of the openai package; OpenAI's documentation and issue threads",
    paths=CHAT_ONLY | OPENAI_BATCHES | {EMBEDDINGS, RESPONSES},
    words=OPENAI_WORDS,
    error=openai_error,
    usage=inside,
    dated="-2025-08-07",
    fingerprints=("fp_44709d6fcb", "fp_b376dfbbd5", "fp_0aa8d3e20b"),
    reports_tier=True,
    tiers=DEAR_TIERS,
    ids=lambda served: {
        "x-request-id": served.request_id,
        "openai-processing-ms": "12",
        "openai-version": "2020-10-01",
    },
    limits=openai_headers,
    waits=retry_after,
    cache_least=1024,
    cache_step=128,
)

OPENAI_REASONING: Final = replace(
    OPENAI,
    name="openai-reasoning",
    summary="OpenAI's reasoning models: refuse temperature and max_tokens, "
    "reasoning inside completion",
    rules=(
        unsupported("max_tokens", instead="max_completion_tokens"),
        only_default("temperature"),
        *map(unsupported, ("top_p", "stop", "logprobs", "logit_bias")),
        unsupported("presence_penalty"),
        unsupported("frequency_penalty"),
    ),
    caps=("max_completion_tokens", "max_output_tokens"),
    reasoning=Reasoning(most=2000),
)

AZURE: Final = replace(
    OPENAI,
    name="azure",
    summary="Azure OpenAI: prompts filtered with 400, regions, limits as two fields",
    source="Azure's documentation and issue threads; no account was asked",
    words=words(
        {
            RefusalKind.KEY: RefusalWords(
                status=401,
                message="Access denied due to invalid subscription key or wrong API "
                "endpoint.",
                type=None,
                code="401",
            ),
            RefusalKind.MODEL: RefusalWords(
                status=404,
                message="The API deployment for this resource does not exist.",
                code="DeploymentNotFound",
                type=None,
            ),
            RefusalKind.FILTER: RefusalWords(
                status=400,
                message="The response was filtered due to the prompt triggering Azure "
                "OpenAI's content management policy. Please modify your prompt and "
                "retry.",
                type=None,
                param="prompt",
                code="content_filter",
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="Requests to the ChatCompletions_Create Operation have "
                "exceeded call rate limit of your current pricing tier. Please retry "
                "after {wait}.",
                type=None,
                code="429",
            ),
        }
    ),
    error=azure_error,
    rules=(unsupported("max_tokens", instead="max_completion_tokens"),),
    caps=("max_completion_tokens", "max_output_tokens"),
    ids=lambda served: {
        "apim-request-id": served.request_id,
        "x-request-id": served.request_id,
        "x-ms-region": "Sweden Central",
        "x-ms-deployment-name": served.model,
    },
    limits=without_resets,
    tiers=frozenset(),
    statuses=(408, 500, 503),
)

ONLY_RESPONSES: Final = replace(
    OPENAI_REASONING,
    name="responses",
    summary="OpenAI's models that only the Responses API has",
    paths=frozenset({MODELS, RESPONSES, EMBEDDINGS}) | OPENAI_BATCHES,
    words=words(
        {
            RefusalKind.PATH: RefusalWords(
                status=404,
                message="This model is only supported in v1/responses and not in "
                "v1/chat/completions.",
                param="model",
            )
        }
    ),
)
