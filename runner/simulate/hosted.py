"""The dialects of hosted providers, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from runner.simulate import refusing as r
from runner.simulate.bill import TIER_FACTORS
from runner.simulate.dialect import (
    ANTHROPIC_PATHS,
    CHAT,
    EMBEDDINGS,
    MODELS,
    OPENAI_BATCHES,
    RERANK,
    RESPONSES,
    Dialect,
    Kind,
    Reasoning,
    Words,
    anthropic_error,
    anthropic_limits,
    azure_error,
    beside,
    charged,
    draft_limits,
    flat_error,
    google_error,
    groq_limits,
    hit_and_miss,
    inside,
    milliseconds,
    only_in_total,
    openai_error,
    openrouter_error,
    three,
    timed,
    whole_seconds,
    without_resets,
    xai_error,
)
from runner.simulate.limits import openai_headers, retry_after

CHAT_ONLY: Final = frozenset({CHAT, MODELS})
DEAR_TIERS: Final = frozenset(TIER_FACTORS) - {"batch"}

OPENAI_WORDS: Final[Mapping[Kind, Words]] = MappingProxyType(
    {
        Kind.KEY: Words(
            status=401,
            message="You didn't provide an API key. You need to provide your API key "
            "in an Authorization header using Bearer auth.",
        ),
        Kind.PATH: Words(status=404, message="Invalid URL (POST {path})"),
        Kind.MODEL: Words(
            status=404,
            message="The model `{model}` does not exist or you do not have access to "
            "it.",
            code="model_not_found",
        ),
        Kind.NO_MODEL: Words(status=400, message="you must provide a model parameter"),
        Kind.NO_MESSAGES: Words(
            status=400,
            message="Invalid 'messages': empty array. Expected an array with minimum "
            "length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        ),
        Kind.BODY: Words(status=400, message="{detail}"),
        Kind.FILTER: Words(
            status=400,
            message="Your request was rejected as a result of our safety system.",
            code="content_policy_violation",
        ),
        Kind.RATE: Words(
            status=429,
            message="Rate limit reached for {model} in organization org-simulated. "
            "Please try again in {wait}.",
            type="requests",
            code="rate_limit_exceeded",
        ),
        Kind.QUOTA: Words(
            status=429,
            message="You exceeded your current quota, please check your plan and "
            "billing details.",
            type="insufficient_quota",
            code="insufficient_quota",
        ),
        Kind.SERVER: Words(
            status=500,
            message="The server had an error while processing your request. Sorry "
            "about that!",
            type="server_error",
        ),
    }
)


def words(changes: Mapping[Kind, Words]) -> Mapping[Kind, Words]:
    """OpenAI's words with some of them changed."""
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
            Kind.PATH: Words(status=404, message="There is nothing at {path}."),
            Kind.RATE: Words(
                status=429,
                message="Too many requests.",
                type=None,
                code="rate_limit_exceeded",
            ),
            Kind.SERVER: Words(
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
    tells_tier=True,
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
        r.unsupported("max_tokens", instead="max_completion_tokens"),
        r.only_default("temperature"),
        *map(r.unsupported, ("top_p", "stop", "logprobs", "logit_bias")),
        r.unsupported("presence_penalty"),
        r.unsupported("frequency_penalty"),
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
            Kind.KEY: Words(
                status=401,
                message="Access denied due to invalid subscription key or wrong API "
                "endpoint.",
                type=None,
                code="401",
            ),
            Kind.MODEL: Words(
                status=404,
                message="The API deployment for this resource does not exist.",
                code="DeploymentNotFound",
                type=None,
            ),
            Kind.FILTER: Words(
                status=400,
                message="The response was filtered due to the prompt triggering Azure "
                "OpenAI's content management policy. Please modify your prompt and "
                "retry.",
                type=None,
                param="prompt",
                code="content_filter",
            ),
            Kind.RATE: Words(
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
    rules=(r.unsupported("max_tokens", instead="max_completion_tokens"),),
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

_ANTHROPIC: Final = words(
    {
        Kind.KEY: Words(
            status=401,
            message="x-api-key header is required",
            type="authentication_error",
        ),
        Kind.PATH: Words(status=404, message="Not Found", type="not_found_error"),
        Kind.MODEL: Words(status=404, message="model: {model}", type="not_found_error"),
        Kind.NO_MODEL: Words(status=400, message="model: Field required"),
        Kind.NO_MESSAGES: Words(
            status=400, message="messages: at least one message is required"
        ),
        Kind.FILTER: Words(
            status=400, message="Output blocked by content filtering policy"
        ),
        Kind.RATE: Words(
            status=429,
            message="This request would exceed your organization's rate limit.",
            type="rate_limit_error",
        ),
        Kind.QUOTA: Words(
            status=400,
            message="Your credit balance is too low to access the Anthropic API. "
            "Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        Kind.SERVER: Words(status=529, message="Overloaded", type="overloaded_error"),
    }
)

ANTHROPIC: Final = Dialect(
    name="anthropic",
    summary="Anthropic: input excludes the cached; writes cost; thinking in output",
    source="types of the anthropic package; Anthropic's documentation",
    paths=CHAT_ONLY | ANTHROPIC_PATHS,
    words=_ANTHROPIC,
    error=anthropic_error,
    usage=three,
    rules=(
        r.unknown_field(r.ANTHROPIC_FIELDS),
        r.temperature_range(-1, 1, "temperature: range: 0..1"),
        r.sampling_is_deprecated,
        r.thinking_needs_room,
    ),
    caps=("max_tokens", "max_completion_tokens"),
    ignored=frozenset({"response_format"}),
    dated="-20250929",
    tells_tier=True,
    tiers=frozenset({"priority"}),
    ids=lambda served: {
        "request-id": served.request_id,
        "anthropic-organization-id": "org_simulated",
    },
    limits=anthropic_limits,
    waits=whole_seconds,
    statuses=(500, 529),
    cache_least=1024,
    cache_writes=True,
)

GEMINI: Final = Dialect(
    name="gemini-openai",
    summary="Gemini's OpenAI form: thoughts only in the total, errors in a list",
    source="Google's documentation and issue threads; no account was asked",
    paths=CHAT_ONLY | OPENAI_BATCHES | {EMBEDDINGS},
    words=words(
        {
            Kind.KEY: Words(
                status=400,
                message="Missing or invalid Authorization header.",
                type="INVALID_ARGUMENT",
            ),
            Kind.MODEL: Words(
                status=404,
                message="models/{model} is not found for API version v1main, or is "
                "not supported for generateContent.",
                type="NOT_FOUND",
            ),
            Kind.NO_MODEL: Words(
                status=400, message="model is not specified", type="INVALID_ARGUMENT"
            ),
            Kind.NO_MESSAGES: Words(
                status=400,
                message="contents is not specified",
                type="INVALID_ARGUMENT",
            ),
            Kind.BODY: Words(status=400, message="{detail}", type="INVALID_ARGUMENT"),
            Kind.RATE: Words(
                status=429,
                message="You exceeded your current quota, please check your plan and "
                "billing details. Please retry in {wait}.",
                type="RESOURCE_EXHAUSTED",
            ),
            Kind.QUOTA: Words(
                status=429,
                message="You exceeded your current quota, please check your plan and "
                "billing details.",
                type="RESOURCE_EXHAUSTED",
            ),
            Kind.SERVER: Words(
                status=503,
                message="The model is overloaded. Please try again later.",
                type="UNAVAILABLE",
            ),
        }
    ),
    error=google_error,
    usage=only_in_total,
    rules=(
        r.no_system_role(
            Words(
                status=400,
                message="Developer instruction is not enabled for models/{model}",
                type="INVALID_ARGUMENT",
            )
        ),
    ),
    reasoning=Reasoning(most=1500),
    empty=None,
    statuses=(500, 503),
    cache_least=1024,
)

XAI: Final = Dialect(
    name="xai",
    summary="xAI: reasoning beside completion, and not bounded by the limit on output",
    source="litellm's transformation; issue threads with raw replies; no account asked",
    paths=CHAT_ONLY | {RESPONSES},
    words=words(
        {
            Kind.KEY: Words(
                status=401,
                message="No API key provided.",
                type="Unauthenticated",
            ),
            Kind.MODEL: Words(
                status=404,
                message="The model {model} does not exist or your team does not have "
                "access to it.",
                type="Some requested entity was not found",
            ),
            Kind.RATE: Words(
                status=429,
                message="Too many requests for the model {model}.",
                type="Some resource has been exhausted",
            ),
            Kind.QUOTA: Words(
                status=429,
                message="Your team has either used all available credits or reached "
                "its monthly spending limit.",
                type="Some resource has been exhausted",
            ),
            Kind.SERVER: Words(
                status=500, message="Internal error", type="Internal error"
            ),
        }
    ),
    error=xai_error,
    usage=beside,
    rules=(r.penalties(("presence_penalty", "frequency_penalty", "stop")),),
    reasoning=Reasoning(most=800, is_capped=False, shown="reasoning_content"),
    fingerprints=("fp_156d35dcaa", "fp_19e21a36c0"),
    ids=lambda served: {"x-request-id": served.request_id},
    limits=without_resets,
    cache_least=128,
)

DEEPSEEK: Final = Dialect(
    name="deepseek",
    summary="DeepSeek: cache hits and misses, reasoning_content, no JSON schema",
    source="DeepSeek's documentation; litellm's transformation; no account was asked",
    paths=CHAT_ONLY,
    words=words(
        {
            Kind.KEY: Words(
                status=401,
                message="Authentication Fails (no such user)",
                type="authentication_error",
            ),
            Kind.MODEL: Words(
                status=400, message="Model Not Exist", code="invalid_request_error"
            ),
            Kind.QUOTA: Words(
                status=402, message="Insufficient Balance", type="unknown_error"
            ),
        }
    ),
    error=openai_error,
    usage=hit_and_miss,
    rules=(
        r.no_schema(
            400,
            "This response_format type is unavailable now",
            code="invalid_request_error",
        ),
    ),
    caps=("max_tokens",),
    reasoning=Reasoning(most=1000, shown="reasoning_content"),
    fingerprints=("fp_8802369eaa_prod0820_fp8_kvcache", "fp_f253fc19d1_prod0820"),
    statuses=(500, 503),
    cache_least=64,
    cache_step=64,
)

MISTRAL: Final = Dialect(
    name="mistral",
    summary="Mistral: 422 extra_forbidden for every field it does not know",
    source="issue threads with raw replies; Mistral's documentation; no account asked",
    paths=CHAT_ONLY | {EMBEDDINGS},
    words=words(
        {
            Kind.KEY: Words(status=401, message="Unauthorized", type=None),
            Kind.MODEL: Words(
                status=400,
                message="Invalid model: {model}",
                type="invalid_model",
                code="1500",
            ),
            Kind.RATE: Words(
                status=429,
                message="Requests rate limit exceeded",
                type="rate_limited",
                code="1300",
            ),
            Kind.QUOTA: Words(
                status=429,
                message="Service tier capacity exceeded for this model.",
                type="service_tier_capacity_exceeded",
                code="3505",
            ),
            Kind.SERVER: Words(
                status=500,
                message="Service unavailable.",
                type="internal_server_error",
                code="3800",
            ),
        }
    ),
    error=flat_error,
    usage=three,
    rules=(r.extra_forbidden(r.MISTRAL_FIELDS),),
    caps=("max_tokens",),
    ids=lambda served: {"mistral-correlation-id": served.request_id},
    limits=draft_limits,
    statuses=(500, 502, 503),
    html=frozenset({502}),
)

GROQ: Final = Dialect(
    name="groq",
    summary="Groq: requests a day in the headers, 498, 400 where JSON was cut",
    source="Groq's documentation and issue threads; no account was asked",
    paths=CHAT_ONLY | OPENAI_BATCHES,
    words=words(
        {
            Kind.RATE: Words(
                status=429,
                message="Rate limit reached for model `{model}` in organization "
                "`org_simulated` service tier `on_demand` on tokens per minute (TPM). "
                "Please try again in {wait}.",
                type="tokens",
                code="rate_limit_exceeded",
            ),
            Kind.QUOTA: Words(
                status=429,
                message="You have reached your spend limit: insufficient_quota.",
                type="insufficient_quota",
                code="insufficient_quota",
            ),
            Kind.SERVER: Words(
                status=503,
                message="Service Unavailable",
                type="internal_server_error",
            ),
        }
    ),
    error=openai_error,
    usage=timed,
    rules=(
        r.one_choice("'n' : number must be at most 1"),
        *(r.unsupported(name) for name in ("logprobs", "logit_bias", "top_logprobs")),
    ),
    fingerprints=("fp_179b0f92c9", "fp_80501ff3a1"),
    tells_tier=True,
    tiers=frozenset({"flex"}),
    more=lambda served: {"x_groq": {"id": f"req_{served.request_id}"}},
    ids=lambda served: {"x-request-id": served.request_id},
    limits=groq_limits,
    waits=whole_seconds,
    statuses=(498, 500, 503),
    cut_schema=Words(
        status=400,
        message="Failed to generate JSON. Please adjust your prompt. See "
        "'failed_generation' for more details.",
        code="json_validate_failed",
    ),
)

OPENROUTER: Final = Dialect(
    name="openrouter",
    summary="OpenRouter: one of several providers, cost in usage, status as code",
    source="OpenRouter's documentation and issue threads; no account was asked",
    paths=CHAT_ONLY | {EMBEDDINGS, RESPONSES},
    words=words(
        {
            Kind.KEY: Words(status=401, message="No auth credentials found"),
            Kind.MODEL: Words(status=400, message="{model} is not a valid model ID"),
            Kind.RATE: Words(status=429, message="Rate limit exceeded"),
            Kind.QUOTA: Words(
                status=402,
                message="Insufficient credits. Add more using "
                "https://openrouter.ai/settings/credits",
            ),
            Kind.SERVER: Words(status=502, message="Provider returned error"),
        }
    ),
    error=openrouter_error,
    usage=charged,
    reasoning=Reasoning(most=600, shown="reasoning"),
    providers=("DeepInfra", "Together", "Fireworks", "Novita"),
    more=lambda served: {"provider": served.provider},
    ids=lambda served: {"cf-ray": f"{served.request_id[-16:]}-AMS"},
    limits=milliseconds,
    statuses=(502, 503, 524),
    html=frozenset({524}),
    cache_least=1024,
    cache_writes=True,
    empty=None,
)

ONLY_RESPONSES: Final = replace(
    OPENAI_REASONING,
    name="responses",
    summary="OpenAI's models that only the Responses API has",
    paths=frozenset({MODELS, RESPONSES, EMBEDDINGS}) | OPENAI_BATCHES,
    words=words(
        {
            Kind.PATH: Words(
                status=404,
                message="This model is only supported in v1/responses and not in "
                "v1/chat/completions.",
                param="model",
            )
        }
    ),
)
