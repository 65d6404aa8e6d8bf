"""What one provider's dialect is made of: a row of values and small pure functions.

A `Dialect` says how usage, errors, limits, the end of a reply and what served it are
written; it decides nothing about what happens to a request. The rows themselves are in
`dialects`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from runner.simulate.asked import Asked
from runner.simulate.bill import Tokens
from runner.simulate.limits import Gauge, duration

HTML: Final = "text/html"
JSON: Final = "application/json"
TEXT: Final = "text/plain"


class Kind(enum.StrEnum):
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
class Words:
    """A provider's own words for one kind of trouble.

    `{model}`, `{path}`, `{wait}` and `{detail}` in the message are filled in.
    """

    status: int
    message: str
    type: str | None = "invalid_request_error"
    code: str | int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
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
class Served:
    """What served one answer, and what was counted."""

    request_id: str
    model: str  #: may be a dated name behind the one that was asked for
    fingerprint: str | None
    provider: str | None
    tier: str | None  #: None: the standard one, not mentioned
    tokens: Tokens
    cost: Decimal  #: in dollars
    at_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """What a model generates before its answer."""

    most: int = 0  #: tokens, drawn for each request; 0: the model does not reason
    is_capped: bool = True  #: whether the limit on the output bounds it
    shown: str = ""  #: the message's field that shows it; "think": inside the content


Usage: TypeAlias = Callable[[Tokens, Decimal], object]
Rule: TypeAlias = Callable[[Asked, str], Trouble | None]
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
    words: Mapping[Kind, Words]
    error: Callable[[Trouble, Served | None], object]
    usage: Usage
    rules: tuple[Rule, ...] = ()
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
    tells_tier: bool = False
    tiers: frozenset[str] = frozenset()  #: that may be asked for
    more: Callable[[Served], Mapping[str, object]] = lambda _served: {}
    ids: Callable[[Served], Mapping[str, str]] = lambda _served: {}
    limits: Callable[[Mapping[str, Gauge], float], Mapping[str, str]] = (
        lambda _gauges, _now_s: {}
    )
    waits: Callable[[float], Mapping[str, str]] = lambda _wait_s: {}
    statuses: tuple[int, ...] = (500, 502, 503)  #: of its server errors
    html: frozenset[int] = frozenset()  #: server errors answered by a proxy's page
    cache_least: int = 0  #: tokens of the shortest prompt that is cached; 0: no cache
    cache_step: int = 1  #: cached tokens come in multiples of this
    cache_writes: bool = False  #: whether writing to the cache is billed
    cut_schema: Words | None = None  #: answers an output that ends inside its JSON

    def trouble(self, kind: Kind, *, wait_s: float = 0.0, **values: object) -> Trouble:
        """The trouble of that kind in this dialect's words."""
        words = self.words[kind]
        filled = {"model": "", "path": "", "detail": "", **values}
        return Trouble(
            status=words.status,
            message=words.message.format(wait=duration(wait_s), **filled),
            type=words.type,
            code=words.code,
            param=words.param,
            wait_s=wait_s,
        )

    def failure(self, status: int) -> Trouble:
        """A server error with that status."""
        if status in self.html:
            page = f"<html><head><title>{status}</title></head><body>{status}</body>"
            return Trouble(status=status, message="", body=page, media=HTML)
        words = self.words[Kind.SERVER]
        return Trouble(
            status=status, message=words.message, type=words.type, code=words.code
        )

    def body(self, trouble: Trouble, served: Served | None = None) -> bytes:
        """The body that tells of *trouble*."""
        body = self.error(trouble, served) if trouble.body is None else trouble.body
        return body.encode() if isinstance(body, str) else msgspec.json.encode(body)
