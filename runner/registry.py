"""Finds jobs by entry point, so that the engine imports none and others plug in."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from runner.errors import RunnerError, UsageError
from runner.job import Job

GROUP = "siftlog.jobs"


def job_names() -> tuple[str, ...]:
    """Names of all installed jobs, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def load_job(name: str) -> Job:
    """The job of that name.

    Raises:
        UsageError: there is none, naming those there are.
        RunnerError: its package is broken.
    """
    for point in entry_points(group=GROUP, name=name):
        try:
            return cast("Job", point.load())
        except (ImportError, AttributeError) as error:
            raise RunnerError(
                f"Job {name} ({point.value}) cannot be loaded: {error}; "
                "install its package again."
            ) from error
    known = ", ".join(job_names()) or "none"
    raise UsageError(f"There is no job {name!r}; installed: {known}.")
