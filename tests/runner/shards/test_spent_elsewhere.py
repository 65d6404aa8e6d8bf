"""What other logs have spent counts against a shard by the slices that they share."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from runner.run.folder import GroupSpending
from runner.shards.parts import read_other_logs, shard_of
from store.runs import RunFolder
from tests.store.memory_log import FakeClock
from tests.store.samples import completed, failed, plan, started, task
from tests.store.samples import reply as answer
from tests.store.union.union_logs import shard_log, shard_started

PLAN = plan([task(1)])


def test_half_of_what_the_whole_spent_counts_and_nothing_of_its_own(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "r1")
    folder.path.mkdir()
    again = replace(failed(1, retry_in_s=1.0), possible_usd=0.5)
    shard_log(
        folder.path,
        "0-1",
        [shard_started(0, 1), PLAN],
        [started(1), again],
        [started(1, 2)],
        [answer(1, b"whole", 2, cost_usd=1.0), completed(1, 2)],
    )
    paid = (answer(1, b"own", cost_usd=8.0), completed(1))
    shard_log(folder.path, "0-2", [shard_started(0, 2), PLAN], [started(1)], paid)
    shard_log(folder.path, "1-2", [shard_started(1, 2), PLAN], [started(1)], paid)
    folder.refresh()
    told: list[str] = []
    found = asyncio.run(
        read_other_logs(
            folder.shard(0, 2), shard_of("0/2"), None, FakeClock(), told.append
        )
    )
    assert found.spent == GroupSpending(
        spent_pico=500_000_000_000, possible_pico=250_000_000_000
    )
    assert found.adopted is not None
    assert told == []
