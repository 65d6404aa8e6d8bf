"""Outlines of jobs say what the jobs say, and load none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runner.registry import job_names, job_outline, load_job

COUNTED = """
from runner.cli.main import exit_code
assert exit_code(["jobs"]) == 0
import sys
rooms = {"store", "runner", "jobs", "tui"}
print(sum(name.partition(".")[0] in rooms for name in sys.modules))
print(*{"numpy", "pydantic"} & sys.modules.keys())
"""


@pytest.mark.parametrize("name", job_names())
def test_the_outline_of_a_job_is_that_of_the_loaded_job(name: str) -> None:
    job, outline = load_job(name), job_outline(name)
    assert outline.version == job.version
    assert dict(outline.stages) == {stage.name: stage.role for stage in job.stages}
    assert list(outline.stages) == [stage.name for stage in job.stages]


def test_listing_the_jobs_loads_none_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTED],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *_, count, heavy = done.stdout.splitlines()
    assert int(count) < 60
    assert not heavy
