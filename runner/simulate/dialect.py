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
    """Why a request is turned away."""

    KEY = "key"  #: none was sent
    PATH = "path"  #: this endpoint is not served here
    MODEL = "model"  #: there is none of that name
    NO_MODEL = "no model"  #: the request names none
    NO_MESSAGES = "no messages"
    BODY = "body"  #: the request cannot be read
    FILTER = "filter"  #: a filter before the model refuses the prompt
    RATE = "rate"
    QUOTA = "quota"  #: the account has spent what it may
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalWords:
    """A provider's own words for one kind of trouble.

    `{model}`, `{path}`, `{wait}` and `{detail}` in the message are filled in.
    """

    status: int
    message: str
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request that gets an error instead of an answer."""

    status: int
    message: str
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None
    wait_s: float = 0.0  #: how long a client should wait; 0.0: not said
    body: object = None  #: written as it is instead of in the dialect's own form
    media: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAnswer:
    """What served one answer, and what was counted."""

    request_id: str
    model: str  #: may be a dated name behind the one that was asked for
    fingerprint: str | None
    provider: str | None
    tier: str | None  #: None: the standard one, not mentioned
    tokens: BilledTokens
    cost: Decimal  #: in dollars
    at_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """What a model generates before its answer."""

    most: int = 0  #: tokens, drawn for each request; 0: the model does not reason
    is_capped: bool = True  #: whether the limit on the output bounds it
    message_field: str = (
        ""  #: the message's field that shows it; "think": inside the content
    )


UsageWriter: TypeAlias = Callable[[BilledTokens, Decimal], object]
ParameterRule: TypeAlias = Callable[[SimulatedRequest, str], RefusedRequest | None]
"""Whether a dialect refuses a request, by its fields and path."""

CHAT, EMBEDDINGS, RERANK = "/chat/completions", "/embeddings", "/rerank"
RESPONSES, MESSAGES, MODELS = "/responses", "/messages", "/models"
FILES, BATCHES, MESSAGE_BATCHES = "/files", "/batches", "/messages/batches"
OPENAI_BATCHES: Final = frozenset({FILES, BATCHES})
ANTHROPIC_PATHS: Final = frozenset({MESSAGES, MESSAGE_BATCHES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider speaks."""

    name: str
    summary: str  #: what it is, and what sets it apart, in one line
    source: str  #: where its shapes are from
    paths: frozenset[str]  #: the endpoints it has, below the base URL
    words: Mapping[RefusalKind, RefusalWords]
    error: Callable[[RefusedRequest, ServedAnswer | None], object]
    usage: UsageWriter
    rules: tuple[ParameterRule, ...] = ()
    needs_key: bool = True
    caps: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    #: the fields that limit the output; a name that is missing here is ignored
    ignored: frozenset[str] = frozenset()  #: fields of a chat accepted without effect
    reasoning: Reasoning = Reasoning()
    ends: Mapping[str, object] = field(default_factory=dict)
    #: from "stop", "length" and "content_filter" to other words for them
    is_in_parts: bool = False  #: content is a list of parts
    empty: str | None = ""  #: what stands for no content
    dated: str = ""  #: added to the model's name in replies
    fingerprints: tuple[str, ...] = ()  #: the first one is usual
    providers: tuple[str, ...] = ()  #: who may have served it, behind a router
    reports_tier: bool = False
    tiers: frozenset[str] = frozenset()  #: that may be asked for
    more: Callable[[ServedAnswer], Mapping[str, object]] = lambda _served: {}
    ids: Callable[[ServedAnswer], Mapping[str, str]] = lambda _served: {}
    limits: Callable[[Mapping[str, LimitGauge], float], Mapping[str, str]] = (
        lambda _gauges, _now_s: {}
    )
    waits: Callable[[float], Mapping[str, str]] = lambda _wait_s: {}
    statuses: tuple[int, ...] = (500, 502, 503)  #: of its server errors
    html: frozenset[int] = frozenset()  #: server errors answered by a proxy's page
    cache_least: int = 0  #: tokens of the shortest prompt that is cached; 0: no cache
    cache_step: int = 1  #: cached tokens come in multiples of this
    cache_writes: bool = False  #: whether writing to the cache is billed
    cut_schema: RefusalWords | None = (
        None  #: answers an output that ends inside its JSON
    )

    def refusal(
        self, kind: RefusalKind, *, wait_s: float = 0.0, **values: object
    ) -> RefusedRequest:
        """The trouble of that kind in this dialect's words."""
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
        """A server error with that status."""
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
        """The body that tells of *refusal*."""
        body = self.error(refusal, served) if refusal.body is None else refusal.body
        return body.encode() if isinstance(body, str) else msgspec.json.encode(body)


# -- usage ---------------------------------------------------------------------


def inside(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """OpenAI: completion includes reasoning, prompt includes cached."""
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
    """Three numbers and nothing else."""
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.out,
        "total_tokens": tokens.total,
    }


def outside(tokens: BilledTokens, cost: Decimal) -> dict[str, Any]:
    """XAI: reasoning stands beside completion; a tick is a 10^-10 of a dollar."""
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
    """Gemini's OpenAI form: thoughts are in the total, and nowhere else."""
    cached = {"prompt_tokens_details": {"cached_tokens": tokens.cached}}
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.visible,
        "total_tokens": tokens.total,
        **(cached if tokens.cached else {}),
    }


def hit_and_miss(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """DeepSeek: the prompt is hits and misses; a miss is no write."""
    return {
        **three(tokens),
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "prompt_cache_hit_tokens": tokens.cached,
        "prompt_cache_miss_tokens": tokens.prompt - tokens.cached,
    }


def timed(tokens: BilledTokens, _cost: Decimal = Decimal(0)) -> dict[str, Any]:
    """Groq: three numbers among times."""
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
    """OpenRouter: what it charges stands beside the tokens."""
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
    """No usage at all."""


def native(tokens: BilledTokens, tier: str | None) -> dict[str, Any]:
    """Anthropic's own: input excludes what is read from or written to the cache."""
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
    """OpenAI's Responses API, and its batches."""
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
    """`error` with message, type, param and code."""
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
    """Anthropic's `error` inside of a value of type `error`."""
    return {
        "type": "error",
        "error": {"type": refusal.type, "message": refusal.message},
        "request_id": served.request_id if served else None,
    }


def azure_error(refusal: RefusedRequest, served: ServedAnswer | None = None) -> object:
    """Limits in two fields with the status as a text, all else as OpenAI."""
    if refusal.code == str(refusal.status):
        return {"error": {"code": refusal.code, "message": refusal.message}}
    return openai_error(refusal, served)


def google_error(
    refusal: RefusedRequest, _served: ServedAnswer | None = None
) -> object:
    """A list of one error, with the wait among its details."""
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
    """The error is a text, and the code another one."""
    return {"code": refusal.type, "error": refusal.message}


def flat_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """Mistral, and older vLLM: all fields at the top."""
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
    """The status as a number in the body, and who failed."""
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
    """llama.cpp: the status as a number, then message and type."""
    return {
        "error": {
            "code": refusal.status,
            "message": refusal.message,
            "type": refusal.type,
        }
    }


def tgi_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """A text, and its type."""
    return {"error": refusal.message, "error_type": refusal.type}


def proxy_error(refusal: RefusedRequest, _served: ServedAnswer | None = None) -> object:
    """LiteLLM's proxy: numbers and missing values as texts."""
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
    """`anthropic-ratelimit-*`, with resets as RFC 3339 writes times."""
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
    """OpenAI's names, but requests are those of a day."""
    headers = openai_headers(gauges, now_s)
    if "requests" in gauges:
        gauge = gauges["requests"]
        day, used = gauge.per_minute * 60 * 24, gauge.served
        headers["x-ratelimit-limit-requests"] = f"{day:.0f}"
        headers["x-ratelimit-remaining-requests"] = f"{max(0.0, day - used):.0f}"
        headers["x-ratelimit-reset-requests"] = duration(86_400 * used / day)
    return headers


def without_resets(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """Limits and what remains of them, without times."""
    headers = openai_headers(gauges, now_s)
    return {name: value for name, value in headers.items() if "reset" not in name}


def milliseconds(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """OpenRouter: requests alone, the reset in milliseconds since 1970."""
    if "requests" not in gauges:
        return {}
    gauge = gauges["requests"]
    return {
        "x-ratelimit-limit": f"{gauge.per_minute:.0f}",
        "x-ratelimit-remaining": f"{gauge.remaining:.0f}",
        "x-ratelimit-reset": f"{(now_s + gauge.full_in_s) * 1000:.0f}",
    }


def proxied_limits(gauges: Mapping[str, LimitGauge], now_s: float) -> dict[str, str]:
    """LiteLLM's proxy: the limits behind it, once more under a prefix."""
    headers = openai_headers(gauges, now_s)
    return headers | {f"llm_provider-{name}": value for name, value in headers.items()}


def draft_limits(gauges: Mapping[str, LimitGauge], _now_s: float) -> dict[str, str]:
    """The IETF's drafts: seconds until the reset."""
    if "requests" not in gauges:
        return {}
    gauge = gauges["requests"]
    return {
        "ratelimit-limit": f"{gauge.per_minute:.0f}",
        "ratelimit-remaining": f"{gauge.remaining:.0f}",
        "ratelimit-reset": f"{math.ceil(gauge.full_in_s)}",
    }


def whole_seconds(wait_s: float) -> dict[str, str]:
    """`retry-after` alone."""
    return {"retry-after": str(math.ceil(wait_s))}


def rfc3339(at_s: float) -> str:
    """A time as RFC 3339 writes it, in whole seconds."""
    at = datetime.fromtimestamp(math.ceil(at_s), UTC)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
