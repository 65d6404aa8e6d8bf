"""Which reader reads a file: one for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from jobs.review_benchmark.database.formats.bibtex import read_bibtex
from jobs.review_benchmark.database.formats.form import Form
from jobs.review_benchmark.database.formats.notation import read_lines, read_whole
from jobs.review_benchmark.database.formats.pubmed import read_pubmed
from jobs.review_benchmark.database.formats.ris import read_ris
from jobs.review_benchmark.database.formats.table import read_table
from jobs.review_benchmark.database.paper import Found
from runner.errors import DatasetError

_EXTRAS: Final[Mapping[Form, str]] = {"ris": "rispy", "bibtex": "bibtexparser"}
"""Libraries that an extra brings."""

_READERS: Final[Mapping[Form, Callable[[Path, Mapping[str, str]], Iterator[Found]]]] = {
    "json": lambda path, _: read_whole(path),
    "jsonl": lambda path, _: read_lines(path),
    "csv": lambda path, mapped: read_table(path, ",", mapped),
    "tsv": lambda path, mapped: read_table(path, "\t", mapped),
    "pubmed": lambda path, _: read_pubmed(path),
    "ris": lambda path, _: read_ris(path),
    "bibtex": lambda path, _: read_bibtex(path),
}


def read(path: Path, form: Form, mapped: Mapping[str, str]) -> Iterator[Found]:
    """The records of a file, one at a time.

    Args:
        path: the file.
        form: its format.
        mapped: columns of a table by their names there, each with its name here.

    Raises:
        DatasetError: the file is not to be read in that format.
    """
    library = _EXTRAS.get(form)
    if library is not None and find_spec(library) is None:
        raise DatasetError(
            f"{path.name}: reading {form} needs {library} (pip install "
            "'siftlog[refs]')."
        )
    return _READERS[form](path, mapped)
