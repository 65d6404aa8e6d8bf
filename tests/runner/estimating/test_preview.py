"""Estimates from work and options, and what earlier runs know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.estimate.estimate import AT_START_S, expected, preview, usual_replies
from runner.options import options_from
from runner.workload import load_workload
from store.clock import SystemClock
from store.events import Entry, Event
from store.log.sqlite import SqliteLog
from tests.runner.launching.test_whole_runs_of_roles import ITEMS, NAMES, WHOLE
from tests.runner.toy_jobs import PanelJob, PanelSettings, ToyJob, ToySettings
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, plan, started, task
from tests.store.samples import reply as answer

PRICED = options_from({"model": ["openai/m"], "price": "1,4"})


class Slow(ToyJob):
    """A job whose baseline takes a second of a clock for each answer."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    def baseline(self, request: object) -> str:
        self.clock.advance(1.0)
        return super().baseline(request)  # type: ignore[arg-type]


def test_a_run_remembers_what_one_item_comes_to(tmp_path: Path) -> None:
    work = load_workload(ToyJob(), ToySettings(items=1000))
    found = expected(work, PRICED, tmp_path, SystemClock(), notify=print)
    whole = preview(work, PRICED, tmp_path)
    assert found is not None
    assert found.first == ["read"]
    assert found.calls[1] == 4.0
    assert whole.total.calls.expected == 4000
    assert found.tokens_in[1] == pytest.approx(
        whole.total.tokens_in.expected / 1000, 0.1
    )
    assert found.cost_usd is not None
    assert whole.total.usd is not None
    assert found.cost_usd[1] == pytest.approx(whole.total.usd.expected / 1000, 0.1)


def test_each_model_of_each_role_is_expected_to_be_asked_as_often_as_in_a_run(
    tmp_path: Path,
) -> None:
    work = load_workload(PanelJob(), PanelSettings(items=ITEMS))
    asked = {**NAMES, "rerank_model": "r", "price": "1,1", "replicates": 2}
    found = preview(work, options_from(asked), tmp_path)
    calls = {key: figures.calls.expected for key, figures in found.stages.items()}
    assert calls == {key: 2 * n for key, n in WHOLE.items()}


def test_a_start_tries_one_item_and_then_minds_the_clock(tmp_path: Path) -> None:
    clock = FakeClock()
    work = load_workload(Slow(clock), ToySettings(items=1000))
    found = expected(work, PRICED, tmp_path, clock, notify=print)
    assert found is not None
    assert found.tried == 1
    assert clock.monotonic() == 4 > AT_START_S


def test_an_empty_plan_is_not_foretold(tmp_path: Path) -> None:
    work = load_workload(ToyJob(), ToySettings(items=0))
    assert expected(work, PRICED, tmp_path, SystemClock(), notify=print) is None


def _run(path: Path, tasks: int, tokens_out: int) -> None:
    async def write() -> None:
        path.parent.mkdir(parents=True)
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            events: Sequence[Entry | Event] = [
                RUN_STARTED,
                plan([task(n) for n in range(1, tasks + 1)]),
                *(
                    event
                    for n in range(1, tasks + 1)
                    for event in (
                        started(n),
                        answer(n, b"x", tokens_out=tokens_out),
                        completed(n),
                    )
                ),
            ]
            await log.append(*events)

    asyncio.run(write())


def test_the_newest_run_with_enough_answers_is_believed(tmp_path: Path) -> None:
    _run(tmp_path / "2026-01" / "log.db", 30, 10)
    _run(tmp_path / "2026-02" / "log.db", 30, 20)
    _run(tmp_path / "2026-03" / "log.db", 5, 99)
    (tmp_path / "2026-04").mkdir()
    (tmp_path / "2026-04" / "log.db").write_text("no log")
    assert usual_replies(tmp_path, "sample-job") == {("ask", "m-large"): 20.0}
    assert usual_replies(tmp_path, "another-job") == {}
    assert usual_replies(tmp_path / "nowhere", "sample-job") == {}
