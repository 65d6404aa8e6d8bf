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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutline:
    """The version of a job and its stages."""

    version: str
    stages: Mapping[str, str]  #: the role of each stage by its name, in their order


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
        return cast("Job", _load(point))
    installed = ", ".join(job_names()) or "none"
    raise UsageError(f"There is no job {name!r}; installed: {installed}.")


def job_outline(name: str) -> JobOutline:
    """The outline that a job declares, or that of the loaded job.

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


def _load(point: EntryPoint) -> Any:  # noqa: ANN401 - the group says what it is
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: {error}; "
            "install its package again."
        ) from error
