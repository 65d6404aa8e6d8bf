"""The dialects of OpenAI and of Azure, and the plain one, one row each."""

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
)
from runner.simulate.forms import (
    azure_error,
    inside,
    openai_error,
    three,
    without_resets,
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
