"""Lists the dialects of `siftlog simulate`; defines those of self-hosted servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from runner.simulate import openai_dialects as r
from runner.simulate.billing import BilledTokens
from runner.simulate.dialect import (
    EMBEDDINGS,
    MESSAGES,
    OPENAI_BATCHES,
    RERANK,
    RESPONSES,
    TEXT,
    Dialect,
    Reasoning,
    RefusalKind,
    RefusalWords,
    UsageWriter,
    charged,
    flat_error,
    hit_and_miss,
    inside,
    numbered_error,
    only_in_total,
    openai_error,
    outside,
    proxied_limits,
    proxy_error,
    tgi_error,
    three,
    timed,
    whole_seconds,
    without_usage,
)
from runner.simulate.hosted_dialects import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    GROQ,
    MISTRAL,
    OPENROUTER,
    XAI,
)
from runner.simulate.openai_dialects import (
    AZURE,
    CHAT_ONLY,
    DEAR_TIERS,
    ONLY_RESPONSES,
    OPENAI,
    OPENAI_REASONING,
    PLAIN,
    words,
)
from runner.simulate.options import Chance

VLLM: Final = Dialect(
    name="vllm",
    summary="An older vLLM: no JSON schema, errors with all fields at the top",
    source="vLLM's issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS, RERANK},
    words=words(
        {
            RefusalKind.PATH: RefusalWords(status=404, message="Not Found"),
            RefusalKind.MODEL: RefusalWords(
                status=404,
                message="The model `{model}` does not exist.",
                type="NotFoundError",
                code=404,
            ),
            RefusalKind.NO_MODEL: RefusalWords(
                status=400,
                message="[{{'type': 'missing', 'loc': ('body', 'model'), 'msg': "
                "'Field required'}}]",
                type="BadRequestError",
                code=400,
            ),
            RefusalKind.NO_MESSAGES: RefusalWords(
                status=400,
                message="list index out of range",
                type="BadRequestError",
                code=400,
            ),
            RefusalKind.BODY: RefusalWords(
                status=400, message="{detail}", type="BadRequestError", code=400
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500,
                message="Internal Server Error",
                type="InternalServerError",
                code=500,
            ),
        }
    ),
    error=flat_error,
    usage=lambda tokens, cost: {**three(tokens, cost), "prompt_tokens_details": None},
    rules=(
        r.no_schema(
            400,
            "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
            "'msg': \"Input should be 'text' or 'json_object'\", 'input': "
            "'json_schema'}]",
            type="BadRequestError",
            code=400,
        ),
        r.no_system_role(
            RefusalWords(
                status=400,
                message="System role not supported",
                type="BadRequestError",
                code=400,
            )
        ),
    ),
    needs_key=False,
    statuses=(500,),
)

OLLAMA: Final = Dialect(
    name="ollama",
    summary="Ollama: three numbers, <think> inside the content, no key and no limits",
    source="Ollama's documentation and issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS},
    words=words(
        {
            RefusalKind.PATH: RefusalWords(status=404, message="404 page not found"),
            RefusalKind.MODEL: RefusalWords(
                status=404,
                message="model '{model}' not found",
                type="not_found_error",
            ),
            RefusalKind.NO_MODEL: RefusalWords(status=400, message="model is required"),
            RefusalKind.RATE: RefusalWords(
                status=503,
                message="server busy, please try again.  maximum pending requests "
                "exceeded",
                type="api_error",
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500,
                message="llama runner process has terminated",
                type="api_error",
            ),
        }
    ),
    error=openai_error,
    usage=three,
    needs_key=False,
    caps=("max_tokens",),
    reasoning=Reasoning(most=300, message_field="think"),
    fingerprints=("fp_ollama",),
    statuses=(500,),
)

LLAMACPP: Final = Dialect(
    name="llamacpp",
    summary="llama.cpp: 500 where JSON was cut or the template has no system role",
    source="llama.cpp's issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS, RERANK},
    words=words(
        {
            RefusalKind.PATH: RefusalWords(
                status=404, message="File Not Found", type="not_found_error"
            ),
            RefusalKind.NO_MESSAGES: RefusalWords(
                status=500,
                message="Expected 'messages' to be an array with elements",
                type="server_error",
            ),
            RefusalKind.RATE: RefusalWords(
                status=503, message="Loading model", type="unavailable_error"
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500, message="Compute error.", type="server_error"
            ),
        }
    ),
    error=numbered_error,
    usage=three,
    rules=(
        r.no_system_role(
            RefusalWords(
                status=500,
                message="System role not supported at row 1, column 74",
                type="server_error",
            )
        ),
    ),
    needs_key=False,
    fingerprints=("b6869-8cf6b42d4",),
    more=lambda served: {
        "timings": {
            "cache_n": 0,
            "prompt_n": served.tokens.prompt,
            "prompt_ms": 12.5,
            "predicted_n": served.tokens.out,
            "predicted_ms": 40.0,
        }
    },
    statuses=(500, 503),
    cut_schema=RefusalWords(
        status=500,
        message="Failed to parse input at pos 0: the output ends inside its JSON",
        type="server_error",
    ),
)

TGI: Final = Dialect(
    name="tgi",
    summary="Text Generation Inference: temperature above 0, schemas refused as text",
    source="its issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS},
    words=words(
        {
            RefusalKind.PATH: RefusalWords(status=404, message="Not Found"),
            RefusalKind.NO_MESSAGES: RefusalWords(
                status=422,
                message="Input validation error: `messages` cannot be empty",
                type="validation",
            ),
            RefusalKind.RATE: RefusalWords(
                status=429, message="Model is overloaded", type="overloaded"
            ),
            RefusalKind.SERVER: RefusalWords(
                status=424,
                message="Request failed during generation: Server error",
                type="generation",
            ),
            RefusalKind.BODY: RefusalWords(
                status=422, message="{detail}", type="validation"
            ),
        }
    ),
    error=tgi_error,
    usage=three,
    rules=(
        r.no_schema(
            422,
            "Failed to deserialize the JSON body into the target type: "
            "response_format: unknown variant `json_schema`, expected `json_object` "
            "or `regex`",
            media=TEXT,
        ),
        r.temperature_range(
            0,
            100,
            "Input validation error: `temperature` must be strictly positive",
            status=422,
            type="validation",
        ),
        r.no_system_role(
            RefusalWords(
                status=422,
                message="Template error: invalid operation: System role not supported",
                type="template_error",
            )
        ),
    ),
    needs_key=False,
    caps=("max_tokens",),
    ends={"stop": "eos_token"},
    fingerprints=("3.3.4-sha-9f38d93",),
    ids=lambda served: {"x-compute-type": "cpu", "x-request-id": served.request_id},
    statuses=(424, 500),
)

LITELLM: Final = Dialect(
    name="litellm-proxy",
    summary="LiteLLM's proxy: 400 budget_exceeded, its own errors, cost headers",
    source="the proxy's sources in the litellm package",
    paths=CHAT_ONLY | OPENAI_BATCHES | {EMBEDDINGS, RERANK, RESPONSES, MESSAGES},
    words=words(
        {
            RefusalKind.KEY: RefusalWords(
                status=401,
                message="Authentication Error, No api key passed in.",
                type="auth_error",
            ),
            RefusalKind.MODEL: RefusalWords(
                status=400,
                message="/chat/completions: Invalid model name passed in model={model}."
                " Call `/v1/models` to view available models for your key.",
                type="invalid_request_error",
            ),
            RefusalKind.RATE: RefusalWords(
                status=429,
                message="litellm.RateLimitError: RateLimitError: OpenAIException - "
                "Rate limit reached. Please try again in {wait}.",
                type="throttling_error",
            ),
            RefusalKind.QUOTA: RefusalWords(
                status=400,
                message="Budget has been exceeded! Current cost: {detail}, Max budget: "
                "{detail}",
                type="budget_exceeded",
            ),
            RefusalKind.SERVER: RefusalWords(
                status=500,
                message="litellm.InternalServerError: InternalServerError: "
                "OpenAIException - Connection error.",
                type=None,
            ),
        }
    ),
    error=proxy_error,
    usage=inside,
    dated="-2024-07-18",
    fingerprints=("fp_44709d6fcb",),
    reports_tier=True,
    tiers=DEAR_TIERS,
    ids=lambda served: {
        "x-litellm-call-id": served.request_id,
        "x-litellm-model-id": "0c3b3f5f",
        "x-litellm-response-cost": f"{served.cost:f}",
    },
    limits=proxied_limits,
    waits=whole_seconds,
    statuses=(500, 503),
    cache_least=1024,
    cache_step=128,
)


HOSTILE: Final = replace(
    OPENAI,
    name="hostile",
    summary="all of them at random, by seed: each reply may have another form",
    source="the other rows",
    paths=PLAIN.paths,
    needs_key=False,
    reasoning=Reasoning(most=1200),
    cache_least=1,
    statuses=(498, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529),
    html=frozenset({502, 504, 520, 521, 522, 523, 524}),
)

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        row.name: row
        for row in (
            *(PLAIN, OPENAI, OPENAI_REASONING, AZURE, ANTHROPIC, GEMINI, XAI),
            *(DEEPSEEK, MISTRAL, GROQ, OPENROUTER, VLLM, OLLAMA, LLAMACPP, TGI),
            *(LITELLM, ONLY_RESPONSES, HOSTILE),
        )
    }
)
"""All dialects by name."""


# -- hostile -------------------------------------------------------------------


def _no_usage(_tokens: BilledTokens, _cost: Decimal) -> dict[str, object]:
    return {}


def _nulls(tokens: BilledTokens, cost: Decimal) -> dict[str, object]:
    return dict.fromkeys(three(tokens, cost))


def _only_total(tokens: BilledTokens, _cost: Decimal) -> dict[str, object]:
    return {"total_tokens": tokens.total}


def _floats(tokens: BilledTokens, cost: Decimal) -> dict[str, object]:
    return {name: float(count) for name, count in three(tokens, cost).items()}


def _texts(tokens: BilledTokens, cost: Decimal) -> dict[str, object]:
    return {name: str(count) for name, count in three(tokens, cost).items()}


UNREADABLE: Final[frozenset[UsageWriter]] = frozenset(
    {without_usage, _no_usage, _nulls, _only_total}
)
"""Forms of usage from which billing cannot be determined."""

REPORTS_CACHE: Final[frozenset[UsageWriter]] = frozenset(
    {inside, outside, only_in_total, hit_and_miss, charged}
)
"""Forms that report cached tokens."""

_USAGES: Final[tuple[UsageWriter, ...]] = (
    *(inside, three, outside, only_in_total, hit_and_miss, timed, charged),
    *(_floats, _texts, without_usage, _no_usage, _nulls, _only_total),
)
_ENDS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {"stop": "eos"},
    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
    {"stop": None},
    {"stop": 1, "length": 2},
)


def settled(dialect: Dialect, seed: int) -> Dialect:
    """Return a server's dialect: a hostile one borrows the parameters it refuses."""
    if dialect.name != HOSTILE.name:
        return dialect
    other = Chance("hostile", seed).pick(_IMITATED)
    return replace(dialect, rules=other.rules, caps=other.caps, ignored=other.ignored)


def of_request(dialect: Dialect, seed: int, digest: str, seen: int) -> Dialect:
    """Return a reply's dialect: a hostile one mixes parts of several."""
    if dialect.name != HOSTILE.name:
        return dialect
    chance = Chance("row", seed, digest, seen)
    errors, served = chance.pick(_IMITATED), chance.pick(_IMITATED)
    limits = chance.pick(_IMITATED)
    usage = chance.pick(_USAGES)
    return replace(
        dialect,
        usage=usage,
        words=errors.words,
        error=errors.error,
        ends=chance.pick(_ENDS),
        is_in_parts=chance.unit() < 0.25,  # noqa: PLR2004 - a share
        empty=chance.pick(("", None)),
        reasoning=replace(
            dialect.reasoning,
            message_field=chance.pick(("", "reasoning", "reasoning_content", "think")),
        ),
        dated=served.dated,
        fingerprints=served.fingerprints,
        providers=served.providers,
        more=served.more,
        ids=served.ids,
        limits=limits.limits,
        waits=limits.waits,
        # this form does not report cache writes, so they cannot be billed as such
        cache_writes=usage is charged,
        cache_least=1 if usage in {inside, outside, hit_and_miss, charged} else 0,
    )


_IMITATED: Final = tuple(
    row
    for row in DIALECTS.values()
    if row.name not in {PLAIN.name, HOSTILE.name, ONLY_RESPONSES.name}
)
