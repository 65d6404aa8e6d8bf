"""Finds jobs by entry point or by file, so the engine imports none.

Every command that takes a job takes one of these words:

- the name of an installed job (entry point group `siftlog.jobs`);
- the path of a Python file with a job, `FILE.py` or `FILE.py:NAME`
  (`runner.job_files`);
- the path of a recipe, which the installed job of its suffix reads (group
  `siftlog.recipes`).

Loading a job imports all its code. So the list of `siftlog jobs` comes from a separate
outline that imports nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from runner.errors import RunnerError, UsageError
from runner.installed import EntryPoint, entry_points
from store.errors import NoSuchRun
from store.nearest import did_you_mean, nearest

if TYPE_CHECKING:
    from runner.job import Job
    from store.events import RunStarted

GROUP = "siftlog.jobs"
OUTLINES = "siftlog.outlines"
RECIPES = "siftlog.recipes"
"""Group of the suffixes of recipes: `toml = "ask"` names the job that reads them."""

RECIPE = "recipe"
"""The setting of that job that names the recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutline:
    """The version of a job and its stages."""

    version: str
    stages: Mapping[str, str]  #: the role of each stage by name, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChoice:
    """A job that a command was given, with the settings that its word implies."""

    job: Job
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def sets(self) -> tuple[str, ...]:
        """The settings as values of `--set`."""
        return tuple(f"{name}={value}" for name, value in self.settings.items())


def job_names() -> tuple[str, ...]:
    """Return the names of all installed jobs, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def job_files(folder: Path) -> list[str]:
    """Return the files of a folder that may hold a job or a recipe, sorted."""
    suffixes = {f".{point.name}" for point in entry_points(group=RECIPES)} | {".py"}
    return sorted(path.name for path in folder.iterdir() if path.suffix in suffixes)


def is_job(word: str) -> bool:
    """Return whether *word* names a job, and not a run."""
    return word in job_names() or _is_file(word) or recipe_reader(word) is not None


@contextmanager
def naming_jobs(word: str) -> Iterator[None]:
    """Handle a *word* that may be a run or a job: an unknown run may be a misspelt job.

    Raises:
        UsageError: no run has the name, and a job has one like it.
    """
    try:
        yield
    except NoSuchRun as error:
        if near := nearest(word, job_names()):
            raise UsageError(
                f"There is no run and no job {word!r}; did you mean {near[0]!r}?"
            ) from error
        raise


def choose_job(word: str, *, folder: Path = Path()) -> JobChoice:
    """Load the job that a command was given.

    Args:
        word: a name, or a path.
        folder: the folder that the path is relative to.

    Raises:
        UsageError: there is none (names the installed ones), or no such file.
        RunnerError: its package or file is broken, or it lacks a required part.
    """
    if _is_file(word):
        from runner.job_files import load_file  # noqa: PLC0415 - as above

        return JobChoice(job=load_file(str(folder / word)))
    if (reader := recipe_reader(word)) is not None:
        path = folder / word
        if not path.is_file():
            problem = "is a folder" if path.is_dir() else "does not exist"
            hint = did_you_mean(word, job_files(folder), "name the file of a recipe.")
            raise UsageError(f"{word} {problem}; {hint}")
        return JobChoice(job=load_job(reader), settings={RECIPE: str(path.resolve())})
    for point in entry_points(group=GROUP, name=word):
        return JobChoice(job=_checked(_load(point), point))
    raise UsageError(_unknown(word))


def load_job(word: str) -> Job:
    """Load a job, without the settings that its word implies.

    Raises:
        UsageError: there is none (names the installed ones), or no such file.
        RunnerError: its package or file is broken, or it lacks a required part.
    """
    return choose_job(word).job


def job_of(started: RunStarted, *, may_differ: bool = True) -> Job:
    """Load the job of a run, from its file if it was started with one.

    Args:
        started: the first event of the run.
        may_differ: the file may have changed since. False for a log of unknown origin,
            which may name any file of this machine.

    Raises:
        UsageError: the file is missing or has no such job, or it is not installed.
        RunnerError: its package or file is broken.
    """
    from runner.job import JOB_FILE  # noqa: PLC0415 - as above

    for recorded in started.inputs:
        if recorded.setting == JOB_FILE:
            if not Path(recorded.path).is_file():
                raise UsageError(
                    f"{recorded.path}, the file of job {started.job} of run "
                    f"{started.run_id}, is missing; put it back there."
                )
            content = Path(recorded.path).read_bytes()
            if not may_differ and sha256(content).hexdigest() != recorded.sha256:
                raise UsageError(
                    f"{recorded.path}, the file of job {started.job}, is not the one "
                    "that the run was started with; put that one back."
                )
            return load_job(f"{recorded.path}:{started.job}")
    return load_job(started.job)


def job_from(source: Job | type[Job]) -> Job:
    """Return a job passed as an object, installed or with its file.

    Raises:
        UsageError: no other process could load it.
        RunnerError: it lacks a required part.
    """
    from runner.job_files import job_of_object  # noqa: PLC0415 - as above

    kind = source if isinstance(source, type) else type(source)
    name = getattr(kind, "name", "")
    if name in job_names() and type(installed := load_job(name)) is kind:
        return installed if isinstance(source, type) else source
    return job_of_object(source)


def job_word(job: Job) -> str:
    """Return the word that loads a job in another process."""
    return job.name if job.file is None else f"{job.file}:{job.name}"


def typed_word(job: Job) -> str:
    """Return the word for a job in a command that a user may type here."""
    if job.file is None:
        return job.name
    here = Path.cwd()
    is_below = job.file.is_relative_to(here)
    return str(job.file.relative_to(here) if is_below else job.file)


def _is_file(word: str) -> bool:
    file, colon, _ = word.rpartition(":")
    return word.endswith(".py") or (bool(colon) and file.endswith(".py"))


def recipe_reader(word: str) -> str | None:
    """Return the job that reads recipes with the suffix of *word*, if any."""
    suffix = Path(word).suffix.removeprefix(".")
    if not suffix:
        return None
    for point in entry_points(group=RECIPES, name=suffix):
        return point.value
    return None


def _unknown(word: str) -> str:
    """Return the sentence about a job that is not installed."""
    if Path(f"{word}.py").is_file():
        return f"There is no job {word!r}; did you mean the file {word}.py?"
    installed = ", ".join(job_names()) or "none"
    names = [*job_names(), *job_files(Path())]
    hint = did_you_mean(word, names, f"installed are {installed}.")
    return f"There is no job {word!r}; {hint}"


def _checked(job: object, point: EntryPoint) -> Job:
    """Return the object of an entry point, if it is a job with name and stages."""
    # `siftlog jobs` must not load it
    from runner.job import REQUIRED, Job  # noqa: PLC0415

    if isinstance(job, type) and issubclass(job, Job):
        job = _loaded(point, job)
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
    """Load an entry point."""
    return _loaded(point, point.load)


def _loaded(point: EntryPoint, load: Callable[[], Any]) -> Any:  # noqa: ANN401 - as above
    """Call what loads an entry point: foreign code, which may raise anything."""
    try:
        return load()
    except (ImportError, AttributeError) as error:
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: {error}; "
            "install its package again."
        ) from error
    except TypeError as error:  # an abstract method of the job is missing
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: {error}; fix the job."
        ) from error
    except (Exception, SystemExit) as error:
        raise RunnerError(
            f"Job {point.name} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}: {error}; fix the job or uninstall its package."
        ) from error
