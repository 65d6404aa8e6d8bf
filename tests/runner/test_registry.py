"""Outlines of jobs say what the jobs say, and load none of them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from runner import registry
from runner.errors import RunnerError
from runner.job import Job
from runner.registry import job_names, job_outline, load_job
from tests.runner.toy_jobs import ToyJob, ToySettings

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


class Unplugged:
    """Has every method, but does not derive from `Job`."""

    name = "plugged"


class Nameless(ToyJob):
    def __init__(self) -> None:
        """Set no stages."""


class Unscored(Job):
    """Has all but score."""

    name, version, Settings, stages = "plugged", "1", ToySettings, ()
    load = staticmethod(ToySettings.model_validate)
    plan = request = baseline = staticmethod(iter)


def unscored() -> Job:
    return Unscored()  # type: ignore[abstract]


class Installed:
    """An entry point, of the standard library or of a backport that replaced it."""

    value = "package:job"

    def __init__(self, make: Callable[[], object]) -> None:
        self.name, self.load = "screening", make


def install(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]) -> None:
    """Make the entry point of screening load what *make* returns."""
    monkeypatch.setattr(registry, "entry_points", lambda **_: [Installed(make)])


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (Unplugged, "is not an instance of runner.job.Job; derive its class from Job."),
        (Nameless, "has no stages; set them in its class."),
    ],
)
def test_a_job_without_a_required_part_is_refused(
    job: type, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, job)
    with pytest.raises(RunnerError, match=f"^Job screening .*{re.escape(reason)}$"):
        load_job("screening")


def test_a_job_without_a_required_method_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, unscored)
    with pytest.raises(RunnerError, match=r"cannot be loaded: .*'?score'?; fix"):
        load_job("screening")
