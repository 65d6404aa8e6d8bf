"""Reads data sets as tables: of the Hugging Face hub by name, or of a folder.

A data set is read once by the library `datasets` (extra `hub`) and kept as a CSV file
in the user's cache, named by its content. Everything behind this module reads that
file, so a run records its hash and its log keeps it, as with any other input.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from platformdirs import user_cache_path

from runner.errors import DatasetError, UsageError

_NAME: Final = re.compile(
    r"(?:^|/)hf:(?P<name>[^@#/]+(?:/[^@#/]+)?)(?:/(?P<config>[^@#/]+))?"
    r"(?:@(?P<revision>[^@#]+))?(?:#(?P<split>[^@#]+))?$"
)

Rows: TypeAlias = Iterable[Mapping[str, object]]

FORM: Final = "hf:OWNER/NAME[/CONFIG][@REVISION][#SPLIT]"
"""Name of a data set of the hub where a file is expected."""


def table_file(path: Path) -> Path:
    """Returns a CSV file that holds the rows of a data set; other paths as they are.

    Args:
        path: a file, a local folder of data files (Parquet, CSV, JSON lines, or what
            `datasets` saves), or the name of a data set as in `FORM`.

    Raises:
        DatasetError: the data set cannot be read, or has several splits or none.
        UsageError: the extra `hub` is missing, or the name is not of the form.
    """
    if "hf:" in path.as_posix() and not path.exists():
        match = _NAME.search(path.as_posix())
        if match is None:
            raise UsageError(f"{path}: name a data set of the hub as {FORM}.")
        return _of_hub(
            match["name"], match["config"], match["revision"], match["split"]
        )
    if path.is_dir():
        state = tuple(
            (file.relative_to(path).as_posix(), file.stat().st_mtime_ns)
            for file in sorted(path.rglob("*"))
            if file.is_file()
        )
        return _of_folder(path, state)
    return path


@cache
def _of_hub(
    name: str, config: str | None, revision: str | None, split: str | None
) -> Path:
    source = "hf:" + name + (f"/{config}" if config else "")
    library = _library()
    try:
        loaded = library.load_dataset(
            name,
            config,
            revision=revision,
            download_config=library.DownloadConfig(max_retries=1),
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise DatasetError(
            f"{source}: the data set cannot be read from the hub: {_first_line(error)} "
            "(check the name and the network, or name a local folder or file)."
        ) from error
    return _cached_csv(source, _split(source, loaded, split))


@cache
def _of_folder(path: Path, _state: object) -> Path:
    library = _library()
    try:
        if any((path / f"dataset_{name}.json").exists() for name in ("info", "dict")):
            loaded = library.load_from_disk(str(path))
        else:
            loaded = library.load_dataset(str(path))
    except (OSError, ValueError, RuntimeError) as error:
        raise DatasetError(
            f"{path}: the folder cannot be read as a data set: {_first_line(error)} "
            "(name a file, or a folder of Parquet, CSV or JSON lines)."
        ) from error
    return _cached_csv(path.name, _split(path.name, loaded, None))


def _library() -> Any:  # noqa: ANN401 - a module
    try:
        import datasets  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise UsageError(
            "Data sets of the hub and of folders need the extra hub: pip install "
            "'siftlog[hub]'; or name a CSV file."
        ) from None
    datasets.disable_progress_bars()
    return datasets


def _split(source: str, loaded: Mapping[str, Rows] | Rows, split: str | None) -> Rows:
    """The rows of the split that is named, or of the only one."""
    if not isinstance(loaded, Mapping):
        return loaded
    names = sorted(loaded)
    if split is None and len(names) == 1:
        split = names[0]
    if split is None or split not in loaded:
        raise DatasetError(
            f"{source}: the data set has the splits {', '.join(names)} (name one of "
            "them behind #, or a folder or file that holds it alone)."
        )
    return loaded[split]


def _cached_csv(source: str, rows: Rows) -> Path:
    """The rows as a CSV file of the cache, named by what it holds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names: list[str] | None = None
    for row in rows:
        if names is None:
            names = list(row)
            writer.writerow(names)
        writer.writerow("" if row[name] is None else row[name] for name in names)
    if names is None:
        raise DatasetError(
            f"{source}: the data set has no row (at least one is needed)."
        )
    content = text.getvalue().encode("utf-8", "surrogatepass")
    folder = user_cache_path("siftlog") / "datasets"
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", source.removeprefix("hf:"))
    path = folder / f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}.csv"
    if not path.exists():
        draft = path.with_suffix(".tmp")
        draft.write_bytes(content)
        draft.replace(path)
    return path


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
