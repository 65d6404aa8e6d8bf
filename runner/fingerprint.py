"""Hashes that pin what a run read and which code read it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path

from runner.errors import DatasetError
from runner.job import InputFile, Job
from store.events import Input

_CHUNK = 1 << 20


def code_hash(job: Job) -> str:
    """SHA-256 over the source files of the job's package, by sorted relative path."""
    folder = Path(inspect.getfile(type(job))).resolve().parent
    return _tree_hash(folder, sorted(folder.rglob("*.py")))


def input_hashes(files: Iterable[InputFile]) -> list[Input]:
    """Each input with its content's hash, in the order given."""
    return [
        Input(setting=f.setting, path=str(f.path), sha256=_path_hash(f.path))
        for f in files
    ]


def _path_hash(path: Path) -> str:
    try:
        if path.is_dir():
            return _tree_hash(path, sorted(p for p in path.rglob("*") if p.is_file()))
        return _file_hash(path)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _tree_hash(folder: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name}\0{_file_hash(file)}\n".encode())
    return digest.hexdigest()
