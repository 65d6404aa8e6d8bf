"""Classifies HTTP errors from status, headers and body; pure.

The first matching rule of `REFUSAL_RULES` decides. The table knows the codes that
OpenAI, vLLM, Ollama and the common gateways use.

This module only recognises messages of many servers; `runner.clients.fallbacks` chooses
the replacement.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from runner.clients.wire_shared import UNREADABLE, Shape, web_page
from runner.errors import (
    AttemptError,
    AuthFailed,
    BadRequest,
    ContentFault,
    ContentFiltered,
    ContextTooLong,
    FormRefused,
    NotServed,
    Overloaded,
    QuotaSpent,
    RateLimited,
    SchemaMismatch,
    ServerError,
    Timeout,
)
from runner.limits.rate_limits import reset_s

LOGGED_HEADERS: Final = re.compile(
    r"x-ratelimit-.*|anthropic-ratelimit-.*|ratelimit(-.*)?|retry-after(-ms)?"
    r"|(x-)?request-id|x-litellm-call-id|cf-ray|x-ms-region|openai-processing-ms"
)
"""Headers that are logged: limits, waits, request ids for support, and the serving
location."""

LONGEST_QUOTE: Final = 300
"""Maximum characters quoted from a server's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRule:
    """A pattern of error replies, and their meaning."""

    statuses: Collection[int]
    error: type[AttemptError]
    advice: str  #: next step, as the end of a sentence; may be empty
    words: re.Pattern[str] | None = None  #: searched in the body's code and message


_CLIENT = range(400, 500)
_CONTEXT = re.compile(
    r"context_length_exceeded|context (length|window|size)|prompt is too long"
    r"|maximum (prompt|input) length|too many (input )?tokens",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content_filter|content_policy|content management", re.IGNORECASE)
_QUOTA = re.compile(
    r"insufficient_quota|insufficient[_ ]balance|billing_(hard_limit|not_active)"
    r"|budget_exceeded|credit balance is too low",
    re.IGNORECASE,
)
"""OpenAI `insufficient_quota`, `billing_hard_limit_reached`, DeepSeek "Insufficient
Balance", a LiteLLM proxy `budget_exceeded` (status 400), Anthropic "Your credit balance
is too low" (status 400)."""
_QUOTA_429 = re.compile(
    rf"{_QUOTA.pattern}|billing|exceeded your current quota", re.IGNORECASE
)
"""Less specific, because the status already implies an exhausted quota."""
_MODEL = re.compile(
    r"model_not_found|invalid_model|invalid model name|not a valid model"
    r"|(^|: )\W*(unknown|no such|invalid) model\b|model not exist|deploymentnotfound"
    r"|model\W+\S+\W+(does not exist|(is )?not found|is not (available|supported))",
    re.IGNORECASE,
)
"""Messages about unknown models with a status other than 404. Among others: a LiteLLM
proxy "Invalid model name passed in model=x", OpenRouter "x is not a valid model ID",
DeepSeek "Model Not Exist", Mistral `invalid_model`."""
_MISMATCH = re.compile(
    r"json_validate_failed|does not match the expected schema", re.IGNORECASE
)
"""Groq's message for a model reply that did not match the requested form."""
_FORM = re.compile(
    r"response.?format|text\.format|json.?schema|response_?schema|output_?(format|config)"
    r"|invalid schema|structured.?output|guided.?decoding|grammar|encoding_format",
    re.IGNORECASE,
)
"""Messages of endpoints that do not accept the requested format. Seen, among others:
OpenAI "Invalid parameter: 'response_format' of type 'json_schema' is not supported with
this model", DeepSeek "This response_format type is unavailable now", LM Studio
"'response_format.type' must be 'json_schema' or 'text'", vLLM "The provided JSON schema
contains features not supported by xgrammar", ik_llama.cpp, with status 500,
"response_format type must be one of "text" or "json_object""."""

_CONTENT: Final = re.compile(
    r"fail\w* to (parse|tokenize|apply|render)|pars(e|ing) error|unexpected (end|token)"
    r"|invalid (json|utf)|jinja|chat template|does not match the expected \S+ format",
    re.IGNORECASE,
)
"""Messages of a 500 caused by the prompt or the schema. Seen: llama.cpp "Failed to
parse input at pos 41", in builds of 2026 "The model produced output that does not match
the expected peg-native format", where output that has to be JSON was cut in the
middle."""

_TRY_AGAIN: Final = re.compile(
    r"(?:try again|retry)(?: after| in) (?P<n>[0-9][0-9.]{0,9}) ?(?P<unit>ms|s|m)?\b"
    r"|(?:try again|retry)(?: after| in) (?P<span>(?:[0-9.]+h)?(?:[0-9.]+m)?[0-9.]+s)",
    re.IGNORECASE,
)
"""Waits given in words: OpenAI and Groq "Please try again in 5.289s", Groq "in
1m26.4s", Azure "Please retry after 7 seconds"."""

REFUSAL_RULES: Final[tuple[RefusalRule, ...]] = (
    RefusalRule(statuses=(401,), error=AuthFailed, advice="check the key"),
    RefusalRule(statuses=(402,), error=QuotaSpent, advice="the account needs credit"),
    # An empty account returns 400, 403 or 429 too, and waiting does not help.
    RefusalRule(
        statuses=range(400, 429),
        words=_QUOTA,
        error=QuotaSpent,
        advice="the account needs credit",
    ),
    # Gemini says "You exceeded your current quota" for limits per minute too, with a
    # wait
    RefusalRule(statuses=(429,), words=_TRY_AGAIN, error=RateLimited, advice=""),
    RefusalRule(
        statuses=(429,),
        words=_QUOTA_429,
        error=QuotaSpent,
        advice="the account needs credit",
    ),
    RefusalRule(
        statuses=range(400, 404),
        words=_FILTER,
        error=ContentFiltered,
        advice="the endpoint will not take this text",
    ),
    RefusalRule(statuses=(403,), error=AuthFailed, advice="check what the key may do"),
    RefusalRule(statuses=(429,), error=RateLimited, advice=""),
    RefusalRule(statuses=(408,), error=Timeout, advice=""),
    # Groq has no capacity left for its flex tier
    RefusalRule(statuses=(498,), error=Overloaded, advice=""),
    # a service behind the endpoint failed
    RefusalRule(statuses=(424,), error=ServerError, advice=""),
    RefusalRule(
        statuses=_CLIENT,
        words=_CONTEXT,
        error=ContextTooLong,
        advice="shorten the prompt or choose a model that takes more",
    ),
    RefusalRule(
        statuses=_CLIENT,
        words=_MODEL,
        error=NotServed,
        advice="check the model's name",
    ),
    RefusalRule(statuses=_CLIENT, words=_MISMATCH, error=SchemaMismatch, advice=""),
    RefusalRule(
        statuses=range(400, 501),
        words=_FORM,
        error=FormRefused,
        advice="sent again in a simpler form",
    ),
    RefusalRule(
        statuses=(404,),
        error=NotServed,
        advice="check the base URL and the model's name",
    ),
    RefusalRule(statuses=(405,), error=NotServed, advice="check the base URL"),
    RefusalRule(
        statuses=(501,),
        error=NotServed,
        advice="the server does not offer that route",
    ),
    RefusalRule(statuses=_CLIENT, error=BadRequest, advice=""),
    RefusalRule(statuses=(503,), error=Overloaded, advice=""),
    RefusalRule(statuses=(529,), error=Overloaded, advice=""),
    RefusalRule(statuses=(500,), words=_CONTENT, error=ContentFault, advice=""),
    RefusalRule(statuses=range(500, 600), error=ServerError, advice=""),
    RefusalRule(
        statuses=range(300, 400),
        error=BadRequest,
        advice="give the address it redirects to as the base URL",
    ),
)


def refusal(
    endpoint: str, status: int, headers: Mapping[str, str], body: bytes, *, now_us: int
) -> AttemptError:
    """Return the error for a reply with a status other than 200.

    Args:
        endpoint: Base URL, for the message.
        status: The HTTP status.
        headers: The relevant headers of the reply, lower case.
        body: The reply's body, free of the key.
        now_us: Wall clock, for a `Retry-After` with a date.
    """
    complaint = error_body(body)
    words = complaint.words
    rule = next(
        (
            rule
            for rule in REFUSAL_RULES
            if status in rule.statuses
            and (rule.words is None or rule.words.search(f"{complaint.code} {words}"))
        ),
        RefusalRule(statuses=(status,), error=BadRequest, advice="check the base URL"),
    )
    message = f"{endpoint} answered {status}"
    if words:
        message += f": {words}"
    if rule.advice:
        message += f" ({rule.advice})"
    return rule.error(
        message,
        status=status,
        retry_after_s=_wait_s(rule.error, headers, words, now_us=now_us),
        body=body or None,
        headers=headers or None,
    )


def _wait_s(
    error: type[AttemptError], headers: Mapping[str, str], words: str, *, now_us: int
) -> float | None:
    """Return the seconds to wait, from headers or, for limits, from the message."""
    wait_s = retry_after_s(headers, now_us=now_us)
    if wait_s is None and issubclass(error, RateLimited | Overloaded):
        return wait_in_words_s(words)
    return wait_s


def retry_after_s(headers: Mapping[str, str], *, now_us: int) -> float | None:
    """Return the seconds that the endpoint asks to wait; None if it does not.

    `retry-after-ms` (OpenAI, Azure) has finer resolution than `Retry-After` and takes
    precedence; the latter has seconds or an HTTP date (RFC 9110, section 10.2.3).
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * unit_s
    try:
        due = parsedate_to_datetime(headers.get("retry-after", ""))
        if due.tzinfo is None:
            due = due.replace(tzinfo=UTC)
        return max(0.0, due.timestamp() - now_us / 1e6)
    except (ValueError, OverflowError):
        return None


def wait_in_words_s(text: str) -> float | None:
    """Return the seconds that an error message asks to wait; None if none."""
    if (match := _TRY_AGAIN.search(text)) is None:
        return None
    span = match["span"] or f"{match['n']}{match['unit'] or 's'}"
    return reset_s(span, now_us=0)


def logged_headers(
    headers: Mapping[str, str], names: re.Pattern[str] = LOGGED_HEADERS
) -> dict[str, str]:
    """Return the headers that match *names*, in lower case, sorted."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in sorted(lower) if names.fullmatch(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """Content of an error body."""

    code: str = ""  #: code and type
    words: str = ""  #: message, safe for a terminal
    fields: tuple[str, ...] = ()  #: request fields that the body names as such


def error_body(body: bytes) -> ErrorBody:
    """Parse the body of an error in any of the formats that servers use.

    `{"error": {"message", "type", "param", "code"}}` (OpenAI; Gemini puts it into a
    list), `{"error": "text"}`,
    `{"detail": [...]}` (FastAPI, Mistral), `{"message": ...}`, `{"object": "error",
    ...}` (vLLM), and plain text.
    """
    try:
        content = msgspec.json.decode(body)
    except UNREADABLE:
        if page := web_page(body):
            return ErrorBody(words=page)
        content = body[: 4 * LONGEST_QUOTE].decode(errors="replace")
    if isinstance(content, list) and len(content) == 1:
        content = content[0]  # Gemini wraps it in a list
    if isinstance(content, dict) and "error" in content:
        content = content["error"]
    code, fields = "", []
    if isinstance(content, dict):
        code = " ".join(str(content.get(name) or "") for name in ("code", "type"))
        if isinstance(content.get("param"), str):
            fields.append(content["param"])
        content = content.get("message") or content.get("detail") or ""
    if isinstance(content, dict):  # Mistral nests its list in an object
        content = content.get("detail") or content
    if isinstance(content, list):
        faults = [fault for fault in content if isinstance(fault, dict)]
        fields += [_field_of(fault) for fault in faults]
        code += "".join(f" {fault.get('type') or ''}" for fault in faults)
        # without the input, which such an error repeats
        content = (
            "; ".join(map(_fault, faults)) or msgspec.json.encode(content).decode()
        )
    elif not isinstance(content, str):
        content = msgspec.json.encode(content).decode()
    fields += [".".join(re.findall(r"'([^']*)'", loc)) for loc in _LOC.findall(content)]
    return ErrorBody(
        code=code, words=one_line(content), fields=tuple(filter(None, fields))
    )


_LOC: Final = re.compile(r"'loc': [(\[]([^)\]]*)[)\]]")
"""A location in the list of errors that vLLM formats as a Python value in its
message."""


def _field_of(fault: Mapping[str, Any]) -> str:
    """Return the field that a validation error is about."""
    loc = fault.get("loc")
    steps = loc if isinstance(loc, list) else [loc]
    return ".".join(str(step) for step in steps if step not in {None, "body"})


def _fault(fault: Mapping[str, Any]) -> str:
    """Describe one validation error."""
    message = str(fault.get("msg") or fault.get("message") or fault.get("type") or "")
    return ": ".join(filter(None, (_field_of(fault), message)))


def one_line(text: str) -> str:
    """Make *text* printable, on one line, and short."""
    line = " ".join(text.split())
    visible = "".join(c for c in line if c.isprintable())
    return (
        visible
        if len(visible) <= LONGEST_QUOTE
        else visible[: LONGEST_QUOTE - 1].rstrip() + "…"
    )


FORMAT: Final = "response_format"
SYSTEM: Final = "system"
PACKED: Final = "encoding_format"
LIMITS: Final = ("max_tokens", "max_completion_tokens")
ROOM: Final = "reasoning room"
_REFUSING: Final = re.compile(
    r"un-?(supported|known|expected|available|recogni[sz]ed)|extra|forbidden|invalid"
    r"|(not|n't|no longer) (\w+ )?(support|permit|allow|accept|available|implemented"
    r"|compatible|enabled|recogni[sz]ed|a valid|an? \w+ parameter)|deprecated"
    r"|only the default|must (be|alternate)|has to be|can ?not|can only|incompatible"
    r"|removed",
    re.IGNORECASE,
)
"""Words of a refusal, near the name of the refused field."""

_SYSTEM: Final = re.compile(
    r"system (role|message|prompt|instruction)s?\b.{0,60}(support|allow|enabled|permit)"
    r"|(role|roles)\b.{0,60}\b(system|developer)\b|developer instruction"
    r"|roles must alternate",
    re.IGNORECASE,
)
"""Seen: "System role not supported" (Gemma's template), "'messages[0].role' does not
support 'system' with this model" (o1-mini), "Developer instruction is not enabled"
(Gemini's form of Gemma), "Conversation roles must alternate user/assistant"."""

_FORMAT: Final = re.compile(
    r"response.?format|text\.format|json.?schema|json.?object|response_?schema"
    r"|structured.?output"
    r"|output_?(format|config)|guided.?decoding|grammar|invalid schema",
    re.IGNORECASE,
)
_TOO_LARGE: Final = re.compile(
    r"too (large|high|big|long)|at most|above|exceed|less than|maximum|<=|limit of",
    re.IGNORECASE,
)
_COMMON: Final = re.compile(r"[a-z]+")
"""Names that are also English words: they count only in quotes, or as a location."""
_PLAINLY_NAMED: Final = frozenset({"temperature"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFields:
    """Fields of a call that an endpoint may refuse."""

    shape: Shape
    names: frozenset[str] = frozenset()
    room: int = 0  #: tokens for reasoning within its limit
    task: int = 0  #: number of its task; 0: none


def refused_fields(
    complaint: ErrorBody, words: str, sent: SentFields, *, is_form: bool
) -> tuple[str, ...]:
    """Return the sent fields that an endpoint refuses, according to its message.

    Fields that the body names as such decide. Otherwise a name counts in a sentence of
    refusal; names that are English words count only in quotes.

    Args:
        complaint: the body of the refusal.
        words: its message, or a substitute.
        sent: the fields of the call.
        is_form: the message is of a kind about the reply's format.
    """
    matches = [_match_field(field, words, sent.names) for field in complaint.fields]
    refused_names = [name for name in matches if name is not None]
    code = complaint.code.replace("invalid_request_error", "")  # in every refusal
    if not refused_names and _REFUSING.search(f"{code} {words}"):
        refused_names = [name for name in sorted(sent.names) if _is_in(name, words)]
        if SYSTEM in sent.names and _SYSTEM.search(words):
            refused_names.append(SYSTEM)
    elif not refused_names and _TOO_LARGE.search(words):
        refused_names = [
            name for name in LIMITS if name in sent.names and _is_in(name, words)
        ]
    if not refused_names and is_form:
        refused_names = [name for name in (FORMAT, PACKED) if name in sent.names]
    limits = [name for name in refused_names if name in LIMITS]
    if limits and _TOO_LARGE.search(f"{complaint.code} {words}"):
        # the value is refused, not its name
        others = [name for name in refused_names if name not in LIMITS]
        refused_names = [*others, ROOM] if sent.room and sent.shape.room else others
    return tuple(dict.fromkeys(refused_names))


_NAMES: Final = {"effort": "reasoning_effort", "instructions": SYSTEM}
"""Names in the Responses form, where `reasoning.effort` is nested."""


def _match_field(field: str, words: str, names: Collection[str]) -> str | None:
    """Return our name for a *field* in a body, such as `body.temperature`."""
    steps = [_NAMES.get(step, step) for step in re.split(r"[.\[\]]+", field) if step]
    for step in steps:
        if step in names:
            return step
    if "messages" in steps and SYSTEM in names and _SYSTEM.search(f"{field} {words}"):
        return SYSTEM
    if FORMAT in names and _FORMAT.search(field):
        return FORMAT
    return None


def _is_in(name: str, words: str) -> bool:
    if name in {SYSTEM, FORMAT}:
        return name == FORMAT and bool(_FORMAT.search(words))
    if _COMMON.fullmatch(name) and name not in _PLAINLY_NAMED:
        return bool(re.search(rf"""['"`]{name}['"`]""", words))
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words))
