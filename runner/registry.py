"""Finds jobs by entry point, so the engine imports none and packages can add some.

Loading a job imports all its code. So the list of `siftlog jobs` comes from a separate
outline that imports nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from runner.errors import RunnerError, UsageError

if TYPE_CHECKING:
    from runner.job import Job

GROUP = "siftlog.jobs"
OUTLINES = "siftlog.outlines"

REQUIRED = ("name", "version", "Settings", "stages")
"""Attributes of every job's class, besides the abstract methods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutline:
    """The version of a job and its stages."""

    version: str
    stages: Mapping[str, str]  #: the role of each stage by name, in order


def job_names() -> tuple[str, ...]:
    """Return the names of all installed jobs, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def load_job(name: str) -> Job:
    """Load a job by name.

    Raises:
        UsageError: there is none (names the installed ones).
        RunnerError: its package is broken, or it lacks a required part.
    """
    for point in entry_points(group=GROUP, name=name):
        return _checked(_load(point), point)
    installed = ", ".join(job_names()) or "none"
    raise UsageError(f"There is no job {name!r}; installed: {installed}.")


def _checked(job: object, point: EntryPoint) -> Job:
    """Return the object of an entry point, if it is a job with name and stages."""
    from runner.job import Job  # noqa: PLC0415 - `siftlog jobs` must not load it

    if not isinstance(job, Job):
        raise RunnerError(
            f"Job {point.name} ({point.value}) is not an instance of runner.job.Job; "
            "derive its class from Job."
        )
    missing = [part for part in REQUIRED if not hasattr(job, part)]
    if missing:
        raise RunnerError(
            f"Job {point.name} ({point.value}) has no {', '.join(missing)}; "
            "set them in its class."
        )
    return job


def job_outline(name: str) -> JobOutline:
    """Return the declared outline of a job, or that of the loaded job.

    Raises:
        UsageError: there is no such job.
        RunnerError: its package is broken.
    """
    for point in entry_points(group=OUTLINES, name=name):
        return cast("JobOutline", _load(point))
    job = load_job(name)
    return JobOutline(
        version=job.version, stages={stage.name: stage.role for stage in job.stages}
    )


def _load(point: EntryPoint) -> Any:  # noqa: ANN401 - type depends on the group
    try:
        return point.load()
    except TypeError as error:  # an abstract method of the job is missing
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: {error}; fix the job."
        ) from error
    except (ImportError, AttributeError) as error:
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: {error}; "
            "install its package again."
        ) from error
