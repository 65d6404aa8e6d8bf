"""Reads limits per minute from headers, and enforces them with token buckets; sans-IO.

Three families: `x-ratelimit-limit-requests` with `-remaining-` and `-reset-` (OpenAI
and its followers, reset as `6m0s`), and `anthropic-ratelimit-requests-limit` with
`-remaining` and `-reset` (a moment, RFC 3339). If Anthropic reports tokens of several
kinds, the sum of both kinds is used, else those of the prompt. The third is the drafts
of the IETF: `ratelimit-limit` with `-remaining` and `-reset` in seconds, or `ratelimit:
"name";r=50;t=30` with `ratelimit-policy: "name";q=100;w=60`.

LiteLLM's proxy sends the limits of a key, a user or a team as
`x-ratelimit-api_key-limit-requests`, next to those of the provider behind it. All of
them apply, so the lowest is used.

Virtual-schedule token buckets (GCRA, ITU-T I.371): credit grows steadily up to a small
depth, and a request is sent when its share is available.

If several processes share a limit, the leases provide the gates
(`runner.shards.lease_shares`); a single process has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

LONGEST_RESET_S = 120.0
"""A limit with a longer reset is per hour or day: spread evenly over minutes it would
throttle a run, so it is enforced only by its 429s."""

RESET_MINUTE_S, DAY_S = 60.0, 86_400.0
NEARLY = 0.1
"""Relative error of a measured day: resets are rounded."""

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_DURATION = re.compile(
    r"((?P<h>\d+)h)?((?P<m>\d+)m(?!s))?((?P<s>[\d.]+)s)?((?P<ms>[\d.]+)ms)?", re.ASCII
)
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit per minute and its remainder."""

    per_minute: float
    remaining: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLimits:
    """Limits in the headers of one reply; None: no limit of that kind."""

    requests: Quota | None = None
    tokens: Quota | None = None


NO_HEADER_LIMITS = HeaderLimits()

_FORMS = {
    "requests": ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}"),
    "tokens": (
        "x-ratelimit-{}-tokens",
        "x-ratelimit-{}-input-tokens",
        "anthropic-ratelimit-tokens-{}",
        "anthropic-ratelimit-input-tokens-{}",
    ),
}
"""Header names by kind of limit; the first one present counts."""

_SCOPED = re.compile(
    r"^x-ratelimit-([a-z_]{1,40})-limit-(?:requests|tokens)$", re.MULTILINE
)


def header_limits(headers: Mapping[str, str] | None, *, now_us: int) -> HeaderLimits:
    """Return the limits in *headers*, names in lower case; never raises."""
    if not headers:
        return NO_HEADER_LIMITS
    scopes = set(_SCOPED.findall("\n".join(headers)))
    quotas = {kind: _narrowest(headers, kind, scopes, now_us) for kind in _FORMS}
    if quotas["requests"] is None:
        quotas["requests"] = _draft(headers)
    return HeaderLimits(**quotas)


def _narrowest(
    headers: Mapping[str, str], kind: str, scopes: Iterable[str], now_us: int
) -> Quota | None:
    """Return the lowest of the endpoint's limit and those of a proxy's *scopes*."""
    families = [_FORMS[kind]]
    families += [(f"x-ratelimit-{scope}-{{}}-{kind}",) for scope in scopes]
    quotas = [_quota(headers, forms, now_us) for forms in families]
    return min(filter(None, quotas), key=lambda quota: quota.per_minute, default=None)


def _quota(
    headers: Mapping[str, str], forms: Iterable[str], now_us: int
) -> Quota | None:
    for form in forms:
        limit = _number(headers.get(form.format("limit"), ""))
        if not limit:
            continue
        reset = form.format("reset")
        # the proxy forwards the provider's limit, but its reset only under this name
        text = headers.get(reset) or headers.get(f"llm_provider-{reset}", "")
        due_s = reset_s(text, now_us)
        if due_s is not None and due_s > LONGEST_RESET_S:
            continue
        remaining = _number(headers.get(form.format("remaining"), ""))
        if _is_refilled_in_a_day(limit, remaining, due_s):
            continue
        return Quota(per_minute=limit, remaining=remaining)
    return None


def _is_refilled_in_a_day(
    limit: float, remaining: float | None, due_s: float | None
) -> bool:
    """Return whether usage is refilled at the rate of *limit* per day.

    Groq's requests are limited per day, and 1 of 14,400 is back after 6 s.
    """
    if remaining is None or due_s is None or remaining >= limit:
        return False
    whole_s = due_s * limit / (limit - remaining)
    return abs(whole_s / DAY_S - 1.0) <= NEARLY


def _draft(headers: Mapping[str, str]) -> Quota | None:
    """Return the request limit of the IETF drafts, if its window is known."""
    policy = _parameters(headers.get("ratelimit-policy", ""))
    state = _parameters(headers.get("ratelimit", ""))
    limit = policy.get("q") or _leading(
        headers.get("ratelimit-limit") or headers.get("ratelimit-policy", "")
    )
    window_s = policy.get("w")
    if not limit or not window_s or window_s > LONGEST_RESET_S:
        return None
    remaining = state.get("r", _number(headers.get("ratelimit-remaining", "")))
    if window_s != RESET_MINUTE_S:
        remaining = None  # its window is not a minute
    return Quota(per_minute=limit * RESET_MINUTE_S / window_s, remaining=remaining)


def _parameters(text: str) -> dict[str, float]:
    """Parse the numbers of a structured field's first item: `"name";q=100;w=60`."""
    _, *parts = text.partition(",")[0].split(";")
    pairs = (part.strip().partition("=") for part in parts)
    numbers = {name: _number(value) for name, _, value in pairs}
    return {name: value for name, value in numbers.items() if value is not None}


def _leading(text: str) -> float | None:
    """Parse the first number of an older draft's list: `100, 100;w=60`."""
    return _number(text.partition(",")[0].partition(";")[0])


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def reset_s(text: str, now_us: int) -> float | None:
    """Parse the seconds until the limit is fully refilled."""
    text = text.strip()
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        if (duration := _DURATION.fullmatch(text)) and text:
            parts = duration.groupdict(default="0")
            return sum(float(parts[unit]) * s for unit, s in _UNITS_S.items())
        due = datetime.fromisoformat(text)
        return due.timestamp() - now_us / 1e6 if due.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


MINUTE_S = 60.0


class TokenBucket:
    """Credit that refills steadily and may be overdrawn by one large request."""

    def __init__(self, rate: float, depth: float) -> None:
        """Start full; *rate* is in units per second."""
        self.rate = rate
        self.depth = depth
        self._level = depth
        self._at = float("-inf")

    def _refill(self, now: float) -> None:
        if now > self._at:
            grown = (now - self._at) * self.rate
            self._level = min(self.depth, self._level + grown)
            self._at = now

    def level(self, now: float) -> float:
        """Return the remaining credit; negative after an overdraft."""
        self._refill(now)
        return self._level

    def ready_at(self, now: float, amount: float) -> float:
        """Return when *amount* may be taken; above the depth, when full."""
        shortfall = min(amount, self.depth) - self.level(now)
        # a billionth of credit is rounding, not debt
        return now if shortfall <= 1e-9 * self.depth else now + shortfall / self.rate

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*; the credit may become negative."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float) -> None:
        """Return an unused part of a reservation; negative: it needed more."""
        self._level = min(self.depth, self._level + amount)

    def at_most(self, now: float, level: float) -> None:
        """Lower the credit to at most *level*."""
        self._level = min(self.level(now), level)


class MinuteBucket:
    """A limit per minute that holds in every window of 60 s.

    With a longer *window_s* it holds in every window of that length, for amounts that
    are used somewhat later than taken.

    Its depth is a short burst, or the largest request so far if that is larger; the
    steady rate is lowered by the depth's share of the minute. The smaller the requests,
    the closer it gets to the limit.
    """

    def __init__(
        self, per_minute: float, burst_s: float, *, window_s: float = MINUTE_S
    ) -> None:
        self.per_minute = per_minute
        self._window_s = window_s
        #: at least one request must fit, or nothing would ever be sent
        self._bucket = TokenBucket(1.0, max(1.0, per_minute * burst_s / MINUTE_S))
        self._deepen(0.0)

    def _deepen(self, amount: float) -> None:
        bucket, half = self._bucket, self.per_minute / 2
        bucket.depth = max(bucket.depth, min(amount, half))
        bucket.rate = max(self.per_minute - bucket.depth, half) / self._window_s

    @property
    def depth(self) -> float:
        """Amount that may be sent at once."""
        return self._bucket.depth

    def ready_at(self, now: float, amount: float) -> float:
        """Return when *amount* may be taken; over half a minute's goes into debt."""
        self._deepen(amount)
        return self._bucket.ready_at(now, amount)

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        self._deepen(amount)
        self._bucket.take(now, amount)

    def give_back(self, amount: float) -> None:
        """Return an unused part of a reservation; negative: it needed more."""
        self._bucket.give_back(amount)

    def at_most(self, now: float, level: float) -> None:
        """Lower the credit to at most *level*."""
        self._bucket.at_most(now, level)


class Credit(Protocol):
    """Available credit of one kind: requests, or tokens."""

    @property
    def per_minute(self) -> float:
        """The limit in force."""
        ...

    def ready_at(self, now: float, amount: float) -> float:
        """Return when *amount* may be taken; infinity: unknown."""
        ...

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        ...

    def give_back(self, amount: float) -> None:
        """Return an unused part of a reservation; negative: it needed more."""
        ...


class Gate(Protocol):
    """One kind of limit of one model."""

    @property
    def bucket(self) -> Credit | None:
        """The available credit; None: there is no limit."""
        ...

    def set(self, now: float, by_hand: float | None) -> None:
        """Set or remove the user's limit; the limit in headers remains."""
        ...

    def apply_quota(self, now: float, quota: Quota | None) -> None:
        """Apply the lower of the limit in headers and the user's."""
        ...


class Pausable(Protocol):
    """An endpoint as a lender sees it."""

    @property
    def name(self) -> str:
        """Its address."""
        ...

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        ...


class Lender(Protocol):
    """Distributes the limits of a run to its processes."""

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[Gate, Gate]:
        """Return a model's gates for requests and for tokens."""
        ...

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """Report a pause that an endpoint asked for, which applies to all processes."""
        ...


class MinuteGate:
    """The gate of a process that does not share its limit."""

    def __init__(
        self,
        by_hand: float | None,
        burst_s: float,
        *,
        window_s: float = MINUTE_S,
        first: float | None = None,
    ) -> None:
        """Start with a full bucket if *by_hand* is a limit.

        Args:
            by_hand: the user's limit per minute.
            burst_s: as for `MinuteBucket`.
            window_s: as for `MinuteBucket`.
            first: maximum credit of buckets created later; None: they start full.
        """
        self._by_hand = by_hand
        self._header_limit: float | None = None
        self._burst_s = burst_s
        self._window_s = window_s
        self._first = first
        self.bucket = self._filled(by_hand) if by_hand is not None else None

    def _filled(self, limit: float) -> MinuteBucket:
        return MinuteBucket(limit, self._burst_s, window_s=self._window_s)

    def set(self, now: float, by_hand: float | None) -> None:
        """Set or remove the user's limit; the limit in headers remains."""
        self._by_hand = by_hand
        self._apply(now, self._first)

    def apply_quota(self, now: float, quota: Quota | None) -> None:
        """Apply the lower of the limit in headers and the user's."""
        if quota is None or quota.per_minute == self._header_limit:
            return
        self._header_limit = quota.per_minute
        # an earlier process may have used up the minute
        known = [x for x in (quota.remaining, self._first) if x is not None]
        self._apply(now, min(known, default=None))

    def _apply(self, now: float, credit: float | None) -> None:
        limits = [x for x in (self._by_hand, self._header_limit) if x is not None]
        limit = min(limits, default=None)
        if limit is None:
            self.bucket = None
        elif self.bucket is None or self.bucket.per_minute != limit:
            self.bucket = self._filled(limit)
            if credit is not None:
                self.bucket.at_most(now, credit)
