"""Reads the papers of a run: their locations, and their texts on demand.

A folder holds one file per paper, named by its refno; a JSONL file holds one line per
paper. A text keeps every character of its file except line ends, which become LF, and a
byte order mark: offsets of quotes refer to it. The text of a PDF is that of its pages,
cleaned, and stays in memory, since reading it again would take too long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeAlias

from jobs.kit.grounding import PaperText
from jobs.kit.inputs.cells import Filled, InputCell
from jobs.kit.inputs.open_file import OpenFile
from jobs.kit.inputs.rows import RowModel, RowSource, object_of
from runner.errors import DatasetError
from runner.json_entries import BOM, lines_of

SUFFIXES: Final = (".txt", ".md", ".pdf")

CACHED_PAPERS: Final = 16
"""Papers in memory together; requests about one paper follow each other."""

# the key of a chunk of a paper; no refno may have this form
_PIECE: Final = re.compile(r".*#[0-9]+", re.DOTALL)


HEAD_CHARS: Final = 2_000
"""Characters at the beginning of a paper that may contain its title."""
LONGEST_TITLE: Final = 300
"""A longer first paragraph is text, not a title."""
_NAMED_VALUE: Final = re.compile(r"[A-Z]\w*: ")


_Source: TypeAlias = Callable[[], str]
"""Reads the text of a paper."""


def _read_file(path: Path) -> str:
    """Return the text of a file with one paper."""
    try:
        return _unix(path.read_bytes().removeprefix(BOM).decode())
    except OSError as error:
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name}: byte {error.start} is not UTF-8 (save it as UTF-8)."
        ) from None


def _read_line(file: OpenFile, start: int, size: int) -> str:
    """Return the text of a line in a JSONL file, by its offset and size in bytes."""
    return _unix(str(file.object_at(start, size)["text"]))


class PaperLibrary:
    """Texts by refno; holds their locations, and the texts of the last few papers."""

    def __init__(self, sources: Mapping[str, _Source] | None = None) -> None:
        self._sources = sources or {}
        self._paper = lru_cache(maxsize=CACHED_PAPERS)(self._read)

    def __contains__(self, refno: object) -> bool:
        return refno in self._sources

    def __iter__(self) -> Iterator[str]:
        """Yield the refnos, ascending as text."""
        return iter(sorted(self._sources))

    def __len__(self) -> int:
        return len(self._sources)

    def only(self, refnos: Container[str]) -> PaperLibrary:
        """Return a library of only the named papers."""
        return PaperLibrary(
            {refno: at for refno, at in self._sources.items() if refno in refnos}
        )

    def paper(self, refno: str) -> PaperText:
        """Return a paper's text for searching quotes; blank if there is none.

        Raises:
            DatasetError: its file is no longer readable.
        """
        return self._paper(refno)

    def text(self, refno: str) -> str:
        """Return a paper's text; raise `KeyError` if there is none."""
        if refno not in self._sources:
            raise KeyError(refno)
        return self.paper(refno).text

    def title(self, refno: str) -> str:
        """Return a paper's title: its first short paragraph; blank without one.

        Lines of a name, a colon and a value precede the title of some papers.
        """
        paragraphs = re.split(r"\n\s*\n", self.text(refno)[:HEAD_CHARS])
        for paragraph in paragraphs[:-1]:
            line = " ".join(paragraph.lstrip("# ").split())
            if line and not _NAMED_VALUE.match(line):
                return line if len(line) <= LONGEST_TITLE else ""
        return ""

    def _read(self, refno: str) -> PaperText:
        source = self._sources.get(refno)
        return PaperText("" if source is None else source())


def read_papers(path: Path) -> PaperLibrary:
    """Return the papers of a folder, or of a JSONL file.

    Raises:
        DatasetError: there is none, two have one refno, or a line is invalid.
    """
    sources: Mapping[str, _Source] = (
        _sources_in_file(path) if path.is_file() else _filed(path)
    )
    for refno in sources:
        if _PIECE.fullmatch(refno):
            raise DatasetError(
                f"{path.name}: {refno!r} ends as the pieces of a paper do, by # and a "
                "number (rename the paper)."
            )
    return PaperLibrary(sources)


def _filed(folder: Path) -> dict[str, _Source]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from error
    sources: dict[str, _Source] = {}
    twins: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        twin = twins.setdefault(path.stem, path)
        if twin is not path:
            raise DatasetError(
                f"{folder.name}: {twin.name} and {path.name} are the same paper (keep "
                "one of the two)."
            )
        sources[path.stem] = _source(path)
    if not sources:
        raise DatasetError(
            f"{folder}: no paper in it (a paper is a file such as Paper_1.txt, .md or "
            ".pdf, named by its refno)."
        )
    return sources


def _source(path: Path) -> _Source:
    """Return the reader of a paper; it is read once to report errors early."""
    if path.suffix == ".pdf":
        from jobs.kit.inputs.documents import (  # noqa: PLC0415 - only for PDF files
            read_document,
        )

        # in memory: reading it again would take too long
        return partial(str, read_document(path).text)
    _read_file(path)
    return partial(_read_file, path)


class _PaperRow(RowModel):
    refno: Filled
    text: InputCell = None


def _sources_in_file(path: Path) -> dict[str, _Source]:
    sources: dict[str, _Source] = {}
    lines: dict[str, int] = {}
    file = OpenFile(path)
    for number, start, line in _lines(path):
        row = _row(path, number, line)
        refno = row.refno.strip()
        if not refno:
            raise row.error("refno is blank (fill it in)")
        first = lines.setdefault(refno, number)
        if first != number:
            raise row.error(
                f"{refno} also occurs on line {first} (keep one of the two)"
            )
        if not isinstance(row.text, str):
            raise row.error("text is missing (leave it empty for a paper without one)")
        sources[refno] = partial(_read_line, file, start, len(line))
    if not sources:
        raise DatasetError(f"{path.name}: no paper in it (a line a paper is expected).")
    return sources


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of each line that is not blank."""
    try:
        with path.open("rb") as file:
            start = 0
            for number, line in lines_of(file, path.name):
                if line.removeprefix(BOM).strip():
                    yield number, start, line
                start += len(line)
    except OSError as error:
        raise _unreadable(path, error) from error


def _row(path: Path, number: int, line: bytes) -> _PaperRow:
    try:
        text = line.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name} line {number}: byte {error.start + 1} of the line is not "
            "UTF-8 (save the file as UTF-8)."
        ) from None
    fields = object_of(text, f"{path.name} line {number}")
    return _PaperRow.at(RowSource(file=path.name), number, fields)


def _unreadable(path: Path, error: OSError) -> DatasetError:
    reason = error.strerror or str(error)
    return DatasetError(f"{path}: {reason} (name a folder of papers, or a JSONL file).")


def _unix(text: str) -> str:
    """Convert line ends to LF, so that a checkout on another system sends the same."""
    return text.replace("\r\n", "\n")
