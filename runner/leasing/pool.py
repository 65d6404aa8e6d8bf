"""What all shards together may send to one model, lent in small parts; sans-IO.

Two rules make the sum of all shards keep a limit that each of them only knows a part
of:

1. What is lent leaves within `LIFE_S` or comes back. So what leaves in any minute was
   lent in that minute or in the `LIFE_S` before it, and the buckets hold the limit in
   windows that are longer by as much. What is given back was never sent: it is as if it
   had never been lent.
2. Nobody knows what was sent before a bucket was made, so it is made empty.

Whoever asks first is lent first, a part of a bucket at most, and asks again at the
end of the queue: shards that want much share alike, those that want little get it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from runner.leasing.messages import Ask, Told
from runner.leasing.terms import WINDOW_S
from runner.limits.bucket import MinuteBucket
from runner.limits.gate import MinuteGate
from runner.limits.limiter import REQUEST_BURST_S, TOKEN_BURST_S, Limits
from runner.limits.told import Quota

LARGEST: Final = 0.6
"""Of a bucket, lent at a time. Of 25 requests, as at 100 a second, 15: one question for
so many calls, and few are held at a run's end by shards that have no use for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is lent to one shard."""

    process: str
    requests: int
    tokens: int


class Pool:
    """The requests and tokens of one model."""

    def __init__(self, limits: Limits | None, now: float) -> None:
        """An empty pool; *limits* as a person set them, None: nobody did."""
        self._requests, self._tokens = (
            MinuteGate(None, burst_s, window_s=WINDOW_S, first=0.0)
            for burst_s in (REQUEST_BURST_S, TOKEN_BURST_S)
        )
        self._asks: dict[str, Ask] = {}
        self.due: float | None = None  #: when the next part can be lent
        if limits is not None:
            self.set(limits, now)

    def set(self, limits: Limits, now: float) -> None:
        """Go by other limits of a person's from now on."""
        self._requests.set(now, limits.rpm)
        self._tokens.set(now, limits.tpm)

    def told(self, told: Told, now: float) -> None:
        """Go by what the endpoint tells, where that is lower."""
        gate = self._requests if told.kind == "requests" else self._tokens
        gate.hear(now, Quota(per_minute=told.per_minute, remaining=told.remaining))

    def ask(self, process: str, ask: Ask) -> None:
        """Have *process* wait for its part; asking anew does not cost it its turn."""
        self._asks[process] = ask

    def forget(self, process: str) -> None:
        """Have it wait no more."""
        self._asks.pop(process, None)

    def back(self, requests: int, tokens: int) -> None:
        """Take back what was lent and is not used; negative: more was."""
        for bucket, amount in self._amounts(requests, tokens):
            bucket.give_back(amount)

    def lend(self, now: float, paused_until: float) -> Iterator[Part]:
        """The parts that can be lent now, in turn."""
        self.due = None
        while self._asks:
            process, ask = next(iter(self._asks.items()))
            part = self._part(process, ask)
            amounts = self._amounts(part.requests, part.tokens)
            ready = [bucket.ready_at(now, amount) for bucket, amount in amounts]
            when = max([now, paused_until, *ready])
            if when > now:
                self.due = when
                return
            del self._asks[process]
            for bucket, amount in amounts:
                bucket.take(now, amount)
            yield part

    def _part(self, process: str, ask: Ask) -> Part:
        requests, tokens = ask.requests, max(ask.tokens, ask.tokens_least)
        if (bucket := self._requests.bucket) is not None:
            requests = min(requests, max(1, math.floor(bucket.depth * LARGEST)))
        if (bucket := self._tokens.bucket) is not None:
            most = math.floor(bucket.depth * LARGEST)
            tokens = max(ask.tokens_least, min(tokens, most))
        return Part(process=process, requests=requests, tokens=tokens)

    def _amounts(self, requests: int, tokens: int) -> list[tuple[MinuteBucket, float]]:
        """What that is of each limit that there is."""
        pairs = (self._requests.bucket, requests), (self._tokens.bucket, tokens)
        return [(bucket, float(n)) for bucket, n in pairs if bucket is not None and n]
