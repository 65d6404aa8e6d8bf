"""Describes the server and the usage fields of a probed endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from runner.clients.client import Api
from runner.messages import Usage

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeEvidence:
    """Everything that an endpoint sent in reply to a probe."""

    host: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of all replies, names in lower case."""
    replies: tuple[Json, ...] = ()  #: bodies of answers
    errors: tuple[Json, ...] = ()  #: bodies of refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectSign:
    """A sign of one dialect."""

    dialect: str
    words: str  #: description for the user
    is_seen: Callable[[ProbeEvidence], bool]
    weight: int = 2  #: 1: others may have it too; 3: no other has it


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectGuess:
    """The most likely dialect, and why."""

    name: str  #: "unknown" without any sign
    evidence: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  #: other dialects with signs


UNKNOWN: Final = "unknown"


def guess(evidence: ProbeEvidence) -> DialectGuess:
    """Return the dialect whose signs outweigh all others together."""
    seen = [sign for sign in SIGNS if sign.is_seen(evidence)]
    weights: dict[str, int] = {}
    for sign in seen:
        weights[sign.dialect] = weights.get(sign.dialect, 0) + sign.weight
    ranked = sorted(weights, key=lambda name: -weights[name])
    if not ranked:
        return DialectGuess(name=UNKNOWN)
    if 2 * weights[ranked[0]] <= sum(weights.values()):
        # several servers behind one address, or an undescribed one
        words = tuple(f"{sign.words} ({sign.dialect})" for sign in seen)
        return DialectGuess(name=UNKNOWN, evidence=words, others=tuple(ranked))
    return DialectGuess(
        name=ranked[0],
        evidence=tuple(sign.words for sign in seen if sign.dialect == ranked[0]),
        others=tuple(ranked[1:]),
    )


# -- kinds of signs -----------------------------------------------------------------


def _host(dialect: str, pattern: str) -> DialectSign:
    compiled = re.compile(rf"(^|\.){pattern}$")
    return DialectSign(
        dialect=dialect,
        words=f"the host is {dialect}'s",
        is_seen=lambda seen: compiled.search(seen.host) is not None,
        weight=4,
    )


def _header(dialect: str, prefix: str, weight: int = 2) -> DialectSign:
    return DialectSign(
        dialect=dialect,
        words=f"header {prefix}",
        is_seen=lambda seen: any(name.startswith(prefix) for name in seen.headers),
        weight=weight,
    )


def _reply(dialect: str, path: str, pattern: str = "", weight: int = 2) -> DialectSign:
    """Return a sign: a field of replies, and a pattern for its value."""
    compiled = re.compile(pattern)
    return DialectSign(
        dialect=dialect,
        words=f"{path} in the reply" + (f" is like {pattern}" if pattern else ""),
        is_seen=lambda seen: any(
            compiled.search(str(value))
            for reply in seen.replies
            for value in _at(reply, path.split("."))
        ),
        weight=weight,
    )


def _error(
    dialect: str, words: str, fits: Callable[[Json], bool], weight: int = 2
) -> DialectSign:
    return DialectSign(
        dialect=dialect,
        words=words,
        is_seen=lambda seen: any(map(fits, seen.errors)),
        weight=weight,
    )


def _at(value: Json, path: Iterable[str]) -> list[Json]:
    """Return the values at a path, including null; lists are traversed."""
    values = [value]
    for name in path:
        inner = [
            element
            for item in values
            for element in (item if isinstance(item, list) else [item])
        ]
        values = [
            item[name] for item in inner if isinstance(item, dict) and name in item
        ]
    return values


def _is(value: Json, *names: str) -> bool:
    return isinstance(value, dict) and all(name in value for name in names)


def _inner(value: Json) -> Json:
    return value.get("error") if isinstance(value, dict) else None


SIGNS: Final[tuple[DialectSign, ...]] = (
    _host("openai", r"api\.openai\.com"),
    _host(
        "azure", r"(openai\.azure|cognitiveservices\.azure|services\.ai\.azure)\.com"
    ),
    _host("anthropic", r"api\.anthropic\.com"),
    _host("gemini-openai", r"(generativelanguage|aiplatform)\.googleapis\.com"),
    _host("xai", r"api\.x\.ai"),
    _host("deepseek", r"api\.deepseek\.com"),
    _host("mistral", r"api\.mistral\.ai"),
    _host("groq", r"api\.groq\.com"),
    _host("openrouter", r"openrouter\.ai"),
    # gateways first: they forward fields of the servers behind them
    _header("litellm-proxy", "x-litellm-", 4),
    _header("litellm-proxy", "llm_provider-", 4),
    _error(
        "litellm-proxy",
        "an error with code and param as texts",
        lambda body: (
            _is(_inner(body), "message", "type", "param", "code")
            and isinstance(_inner(body)["code"], str)
            and _inner(body)["param"] in {"None", None}
            and _inner(body)["code"].isdigit()
        ),
    ),
    _reply("openrouter", "provider", r"^[^\{\[]+$"),
    _reply("openrouter", "usage.is_byok"),
    _reply("openrouter", "usage.cost", r"^[\d.e-]+$", 1),
    _reply("openrouter", "choices.native_finish_reason"),
    _error(
        "openrouter",
        "an error with user_id beside it",
        lambda body: _is(body, "error", "user_id"),
    ),
    _header("azure", "x-ms-region", 3),
    _header("azure", "apim-request-id", 3),
    _header("azure", "x-ms-", 1),
    _reply("azure", "prompt_filter_results"),
    _header("anthropic", "anthropic-", 3),
    _error(
        "anthropic",
        "an error of type error",
        lambda body: (
            _is(body, "type", "error")
            and body["type"] == "error"
            and _is(body["error"], "type", "message")
        ),
    ),
    _reply("groq", "x_groq", "", 3),
    _header("groq", "x-groq-", 3),
    _reply("groq", "usage.queue_time"),
    _reply("xai", "usage.num_sources_used"),
    _reply("xai", "usage.cost_in_usd_ticks", "", 3),
    _error(
        "xai",
        "an error that is a text, with its code beside it",
        lambda body: (
            _is(body, "code", "error")
            and isinstance(body["error"], str)
            and isinstance(body["code"], str)
        ),
    ),
    _reply("deepseek", "usage.prompt_cache_hit_tokens"),
    _reply("deepseek", "system_fingerprint", r"_prod\d+|kvcache"),
    _header("mistral", "mistral-correlation-id", 3),
    _error(
        "mistral",
        "an error that names the fields it forbids",
        lambda body: (
            _is(body, "object", "message")
            and body["object"] == "error"
            and "extra_forbidden" in str(body["message"])
        ),
    ),
    _error(
        "gemini-openai",
        "an error in a list, with its status in words",
        lambda body: (
            isinstance(body, list)
            and any(_is(_inner(element), "status") for element in body)
        ),
    ),
    DialectSign(
        dialect="gemini-openai",
        words="a total above its parts, and no count of reasoning",
        is_seen=lambda seen: any(map(_hides_thoughts, seen.replies)),
        weight=1,
    ),
    _reply("ollama", "system_fingerprint", r"^fp_ollama$", 3),
    _reply("llamacpp", "timings", "", 3),
    _reply("llamacpp", "system_fingerprint", r"^b\d+-[0-9a-f]+$", 3),
    DialectSign(
        dialect="llamacpp",
        words="header server: llama.cpp",
        is_seen=lambda seen: "llama.cpp" in seen.headers.get("server", ""),
        weight=3,
    ),
    _error(
        "llamacpp",
        "an error with its status as a number, and a type",
        lambda body: (
            _is(_inner(body), "code", "message", "type")
            and isinstance(_inner(body)["code"], int)
            and "param" not in _inner(body)
        ),
    ),
    _header("tgi", "x-compute-", 3),
    _error(
        "tgi", "an error with error_type", lambda body: _is(body, "error", "error_type")
    ),
    _reply("tgi", "system_fingerprint", r"^\d+\.\d+\.\d+(\.dev\d*)?-(sha-|native|dev)"),
    _reply("vllm", "prompt_logprobs"),
    _reply("vllm", "kv_transfer_params"),
    _reply("vllm", "choices.stop_reason", "", 1),
    _error(
        "vllm",
        "an error with all fields at the top, its code a number",
        lambda body: (
            _is(body, "object", "message", "code")
            and body["object"] == "error"
            and isinstance(body["code"], int)
        ),
    ),
    _header("openai", "openai-processing-ms"),
    _header("openai", "openai-version"),
    _header("openai", "openai-organization"),
    _reply(
        "openai", "usage.completion_tokens_details.accepted_prediction_tokens", "", 1
    ),
    _reply("responses", "object", "^response$", 1),
)
"""Headers and fields from the providers' documentation, client libraries and issue
threads. No hosted endpoint was tested."""


def _hides_thoughts(reply: Json) -> bool:
    counts = _at(reply, ["usage"])
    if not counts or not isinstance(counts[0], dict):
        return False
    usage = counts[0]
    prompt, completion, total = (
        usage.get(f"{kind}_tokens") for kind in ("prompt", "completion", "total")
    )
    match prompt, completion, total:
        case int(), int(), int():
            is_above = total > prompt + completion
            return is_above and "completion_tokens_details" not in usage
        case _:
            return False


ReasoningPlace = Literal[
    "inside the output", "beside the output", "only in the total", "none counted"
]


def usage_fields(replies: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the fields under `usage`, as paths."""
    fields: dict[str, None] = {}
    for reply in replies:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        for name, value in usage.items() if isinstance(usage, dict) else ():
            inner = value if isinstance(value, dict) else {}
            fields |= dict.fromkeys([f"{name}.{key}" for key in inner] or [name])
    return tuple(fields)


def _number_in(usage: Mapping[str, Any], *paths: str) -> int | None:
    for path in paths:
        value: Any = usage
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def reasoning_place(replies: tuple[Any, ...], counted: list[Usage]) -> ReasoningPlace:
    """Return where the usage of replies counts reasoning tokens."""
    for reply in replies:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        if not isinstance(usage, dict):
            continue
        prompt = _number_in(usage, "prompt_tokens", "input_tokens")
        output = _number_in(usage, "completion_tokens", "output_tokens")
        total = _number_in(usage, "total_tokens")
        reasoning = _number_in(
            usage,
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "reasoning_tokens",
        )
        if prompt is None or output is None:
            continue
        rest = None if total is None else total - prompt - output
        if reasoning and (rest == reasoning or reasoning > output):
            return "beside the output"
        if not reasoning and rest is not None and rest > 0:
            return "only in the total"
        if reasoning:
            return "inside the output"
    return (
        "inside the output"
        if any(u.tokens_reasoning for u in counted)
        else "none counted"
    )


State = Literal["accepted", "refused", "ignored", "not sent", "unknown"]
SchemaSupport = Literal[
    "strict", "schema", "json_object", "ignored", "refused", "unknown"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedParameter:
    """One parameter, and the endpoint's reaction."""

    name: str
    state: State
    words: str = ""  #: the endpoint's message, or the observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """Result of a probe; None: unknown."""

    endpoint: str
    model: str
    api: Api
    calls: int
    problem: str | None = None  #: why there is no answer; None: there is one
    dialect: DialectGuess = field(default_factory=lambda: DialectGuess(name="unknown"))
    parameters: tuple[ProbedParameter, ...] = ()
    schema: SchemaSupport = "unknown"
    schema_words: str = ""  #: observation about schemas
    usage_fields: tuple[str, ...] = ()  #: as paths; empty: no usage reported
    reasoning: ReasoningPlace = "none counted"
    rpm: float | None = None  #: requests per minute, from headers
    tpm: float | None = None
    limit_headers: tuple[tuple[str, str], ...] = ()
    latencies_ms: tuple[int, ...] = ()  #: of the answered calls
    served: tuple[tuple[str, str], ...] = ()
    """Fields and values in the replies about their origin, each pair once."""
    tokens_in: int = 0  #: as counted by the endpoint
    tokens_out: int = 0
    uncounted: int = 0  #: answered calls without usage

    @property
    def refused(self) -> frozenset[str]:
        """Names of refused parameters."""
        return frozenset(p.name for p in self.parameters if p.state == "refused")
