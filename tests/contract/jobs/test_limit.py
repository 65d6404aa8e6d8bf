"""`--limit` runs a sample of the items: the same each time, within a larger one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.jobs.jobs import QUIET, JobCase, SampleRuns, run


def drawn(case: JobCase, folder: Path, limit: int, name: str) -> set[tuple[str, str]]:
    """First-stage tasks of a run under a limit."""
    made = run(folder, *case.words(folder), "--limit", limit, *QUIET, name=name)
    assert made.done.code == 0, made.done.err
    tasks = made.tasks()
    return {(each["stage"], each["key"]) for each in tasks} & {
        (tasks[0]["stage"], each["key"]) for each in tasks
    }


def test_a_limit_draws_some_items_and_the_same_ones_each_time(
    case: JobCase, sample_runs: SampleRuns, tmp_path: Path
) -> None:
    if "limit" not in case.job.Settings.model_fields:
        pytest.skip("the job takes no sample")
    every = {(task["stage"], task["key"]) for task in sample_runs.of(case).tasks()}
    some = drawn(case, tmp_path, 2, "some")
    assert some < every
    assert some == drawn(case, tmp_path, 2, "again")
    more = drawn(case, tmp_path, 3, "more")
    assert some < more < every
