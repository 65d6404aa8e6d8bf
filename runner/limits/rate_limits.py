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
"""A limit that takes longer to be whole again is one a day or an hour: spread evenly
over minutes it would strangle a run, so such a limit is left to its 429s."""

RESET_MINUTE_S, DAY_S = 60.0, 86_400.0
NEARLY = 0.1
"""Share by which a measured day may be off: resets are rounded."""

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_DURATION = re.compile(
    r"((?P<h>\d+)h)?((?P<m>\d+)m(?!s))?((?P<s>[\d.]+)s)?((?P<ms>[\d.]+)ms)?", re.ASCII
)
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit a minute, and how much of it is left."""

    per_minute: float
    remaining: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLimits:
    """What the headers of one reply tell; None: nothing of that kind."""

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
"""Names of the headers, by what they limit; the first that is there counts."""

_SCOPED = re.compile(
    r"^x-ratelimit-([a-z_]{1,40})-limit-(?:requests|tokens)$", re.MULTILINE
)


def header_limits(headers: Mapping[str, str] | None, *, now_us: int) -> HeaderLimits:
    """The limits in *headers*, names in lower case; never raises."""
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
    """The lowest of the endpoint's own limit and those of the *scopes* of a proxy."""
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
        # the proxy passes on the provider's limit, but its reset under this name alone
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
    """Whether what was used comes back at the rate of *limit* a day.

    Groq's requests are limited per day, and 1 of 14,400 is back after 6 s.
    """
    if remaining is None or due_s is None or remaining >= limit:
        return False
    whole_s = due_s * limit / (limit - remaining)
    return abs(whole_s / DAY_S - 1.0) <= NEARLY


def _draft(headers: Mapping[str, str]) -> Quota | None:
    """The limit of requests by the drafts of the IETF, if its window is known."""
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
        remaining = None  # of another window than a minute's
    return Quota(per_minute=limit * RESET_MINUTE_S / window_s, remaining=remaining)


def _parameters(text: str) -> dict[str, float]:
    """The numbers of the first item of a structured field: `"name";q=100;w=60`."""
    _, *parts = text.partition(",")[0].split(";")
    pairs = (part.strip().partition("=") for part in parts)
    numbers = {name: _number(value) for name, _, value in pairs}
    return {name: value for name, value in numbers.items() if value is not None}


def _leading(text: str) -> float | None:
    """The number before what older drafts wrote behind it: `100, 100;w=60`."""
    return _number(text.partition(",")[0].partition(";")[0])


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def reset_s(text: str, now_us: int) -> float | None:
    """Seconds until the limit is whole again."""
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
        """A full bucket; *rate* in units a second."""
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
        """The credit that is left; negative after an overdraft."""
        self._refill(now)
        return self._level

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; an amount over the depth needs a full bucket."""
        shortfall = min(amount, self.depth) - self.level(now)
        # a billionth of credit is rounding, not debt
        return now if shortfall <= 1e-9 * self.depth else now + shortfall / self.rate

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*, into debt if it is larger than what is left."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        self._level = min(self.depth, self._level + amount)

    def at_most(self, now: float, level: float) -> None:
        """Leave no more credit than *level*."""
        self._level = min(self.level(now), level)


class MinuteBucket:
    """A limit a minute that holds in every window of 60 s, wherever it begins.

    It holds in a longer window, if one is named, as for what is used up a little later
    than it is taken.

    Its depth is a short burst, or the largest request so far if that is larger; the
    steady rate is lowered by the depth's share of the minute. The more small the
    requests, the closer it comes to the limit.
    """

    def __init__(
        self, per_minute: float, burst_s: float, *, window_s: float = MINUTE_S
    ) -> None:
        self.per_minute = per_minute
        self._window_s = window_s
        #: at least one request must fit, else nothing would ever leave
        self._bucket = TokenBucket(1.0, max(1.0, per_minute * burst_s / MINUTE_S))
        self._deepen(0.0)

    def _deepen(self, amount: float) -> None:
        bucket, half = self._bucket, self.per_minute / 2
        bucket.depth = max(bucket.depth, min(amount, half))
        bucket.rate = max(self.per_minute - bucket.depth, half) / self._window_s

    @property
    def depth(self) -> float:
        """What may leave at once."""
        return self._bucket.depth

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; over half a minute's worth goes into debt."""
        self._deepen(amount)
        return self._bucket.ready_at(now, amount)

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        self._deepen(amount)
        self._bucket.take(now, amount)

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        self._bucket.give_back(amount)

    def at_most(self, now: float, level: float) -> None:
        """Leave no more credit than *level*."""
        self._bucket.at_most(now, level)


class Credit(Protocol):
    """What may still leave of one kind: requests, or tokens."""

    @property
    def per_minute(self) -> float:
        """The limit in force."""
        ...

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; infinity: nobody knows yet."""
        ...

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        ...

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        ...


class Gate(Protocol):
    """One kind of limit of one model."""

    @property
    def bucket(self) -> Credit | None:
        """What may leave; None: there is no such limit."""
        ...

    def set(self, now: float, by_hand: float | None) -> None:
        """Go by another limit of a person's, or by none; what is told holds on."""
        ...

    def apply_quota(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        ...


class Pausable(Protocol):
    """An endpoint, as far as whoever lends its limits knows it."""

    @property
    def name(self) -> str:
        """Its address."""
        ...

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        ...


class Lender(Protocol):
    """Whoever lends the processes of one run their parts of its limits."""

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[Gate, Gate]:
        """A model's gates for requests and for tokens."""
        ...

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """An endpoint asked to be left alone, which concerns the others too."""
        ...


class MinuteGate:
    """The gate of a process that has a limit to itself."""

    def __init__(
        self,
        by_hand: float | None,
        burst_s: float,
        *,
        window_s: float = MINUTE_S,
        first: float | None = None,
    ) -> None:
        """A full bucket if *by_hand* is a limit.

        Args:
            by_hand: what a person set, a minute.
            burst_s: as for `MinuteBucket`.
            window_s: as for `MinuteBucket`.
            first: the most that buckets hold which are made later; None: they are full.
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
        """Go by another limit of a person's, or by none; what is told holds on."""
        self._by_hand = by_hand
        self._apply(now, self._first)

    def apply_quota(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        if quota is None or quota.per_minute == self._header_limit:
            return
        self._header_limit = quota.per_minute
        # an earlier process may have used the minute up
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
