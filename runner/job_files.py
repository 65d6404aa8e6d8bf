"""Loads a job from a Python file, so that a job needs no package and no entry point.

A file is named as `FILE.py`, or as `FILE.py:NAME` if it has several jobs. NAME is a
job's `name`, its class or a variable that holds it. A log records the file as an
input, under `JOB_FILE`, so a resume finds the job again and notices a changed file.

The file's folder is added to the end of the import path: the file can import others
beside it, and they cannot hide an installed module.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from runner.errors import RunnerError, UsageError
from runner.job import JOB_FILE, REQUIRED, Job


def split_reference(word: str) -> tuple[str, str]:
    """Split `FILE.py:NAME` into file and name; the name is empty if there is none."""
    file, colon, name = word.rpartition(":")
    return (file, name) if colon and file.endswith(".py") else (word, "")


def load_file(word: str) -> Job:
    """Load the job that `FILE.py` or `FILE.py:NAME` names.

    Raises:
        UsageError: there is no such file, no such job in it, or several.
        RunnerError: the file cannot be imported, or its job lacks a required part.
    """
    file, name = split_reference(word)
    path = Path(file)
    try:
        module = import_file(path)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read ({error.strerror}); check the path of the job's "
            "file."
        ) from error
    return _chosen(path, module, name)


def job_of_object(source: Job | type[Job]) -> Job:
    """Return a job that a program passes as an object, with the file it is in.

    Raises:
        UsageError: it is in no file, or in a package without an entry point.
        RunnerError: it lacks a required part.
    """
    kind = _kind(source)
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        raise UsageError(
            f"{kind.__name__} is in no file, so no other process can resume or score "
            "its runs; write it to a file (in a notebook: %%writefile my_job.py) and "
            "name that file."
        )
    path = Path(file).resolve()
    if (path.parent / "__init__.py").exists():
        raise UsageError(
            f"{kind.__name__} is part of a package ({path}); give it an entry point "
            "in the group siftlog.jobs and use its name."
        )
    job = source if isinstance(source, Job) else _instance(path, kind)
    return _checked(path, kind.__name__, job)


_modules: dict[tuple[Path, str], ModuleType] = {}
"""The module of each file by its path and hash: an edited file is imported again."""


def import_file(path: Path) -> ModuleType:
    """Import a file as a module; the same content is imported once per process.

    Raises:
        OSError: it cannot be read.
        RunnerError: its code has a syntax error, or raises one.
    """
    path = path.resolve()
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    if (path, sha256) in _modules:
        return _modules[path, sha256]
    name = f"_siftlog_{path.stem}_{sha256[:12]}"
    spec = spec_from_file_location(name, path)
    if spec is None:
        raise UsageError(f"{path} is not a Python file; name one that ends in .py.")
    module = module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    # pydantic and dataclasses look up the module of a class here
    sys.modules[name] = module
    try:
        # executed from the bytes that were hashed, and without a __pycache__ beside it
        code = compile(content, str(path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - running it is what the user asks
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise RunnerError(_import_sentence(path, error)) from error
    _modules[path, sha256] = module
    return module


def _import_sentence(path: Path, error: BaseException) -> str:
    """Return the sentence about a file that raised *error* on import."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}: {error.msg}; correct the file."
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    place = f"{path}, line {lines[-1]}" if lines else str(path)
    if isinstance(error, ModuleNotFoundError):
        return f"{place}: {error}; install the package, or correct the import."
    if isinstance(error, SystemExit):
        return (
            f"{place} ends the process; put what starts a run below "
            'if __name__ == "__main__".'
        )
    return f"{place}: {type(error).__name__}: {error}; correct the file."


def _chosen(path: Path, module: ModuleType, name: str) -> Job:
    """Return the one job of a module, or the one of that name."""
    jobs = _jobs(module)
    if not jobs:
        raise UsageError(
            f"{path} has no job; derive a class from siftlog.QuestionJob or "
            "siftlog.Job in it."
        )
    choices = ", ".join(sorted(jobs))
    named = {
        variable: job
        for variable, job in jobs.items()
        if not name or name in {variable, _kind(job).__name__, _name(job)}
    }
    if not named:
        raise UsageError(f"{path} has no job {name!r}; it has {choices}.")
    if len(named) > 1:
        raise UsageError(
            f"{path} has {len(named)} jobs ({choices}); name one, such as "
            f"{path.name}:{min(named)}."
        )
    ((variable, chosen),) = named.items()
    job = chosen if isinstance(chosen, Job) else _instance(path, chosen)
    job = _checked(path, variable, job)
    if sum(_name(other) == job.name for other in jobs.values()) > 1:
        raise UsageError(
            f"{path} has several jobs with the name {job.name!r}, and a run records "
            "that name only; give each job its own name."
        )
    return job


def _kind(job: Job | type[Job]) -> type[Job]:
    return job if isinstance(job, type) else type(job)


def _name(job: Job | type[Job]) -> str | None:
    return getattr(job, "name", None)


def _jobs(module: ModuleType) -> dict[str, Job | type[Job]]:
    """Return a module's jobs by variable: its instances, and classes without one.

    Classes with missing methods count only if there is nothing else: the error is then
    about the methods.
    """
    jobs: dict[str, Job | type[Job]] = {}
    for variable, value in vars(module).items():
        if isinstance(value, Job) and value not in jobs.values():
            jobs[variable] = value
    used = {type(job) for job in jobs.values()}
    classes = {
        variable: value
        for variable, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Job)
        and value.__module__ == module.__name__
        and value not in used
    }
    whole = {v: kind for v, kind in classes.items() if not inspect.isabstract(kind)}
    return {**jobs, **(whole if jobs or whole else classes)}


def _instance(path: Path, kind: type[Job]) -> Job:
    try:
        return kind()
    except Exception as error:
        line = inspect.findsource(kind)[1] + 1
        raise RunnerError(
            f"{path}, line {line}: job {kind.__name__} cannot be created: {error}; "
            "correct the class."
        ) from error


def _checked(path: Path, variable: str, job: Job) -> Job:
    """Return a job with its file, if it has all required parts."""
    missing = [part for part in REQUIRED if not hasattr(job, part)]
    if missing:
        raise RunnerError(
            f"{path}: job {variable} has no {', '.join(missing)}; set them in its "
            "class."
        )
    if JOB_FILE in job.Settings.model_fields:
        raise RunnerError(
            f"{path}: job {variable} has a setting {JOB_FILE!r}, which names the file "
            "of a job; rename the setting."
        )
    job.file = path.resolve()
    return job
