"""Hashes a job's code, its inputs and its requests to detect changes."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError
from os.path import isfile
from pathlib import Path
from types import ModuleType
from typing import Final

from runner.clients.wire_shared import skeleton
from runner.errors import DatasetError
from runner.installed import entry_points, version
from runner.job import InputFile, Job
from runner.messages import Request
from store.code_fingerprint import CodeFingerprint
from store.events import Input

__all__ = [
    "Input",  # what `input_hashes` returns, and a log records
    "code_fingerprint",
    "code_hash",
    "files_of",
    "input_hashes",
    "manifest",
    "request_hash",
    "source_hash",
]

_CHUNK = 1 << 20


# matched as text, because parsing a hundred files takes as long as starting Python; a
# false match in a docstring only adds a file
_IMPORT = re.compile(
    r"^ *(?:from|import) +([\w.]+)(?: +import +(\([^)]*\)|.*))?", re.MULTILINE
)


_DEFERRED = re.compile(r"""\bDeferred\(\s*["']([\w.]+):""")
"""A module that is imported when a part of it is first used."""


_NAME = re.compile(r"\w+")

COMPUTING: Final = (
    *("bibtexparser", "defusedxml", "gemmi", "litellm", "msgspec", "numpy", "pandas"),
    *("pint", "pydantic", "pylatexenc", "pymatgen", "pypdfium2", "rapidfuzz", "rispy"),
    *("scikit-learn", "scipy", "zstandard"),
)
"""Packages that read data, build requests, parse or compute; not those that send, draw
or print."""

STAGES: Final = "siftlog.stages"
"""Entry points that read declarations of added stages (`runner.added_stages`)."""

SHARED: Final = "jobs"
"""The package with the code that jobs share, also those of other packages."""
METRICS: Final = "jobs/kit/metrics/"


def code_hash(job: Job) -> str:
    """Hash the job's source files and those of its top-level package that they import.

    Parsers and metrics that jobs of a package share count like the job's. Files are in
    the order of their relative paths.

    Prompts shipped with a package (`prompts*.toml`) count like its code.

    A job that is a single module, outside of any package, is that file only: other
    files beside it may be unrelated.
    """
    job_files, root = _job_files(job)
    if root is None:
        return _code_tree_hash(_parent(job_files), job_files)
    house = type(job).__module__.partition(".")[0]
    return _code_tree_hash(root, _with_imports(job_files, root, house))


def code_fingerprint(job: Job) -> CodeFingerprint:
    """Return what the results of *job* depend on besides data and settings."""
    job_files, root = _job_files(job)
    house = type(job).__module__.partition(".")[0]
    if root is not None and house != SHARED:
        # all files of another author's package are the job's
        job_files = _with_imports(job_files, root, house)
    shared_root = Path(__file__).resolve().parents[1].as_posix()
    # no job imports what reads the stages that are added to its runs
    sources = job_files | _stage_readers(shared_root)
    shared = _with_imports(sources, shared_root, SHARED) - job_files
    metrics = {file for file in shared if file.startswith(f"{shared_root}/{METRICS}")}
    engine = {
        file
        for package in ("runner", "store")
        for file in _files_below(f"{shared_root}/{package}", ".py", ".sql")
    }
    return CodeFingerprint(
        job=_code_tree_hash(root or _parent(job_files), job_files),
        kit=_code_tree_hash(shared_root, shared - metrics),
        metrics=_code_tree_hash(shared_root, metrics),
        engine=_code_tree_hash(shared_root, engine),
        dependencies={"python": platform.python_version(), **_versions()},
    )


def _stage_readers(root: str) -> set[str]:
    """Return the files below a folder that read declarations of stages."""
    modules = (point.value for point in entry_points(group=STAGES))
    paths = (module.partition(":")[0].replace(".", "/") for module in modules)
    return {file.as_posix() for p in paths if (file := Path(root, f"{p}.py")).is_file()}


def _job_files(job: Job) -> tuple[set[str], str | None]:
    """Return the files in a job's folder, and the folder of its top-level package.

    A job that is a single module has no such folder.
    """
    source = Path(inspect.getfile(type(job))).resolve()
    inner = type(job).__module__.split(".")[1:]
    is_package = source.name == "__init__.py"
    if not inner and not is_package:
        return {source.as_posix()}, None
    prompts = source.parent.glob("prompts*.toml")
    files = {
        *_files_below(source.parent.as_posix(), ".py"),
        *(path.as_posix() for path in prompts),
    }
    return files, source.parents[len(inner) + is_package].as_posix()


def _files_below(folder: str, *suffixes: str) -> Iterator[str]:
    """Yield the files in a folder and in those below whose names end so."""
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(suffixes):
                yield f"{place}/{name}"


def _parent(files: Iterable[str]) -> str:
    return next(iter(files)).rpartition("/")[0]


@cache
def _versions() -> dict[str, str]:
    versions = {}
    for package in COMPUTING:
        with suppress(PackageNotFoundError):  # of an extra that is not installed
            versions[package] = version(package)
    return versions


def source_hash(module: ModuleType) -> str:
    """Hash a module's source file and the files of its package that it imports."""
    source = Path(inspect.getfile(module)).resolve()
    house, *inner = module.__name__.split(".")
    root = source.parents[len(inner) + (source.name == "__init__.py")].as_posix()
    return _code_tree_hash(root, _with_imports([source.as_posix()], root, house))


def _with_imports(sources: Iterable[str], root: str, house: str) -> set[str]:
    """Return source files and those that they import, also indirectly."""
    files = set(sources)
    is_file = cache(isfile)  # most files import the same modules
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        named = _imports(file, _state(file), root, house)
        imported = {path for path in named - files if is_file(path)}
        files |= imported
        waiting += imported
    return files


def _state(file: str) -> tuple[int, int]:
    """Return what changes when a file is written; part of the keys of caches."""
    seen = os.stat(file)  # noqa: PTH116 - of hundreds of files; Path is slow
    return seen.st_mtime_ns, seen.st_size


@cache
def _imports(
    file: str, state: tuple[int, int], root: str, house: str
) -> frozenset[str]:
    """Return the files of a top-level package that a source file may import anywhere.

    What it imports is a module of that name, a package, or an attribute of either. A
    run asks for its code at its start and for each scoring.
    """
    del state
    return frozenset(_candidates(Path(file).read_text("utf-8"), root, house))


def _candidates(source: str, root: str, house: str) -> Iterator[str]:
    deferred = ((module, "") for module in _DEFERRED.findall(source))
    for module, names in (*_IMPORT.findall(source), *deferred):
        first, *rest = module.split(".")
        if first != house:
            continue
        package = "/".join((root, first, *rest))
        for path in (package, *(f"{package}/{name}" for name in _NAME.findall(names))):
            yield f"{path}.py"
            yield f"{path}/__init__.py"


def input_hashes(files: Iterable[InputFile]) -> list[Input]:
    """Return each input with its content's hash, in the given order."""
    return [
        Input(
            setting=f.setting, path=str(f.path), sha256=f.sha256 or _path_hash(f.path)
        )
        for f in files
    ]


def hashes_by_setting(inputs: Iterable[Input]) -> dict[str, list[str]]:
    """Return the hashes of the files of each setting; a setting may name several."""
    hashes: dict[str, list[str]] = {}
    for recorded in inputs:
        hashes.setdefault(recorded.setting, []).append(recorded.sha256)
    return hashes


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that its hash covers, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def manifest(hashes: Iterable[tuple[str, str]]) -> bytes:
    """Return the hashed data of a folder: names of its files, each with its hash."""
    return "".join(f"{name}\0{sha256}\n" for name, sha256 in hashes).encode()


def _path_hash(path: Path) -> str:
    try:
        if path.is_dir():
            return _tree_hash(path, files_of(path))
        return _file_hash(path)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@cache
def _code_file_hash(file: str, state: tuple[int, int]) -> str:
    del state
    return _file_hash(Path(file))


def _tree_hash(folder: Path, files: Iterable[Path]) -> str:
    hashed_files = (
        (file.relative_to(folder).as_posix(), _file_hash(file)) for file in files
    )
    return hashlib.sha256(manifest(hashed_files)).hexdigest()


def _code_tree_hash(folder: str, files: Iterable[str]) -> str:
    """Return the hash of source files, each of which is read once while it stays."""
    start = len(folder) + 1
    hashed_files = (
        (file[start:], _code_file_hash(file, _state(file)))
        for file in sorted(files, key=lambda file: file.split("/"))
    )
    return hashlib.sha256(manifest(hashed_files)).hexdigest()


def request_hash(request: Request, model: str) -> str:
    """Return the hex SHA-256 of a request to *model*; equal for equal requests."""
    return skeleton(request, model).sha256
