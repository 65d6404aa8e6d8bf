"""The limits that an endpoint tells in its headers; pure.

Three families: `x-ratelimit-limit-requests` with `-remaining-` and `-reset-` (OpenAI
and its followers, reset as `6m0s`), and `anthropic-ratelimit-requests-limit` with
`-remaining` and `-reset` (a moment, RFC 3339). Where Anthropic tells of tokens of
several kinds, the sum of both kinds is what counts here, else those of the prompt.
The third is the drafts of the IETF: `ratelimit-limit` with `-remaining` and `-reset` in
seconds, or `ratelimit: "name";r=50;t=30` with `ratelimit-policy: "name";q=100;w=60`.

LiteLLM's proxy sends the limits of a key, a user or a team as
`x-ratelimit-api_key-limit-requests`, next to those of the provider behind it. All of
them hold, so the narrowest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

LONGEST_RESET_S = 120.0
"""A limit that takes longer to be whole again is one a day or an hour: spread evenly
over minutes it would strangle a run, so such a limit is left to its 429s."""

MINUTE_S, DAY_S = 60.0, 86_400.0
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
class Told:
    """What the headers of one reply tell; None: nothing of that kind."""

    requests: Quota | None = None
    tokens: Quota | None = None


NOTHING = Told()

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


def told(headers: Mapping[str, str] | None, *, now_us: int) -> Told:
    """The limits in *headers*, names in lower case; never raises."""
    if not headers:
        return NOTHING
    scopes = set(_SCOPED.findall("\n".join(headers)))
    found = {kind: _narrowest(headers, kind, scopes, now_us) for kind in _FORMS}
    if found["requests"] is None:
        found["requests"] = _draft(headers)
    return Told(**found)


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
    if window_s != MINUTE_S:
        remaining = None  # of another window than a minute's
    return Quota(per_minute=limit * MINUTE_S / window_s, remaining=remaining)


def _parameters(text: str) -> dict[str, float]:
    """The numbers of the first item of a structured field: `"name";q=100;w=60`."""
    _, *parts = text.partition(",")[0].split(";")
    pairs = (part.strip().partition("=") for part in parts)
    found = {name: _number(value) for name, _, value in pairs}
    return {name: value for name, value in found.items() if value is not None}


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
        if (found := _DURATION.fullmatch(text)) and text:
            parts = found.groupdict(default="0")
            return sum(float(parts[unit]) * s for unit, s in _UNITS_S.items())
        due = datetime.fromisoformat(text)
        return due.timestamp() - now_us / 1e6 if due.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
