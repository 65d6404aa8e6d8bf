"""Plans are lazy, dense and the same every time.

A plan in an order of chance: all of it, always the same, documents together.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from runner.job import Answer, Task, TaskSpec
from runner.plan import BLOCK, Roles, first_stage, follow_ups, numbered, shuffled
from store.task import PlannedTask
from tests.runner.rows import task_row
from tests.runner.toy_jobs import ToyJob, ToySettings


class Endless(ToyJob):
    """A plan nobody can finish reading."""

    taken = 0

    def plan(self, dataset: ToySettings) -> object:
        del dataset
        while True:
            Endless.taken += 1
            yield TaskSpec(stage="read", key=str(Endless.taken))


class OnceJob(ToyJob):
    """What is read is read once, whatever the replicates."""

    def __init__(self) -> None:
        super().__init__()
        read, *others = self.stages
        self.stages = (replace(read, once=True), *others)


def _roles(models: int, replicates: int) -> Roles:
    names = tuple(f"m{i}" for i in range(models))
    return Roles(models={"subject": names}, replicates=replicates)


def _tasks(items: int, roles: Roles, consumed: int = 0) -> list[PlannedTask]:
    blocks = first_stage(ToyJob(), ToySettings(items=items), roles, consumed=consumed)
    return [task for block in blocks for task in block.tasks]


@given(
    items=st.integers(0, 700),
    models=st.integers(1, 3),
    replicates=st.integers(1, 3),
    cut=st.integers(0, 700),
)
def test_a_plan_taken_up_anywhere_is_the_rest_of_the_whole_plan(
    items: int, models: int, replicates: int, cut: int
) -> None:
    roles = _roles(models, replicates)
    whole = _tasks(items, roles)
    assert len(whole) == items * models * replicates
    assert _tasks(items, roles, consumed=cut) == whole[cut * models * replicates :]
    identities = {(t.stage, t.key, t.model, t.replicate) for t in whole}
    assert len(identities) == len(whole)


def test_a_plan_is_read_no_further_than_the_block_that_is_asked_for() -> None:
    blocks = first_stage(Endless(), ToySettings(), _roles(2, 1), consumed=0)
    (block,) = islice(blocks, 1)
    assert len(block.tasks) == BLOCK
    assert block.consumed == BLOCK // 2
    assert Endless.taken <= BLOCK // 2 + 1
    assert not block.exhausted


def test_only_the_last_block_says_that_the_plan_is_exhausted() -> None:
    blocks = list(
        first_stage(ToyJob(), ToySettings(items=2500), _roles(1, 1), consumed=0)
    )
    assert [block.exhausted for block in blocks] == [False, False, True]
    assert blocks[-1].consumed == 2500


def test_first_stage_tasks_are_their_own_roots() -> None:
    tasks = numbered(_tasks(3, _roles(1, 1)), 41)
    assert [task.root for task in tasks] == [41, 42, 43]


def test_follow_ups_inherit_model_and_replicate_and_are_planned_once() -> None:
    leader = Answer(
        task=Task(number=5, stage="read", key="i5", model="m1", replicate=2)
    )
    specs = [TaskSpec(stage="ask", key=f"i5/{w}") for w in ("a", "b", "a")]
    roles = _roles(2, 2)
    first = follow_ups(ToyJob(), specs, (leader,), roles, root=5, existing=[])
    assert [(t.key, t.model, t.replicate, t.root) for t in first] == [
        ("i5/a", "m1", 2, 5),
        ("i5/b", "m1", 2, 5),
    ]
    # what is asked once is shared by all replicates
    shared = follow_ups(OnceJob(), specs[:1], (leader,), roles, root=5, existing=[])
    assert [(t.model, t.replicate) for t in shared] == [("m1", 1), ("m1", 2)]
    plan = first_stage(OnceJob(), ToySettings(items=2), roles, consumed=0)
    assert [(t.key, t.model, t.replicate) for block in plan for t in block.tasks] == [
        (key, model, 1) for key in ("i0", "i1") for model in ("m0", "m1")
    ]
    there = [task_row(9, first[0])]
    second = follow_ups(ToyJob(), specs, (leader,), roles, root=5, existing=there)
    assert [task.key for task in second] == ["i5/b"]


KEYS = st.lists(
    st.from_regex(r"[a-z]{1,3}([/:#][a-z]{1,2})?", fullmatch=True), unique=True
)


def _specs(keys: list[str]) -> list[TaskSpec]:
    return [TaskSpec(stage="ask", key=key) for key in keys]


def _document(spec: TaskSpec) -> str:
    return spec.key.replace(":", "/").replace("#", "/").partition("/")[0]


@given(KEYS)
def test_nothing_is_lost_and_documents_stay_together_in_their_order(
    keys: list[str],
) -> None:
    specs = _specs(keys)
    found = shuffled(specs)
    assert sorted(spec.key for spec in found) == sorted(keys)
    documents = [_document(spec) for spec in found]
    for document in set(documents):
        own = [spec for spec in specs if _document(spec) == document]
        first = documents.index(document)
        assert found[first : first + len(own)] == own


@given(KEYS)
def test_the_order_of_documents_says_nothing_of_the_order_they_came_in(
    keys: list[str],
) -> None:
    def order(specs: list[TaskSpec]) -> list[str]:
        return list(dict.fromkeys(map(_document, shuffled(specs))))

    assert order(_specs(keys)) == order(_specs(keys[::-1]))


def test_a_sorted_list_does_not_stay_sorted() -> None:
    keys = [f"PMC{n}" for n in range(1000, 1100)]
    found = [spec.key for spec in shuffled(_specs(keys))]
    assert found != keys
    assert 20 < sum(key < "PMC1050" for key in found[50:]) < 30
