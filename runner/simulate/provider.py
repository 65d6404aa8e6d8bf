"""Processes one request as a provider does: refuses it, or answers and bills it.

Pure except for the bill: no sockets, no clock. The bill follows the dialect's rule and
shares no code with siftlog's cost accounting.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from runner.errors import BadRequest, UsageError
from runner.job import Job
from runner.messages import ChatRequest, Content
from runner.money.tokens import image_tokens, images_read
from runner.simulate.anthropic_messages import write_message
from runner.simulate.billing import BilledTokens, PriceList, Tokenizer, exact
from runner.simulate.dialect import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Dialect,
    RefusalKind,
    RefusedRequest,
    ServedAnswer,
)
from runner.simulate.dialects import (
    DIALECTS,
    REPORTS_CACHE,
    UNREADABLE,
    of_request,
    settled,
)
from runner.simulate.model import SimulatedModel
from runner.simulate.options import Chance, SimulateOptions
from runner.simulate.replies import (
    ReplyDraft,
    ReplyWriter,
    write_chat,
    write_responses,
    write_vectors,
)
from runner.simulate.requests import (
    CHARACTERS_PER_TOKEN,
    SimulatedRequest,
    fields_of,
    without,
)
from store.nearest import did_you_mean

MESSAGE_TOKENS: Final = 4
"""Overhead per message (OpenAI's cookbook, "How to count tokens": 3 or 4)."""

REPLY_TOKENS: Final = 3
"""Overhead before the reply (same source)."""

ADAPTIVE: Final = 1500
"""Maximum thinking tokens if the model decides."""

REFUSAL: Final = "I'm sorry, but I can't help with that."


WRITERS: Final[Mapping[str, ReplyWriter]] = {
    CHAT: write_chat,
    RESPONSES: write_responses,
    MESSAGES: write_message,
}
"""Encoders of chat replies, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """An encoded answer, and its cost."""

    body: bytes
    media: str
    served: ServedAnswer
    finish: str  #: "stop", "length" or "content_filter" in any dialect
    tells_usage: bool  #: whether the body reports usage
    headers: Mapping[str, str]


class Provider:
    """Answers requests in one dialect, and sums its bills.

    Args:
        options: The dialect, the seed, prices and shares.
        job: Its baseline answers, if given.
    """

    def __init__(self, options: SimulateOptions, job: Job | None) -> None:
        try:
            dialect = DIALECTS[options.dialect]
        except KeyError:
            raise UsageError(
                f"There is no dialect {options.dialect!r}; "
                + did_you_mean(
                    options.dialect, DIALECTS, f"choose one of {', '.join(DIALECTS)}."
                )
            ) from None
        self._options = options
        self._model = SimulatedModel(options.seed, job)
        self._prices = PriceList()
        if options.bill_price is not None:
            self._prices = PriceList.read(options.bill_price, options.bill_tiers)
        self._tokenizer = _tokenizer(options)
        row = settled(dialect, options.seed)
        self.dialect = replace(row, ignored=row.ignored | frozenset(options.ignored))
        self.spent = Decimal(0)
        """Dollars billed so far."""

    def row(self, digest: str, seen: int) -> Dialect:
        """Return the dialect of the reply to that request."""
        return of_request(self.dialect, self._options.seed, digest, seen)

    def turned_away(
        self, row: Dialect, path: str, *, has_key: bool
    ) -> RefusedRequest | None:
        """Return why a request is refused before it is parsed."""
        if path not in self.dialect.paths:
            return row.refusal(RefusalKind.PATH, path=f"/v1{path}")
        if not has_key and (self.dialect.needs_key or path == MESSAGES):
            return row.refusal(RefusalKind.KEY)
        return None

    def heeded(self, path: str, body: bytes) -> bytes:
        """Return the body without the ignored fields of chats."""
        return without(body, self.dialect.ignored) if path == CHAT else body

    def unreadable(
        self, row: Dialect, body: bytes, error: BadRequest
    ) -> RefusedRequest:
        """Return the refusal of a request that failed to parse with *error*."""
        fields = fields_of(body)
        if fields and not fields.get("model"):
            return row.refusal(RefusalKind.NO_MODEL)
        return row.refusal(RefusalKind.BODY, detail=str(error))

    def refused(
        self, row: Dialect, incoming: SimulatedRequest, path: str
    ) -> RefusedRequest | None:
        """Return why a parsed request is refused, apart from limits."""
        models, quota = self._options.models, self._options.quota_usd
        if not incoming.model:
            return row.refusal(RefusalKind.NO_MODEL)
        if incoming.fields.get("messages") == []:
            return row.refusal(RefusalKind.NO_MESSAGES)
        if models and incoming.model not in models:
            return row.refusal(RefusalKind.MODEL, model=incoming.model)
        for rule in self.dialect.rules:
            refusal = rule(incoming, path)
            if refusal is not None:
                return refusal
        if quota is not None and self.spent >= quota:
            return row.refusal(RefusalKind.QUOTA, detail=f"{self.spent:f}")
        return None

    def tokens_in(self, incoming: SimulatedRequest) -> int:
        """Return the tokens of the prompt."""
        if self._tokenizer is None:
            return incoming.tokens
        pieces = len(incoming.texts)
        if isinstance(incoming.request, ChatRequest):
            pieces = len(incoming.request.messages)
        return (
            sum(map(self._tokenizer.count, incoming.texts))
            + sum(map(image_tokens, images_read(incoming.request)))
            + MESSAGE_TOKENS * pieces
            + REPLY_TOKENS
        )

    def draft(
        self, row: Dialect, incoming: SimulatedRequest, digest: str
    ) -> ReplyDraft | RefusedRequest:
        """Generate the answer to a request, or an error caused by its content."""
        answers = tuple(
            self._model.answer(incoming, digest, choice)
            for choice in range(incoming.choices)
        )
        draft = self._drafted(row, incoming, answers, digest)
        words = row.cut_schema
        if (
            words is None
            or isinstance(draft, RefusedRequest)
            or not _is_cut(incoming, draft)
        ):
            return draft
        return RefusedRequest(
            status=words.status,
            message=words.message,
            type=words.type,
            code=words.code,
        )

    def reply(
        self,
        row: Dialect,
        incoming: SimulatedRequest,
        digest: str,
        path: str,
        draft: ReplyDraft,
        *,
        seen: int = 0,
        is_batch: bool = False,
    ) -> ProviderReply:
        """Encode *draft* as the reply, and bill it."""
        chance = Chance("reply", self._options.seed, digest, seen)
        tokens = self._cached(row, incoming, draft.tokens, chance, path)
        tier = "batch" if is_batch else self._tier(row, incoming, chance)
        cost = self._prices.cost(tokens, tier)
        self.spent += cost
        served = ServedAnswer(
            request_id=_request_id(self._options.seed, digest, seen, is_batch),
            model=_dated(row, incoming.model),
            fingerprint=_usually_first(row.fingerprints, chance),
            provider=chance.pick(row.providers) if row.providers else None,
            tier=tier,
            tokens=tokens,
            cost=cost,
        )
        is_chat = isinstance(incoming.request, ChatRequest)
        writer = WRITERS[path] if is_chat else write_vectors
        written = writer(row, incoming, digest, draft, served)
        has_usage = path != CHAT or row.usage not in UNREADABLE
        return ProviderReply(
            body=written.body,
            media=written.media,
            served=served,
            finish=draft.finish,
            tells_usage=has_usage and written.tells_usage,
            headers=row.ids(served),
        )

    def _drafted(
        self,
        row: Dialect,
        incoming: SimulatedRequest,
        answers: tuple[Content, ...],
        digest: str,
    ) -> ReplyDraft | RefusedRequest:
        """Generate reasoning and answers, within the output limit."""
        fresh = self.tokens_in(incoming)
        texts = [answer for answer in answers if isinstance(answer, str)]
        if not texts:
            return ReplyDraft(
                answers=answers, finish="stop", tokens=BilledTokens(fresh=fresh)
            )
        seed = self._options.seed
        rate = self._options.rate_refuse
        if rate and Chance("refuse", seed, digest).unit() < rate:
            if row.name == "azure":
                return row.refusal(RefusalKind.FILTER)
            tokens = BilledTokens(fresh=fresh, visible=self._count(REFUSAL))
            return ReplyDraft(
                answers=(REFUSAL,), finish="content_filter", tokens=tokens
            )
        cap, most = self._cap(row, incoming), self._options.max_output
        reasoning = self._reasoning(row, incoming, digest)
        bounds = [most, cap if row.reasoning.is_capped else None]
        reasoning = min((reasoning, *(bound for bound in bounds if bound is not None)))
        rooms = [bound - reasoning for bound in bounds if bound is not None]
        if cap is not None:
            rooms.append(cap)
        room = min(rooms, default=None)
        cut = [
            text if room is None or self._count(text) <= room else self._cut(text, room)
            for text in texts
        ]
        is_short = any(
            len(part) < len(text) for part, text in zip(cut, texts, strict=True)
        )
        return ReplyDraft(
            answers=tuple(cut),
            finish="length" if is_short else "stop",
            tokens=BilledTokens(
                fresh=fresh,
                visible=sum(map(self._count, cut)) if any(cut) or not is_short else 0,
                reasoning=reasoning,
            ),
            thoughts=_thoughts(row, digest, reasoning),
        )

    @staticmethod
    def _cap(row: Dialect, incoming: SimulatedRequest) -> int | None:
        """Return the output limit, from the fields that the dialect knows."""
        return incoming.cap(("max_output_tokens", *row.caps)) if row.caps else None

    def _reasoning(self, row: Dialect, incoming: SimulatedRequest, digest: str) -> int:
        """Draw reasoning tokens over several orders of magnitude, as real ones."""
        thinking, effort = (
            incoming.fields.get(k) for k in ("thinking", "reasoning_effort")
        )
        most = 0 if effort == "none" else row.reasoning.most
        if isinstance(thinking, dict) and thinking.get("type") != "disabled":
            most = int(thinking.get("budget_tokens", ADAPTIVE))
        if self._options.reasoning is not None and most:
            most = self._options.reasoning
        if most <= 0:
            return 0
        unit = Chance("reasoning", self._options.seed, digest).unit()
        return min(most, int(math.exp(unit * math.log(most + 1))))

    def _cached(
        self,
        row: Dialect,
        incoming: SimulatedRequest,
        tokens: BilledTokens,
        chance: Chance,
        path: str,
    ) -> BilledTokens:
        """Split the prompt into fresh, cached and written tokens."""
        draw, share = chance.unit(), chance.unit()
        least, step = row.cache_least, row.cache_step
        if self._options.cache_least is not None and least:
            least, step = self._options.cache_least, 1
        is_chat = isinstance(incoming.request, ChatRequest)
        if not least or tokens.fresh < least or not is_chat:
            return tokens
        if path == CHAT and row.usage not in REPORTS_CACHE:
            return tokens
        marks = incoming.cache_marks() if row.cache_writes else []
        if row.cache_writes and not marks:
            return tokens
        steps = int(tokens.fresh * share) // step * step
        if draw < 0.5:  # noqa: PLR2004 - half of all requests
            return replace(tokens, fresh=tokens.fresh - steps, cached=steps)
        if not row.cache_writes or path not in {MESSAGES, CHAT}:
            return tokens
        hour = steps if "1h" in marks else 0
        return replace(
            tokens,
            fresh=tokens.fresh - steps,
            written_5m=steps - hour,
            written_1h=hour,
        )

    def _tier(
        self, row: Dialect, incoming: SimulatedRequest, chance: Chance
    ) -> str | None:
        """Return the serving tier: sometimes not the requested one."""
        requested = incoming.fields.get("service_tier")
        draw = chance.unit()
        if not isinstance(requested, str):
            return None
        if row.name == "anthropic":
            # Anthropic grants priority by capacity; it cannot be requested alone
            return "priority" if requested == "auto" and draw < 0.5 else None  # noqa: PLR2004
        if requested not in row.tiers or draw < 0.1:  # noqa: PLR2004 - a share
            return None
        return requested

    def _count(self, text: str) -> int:
        if self._tokenizer is None:
            return 1 + len(text) // CHARACTERS_PER_TOKEN
        return self._tokenizer.count(text)

    def _cut(self, text: str, most: int) -> str:
        if self._tokenizer is None:
            return text[: max(0, most - 1) * CHARACTERS_PER_TOKEN]
        return self._tokenizer.cut(text, most)


def billed_fields(reply: ProviderReply) -> dict[str, Any]:
    """Return the fields of a ledger line about serving and billing."""
    served, tokens = reply.served, reply.served.tokens
    return {
        "tokens_in": tokens.prompt,
        "tokens_out": tokens.out,
        "tokens_cached": tokens.cached,
        "tokens_cache_write": tokens.written,
        "tokens_cache_write_1h": tokens.written_1h,
        "tokens_reasoning": tokens.reasoning,
        "cost_usd": exact(served.cost),
        "tells_usage": reply.tells_usage,
        "finish": reply.finish,
        "tier": served.tier,
        "request_id": served.request_id,
        "served_model": served.model,
        "fingerprint": served.fingerprint,
        "provider": served.provider,
    }


def _tokenizer(options: SimulateOptions) -> Tokenizer | None:
    """Return the dialect's tokenizer; None: by length, as the plain dialect."""
    if options.bytes_per_token is not None:
        bytes_per_token = options.bytes_per_token
        return Tokenizer(letters=bytes_per_token, others=bytes_per_token)
    if options.dialect == "plain":
        return None
    chance = Chance("tokenizer", options.seed, options.dialect)
    return Tokenizer(letters=2.5 + 2 * chance.unit(), others=1 + chance.unit())


def _is_cut(incoming: SimulatedRequest, draft: ReplyDraft) -> bool:
    """Return whether a structured answer is truncated."""
    request = incoming.request
    has_schema = isinstance(request, ChatRequest) and request.schema is not None
    return has_schema and draft.finish == "length"


def _thoughts(row: Dialect, digest: str, tokens: int) -> str:
    """Return the visible reasoning, if any."""
    if not row.reasoning.message_field or not tokens:
        return ""
    chance = Chance("thoughts", digest)
    words = ("so", "then", "the", "text", "says", "or", "not", "wait")
    return " ".join(chance.pick(words) for _ in range(min(tokens, 40)))


def _dated(row: Dialect, model: str) -> str:
    """Return the name of the serving model; a dated name is kept."""
    return model if model[-1:].isdigit() and "-20" in model else model + row.dated


def _usually_first(choices: tuple[str, ...], chance: Chance) -> str | None:
    """Return the first of *choices*, sometimes another."""
    if not choices:
        return None
    return choices[0] if chance.unit() < 0.9 else chance.pick(choices)  # noqa: PLR2004


def _request_id(seed: int, digest: str, seen: int, is_batch: bool) -> str:
    hex_digest = hashlib.sha256(
        f"{seed} {digest} {seen} {is_batch}".encode()
    ).hexdigest()
    return f"req_{hex_digest[:32]}"
