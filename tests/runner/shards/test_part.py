"""Which shard an item is of.

Who is said to be at work on a shard's slices, on a machine that cannot be asked. What
other logs have spent counts against a shard by the slices that they share.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.job import TaskSpec
from runner.plan import Roles, first_stage
from runner.run.folder import GroupSpending
from runner.shards.parts import (
    FRESH_S,
    read_other_logs,
    rival_warnings,
    shard_of,
    takes_spec,
)
from store.database import open_reader
from store.events import Event, RunCancelled, RunDrained, RunFinished
from store.runs import RunFolder
from store.segments.place import Place
from store.segments.source import SegmentSource, sources
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store.logs import reopen
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import completed, failed, plan, started, task
from tests.store.samples import reply as answer
from tests.store.segments.carried import carried, sending
from tests.store.union.union_logs import shard_log, shard_started


class Gathering(ToyJob):
    """Three readings an item, which belong together."""

    def plan(self, dataset: ToySettings) -> object:
        for i in range(dataset.items):
            for part in "xyz":
                yield TaskSpec(stage="read", key=f"i{i}#{part}", group=f"i{i}")


class Telling(ToyJob):
    """Says itself what a reading is about."""

    def item(self, dataset: ToySettings, spec: TaskSpec) -> str:
        return f"{dataset.items}:{spec.key}"


@pytest.mark.parametrize(
    "text", ["", "1", "0/0", "2/2", "-1/2", "0/1025", "a/b", "1/2/3"]
)
def test_what_names_no_shard_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"--shard .*\.$"):
        shard_of(text)


def test_a_shard_knows_its_slices() -> None:
    assert shard_of("1/4").slices == "256-511"
    assert shard_of("0/1").slices == "0-1023"


def test_an_item_is_what_is_gathered_together_unless_the_job_says_it() -> None:
    alone = TaskSpec(stage="read", key="10.1/a#2")
    gathered = TaskSpec(stage="read", key="10.1/a#2", group="10.1/a")
    dataset = ToySettings(items=7)
    assert ToyJob().item(dataset, alone) == "10.1/a#2"
    assert ToyJob().item(dataset, gathered) == "10.1/a"
    assert Telling().item(dataset, gathered) == "7:10.1/a#2"


@settings(max_examples=25)
@given(
    items=st.integers(0, 200),
    count=st.integers(1, 5),
    models=st.integers(1, 2),
    replicates=st.integers(1, 3),
)
def test_the_shards_of_a_plan_are_the_plan_and_share_no_group(
    items: int, count: int, models: int, replicates: int
) -> None:
    job, dataset = Gathering(), ToySettings(items=items)
    names = tuple(f"m{i}" for i in range(models))
    roles = Roles(models={"subject": names}, replicates=replicates)
    whole = [t for b in first_stage(job, dataset, roles, consumed=0) for t in b.tasks]
    found = {}
    groups: set[str | None] = set()
    for index in range(count):
        takes = takes_spec(shard_of(f"{index}/{count}"), job, dataset)
        own: set[str | None] = set()
        blocks = list(first_stage(job, dataset, roles, consumed=0, takes=takes))
        assert blocks[-1].exhausted
        assert blocks[-1].consumed == 3 * items
        for block in blocks:
            assert block.positions is not None
            found.update(zip(block.positions, block.tasks, strict=True))
            own |= {task.group for task in block.tasks}
        assert not own & groups
        groups |= own
    assert [found[place] for place in sorted(found)] == whole
    assert len(found) == len(whole)


@settings(max_examples=25)
@given(items=st.integers(0, 300), cut=st.integers(0, 900), index=st.integers(0, 2))
def test_a_shard_taken_up_anywhere_is_the_rest_of_it_in_the_same_places(
    items: int, cut: int, index: int
) -> None:
    job, dataset = Gathering(), ToySettings(items=items)
    roles = Roles(models={"subject": ("a", "b")}, replicates=1)
    takes = takes_spec(shard_of(f"{index}/3"), job, dataset)

    def planned(consumed: int) -> list[tuple[int, str]]:
        blocks = first_stage(job, dataset, roles, consumed=consumed, takes=takes)
        return [
            (place, task.key)
            for block in blocks
            for place, task in zip(block.positions or (), block.tasks, strict=True)
        ]

    assert planned(cut) == [each for each in planned(0) if each[0] >= 2 * cut]


QUARTER = shard_of("1/4")


def _source(tmp_path: Path, *ends: Event) -> SegmentSource:
    """Of shard 1/4's log, that was carried when the clock began."""
    place = Place.of(f"memory://{tmp_path}")
    log = carried(tmp_path / "log.db", place, (3,))

    async def end() -> None:
        async with await reopen(log) as writer:
            await writer.append(*ends)

    if ends:
        asyncio.run(end())
        with open_reader(log) as reader:
            sending(reader, place).send()
    (source,) = sources(place)
    return source


@pytest.mark.parametrize("ahead_s", [-FRESH_S, 0.0, 3.0])
def test_who_was_carried_a_moment_ago_may_be_at_work(
    tmp_path: Path, ahead_s: float
) -> None:
    """And clocks of machines differ."""
    source = _source(tmp_path)
    now_us = START_US - round(ahead_s * 1e6)
    (said,) = rival_warnings([source], shard_of("0/3"), now_us)
    assert said.startswith("Shard 1/4 was shipped from ")
    assert f" {max(0, -ahead_s):.0f} s ago, and has 86 slices of Shard 0/3" in said


def test_who_was_carried_long_ago_is_thought_to_be_gone(tmp_path: Path) -> None:
    now_us = START_US + round(FRESH_S * 1e6) + 1
    assert list(rival_warnings([_source(tmp_path)], QUARTER, now_us)) == []


@pytest.mark.parametrize(
    "end",
    [
        RunDrained(by="operator", why="", open=3),
        RunCancelled(by="operator"),
        RunFinished(completed=1, failed=0, skipped=0),
    ],
)
def test_who_has_said_a_last_word_is_gone(tmp_path: Path, end: Event) -> None:
    assert list(rival_warnings([_source(tmp_path, end)], QUARTER, START_US)) == []


def test_a_shard_is_told_of_them_as_it_begins(tmp_path: Path) -> None:
    source = _source(tmp_path)
    own = RunFolder(tmp_path / source.identity.run_id)
    place, told = Place.of(f"memory://{tmp_path}"), list[str]()
    asyncio.run(
        read_other_logs(
            own.shard(0, 1), shard_of("0/1"), place, FakeClock(), told.append
        )
    )
    (said,) = told
    assert said.startswith("Shard 1/4 was shipped from ")


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
