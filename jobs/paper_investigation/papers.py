"""The papers' texts: found and checked at load, opened one at a time afterwards.

A folder holds `PMC*.md` or `.txt`, the stem being the id; a file is JSONL with `pmcid`
and `text`. Loading reads every text that is needed once, to know that it decodes and
is not blank, and keeps only where it stands.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jobs.noticed import Noticed
from jobs.paper_investigation.bench import ANY_ID, PMCID, paper_id
from jobs.paper_investigation.rows import Encoding, read_rows, unreadable
from jobs.paper_investigation.settings import Settings
from runner.errors import DatasetError
from runner.json_entries import BOM

SUFFIXES = (".md", ".txt")

KEPT_TEXTS = 16
"""Texts held at once: those of the papers whose questions are under way."""

_ID_LINE = re.compile(r"^\*\*PMCID:\*\*\s*(\S+)", re.MULTILINE)
_TITLE = re.compile(r"^#\s+(\S.*?)\s*$", re.MULTILINE)
_HEAD = 4_000  # characters in which the id and the title are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A paper that is a file of its own."""

    path: Path

    def read(self, encoding: Encoding) -> str:
        """The text; `UnicodeDecodeError` under "strict"."""
        return _plain(self.path.read_bytes(), encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLine:
    """A paper that is one line of a JSONL file."""

    path: Path
    start: int
    size: int

    def read(self, encoding: Encoding) -> str:
        """The line's `text`."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            line = _plain(file.read(self.size), encoding)
        return _unix(msgspec.json.decode(line)["text"])


class Papers:
    """Texts by paper id; holds places, and the last few texts that were asked for."""

    def __init__(
        self, places: Mapping[str, TextFile | JsonLine], encoding: Encoding
    ) -> None:
        self._places = places
        self._encoding: Encoding = encoding
        self._text = functools.lru_cache(maxsize=KEPT_TEXTS)(self._read)

    def __contains__(self, pmcid: str) -> bool:
        return pmcid in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def text(self, pmcid: str) -> str:
        """The paper's text with line ends as LF; `KeyError` where there is none."""
        return self._text(pmcid)

    def title(self, pmcid: str) -> str | None:
        """The text's first heading; None without one, or without the text."""
        if pmcid not in self:
            return None
        found = _TITLE.search(self.text(pmcid)[:_HEAD])
        return found[1] if found else None

    def _read(self, pmcid: str) -> str:
        return self._places[pmcid].read(self._encoding)


def open_papers(settings: Settings, wanted: Container[str], noticed: Noticed) -> Papers:
    """The texts of the *wanted* papers; the others are counted and left alone."""
    path = settings.papers
    if path is None:
        return Papers({}, settings.encoding_errors)
    places = (
        _from_file(path, settings, wanted, noticed)
        if path.is_file()
        else _from_folder(path, settings, wanted, noticed)
    )
    return Papers(places, settings.encoding_errors)


def _from_folder(
    folder: Path, settings: Settings, wanted: Container[str], noticed: Noticed
) -> dict[str, TextFile | JsonLine]:
    files = _paper_files(folder, settings)
    places: dict[str, TextFile | JsonLine] = {}
    for pmcid, path in files.items():
        if pmcid not in wanted:
            _notice_unwanted(pmcid, folder.name, noticed)
            continue
        place = TextFile(path=path)
        text = _checked(place, settings.encoding_errors, noticed)
        stated = _ID_LINE.search(text[:_HEAD])
        if stated and stated[1] != pmcid:
            noticed.add(
                "pmcid_disagrees",
                "warn",
                folder.name,
                "Some papers state another PMCID than their file name, which counts.",
                example=f"{path.name} states {stated[1][:64]}",
            )
        if text.strip():
            places[pmcid] = place
    return places


def _paper_files(folder: Path, settings: Settings) -> dict[str, Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error
    shape = ANY_ID if settings.any_id else PMCID
    files: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in SUFFIXES or not shape.fullmatch(path.stem):
            continue
        twin = files.setdefault(path.stem, path)
        if twin is not path:
            raise DatasetError(
                f"{folder.name}: {twin.name} and {path.name} are the same paper "
                "(keep one of the two)."
            )
    if not files:
        raise DatasetError(
            f"{folder}: no paper in it (files are named by id, such as PMC123.md; "
            "other names need --any-id)."
        )
    return files


def _from_file(
    path: Path, settings: Settings, wanted: Container[str], noticed: Noticed
) -> dict[str, TextFile | JsonLine]:
    places: dict[str, TextFile | JsonLine] = {}
    lines: dict[str, int] = {}
    for row in read_rows(path, settings.encoding_errors, noticed):
        pmcid = paper_id(row, settings)
        first = lines.setdefault(pmcid, row.line)
        if first != row.line:
            raise row.error(
                f"{pmcid} stands on line {first} already (keep one of the two)"
            )
        if "text" not in row.fields:
            raise row.error("text is missing (leave it empty for a paper without one)")
        if pmcid not in wanted:
            _notice_unwanted(pmcid, path.name, noticed)
        elif row.text("text"):
            places[pmcid] = JsonLine(path=path, start=row.start, size=row.size)
    return places


def _notice_unwanted(pmcid: str, where: str, noticed: Noticed) -> None:
    noticed.add(
        "papers_not_needed",
        "info",
        where,
        "Some papers are named by no line of the bench, or by no question.",
        example=pmcid,
    )


def _checked(place: TextFile, encoding: Encoding, noticed: Noticed) -> str:
    try:
        return place.read("strict")
    except OSError as error:
        raise unreadable(place.path, error) from error
    except UnicodeDecodeError as error:
        if encoding == "strict":
            raise DatasetError(
                f"{place.path.name}: byte {error.start} is not UTF-8 "
                "(save the file as UTF-8, or use --encoding-errors replace)."
            ) from error
        noticed.add(
            "replaced_bytes",
            "warn",
            place.path.parent.name,
            "Bytes that are not UTF-8 were replaced in some papers.",
            example=place.path.name,
        )
        return place.read(encoding)


def _plain(data: bytes, encoding: Encoding) -> str:
    return _unix(data.removeprefix(BOM).decode(errors=encoding))


def _unix(text: str) -> str:
    """LF line ends, so that a checkout on another system asks the same."""
    return text.replace("\r\n", "\n")
