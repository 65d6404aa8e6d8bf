"""Items of a plan answered offline: the same calls that a run would make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.estimate.sample import PlanSample, SampledStage, StageUsage, draw_sample
from runner.job import Answer, Stage, Task, TaskSpec
from runner.messages import ChatRequest, EmbedRequest, Vectors
from runner.money.tokens import prompt_tokens
from runner.plan import Roles
from tests.runner.toy_jobs import ToyJob, ToySettings

FIRST = SampledStage(stage="read", model="m", is_first=True)
ASKED = SampledStage(stage="ask", model="m", is_first=False)
SUMMED = SampledStage(stage="sum", model="m", is_first=False)
ONE = Roles(models=dict.fromkeys(("subject", "embed"), ("m",)), replicates=1)


class GatheredFirst(ToyJob):
    """Readings gathered under names of *size* items each, then one sum a name."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.stages = (
            Stage(name="read", parse=self._text, gathers=True),
            Stage(name="sum", parse=self._text, follows=False),
        )

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        for i in range(dataset.items):
            yield TaskSpec(stage="read", key=f"i{i}", group=f"g{i // self.size}")

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        key = group[0].task.key
        yield TaskSpec(stage="sum", key=f"{key} of {len(group)}")


class Uneven(ToyJob):
    """An item's number says how many words its reading has; every third is skipped."""

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        for i in range(dataset.items):
            skip = "odd" if i % 3 == 2 else None
            yield TaskSpec(stage="read", key=str(i), skip=skip)

    def baseline(self, request: ChatRequest) -> str:
        stage, _, key = request.messages[0].text.partition(" ")
        return " ".join(map(str, range(int(key) % 5))) if stage == "read" else "x"


def _drawn(job: ToyJob, settings: ToySettings, **given: int) -> PlanSample:
    return draw_sample(
        job,
        settings,
        roles=ONE,
        items=given.pop("items", 64),
        goes_on=lambda _: True,
        **given,
    )


def test_follow_ups_and_gathered_groups_grow_as_in_a_run() -> None:
    sample = _drawn(ToyJob(), ToySettings(items=5, words=2))
    assert sample.first_calls == {"read": 5}
    assert len(sample.tried) == sample.items == 5
    for grown in sample.tried:
        assert {place: use.calls for place, use in grown.items()} == {
            FIRST: 1,
            ASKED: 2,
            SUMMED: 1,
        }
        assert grown[FIRST].most_out == 16


def test_what_shares_a_group_in_the_first_stage_is_one_item() -> None:
    sample = _drawn(GatheredFirst(4), ToySettings(items=12))
    assert (sample.items, sample.specs) == (3, 12)
    for grown in sample.tried:
        assert grown[FIRST].calls == 4
        assert grown[SUMMED].calls == 1


def test_a_large_item_is_tried_in_part_and_scaled() -> None:
    sample = _drawn(GatheredFirst(100), ToySettings(items=200), largest=10)
    assert sample.items == 2
    assert [grown[FIRST].calls for grown in sample.tried] == [100, 100]


def test_skipped_tasks_are_counted_as_planned_and_not_as_called() -> None:
    sample = _drawn(Uneven(), ToySettings(items=9, words=9))
    assert sample.specs == 9
    assert sample.first_calls == {"read": 6}
    assert sum(g[FIRST].calls for g in sample.tried if FIRST in g) == 6


def test_of_a_long_plan_some_items_are_tried_and_all_are_counted() -> None:
    sample = _drawn(Uneven(), ToySettings(items=30_000, words=9), items=200)
    assert sample.items == 30_000
    assert len(sample.tried) == 200
    # two of three are asked, and those have two follow-ups each in the mean
    followed = fmean(g[ASKED].calls if ASKED in g else 0.0 for g in sample.tried)
    assert followed == pytest.approx(4 / 3, abs=0.35)


def test_the_sample_is_always_the_same() -> None:
    drawn = [_drawn(Uneven(), ToySettings(items=500), items=20) for _ in range(2)]
    assert drawn[0] == drawn[1]


class Judged(ToyJob):
    """Readings of subjects; a judge is asked about each."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = (
            Stage(name="read", parse=self._text),
            Stage(name="ask", parse=self._text, role="judge", follows=False),
        )

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        yield TaskSpec(stage="ask", key=group[0].task.key)


def test_a_judge_is_asked_about_every_subject_and_each_prompt_answered_once() -> None:
    roles = Roles(models={"subject": ("m", "n"), "judge": ("j",)}, replicates=1)
    asked: list[int] = []
    sample = draw_sample(
        Judged(),
        ToySettings(items=3),
        roles=roles,
        items=3,
        goes_on=lambda calls: bool(asked.append(calls)) or True,
    )
    judged = SampledStage(stage="ask", model="j", is_first=False)
    for grown in sample.tried:
        calls = {place: use.calls for place, use in grown.items()}
        assert calls == {FIRST: 1, replace(FIRST, model="n"): 1, judged: 2}
    assert asked == [2, 4]


class Windows(ToyJob):
    """Each reading is followed by another of the same stage, *words* times."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        name, _, step = group[0].task.key.partition("+")
        if int(step or 0) < dataset.words:
            yield TaskSpec(stage="read", key=f"{name}+{int(step or 0) + 1}")


def test_what_follows_in_the_same_stage_is_told_from_what_came_first() -> None:
    sample = _drawn(Windows(), ToySettings(items=3, words=4))
    again = SampledStage(stage="read", model="m", is_first=False)
    assert [grown[FIRST].calls for grown in sample.tried] == [1, 1, 1]
    assert [grown[again].calls for grown in sample.tried] == [4, 4, 4]


class Embedding(ToyJob):
    """Readings are vectors of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = (Stage(name="read", parse=self._length, role="embed"),)

    @staticmethod
    def _length(dataset: ToySettings, task: Task, reply: Vectors) -> int:
        del dataset, task
        return len(reply.packed)

    def request(self, dataset: ToySettings, task: Task) -> EmbedRequest:  # type: ignore[override]
        del dataset
        return EmbedRequest(texts=(task.key, "one two"))

    def baseline(self, request: EmbedRequest) -> Vectors:  # type: ignore[override]
        return Vectors.of([[1.0]] * len(request.texts))

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        assert group[0].parsed == 2
        return iter(())


def test_vectors_take_tokens_in_and_none_out() -> None:
    (grown,) = _drawn(Embedding(), ToySettings(items=1)).tried
    assert grown[FIRST].tokens_in == prompt_tokens(EmbedRequest(texts=("i0", "a b")))
    assert grown[FIRST].tokens_out == grown[FIRST].most_out == 0


def test_a_sample_ends_when_told_but_not_before_one_item() -> None:
    asked: list[int] = []

    def goes_on(calls: int) -> bool:
        asked.append(calls)
        return calls < 8

    toy = ToyJob(), ToySettings(items=50)
    sample = draw_sample(*toy, roles=ONE, items=30, goes_on=goes_on)
    assert len(sample.tried) == 2
    assert asked == [4, 8]
    never = draw_sample(*toy, roles=ONE, items=30, goes_on=lambda _: False)
    assert len(never.tried) == 1


def test_only_the_beginning_of_a_plan_may_be_looked_at() -> None:
    sample = _drawn(ToyJob(), ToySettings(items=10**9), among=100)
    assert sample.items == 100


class Noting(ToyJob):
    """Notes which items are tried, and asks nothing more of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[int] = []

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        self.tried.append(int(task.key.removeprefix("i")))
        return super().request(dataset, task)

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset, group
        return iter(())


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 200))
def test_no_item_is_tried_twice_and_no_more_than_asked(size: int, more: int) -> None:
    job = Noting()
    _drawn(job, ToySettings(items=size + more), items=size)
    assert len(job.tried) == len(set(job.tried)) == size


def test_the_sample_lies_evenly_over_the_plan() -> None:
    job = Noting()
    _drawn(job, ToySettings(items=20_000), items=1_000)
    fifths = Counter(number // 4_000 for number in job.tried)
    # 200 each, give or take four standard deviations
    assert all(150 < fifths[fifth] < 250 for fifth in range(5))


class Raising(ToyJob):
    """Raises in one method, for the second item alone."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def _trip(self, what: str, key: str) -> None:
        if what == self.what and key.endswith("i1"):
            raise KeyError("no such item")

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        self._trip("request", task.key)
        return super().request(dataset, task)

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        self._trip("follow_up", group[0].task.key)
        return super().follow_up(dataset, group)

    def baseline(self, request: ChatRequest) -> str:
        self._trip("baseline", request.messages[0].text)
        return super().baseline(request)


@pytest.mark.parametrize("what", ["request", "follow_up", "baseline"])
def test_a_method_that_raises_fails_its_task_and_the_sample_goes_on(what: str) -> None:
    sample = _drawn(Raising(what), ToySettings(items=4, words=2))
    assert len(sample.tried) == 4
    assert sample.failing.tasks == 1
    said = rf"{what} raised KeyError at .*test_sample\.py:\d+"
    assert re.fullmatch(said, sample.failing.first)
    total = sum((Counter(_calls(grown)) for grown in sample.tried), Counter())
    # a failed request is not sent; a baseline that raises says nothing of the model
    assert total == {FIRST: 3 if what == "request" else 4, ASKED: 6, SUMMED: 3}


def _calls(grown: Mapping[SampledStage, StageUsage]) -> dict[SampledStage, int]:
    return {place: round(use.calls) for place, use in grown.items()}


def test_a_parser_that_raises_leaves_an_unread_reply() -> None:
    sample = _drawn(UnreadableJob(), ToySettings(items=3, words=2))
    assert sample.failing.tasks == 0
    assert len(sample.tried) == 3


class UnreadableJob(ToyJob):
    """A parser that trips over every reply."""

    @staticmethod
    def _words(*_: object) -> tuple[str, ...]:
        raise KeyError("nothing can be read")
