"""What served a run's answers, and what their usage leaves open, by its log."""

from __future__ import annotations

from pathlib import Path

from store.database import open_reader
from store.events import AttemptAnswered, AttemptStarted, Entry, Event, TasksPlanned
from store.read.status import Status, status
from store.read.usage import ServedCount
from store.served_by import ServedBy, charge_differs
from store.task import PlannedTask, manifest_bytes
from store.verify import verify
from tests.store.logs import written
from tests.store.samples import RUN_STARTED


def stand(path: Path, *answers: AttemptAnswered) -> Status:
    count = len(answers)
    plan = [
        PlannedTask(stage="ask", key=str(n), model="m", replicate=1, root=n + 1)
        for n in range(count)
    ]
    planned = TasksPlanned(first=1, count=count, consumed=count, exhausted=True)
    units: list[tuple[Entry | Event, ...]] = [
        (RUN_STARTED,),
        (Entry(event=planned, payload=manifest_bytes(plan)),),
    ]
    for task, answer in enumerate(answers, 1):
        started = AttemptStarted(task=task, attempt=1, request_sha256="5" * 64)
        answered = Entry(event=answer, payload=b"{}")
        units += [(started,), (answered,)]
    written(path, *units)
    with open_reader(path) as reader:
        assert verify(reader).is_sound  # the same rows if they are made anew
        return status(reader)


def answer(task: int, **given: object) -> AttemptAnswered:
    return AttemptAnswered(
        task=task,
        attempt=1,
        form="openai.chat",
        status=200,
        latency_ms=5.0,
        finish_reason="stop",
        **given,  # type: ignore[arg-type]
    )


def test_a_run_that_several_builds_served_says_so(tmp_path: Path) -> None:
    served = [
        ServedBy(model="m-1", fingerprint=f"fp_{n % 2}", tier="flex") for n in range(3)
    ]
    found = stand(
        tmp_path / "log.db",
        *(answer(n, served=each) for n, each in enumerate(served, 1)),
        answer(4),
    ).served
    assert found == (
        ServedCount(model="m", field="fingerprint", answers={"fp_0": 2, "fp_1": 1}),
        ServedCount(model="m", field="model", answers={"m-1": 3}),
        ServedCount(model="m", field="tier", answers={"flex": 3}),
    )
    assert [each.is_mixed for each in found] == [True, False, False]
    assert str(found[0]) == "m: 2 fingerprints (fp_0 2, fp_1 1)"


def test_a_name_for_each_answer_does_not_fill_the_tables(tmp_path: Path) -> None:
    (found,) = stand(
        tmp_path / "log.db",
        *(answer(n, served=ServedBy(fingerprint=f"fp_{n}")) for n in range(1, 301)),
    ).served
    assert len(found.answers) == 201
    assert found.answers[""] == 100
    assert str(found).endswith("and 197 more)")


def test_what_a_usage_leaves_open_is_counted(tmp_path: Path) -> None:
    known = {"tokens_in": 1, "tokens_out": 1, "cost_usd": 0.5}
    found = stand(
        tmp_path / "log.db",
        answer(1, possible_usd=0.25),
        answer(2, **known, usage_doubtful=True),
        answer(3, **known, charged_usd=0.5),
        answer(4, **known, charged_usd=0.75),
        answer(5, cost_usd=0.0, cached=True),
    ).billing
    assert (found.unknown, found.doubtful) == (1, 1)
    assert (found.charged, found.charged_usd, found.differing) == (2, 1.25, 1)


def test_a_charge_that_is_rounded_is_the_same() -> None:
    assert not charge_differs(0.0100001, 0.01)
    assert not charge_differs(0.0, 0.0)
    assert charge_differs(0.01, 0.0102)
    assert charge_differs(0.0, 0.001)
