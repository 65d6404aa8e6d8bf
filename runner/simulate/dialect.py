"""Defines a provider's dialect: its values, its forms of usage, errors and limits.

A `Dialect` describes the format of usage, errors, limits, finish reasons and origin; it
does not decide the outcome of a request. The dialects themselves are in `dialects`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec

from runner.simulate.billing import BilledTokens
from runner.simulate.options import LimitGauge, duration, openai_headers
from runner.simulate.requests import SimulatedRequest

HTML: Final = "text/html"
JSON: Final = "application/json"
TEXT: Final = "text/plain"


class RefusalKind(enum.StrEnum):
    """Reason of a refusal."""

    KEY = "key"  #: no key was sent
    PATH = "path"  #: the endpoint has no such path
    MODEL = "model"  #: there is no such model
    NO_MODEL = "no model"  #: the request names no model
    NO_MESSAGES = "no messages"
    BODY = "body"  #: the request is invalid
    FILTER = "filter"  #: a filter in front of the model refuses the prompt
    RATE = "rate"
    QUOTA = "quota"  #: the account has used up its quota
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalWords:
    """A provider's wording for one kind of refusal.

    `{model}`, `{path}`, `{wait}` and `{detail}` in the message are placeholders.
    """

    status: int
    message: str
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request that gets an error."""

    status: int
    message: str
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None
    wait_s: float = 0.0  #: requested wait; 0.0: not reported
    body: object = None  #: replaces the dialect's error body
    media: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAnswer:
    """The server of one answer, and its usage."""

    request_id: str
    model: str  #: may be the dated name of the requested model
    fingerprint: str | None
    provider: str | None
    tier: str | None  #: None: standard, not reported
    tokens: BilledTokens
    cost: Decimal  #: cost in dollars
    at_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Generated content before the answer."""

    most: int = 0  #: maximum tokens, drawn per request; 0: no reasoning
    is_capped: bool = True  #: whether the output limit bounds it
    message_field: str = (
        ""  #: field of the message with the reasoning; "think": inside the content
    )


UsageWriter: TypeAlias = Callable[[BilledTokens, Decimal], object]
ParameterRule: TypeAlias = Callable[[SimulatedRequest, str], RefusedRequest | None]
"""Refuses a request because of its fields and path, or returns None."""

CHAT, EMBEDDINGS, RERANK = "/chat/completions", "/embeddings", "/rerank"
RESPONSES, MESSAGES, MODELS = "/responses", "/messages", "/models"
FILES, BATCHES, MESSAGE_BATCHES = "/files", "/batches", "/messages/batches"
OPENAI_BATCHES: Final = frozenset({FILES, BATCHES})
ANTHROPIC_PATHS: Final = frozenset({MESSAGES, MESSAGE_BATCHES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Format and behaviour of one provider."""

    name: str
    summary: str  #: description in one line
    source: str  #: source of its formats
    paths: frozenset[str]  #: its endpoints, relative to the base URL
    words: Mapping[RefusalKind, RefusalWords]
    error: Callable[[RefusedRequest, ServedAnswer | None], object]
    usage: UsageWriter
    rules: tuple[ParameterRule, ...] = ()
    needs_key: bool = True
    caps: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    #: fields that limit the output; others are ignored
    ignored: frozenset[str] = frozenset()  #: chat fields without effect
    reasoning: Reasoning = Reasoning()
    ends: Mapping[str, object] = field(default_factory=dict)
    #: names of "stop", "length" and "content_filter"
    is_in_parts: bool = False  #: content is a list of parts
    empty: str | None = ""  #: value for missing content
    dated: str = ""  #: suffix of the model's name in replies
    fingerprints: tuple[str, ...] = ()  #: the first one is the most frequent
    providers: tuple[str, ...] = ()  #: possible providers behind a router
    reports_tier: bool = False
    tiers: frozenset[str] = frozenset()  #: tiers that may be requested
    more: Callable[[ServedAnswer], Mapping[str, object]] = lambda _served: {}
    ids: Callable[[ServedAnswer], Mapping[str, str]] = lambda _served: {}
    limits: Callable[[Mapping[str, LimitGauge], float], Mapping[str, str]] = (
        lambda _gauges, _now_s: {}
    )
    waits: Callable[[float], Mapping[str, str]] = lambda _wait_s: {}
    statuses: tuple[int, ...] = (500, 502, 503)  #: statuses of server errors
    html: frozenset[int] = frozenset()  #: server errors with an HTML page
    cache_least: int = 0  #: minimum tokens of a cached prompt; 0: no cache
    cache_step: int = 1  #: granularity of cached tokens
    cache_writes: bool = False  #: whether cache writes are billed
    cut_schema: RefusalWords | None = None  #: error if an output ends inside its JSON

    def refusal(
        self, kind: RefusalKind, *, wait_s: float = 0.0, **values: object
    ) -> RefusedRequest:
        """Return a refusal of that kind in this dialect's wording."""
        words = self.words[kind]
        filled = {"model": "", "path": "", "detail": "", **values}
        return RefusedRequest(
            status=words.status,
            message=words.message.format(wait=duration(wait_s), **filled),
            type=words.type,
            code=words.code,
            param=words.param,
            wait_s=wait_s,
        )

    def failure(self, status: int) -> RefusedRequest:
        """Return a server error with that status."""
        if status in self.html:
            page = f"<html><head><title>{status}</title></head><body>{status}</body>"
            return RefusedRequest(status=status, message="", body=page, media=HTML)
        words = self.words[RefusalKind.SERVER]
        return RefusedRequest(
            status=status, message=words.message, type=words.type, code=words.code
        )

    def body(
        self, refusal: RefusedRequest, served: ServedAnswer | None = None
    ) -> bytes:
        """Encode the body of a *refusal*."""
        body = self.error(refusal, served) if refusal.body is None else refusal.body
        return body.encode() if isinstance(body, str) else msgspec.json.encode(body)


# -- usage ---------------------------------------------------------------------


def inside(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return usage like OpenAI: completion with reasoning, prompt with cached."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.out,
        "total_tokens": tokens.total,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def three(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return the three counts only."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.out,
        "total_tokens": tokens.total,
    }


def outside(tokens: BilledTokens, cost: Decimal) -> dict[str, Any]:
    """Return usage like xAI: completion without reasoning; a tick is 10^-10 dollars."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.visible,
        "total_tokens": tokens.total,
        "prompt_tokens_details": {
            "text_tokens": tokens.prompt,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": tokens.cached,
        },
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        "num_sources_used": 0,
        "cost_in_usd_ticks": int(cost * 10**10),
    }


def only_in_total(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return usage like Gemini's OpenAI form: thoughts only in the total."""
    cached = {"prompt_tokens_details": {"cached_tokens": tokens.cached}}
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.visible,
        "total_tokens": tokens.total,
        **(cached if tokens.cached else {}),
    }


def hit_and_miss(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return usage like DeepSeek: prompt as hits and misses; a miss is no write."""
    return {
        **three(tokens),
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "prompt_cache_hit_tokens": tokens.cached,
        "prompt_cache_miss_tokens": tokens.prompt - tokens.cached,
    }


def timed(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return usage like Groq: three counts among times."""
    return {
        "queue_time": 0.018,
        "prompt_tokens": tokens.prompt,
        "prompt_time": 0.001,
        "completion_tokens": tokens.out,
        "completion_time": 0.02,
        "total_tokens": tokens.total,
        "total_time": 0.021,
    }


def charged(tokens: BilledTokens, cost: Decimal) -> dict[str, Any]:
    """Return usage like OpenRouter: tokens and the charged cost."""
    return {
        **three(tokens),
        "cost": float(cost),
        "is_byok": False,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cached,
            "cache_write_tokens": tokens.written,
            "audio_tokens": 0,
        },
        "cost_details": {"upstream_inference_cost": float(cost)},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def without_usage(_tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> None:
    """Return no usage."""


def native(tokens: BilledTokens, tier: str | None) -> dict[str, Any]:
    """Return usage like Anthropic: input excludes cache reads and writes."""
    return {
        "input_tokens": tokens.fresh,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.written_5m,
            "ephemeral_1h_input_tokens": tokens.written_1h,
        },
        "output_tokens": tokens.out,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
        "service_tier": tier or "standard",
    }


def of_responses(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Return usage like OpenAI's Responses API and its batches."""
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {
            "cached_tokens": tokens.cached,
            "cache_write_tokens": tokens.written,
        },
        "output_tokens": tokens.out,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.total,
    }


# -- errors --------------------------------------------------------------------


def openai_error(
    refusal: RefusedRequest, _served: ServedAnswer | None = None
) -> object:
    """Return `error` with message, type, param and code."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def anthropic_error(
    refusal: RefusedRequest, served: ServedAnswer | None = None
) -> object:
    """Return Anthropic's `error` inside an object of type `error`."""
    return {
        "type": "error",
        "error": {"type": refusal.type, "message": refusal.message},
        "request_id": served.request_id if served else None,
    }


def azure_error(refusal: RefusedRequest, served: ServedAnswer | None = None) -> object:
    """Return errors like Azure: limits as code and message, others like OpenAI."""
    if refusal.code == str(refusal.status):
        return {"error": {"code": refusal.code, "message": refusal.message}}
    return openai_error(refusal, served)


def google_error(
    refusal: RefusedRequest, _served: ServedAnswer | None = None
) -> object:
    """Return a list of one error, with the wait in its details."""
    wait = {
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": f"{math.ceil(refusal.wait_s)}s",
    }
    return [
        {
            "error": {
                "code": refusal.status,
                "message": refusal.message,
                "status": refusal.type,
                **({"details": [wait]} if refusal.wait_s else {}),
            }
        }
    ]


def xai_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """Return errors like xAI: error and code are strings."""
    return {"code": refusal.type, "error": refusal.message}


def flat_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """Return errors like Mistral and older vLLM: all fields at the top level."""
    return {
        "object": "error",
        "message": refusal.message,
        "type": refusal.type,
        "param": refusal.param,
        "code": refusal.code,
    }


def openrouter_error(
    refusal: RefusedRequest, served: ServedAnswer | None = None
) -> object:
    """Return errors like OpenRouter: numeric status, and the provider."""
    provider = served.provider if served else None
    return {
        "error": {
            "message": refusal.message,
            "code": refusal.status,
            **({"metadata": {"provider_name": provider}} if provider else {}),
        },
        "user_id": "user_simulated",
    }


def numbered_error(
    refusal: RefusedRequest, _served: ServedAnswer | None = None
) -> object:
    """Return errors like llama.cpp: numeric status, message and type."""
    return {
        "error": {
            "code": refusal.status,
            "message": refusal.message,
            "type": refusal.type,
        }
    }


def tgi_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """Return errors like TGI: a string and its type."""
    return {"error": refusal.message, "error_type": refusal.type}


def proxy_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """Return errors like LiteLLM's proxy: numbers and nulls as strings."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param or "None",
            "code": str(refusal.code or refusal.status),
        }
    }


# -- limits ----------------------------------------------------------------------


def anthropic_limits(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Return `anthropic-ratelimit-*`, with RFC 3339 resets."""
    headers: dict[str, str] = {}
    for name, gauge in gauges.items():
        both = ("tokens", "input-tokens") if name == "tokens" else (name,)
        for kind in both:
            head = f"anthropic-ratelimit-{kind}"
            headers[f"{head}-limit"] = f"{gauge.per_minute:.0f}"
            headers[f"{head}-remaining"] = f"{gauge.remaining:.0f}"
            headers[f"{head}-reset"] = rfc3339(now_s + gauge.full_in_s)
    return headers


def groq_limits(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Return OpenAI's header names, but requests per day."""
    headers = openai_headers(gauges, now_s)
    if "requests" in gauges:
        gauge = gauges["requests"]
        day, used = gauge.per_minute * 60 * 24, gauge.served
        headers["x-ratelimit-limit-requests"] = f"{day:.0f}"
        headers["x-ratelimit-remaining-requests"] = f"{max(0.0, day - used):.0f}"
        headers["x-ratelimit-reset-requests"] = duration(86_400 * used / day)
    return headers


def without_resets(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Return limits and remainders, without resets."""
    headers = openai_headers(gauges, now_s)
    return {name: value for name, value in headers.items() if "reset" not in name}


def milliseconds(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Return requests only, with a reset in milliseconds since 1970, as OpenRouter."""
    if "requests" not in gauges:
        return {}
    gauge = gauges["requests"]
    return {
        "x-ratelimit-limit": f"{gauge.per_minute:.0f}",
        "x-ratelimit-remaining": f"{gauge.remaining:.0f}",
        "x-ratelimit-reset": f"{(now_s + gauge.full_in_s) * 1000:.0f}",
    }


def proxied_limits(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Return limits like LiteLLM's proxy, repeated with a prefix."""
    headers = openai_headers(gauges, now_s)
    return headers | {f"llm_provider-{name}": value for name, value in headers.items()}


def draft_limits(gauges: Mapping[str, LimitGauge], _now_s: float) -> dict[str, str]:
    """Return the headers of the IETF drafts: seconds until the reset."""
    if "requests" not in gauges:
        return {}
    gauge = gauges["requests"]
    return {
        "ratelimit-limit": f"{gauge.per_minute:.0f}",
        "ratelimit-remaining": f"{gauge.remaining:.0f}",
        "ratelimit-reset": f"{math.ceil(gauge.full_in_s)}",
    }


def whole_seconds(wait_s: float) -> dict[str, str]:
    """Return `retry-after` only."""
    return {"retry-after": str(math.ceil(wait_s))}


def rfc3339(at_s: float) -> str:
    """Format a time according to RFC 3339, in whole seconds."""
    at = datetime.fromtimestamp(math.ceil(at_s), UTC)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
