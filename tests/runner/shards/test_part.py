"""Which shard an item is of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.job import TaskSpec
from runner.plan import Roles, first_stage
from runner.shards.parts import item_of_spec, shard_of, takes_spec
from tests.runner.toy_jobs import ToyJob, ToySettings


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
    assert item_of_spec(ToyJob(), dataset, alone) == "10.1/a#2"
    assert item_of_spec(ToyJob(), dataset, gathered) == "10.1/a"
    assert item_of_spec(Telling(), dataset, gathered) == "7:10.1/a#2"


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
