"""`--limit` runs a sample of the items: the same each time, within a larger one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.jobs.jobs import JobCase, run


def drawn(
    case: JobCase, folder: Path, limit: int | None, name: str
) -> set[tuple[str, ...]]:
    """The tasks of a run under a limit, of all stages."""
    words = () if limit is None else ("--limit", limit)
    made = run(folder, *case.words(folder), *words, "--no-score", name=name)
    assert made.done.code == 0, made.done.err
    names = ("stage", "key", "model", "replicate", "state")
    return {tuple(str(task[each]) for each in names) for task in made.tasks()}


def test_a_limit_draws_some_items_and_changes_none_of_their_tasks(
    case: JobCase, tmp_path: Path
) -> None:
    if "limit" not in case.job.Settings.model_fields:
        pytest.skip("the job takes no sample")
    some = drawn(case, tmp_path, 2, "some")
    assert some == drawn(case, tmp_path, 2, "again")
    every = drawn(case, tmp_path, None, "every")
    assert set() < some < drawn(case, tmp_path, 3, "more") < every
