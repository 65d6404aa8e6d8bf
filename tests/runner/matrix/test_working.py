"""Runs side by side in one loop: what breaks one, and what ends all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runner.engine.driver import Driver
from runner.engine.planner import Planner
from runner.errors import RunnerError
from runner.job import TaskSpec
from runner.matrix import CellResult, MatrixCell, MatrixFile, carry_out
from runner.options import RunOptions
from runner.run.context import RunContext
from runner.run.folder import GroupSpending, elsewhere, lock_group, members
from runner.workload import load_workload
from store.clock import SystemClock
from store.database import open_reader
from store.read.status import Status, status
from store.runs import RunFolder
from tests.runner.toy_jobs import ToyJob, ToySettings


class _BrokenJob(ToyJob):
    """Cannot go on with its plan."""

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield from super().plan(dataset)
        raise ValueError("a mistake in the plan")


@asynccontextmanager
async def _unwatched(
    driver: Driver, growth: Planner, before: Status
) -> AsyncIterator[None]:
    del driver, growth, before
    yield


def _cell(folder: Path, name: str, job: ToyJob, items: int) -> MatrixCell:
    return MatrixCell(
        folder=RunFolder(folder / name),
        work=load_workload(job, ToySettings(items=items)),
        options=RunOptions(),
        varied={},
        state=None,
    )


def _carried(
    folder: Path, cells: list[MatrixCell], *, fail_fast: bool
) -> list[CellResult]:
    file = MatrixFile(
        path=folder / "g.toml", group="g", options=RunOptions(), jobs=(), endpoints=()
    )

    def shell(_: MatrixCell) -> RunContext:
        return RunContext(
            clock=SystemClock(),
            environment={},
            runs_dir=folder,
            notify=lambda _: None,
            launched=lambda: None,
            watch=_unwatched,
        )

    return asyncio.run(
        carry_out(file, cells, shell, lambda _: None, fail_fast=fail_fast)
    )


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_run_that_breaks_ends_the_others_only_if_it_is_to(
    tmp_path: Path, *, fail_fast: bool
) -> None:
    cells = [
        _cell(tmp_path, "broken", _BrokenJob(), 1),
        _cell(tmp_path, "large", ToyJob(), 150),
    ]
    broken, large = _carried(tmp_path, cells, fail_fast=fail_fast)
    assert broken.ended is None
    assert broken.error is not None
    assert "The plan of job toy raised ValueError at " in broken.error
    assert "a mistake in the plan" in broken.error
    assert not broken.is_clean
    assert large.is_clean
    assert large.ended is not None
    assert large.ended.outcome == ("drained" if fail_fast else "finished")
    with open_reader(large.cell.folder.log) as reader:
        assert bool(status(reader).tasks.open) is fail_fast
        assert status(reader).group == "g"
    assert [folder.run_id for folder in members(tmp_path, "g")] == ["broken", "large"]
    assert members(tmp_path, "other") == []


def test_what_offline_models_took_of_a_budget_is_nothing(tmp_path: Path) -> None:
    _carried(tmp_path, [_cell(tmp_path, "one", ToyJob(), 1)], fail_fast=False)
    assert elsewhere(tmp_path, "g") == GroupSpending()
    assert elsewhere(tmp_path, None) == GroupSpending()


def test_one_process_at_a_time_works_on_a_group(tmp_path: Path) -> None:
    with (
        lock_group(tmp_path, "g"),
        pytest.raises(RunnerError, match="Another process works on the runs of g"),
        lock_group(tmp_path, "g"),
    ):
        pass
    with lock_group(tmp_path, "g") as folder:
        assert folder == tmp_path / "g"
