"""A run's course out of thin air, and a headline that comes when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from store.read.history import BucketRow
from tests.store.memory_log import START_US
from tui.sources.history import (
    HistoryColumn,
    HistoryRequest,
    RunHistory,
    RunMark,
    width_for,
)
from tui.sources.result import Headline, HeadlineMetric

MINUTE = START_US // 60_000_000


def column(number: int, *, width: int = 1, **changed: object) -> HistoryColumn:
    """A column in which as much happened as its number says."""
    row = BucketRow(
        number=number,
        started=5 * width,
        succeeded=number % 10 * width,
        failed=0,
        retried=2 * width,
        tokens_in=60_000 * width,
        tokens_out=600 * width,
        cost_usd=0.5 * width,
    )
    fields: dict[str, object] = {
        "first": MINUTE + number * width,
        "lived": width,
        "row": row,
        "in_flight": 12,
        "limit": 32,
    }
    return HistoryColumn(**(fields | changed))  # type: ignore[arg-type]


def marked(*marks: tuple[int, str]) -> tuple[RunMark, ...]:
    """Marks, each in the middle of a minute of the run."""
    return tuple(
        RunMark(at_us=START_US + minute * 60_000_000 + 30_000_000, text=said)
        for minute, said in marks
    )


def history(
    columns: Sequence[HistoryColumn], *marks: tuple[int, str], width: int = 1
) -> RunHistory:
    """Columns with marks by their minute."""
    return RunHistory(width=width, columns=tuple(columns), happenings=marked(*marks))


@dataclass
class FakeHistory:
    """A run of ten hours: a gap in its last quarter of an hour, and three marks."""

    asked: list[HistoryRequest] = field(default_factory=list)
    error: Exception | None = None
    marks: tuple[tuple[int, str], ...] = (
        (0, "started"),
        (590, "paused: the run, by ops"),
        (595, "resumed"),
    )
    is_closed: bool = False

    async def read(self, ask: HistoryRequest) -> RunHistory:
        self.asked.append(ask)
        if self.error is not None:
            raise self.error
        minutes = ask.minutes or 600
        width = width_for(minutes, ask.columns)
        numbers = range((600 - minutes) // width, 600 // width)
        return history(
            [
                column(number, width=width)
                if number * width not in {591, 592}
                else column(number, lived=0, row=None)
                for number in numbers
            ],
            *self.marks,
            width=width,
        )

    def close(self) -> None:
        self.is_closed = True


HEADLINE = Headline(
    metrics=tuple(
        HeadlineMetric(
            path=f"metric_{number}", model=model, value=0.5, n=812, lo=0.4, hi=0.6
        )
        for number in range(12)
        for model in ("m-large", "m-small")
    ),
    level=0.95,
    seq=12_345,
    ended=812,
    is_partial=True,
)


@dataclass
class FakeHeadline:
    """Says what it is told to, once it may."""

    answers: list[Headline | Exception] = field(default_factory=lambda: [HEADLINE])
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0
    is_closed: bool = False

    async def read(self) -> Headline:
        self.asked += 1
        await self.may_answer.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.is_closed = True
