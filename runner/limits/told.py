"""The limits that an endpoint tells in its headers; pure.

Two families: `x-ratelimit-limit-requests` with `-remaining-` and `-reset-` (OpenAI and
those that follow it, reset as `6m0s`), and `anthropic-ratelimit-requests-limit` with
`-remaining` and `-reset` (a moment, RFC 3339). Where Anthropic tells of tokens of
several kinds, the sum of both kinds is what counts here, else those of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

LONGEST_RESET_S = 120.0
"""A limit that takes longer to be whole again is one a day or an hour: spread evenly
over minutes it would strangle a run, so such a limit is left to its 429s."""

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
        "anthropic-ratelimit-tokens-{}",
        "anthropic-ratelimit-input-tokens-{}",
    ),
}
"""Names of the headers, by what they limit; the first that is there counts."""


def told(headers: Mapping[str, str] | None, *, now_us: int) -> Told:
    """The limits in *headers*, names in lower case; never raises."""
    if not headers:
        return NOTHING
    return Told(**{kind: _quota(headers, kind, now_us) for kind in _FORMS})


def _quota(headers: Mapping[str, str], kind: str, now_us: int) -> Quota | None:
    for form in _FORMS[kind]:
        limit = _number(headers.get(form.format("limit"), ""))
        if not limit:
            continue
        reset_s = _reset_s(headers.get(form.format("reset"), ""), now_us)
        if reset_s is not None and reset_s > LONGEST_RESET_S:
            continue
        return Quota(
            per_minute=limit,
            remaining=_number(headers.get(form.format("remaining"), "")),
        )
    return None


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def _reset_s(text: str, now_us: int) -> float | None:
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
