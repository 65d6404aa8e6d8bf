"""The first call of a stage goes alone, so that a refusal is paid for once."""

from __future__ import annotations

from runner import errors as e
from runner.engine.model_queue import PROBE_S, QueuedTask
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits

STAGES = ("ask", "judge")


class World:
    """A scheduler of one model with tasks in both stages."""

    def __init__(
        self,
        *,
        probed: tuple[str, ...] = STAGES,
        each: int = 20,
        batched: bool = False,
    ) -> None:
        limits = Limits(concurrency=8, batched=batched)
        self.scheduler = Scheduler(
            [("m", STAGES, limits, Endpoint("m"))], deadline_s=60.0
        )
        self.scheduler.probe("m", probed)
        self.now = 0.0
        self.each = each

    def step(self) -> list[QueuedTask]:
        step = self.scheduler.step(self.now)
        for load in step.load:
            first = 1 + self.each * STAGES.index(load.stage)
            works = [
                (
                    QueuedTask(number=n, stage=load.stage, model="m", prior_attempts=0),
                    float("-inf"),
                )
                for n in range(first, first + self.each)
            ]
            known = works if load.after == 0 else []
            last = works[-1][0].number if known else None
            self.scheduler.loaded(load, known, last=last)
        if step.load:
            return [*step.start, *self.step()]
        self.wake_at = step.wake_at
        return list(step.start)

    def answer(self, work: QueuedTask) -> None:
        self.scheduler.received(work, self.now, used=None)
        self.scheduler.settled(work)

    def refuse(self, work: QueuedTask) -> None:
        error = e.FormRefused("no", status=400)
        self.scheduler.failed(work, error, self.now, 0.5)
        self.scheduler.settled(work, retry_at=self.now)


def stages(works: list[QueuedTask]) -> list[str]:
    return sorted(work.stage for work in works)


def test_one_call_of_each_stage_goes_before_the_crowd() -> None:
    world = World()
    first = world.step()
    assert stages(first) == ["ask", "judge"]
    assert world.step() == []
    world.now = 0.3
    world.answer(next(work for work in first if work.stage == "judge"))
    assert set(stages(world.step())) == {"judge"}


def test_each_refusal_is_followed_by_one_call_alone() -> None:
    world = World(probed=("ask", "judge"))
    for _ in range(3):
        works = world.step()
        assert stages(works) == ["ask", "judge"]
        world.now += 0.1
        for work in works:
            world.refuse(work)
    works = world.step()
    world.now += 0.1
    for work in works:
        world.answer(work)
    assert len(world.step()) == 8


def test_nobody_waits_longer_than_a_refusal_takes() -> None:
    world = World()
    world.step()
    assert world.wake_at == PROBE_S
    world.now = PROBE_S
    assert len(world.step()) == 6


def test_in_batches_one_call_of_all_stages_goes_first_however_long_it_takes() -> None:
    world = World(batched=True)
    (first,) = world.step()
    world.now = 40_000.0
    assert world.step() == []
    world.refuse(first)
    (again,) = world.step()
    world.now = 80_000.0
    world.answer(again)
    assert len(world.step()) == 8


def test_what_is_known_to_be_taken_is_not_probed() -> None:
    assert len(World(probed=()).step()) == 8
    works = World(probed=("ask",)).step()
    assert len(works) == 8
    assert stages(works).count("ask") <= 1


def test_content_that_an_endpoint_fails_on_is_asked_three_times_and_no_more() -> None:
    world = World(probed=(), each=1)
    bad, other = world.step()
    error = e.ContentFault("Failed to parse input", status=500)
    for is_last in (False, False, True):
        decision, said = world.scheduler.failed(bad, error, world.now, 0.0)
        assert (decision.retry_in_s is None) is is_last
        assert said is None
        if not is_last:
            world.scheduler.settled(bad, retry_at=world.now)
            assert bad in world.step()
    world.answer(other)
