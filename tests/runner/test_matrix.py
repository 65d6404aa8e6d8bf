"""What may be wrong in the file of a matrix, said in a sentence; and what it means.

Runs side by side in one loop: what breaks one, and what ends all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runner.engine.driver import Driver
from runner.errors import RunnerError, UsageError
from runner.job import TaskSpec
from runner.matrix import (
    CellResult,
    MatrixCell,
    MatrixFile,
    carry_out,
    cells,
    read_matrix,
)
from runner.options import RunOptions
from runner.run.context import RunContext
from runner.run.folder import GroupSpending, elsewhere, lock_group, members
from runner.workload import load_workload
from store.clock import SystemClock
from store.database import open_reader
from store.read.status import Status, status
from store.runs import RunFolder
from tests.runner.toy_jobs import ToyJob, ToySettings

JOB = '[[jobs]]\njob = "screening"\n'
HERE = '[endpoints.here]\nbase_url = "http://h/v1"\nmodels = ["m"]\n'
THERE = "[endpoints.there]\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "[[jobs]], jobs: missing; each entry names a job to run."),
        ("[[jobs]]\n", "[[jobs]] 1, job: it is missing."),
        (f"{JOB}colour = 1\n", "[[jobs]] 1, colour: there is no such key; job, name,"),
        (f"{JOB}model = []\n", "[[jobs]] 1, model: Tuple should have at least 1 item"),
        (
            f"rmp = 3\n{JOB}",
            "the top, rmp: there is no such option; did you mean 'rpm'?",
        ),
        (f"rpm = -3\n{JOB}", "Option rpm: Input should be greater than 0;"),
        (f"group = 3\n{JOB}", "the top, group: give a name in quotes."),
        (f"group = '../x'\n{JOB}", "the top, group: '../x' cannot be the name of a"),
        (f"{JOB}[settings]\nlimit = 3\n", "the top, settings: settings belong under"),
        (f"endpoints = 3\n{JOB}", "the top, endpoints: write [endpoints.NAME] tables."),
        (
            f"{HERE}{JOB}",
            "[endpoints.here], models: no run uses m; used are baseline/",
        ),
        (f"{HERE}rpm = 0\n{JOB}", "[endpoints.here], rpm: Input should be greater"),
        (
            f"model = 'm'\n{HERE}{THERE}base_url='http://h/v1'\nmodels=['n']\n{JOB}",
            "[endpoints.there], base_url: [endpoints.here] has that address already.",
        ),
        (
            f"model = 'm'\n{HERE}{THERE}base_url='http://i/v1'\nmodels=['m']\n{JOB}",
            "[endpoints.there], models: m is already at [endpoints.here].",
        ),
        (
            f"{JOB}{JOB}",
            "[[jobs]] 2, name: f-screening-baseline_lexical is made twice;",
        ),
        ("[[jobs]]\njob='nothing'\n", "[[jobs]] 1, job: There is no job 'nothing';"),
        (f"{JOB}settings={{x=1}}\n", "[[jobs]] 1, settings: screening has no setting"),
        (f"{JOB}name = '{'x' * 99}'\n", "is too long for a run's id."),
    ],
)
def test_what_is_wrong_is_a_sentence_with_file_table_and_key(
    tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "f.toml"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        cells(read_matrix(path), tmp_path / "runs")
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_makes_a_run_for_each_model_and_each_value(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text(
        f"model = ['m', 'acme/n']\nrpm = 90\n{HERE}rpm = 60\nconcurrency = 4\n{JOB}"
        "settings = { limit = 2 }\nvary = { seed = [1, 2] }\n"
        "[[jobs]]\njob = 'screening'\nname = 'floor'\nmodel = ['baseline/lexical']\n"
    )
    file = read_matrix(path)
    made = cells(file, tmp_path / "runs")
    assert [cell.folder.run_id for cell in made] == [
        "f-screening-m-seed-1",
        "f-screening-acme_n-seed-1",
        "f-screening-m-seed-2",
        "f-screening-acme_n-seed-2",
        "f-floor-baseline_lexical",
    ]
    assert made[0].work is made[1].work
    assert made[0].work is not made[2].work
    assert file.limits["http://h/v1"].rpm == 60
    # what holds over all runs holds too for one that is resumed alone
    assert made[0].options.limits_of("m").rpm == 60
    assert made[0].options.limits_of("m").concurrency == 4
    assert made[1].options.limits_of("acme/n").rpm == 90
    assert made[0].options.endpoint_of("m") == "http://h/v1"


class _BrokenJob(ToyJob):
    """Cannot go on with its plan."""

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield from super().plan(dataset)
        raise ValueError("a mistake in the plan")


@asynccontextmanager
async def _unwatched(driver: Driver, log: Path, before: Status) -> AsyncIterator[None]:
    del driver, log, before
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
        stands = status(reader)
        # it may be drained before anything was planned
        is_unfinished = stands.tasks.open > 0 or not stands.planning_exhausted
        assert is_unfinished is fail_fast
        assert stands.group == "g"
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
