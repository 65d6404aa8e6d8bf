"""What came back last: latencies of the present, and a failure that repeats itself.

Read from the end of the log in bounded steps, since projections that kept latencies by
the minute would cost every commit. Whoever looks keeps a `Tail` and asks it again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from store.events import AttemptAnswered, AttemptFailed
from store.reading import event_in, last_seq
from store.statements import SQL
from store.sums import US_PER_S

KEPT = 1_000
"""Answers that percentiles of the present are taken over."""
STEP = 1_000
"""Events read by one look; where more have come, those between are passed over."""
FIRST = 3_000
"""Events read by the first look: an answer is one of three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """How long a model's latest answers took, exactly."""

    model: str
    n: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A failure that came again and again, without another one between."""

    n: int  #: at least: earlier ones were not looked at
    task: int  #: of the last time
    error: str
    message: str  #: as the endpoint said it: make it printable before it is shown
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the end of a log says."""

    n: int  #: answers that the latencies are of
    since_us: int | None  #: when the first of them came; None: there is none
    until_us: int | None
    models: tuple[Recent, ...]
    failure: Repeated | None  #: the last failed attempt

    @property
    def seconds(self) -> float:
        """The time between the first and the last of the answers."""
        if self.since_us is None or self.until_us is None:
            return 0.0
        return (self.until_us - self.since_us) / US_PER_S


class Tail:
    """Remembers the latest answers of one log, and where it has read up to."""

    def __init__(self) -> None:
        self._seq = 0
        self._answers: deque[tuple[int, str, float]] = deque(maxlen=KEPT)
        self._failure: Repeated | None = None

    def read(self, conn: sqlite3.Connection) -> Answers:
        """Take in what has come since, and say what there is."""
        last = last_seq(conn)
        after = max(self._seq, last - (STEP if self._seq else FIRST))
        rows = conn.execute(SQL["outcomes"], (after, last)).fetchall()
        for seq, ts_us, model, kind, version, facts in rows:
            match event_in(seq, kind, version, facts):
                case AttemptAnswered(cached=False, latency_ms=float(latency_ms)):
                    self._answers.append((ts_us, model, latency_ms))
                case AttemptFailed() as failed:
                    self._failed(ts_us, failed)
                case _:
                    pass
        self._seq = last
        return self._said()

    def _failed(self, ts_us: int, failed: AttemptFailed) -> None:
        before = self._failure
        is_same = before is not None and (before.error, before.message) == (
            failed.error,
            failed.message,
        )
        self._failure = Repeated(
            n=before.n + 1 if before and is_same else 1,
            task=failed.task,
            error=failed.error,
            message=failed.message,
            at_us=ts_us,
        )

    def _said(self) -> Answers:
        by_model: dict[str, list[float]] = defaultdict(list)
        for _, model, latency_ms in self._answers:
            by_model[model].append(latency_ms)
        return Answers(
            n=len(self._answers),
            since_us=self._answers[0][0] if self._answers else None,
            until_us=self._answers[-1][0] if self._answers else None,
            models=tuple(_recent(model, by_model[model]) for model in sorted(by_model)),
            failure=self._failure,
        )


def _recent(model: str, latencies: Sequence[float]) -> Recent:
    ordered = sorted(latencies)
    p50, p95, p99 = (nearest_rank(ordered, share) for share in (0.5, 0.95, 0.99))
    return Recent(model=model, n=len(ordered), p50_ms=p50, p95_ms=p95, p99_ms=p99)


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The smallest of some values that *share* of them do not exceed.

    >>> nearest_rank([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    at = -(-round(share * 100) * len(ordered) // 100)
    return ordered[max(0, at - 1)]
