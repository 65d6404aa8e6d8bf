"""Who plays whom in a what-if, and what it says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.estimate.what_if import WhatIf, run_what_if
from runner.job import Stage
from runner.options import RunOptions, options_from
from store.database import open_reader
from store.events import Entry, Event, LimitObserved
from store.log.sqlite import SqliteLog
from tests.runner.toy_jobs import ToyJob
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer

JUDGED = replace(
    RUN_STARTED, models={"subject": ["m-large", "m-small"], "judge": ["openai/j"]}
)
THEN = options_from(
    {"model": ["m-large", "m-small"], "judge_model": "openai/j", "price": "1,1"}
)


class Judged(ToyJob):
    """Stages as in the sample log: asked, and judged by another."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = (
            Stage(name="ask", parse=self._text),
            Stage(name="judge", parse=self._text, role="judge"),
        )


def _done(number: int) -> list[Entry | Event]:
    return [started(number), answer(number, b"x"), completed(number)]


def _rehearsed(
    path: Path, now: RunOptions, *more: Sequence[Entry | Event], then: RunOptions = THEN
) -> WhatIf:
    """A run of two subjects with a verdict on each, played again."""

    async def write() -> None:
        clock = FakeClock()
        first = [task(1), task(2, model="m-small")]
        later = [task(n, stage="judge", root=n - 2, model="openai/j") for n in (3, 4)]
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            await log.append(JUDGED, plan(first), plan(later, first=3))
            for number in (1, 2, 3, 4):
                begun, *ended = _done(number)
                await log.append(begun)
                clock.advance(1.0)
                await log.append(*ended)
            for unit in more:
                await log.append(*unit)

    if not path.exists():
        asyncio.run(write())
    with open_reader(path) as reader:
        return run_what_if(reader, Judged(), then=then, now=now)


def test_each_model_plays_itself(tmp_path: Path) -> None:
    found = _rehearsed(tmp_path / "log.db", THEN)
    calls = {model: sums.calls for model, sums in found.outcome.models.items()}
    assert calls == {"m-large": 1, "m-small": 1, "openai/j": 2}
    assert found.outcome.seconds == pytest.approx(2.0, abs=0.01)
    assert found.cost_usd == pytest.approx(4 * 57e-6)
    assert not any("answers as" in said for said in found.assumes)


def test_new_subjects_and_judges_stand_in(tmp_path: Path) -> None:
    now = options_from(
        {
            "model": ["m-small", "openai/a", "openai/b"],
            "judge_model": "openai/k",
            "price": "1,1",
        }
    )
    found = _rehearsed(tmp_path / "log.db", now)
    calls = {model: sums.calls for model, sums in found.outcome.models.items()}
    assert calls == {"m-small": 1, "openai/a": 1, "openai/b": 1, "openai/k": 3}
    assert "openai/a answers as m-large did" in found.assumes
    assert "openai/k answers as openai/j did" in found.assumes


def test_an_unknown_price_leaves_the_sum_unknown(tmp_path: Path) -> None:
    now = options_from({"model": ["m-large"], "judge_model": "baseline/lexical"})
    found = _rehearsed(tmp_path / "log.db", now)
    assert found.costs_usd == {"m-large": None, "baseline/lexical": 0.0}
    assert found.cost_usd is None


def test_a_rate_that_was_found_is_said(tmp_path: Path) -> None:
    seen = LimitObserved(model="m-large", concurrency=8, in_flight=1, rpm=600.0)
    path = tmp_path / "log.db"
    found = _rehearsed(path, THEN, [seen])
    assert "m-large allows 600 requests a minute, as the run found" in found.assumes
    # the same figure, set by hand, is no discovery
    by_hand = THEN.model_copy(update={"rpm": 600.0})
    found = _rehearsed(path, THEN, then=by_hand)
    assert not any("as the run found" in said for said in found.assumes)


def test_open_tasks_are_counted_and_said(tmp_path: Path) -> None:
    open_ = plan([task(5), task(6)], first=5)
    found = _rehearsed(tmp_path / "log.db", THEN, [open_])
    assert "2 tasks without an outcome go like tasks that ended" in found.assumes
    assert found.outcome.models["m-large"].calls == 3


def test_a_run_without_calls_cannot_be_played_again(tmp_path: Path) -> None:
    async def write() -> None:
        async with await SqliteLog.create(
            tmp_path / "log.db",
            run_id="r1",
            config_sha256=b"",
            clock=FakeClock(),
            owner="tester",
        ) as log:
            await log.append(replace(JUDGED, imported=True), plan([task(1)]))

    asyncio.run(write())
    with (
        open_reader(tmp_path / "log.db") as reader,
        pytest.raises(UsageError, match="made no calls"),
    ):
        run_what_if(reader, Judged(), then=THEN, now=THEN)


def test_a_failure_that_is_unknown_to_this_code_is_an_error_of_the_server(
    tmp_path: Path,
) -> None:
    more = [
        plan([task(5)], first=5),
        started(5),
        failed(5, error="Eclipse"),
        started(5, 2),
        answer(5, b"x", 2),
        completed(5, 2),
    ]
    found = _rehearsed(tmp_path / "log.db", THEN, more)
    assert found.outcome.models["m-large"].calls == 3
