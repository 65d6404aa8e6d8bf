"""The dialects of other hosted providers, one row each."""

from __future__ import annotations

from typing import Final

from runner.simulate import openai_dialects as r
from runner.simulate.dialect import (
    ANTHROPIC_PATHS,
    EMBEDDINGS,
    OPENAI_BATCHES,
    RESPONSES,
    Dialect,
    Reasoning,
    RefusalKind,
    RefusalWords,
    anthropic_error,
    anthropic_limits,
    charged,
    draft_limits,
    flat_error,
    google_error,
    groq_limits,
    hit_and_miss,
    milliseconds,
    only_in_total,
    openai_error,
    openrouter_error,
    outside,
    three,
    timed,
    whole_seconds,
    without_resets,
    xai_error,
)
from runner.simulate.openai_dialects import CHAT_ONLY, words

_ANTHROPIC: Final = words(
    {
        RefusalKind.KEY: RefusalWords(
            status=401,
            message="x-api-key header is required",
            type="authentication_error",
        ),
        RefusalKind.PATH: RefusalWords(
            status=404, message="Not Found", type="not_found_error"
        ),
        RefusalKind.MODEL: RefusalWords(
            status=404, message="model: {model}", type="not_found_error"
        ),
        RefusalKind.NO_MODEL: RefusalWords(status=400, message="model: Field required"),
        RefusalKind.NO_MESSAGES: RefusalWords(
            status=400, message="messages: at least one message is required"
        ),
        RefusalKind.FILTER: RefusalWords(
            status=400, message="Output blocked by content filtering policy"
        ),
        RefusalKind.RATE: RefusalWords(
            status=429,
            message="This request would exceed your organization's rate limit.",
            type="rate_limit_error",
        ),
        RefusalKind.QUOTA: RefusalWords(
            status=400,
            message="Your credit balance is too low to access the Anthropic API. "
            "Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        RefusalKind.SERVER: RefusalWords(
            status=529, message="Overloaded", type="overloaded_error"
        ),
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
    reports_tier=True,
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
            RefusalKind.KEY: RefusalWords(
                status=400,
                message="Missing or invalid Authorization header.",
                type="INVALID_ARGUMENT",
            ),
            RefusalKind.MODEL: RefusalWords(
                status=404,
                message="models/{model} is not found for API version v1main, or is "
                "not supported for generateContent.",
                type="NOT_FOUND",
            ),
            RefusalKind.NO_MODEL: RefusalWords(
                status=400, message="model is not specified", type="INVALID_ARGUMENT"
            ),
            RefusalKind.NO_MESSAGES: RefusalWords(
                status=400,
                message="contents is not specified",
                type="INVALID_ARGUMENT",
            ),
            RefusalKind.BODY: RefusalWords(
                status=400, message="{detail}", type="INVALID_ARGUMENT"
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="You exceeded your current quota, please check your plan and "
                "billing details. Please retry in {wait}.",
                type="RESOURCE_EXHAUSTED",
            ),
            RefusalKind.QUOTA: RefusalWords(
                status=429,
                message="You exceeded your current quota, please check your plan and "
                "billing details.",
                type="RESOURCE_EXHAUSTED",
            ),
            RefusalKind.SERVER: RefusalWords(
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
            RefusalWords(
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
            RefusalKind.KEY: RefusalWords(
                status=401,
                message="No API key provided.",
                type="Unauthenticated",
            ),
            RefusalKind.MODEL: RefusalWords(
                status=404,
                message="The model {model} does not exist or your team does not have "
                "access to it.",
                type="Some requested entity was not found",
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="Too many requests for the model {model}.",
                type="Some resource has been exhausted",
            ),
            RefusalKind.QUOTA: RefusalWords(
                status=429,
                message="Your team has either used all available credits or reached "
                "its monthly spending limit.",
                type="Some resource has been exhausted",
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500, message="Internal error", type="Internal error"
            ),
        }
    ),
    error=xai_error,
    usage=outside,
    rules=(r.penalties(("presence_penalty", "frequency_penalty", "stop")),),
    reasoning=Reasoning(most=800, is_capped=False, message_field="reasoning_content"),
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
            RefusalKind.KEY: RefusalWords(
                status=401,
                message="Authentication Fails (no such user)",
                type="authentication_error",
            ),
            RefusalKind.MODEL: RefusalWords(
                status=400, message="Model Not Exist", code="invalid_request_error"
            ),
            RefusalKind.QUOTA: RefusalWords(
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
    reasoning=Reasoning(most=1000, message_field="reasoning_content"),
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
            RefusalKind.KEY: RefusalWords(
                status=401, message="Unauthorized", type=None
            ),
            RefusalKind.MODEL: RefusalWords(
                status=400,
                message="Invalid model: {model}",
                type="invalid_model",
                code="1500",
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="Requests rate limit exceeded",
                type="rate_limited",
                code="1300",
            ),
            RefusalKind.QUOTA: RefusalWords(
                status=429,
                message="Service tier capacity exceeded for this model.",
                type="service_tier_capacity_exceeded",
                code="3505",
            ),
            RefusalKind.SERVER: RefusalWords(
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
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="Rate limit reached for model `{model}` in organization "
                "`org_simulated` service tier `on_demand` on tokens per minute (TPM). "
                "Please try again in {wait}.",
                type="tokens",
                code="rate_limit_exceeded",
            ),
            RefusalKind.QUOTA: RefusalWords(
                status=429,
                message="You have reached your spend limit: insufficient_quota.",
                type="insufficient_quota",
                code="insufficient_quota",
            ),
            RefusalKind.SERVER: RefusalWords(
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
    reports_tier=True,
    tiers=frozenset({"flex"}),
    more=lambda served: {"x_groq": {"id": f"req_{served.request_id}"}},
    ids=lambda served: {"x-request-id": served.request_id},
    limits=groq_limits,
    waits=whole_seconds,
    statuses=(498, 500, 503),
    cut_schema=RefusalWords(
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
            RefusalKind.KEY: RefusalWords(
                status=401, message="No auth credentials found"
            ),
            RefusalKind.MODEL: RefusalWords(
                status=400, message="{model} is not a valid model ID"
            ),
            RefusalKind.RATE: RefusalWords(status=429, message="Rate limit exceeded"),
            RefusalKind.QUOTA: RefusalWords(
                status=402,
                message="Insufficient credits. Add more using "
                "https://openrouter.ai/settings/credits",
            ),
            RefusalKind.SERVER: RefusalWords(
                status=502, message="Provider returned error"
            ),
        }
    ),
    error=openrouter_error,
    usage=charged,
    reasoning=Reasoning(most=600, message_field="reasoning"),
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
