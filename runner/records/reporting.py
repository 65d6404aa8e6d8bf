"""The reports of a scoring, written by whoever is installed for it.

A writer is found by entry point (group `siftlog.reports`), as jobs are: the engine
knows none of them. It is called while the folder of a scoring is still a draft, so that
its files appear with the others or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeAlias, cast

from pydantic import BaseModel

from runner.errors import RunnerError
from runner.job import Job
from runner.scorecard import Cell, Finding, Scorecard
from store.events import Input

GROUP = "siftlog.reports"

REPORT = "report.html"
"""The file that a person is told to open."""

OPERATIONS = "operations.json"
"""How far the run had come and what it had cost, when it was scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report is made of, beside the files that lie in the scoring's folder.

    Neither clock nor path is in it: the same scoring gives the same report. How far the
    run had come, `operations.json` says.
    """

    job: str
    job_version: str
    run_id: str
    scorecard: Scorecard  #: its details are in the folder's files already
    digest: str  #: SHA-256 of scorecard.json
    inputs: tuple[Input, ...]
    changes: Mapping[str, tuple[Cell | list[str], Cell | list[str]]]
    """Settings that bear on the scores and are not the default: what is set, and what
    the default is."""
    is_imported: bool  #: the answers were made elsewhere
    changed_inputs: tuple[str, ...]  #: settings whose files are not the run's


Writer: TypeAlias = Callable[[Path, Reported], Iterable[Finding]]
"""Writes a report into the folder of a scoring that holds all other files.

Returns findings about the report, such as a figure that could not be drawn.
"""


def write_reports(folder: Path, reported: Reported) -> tuple[Finding, ...]:
    """Have every installed writer write its report.

    Returns:
        What the writers found.

    Raises:
        RunnerError: the package of a writer is broken.
    """
    found: list[Finding] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            write = cast("Writer", point.load())
        except (ImportError, AttributeError) as error:
            raise RunnerError(
                f"The report {point.name} ({point.value}) cannot be written: {error}; "
                "install its package again, or leave reports out with --no-report."
            ) from error
        found += write(folder, reported)
    return tuple(found)


def changes(
    job: Job, settings: BaseModel, names: Sequence[str]
) -> dict[str, tuple[Cell | list[str], Cell | list[str]]]:
    """Those of the settings called *names* that are not the default, with both."""
    defaults = job.Settings.model_construct().model_dump(mode="json", warnings=False)
    values = settings.model_dump(mode="json", include=set(names))
    return {
        name: (values[name], defaults.get(name))
        for name in names
        if name in values and values[name] != defaults.get(name)
    }
