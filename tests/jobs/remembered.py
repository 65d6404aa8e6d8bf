"""Invented runs: logs with what a scoring left behind, and rows without a log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from jobs.kit.history import HistoryRow
from store.events import Entry, RunStarted, ScoringRecorded
from store.log.sqlite import SqliteLog
from store.results import ItemPart, ItemParts, ItemScore, Milestone, parts_payload
from tests.store.memory_log import START_US, FakeClock

JOB = "review-benchmark"
DAY_US = 86_400_000_000
STUDIES = 4

Got = Mapping[str, Mapping[str, Sequence[int]]]
"""By model and review: the studies that were included; each review has four."""


def milestone(
    got: Got, *, data: str = "d", same: str = "s", **more: object
) -> Milestone:
    """What is remembered of some models; reviews pass with all of their studies."""
    reviews = dict.fromkeys(review for own in got.values() for review in own)
    fields: dict[str, object] = {
        "job": JOB,
        "measure": "recall",
        "item": "review",
        "part": "study",
        "data": data,
        "items": {review: f"{same} {review}" for review in reviews},
        "standings": {
            model: {
                review: ItemScore(
                    got=len(included), of=STUDIES, passed=len(included) == STUDIES
                )
                for review, included in own.items()
            }
            for model, own in got.items()
        },
    }
    return Milestone(**{**fields, **more})  # type: ignore[arg-type]


def parts(got: Got) -> ItemParts:
    """The studies of the same; an included one scores 5, and the others 2."""
    reviews = dict.fromkeys(review for own in got.values() for review in own)
    return ItemParts(
        names={review: [f"study {at}" for at in range(STUDIES)] for review in reviews},
        models={
            model: {
                review: [
                    ItemPart(got=True, score=5.0)
                    if at in included
                    else ItemPart(got=False, score=2.0, lost_at="below_threshold")
                    for at in range(STUDIES)
                ]
                for review, included in own.items()
            }
            for model, own in got.items()
        },
    )


def row(day: int, model: str, own: Milestone) -> HistoryRow:
    """A row of the run of a day."""
    return HistoryRow(
        run=f"r{day}", at_us=START_US + day * DAY_US, model=model, milestone=own
    )


def recorded(
    runs: Path, day: int, *scorings: Milestone | None, below: ItemParts | None = None
) -> None:
    """A run of a day, with its scorings in order; those of `None` leave nothing."""

    async def write() -> None:
        folder = runs / f"r{day}"
        folder.mkdir(parents=True)
        log = await SqliteLog.create(
            folder / "log.db",
            run_id=folder.name,
            config_sha256=bytes(32),
            clock=FakeClock(START_US + day * DAY_US),
            owner="tests",
        )
        async with log:
            await log.append(_started(folder.name))
            for number, own in enumerate(scorings, start=1):
                event = ScoringRecorded(
                    number=number,
                    job_version="1",
                    code_sha256="0" * 64,
                    settings="{}",
                    inputs=[],
                    seq=number,
                    digest="0" * 64,
                    milestone=own,
                )
                payload = None if below is None else parts_payload(below)
                await log.append(Entry(event=event, payload=payload))

    asyncio.run(write())


def _started(run: str) -> RunStarted:
    return RunStarted(
        run_id=run,
        job=JOB,
        job_version="1",
        code_sha256="0" * 64,
        settings="{}",
        models={"subject": ["a"]},
        replicates=1,
        inputs=[],
        siftlog_version="0.1.0",
    )
