"""Requests a second and tokens a minute, refused and told as OpenAI does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from runner.simulate.bucket import Bucket
from runner.simulate.options import SimulateOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One limit at a moment."""

    per_minute: float  #: what it allows
    remaining: float  #: what may be taken at once
    full_in_s: float  #: until all of it is there again
    served: int = 0  #: requests admitted so far


class Limits:
    """Both limits of an endpoint; a limit that is not set never refuses.

    Requests may come in bursts of one second's worth, tokens of one minute's: OpenAI
    counts requests over short windows, and one prompt may take a good part of the
    tokens.
    """

    def __init__(self, options: SimulateOptions, now: float) -> None:
        rps, tpm = options.rps, options.tpm
        self._told = options.limit_headers
        self._rps_after = options.rps_after
        self._changes_at: float | None = None
        self._served = 0
        self._buckets: dict[str, tuple[float, Bucket]] = {}
        if rps is not None:
            requests = Bucket(rate=rps, capacity=_burst(rps), now=now)
            self._buckets["requests"] = (rps * 60, requests)
        if tpm is not None:
            self._buckets["tokens"] = (
                tpm,
                Bucket(rate=tpm / 60, capacity=tpm, now=now),
            )

    def admit(self, tokens: int, now: float) -> float:
        """Take a request of *tokens*: 0.0, or the seconds to wait, nothing taken."""
        self._change(now)
        amounts = {"requests": 1, "tokens": tokens}
        wait_s = max(
            (
                bucket.wait_s(amounts[name], now)
                for name, (_, bucket) in self._buckets.items()
            ),
            default=0.0,
        )
        if wait_s == 0.0:
            self._served += 1
            for name, (_, bucket) in self._buckets.items():
                bucket.take(amounts[name], now)
        return wait_s

    def _change(self, now: float) -> None:
        """Another limit on requests, where its time has come."""
        if self._rps_after is None:
            return
        after_s, rps = self._rps_after
        if self._changes_at is None:
            self._changes_at = now + after_s
        if now >= self._changes_at:
            self._rps_after = None
            _, bucket = self._buckets["requests"]
            bucket.change(rate=rps, capacity=_burst(rps), now=now)
            self._buckets["requests"] = (rps * 60, bucket)

    def charge(self, tokens: int, now: float) -> None:
        """Count the tokens of a reply too; they are known only once it is there."""
        if "tokens" in self._buckets:
            self._buckets["tokens"][1].take(tokens, now)

    def gauges(self, now: float) -> dict[str, Gauge]:
        """Every limit, where they are to be told."""
        if not self._told:
            return {}
        return {
            name: Gauge(
                per_minute=per_minute,
                remaining=max(0.0, bucket.level(now)),
                full_in_s=bucket.full_in_s(now),
                served=self._served,
            )
            for name, (per_minute, bucket) in self._buckets.items()
        }

    def headers(self, now: float) -> dict[str, str]:
        """`x-ratelimit-*` of every limit, where they are to be told."""
        return openai_headers(self.gauges(now), now)


def openai_headers(gauges: Mapping[str, Gauge], _now_s: float) -> dict[str, str]:
    """`x-ratelimit-*` as OpenAI writes them."""
    headers: dict[str, str] = {}
    for name, gauge in gauges.items():
        headers[f"x-ratelimit-limit-{name}"] = f"{gauge.per_minute:.0f}"
        headers[f"x-ratelimit-remaining-{name}"] = f"{gauge.remaining:.0f}"
        headers[f"x-ratelimit-reset-{name}"] = duration(gauge.full_in_s)
    return headers


def retry_after(wait_s: float) -> dict[str, str]:
    """The two headers that say how long to wait; the first knows whole seconds only."""
    return {
        "retry-after": str(math.ceil(wait_s)),
        "retry-after-ms": str(math.ceil(wait_s * 1000)),
    }


def _burst(rps: float) -> float:
    """Requests that are served at once: one second's worth."""
    return max(1.0, rps)


def duration(seconds: float) -> str:
    """A time as OpenAI writes it: `120ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3g}s"
