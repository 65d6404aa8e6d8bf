"""A run starts with the concurrency that an earlier one reached at its endpoint."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from runner.run.earlier_limits import RECENT_S, reached_concurrency
from store.database import open_reader
from store.events import LimitObserved
from store.fold_state import US_PER_S
from store.log.sqlite import SqliteLog
from store.read.tasks import events
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.processes import siftlog, simulated
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED

URL = "http://127.0.0.1:9/v1"


def _ended(
    runs: Path, name: str, *, concurrency: int, rpm: float | None = None, url: str = URL
) -> FakeClock:
    """A run of `m` that ended now."""
    folder = RunFolder(runs / name)
    folder.path.mkdir(parents=True)
    folder.config.write_text(f'job = "ask"\nmodel = ["m"]\nbase_url = "{url}"\n')
    clock = FakeClock()

    async def write() -> None:
        async with await SqliteLog.create(
            folder.log, run_id=name, config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            await log.append(
                RUN_STARTED,
                LimitObserved(model="m", concurrency=concurrency, in_flight=0, rpm=rpm),
            )
            await log.heartbeat()

    asyncio.run(write())
    return clock


def _reached(runs: Path, name: str, now_us: int) -> dict[str, int]:
    return reached_concurrency(RunFolder(runs / name), {"m": URL}, now_us)


def test_the_latest_run_at_the_same_endpoint_counts(tmp_path: Path) -> None:
    clock = _ended(tmp_path, "old", concurrency=12)
    _ended(tmp_path, "new", concurrency=48)
    _ended(tmp_path, "elsewhere", concurrency=99, url="http://127.0.0.1:8/v1")
    for age, name in enumerate(("elsewhere", "new", "old")):
        path = tmp_path / name / "log.db"
        at_s = clock.now_us() / US_PER_S - age
        os.utime(path, (at_s, at_s))
    assert _reached(tmp_path, "next", clock.now_us()) == {"m": 48}
    assert _reached(tmp_path, "old", clock.now_us()) == {"m": 12}


@pytest.mark.parametrize("spoiled", ["old", "rate", "config", "log"])
def test_what_is_old_paced_or_unreadable_does_not_count(
    tmp_path: Path, spoiled: str
) -> None:
    rpm = 60.0 if spoiled == "rate" else None
    clock = _ended(tmp_path, "r", concurrency=48, rpm=rpm)
    folder = RunFolder(tmp_path / "r")
    if spoiled == "config":
        folder.config.write_text("model = 7")
    if spoiled == "log":
        folder.log.write_bytes(b"no database")
    later_us = int(2 * RECENT_S * US_PER_S) if spoiled == "old" else 0
    assert _reached(tmp_path, "r", clock.now_us() + later_us) == {}


def test_the_next_run_starts_there_and_records_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 40)
    with simulated(
        "--latency-ms=300", "--job", "paper-investigation", cwd=tmp_path
    ) as url:
        words = ("paper-investigation", *corpus, "--model=x", f"--base-url={url}")
        rest = ("--concurrency=64", "--no-score")
        for run in ("first", "second"):
            siftlog("run", *words, *rest, f"--run-id={run}", cwd=tmp_path)
    seen = {}
    for run in ("first", "second"):
        with open_reader(tmp_path / "runs" / run / "log.db") as reader:
            found = [r.event for r in events(reader, kinds=["limit_observed"])]
        seen[run] = [e.concurrency for e in found if isinstance(e, LimitObserved)]
    assert seen["first"][0] == 8
    assert seen["first"][-1] > 8
    assert seen["second"][0] == seen["first"][-1]
