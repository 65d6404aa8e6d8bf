"""Reads references from RIS, BibTeX and PubMed text files, one at a time.

The cells of a reference are those of `FIELDS`. A record that cannot be read is yielded
with the reason, so that a job decides whether it stops or goes on.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from jobs.kit.inputs.cells import InputCell
from jobs.kit.inputs.files import lines
from runner.errors import DatasetError

RecordCells: TypeAlias = Mapping[str, InputCell]
"""Cells of a reference by the names of `FIELDS`."""

FIELDS: Final = (
    *("document_id", "pmid", "doi", "title", "abstract", "authors", "journal", "year"),
)

CURE: Final = "check that the file's name ends as its format does"


@dataclass(frozen=True, slots=True)
class BadReference:
    """A record that cannot be read."""

    number: int  #: of the record in its file, from 1
    reason: str  #: what is wrong and what to do, without a full stop


_BEGINS = re.compile(r"\s*@\s*(\w+)\s*[{(]")
_AND = re.compile(r"\s+and\s+")
_DOLLAR = re.compile(r"(?<!\\)\$")
_PERCENT = re.compile(r"(?<!\\)%")
_YEAR = re.compile(r"[0-9]{4}")

_NO_PAPERS = frozenset({"comment", "preamble", "string"})


def read_bibtex(path: Path, cure: str = CURE) -> Iterator[RecordCells | BadReference]:
    """Reads the entries of a file; LaTeX in them becomes plain text.

    Args:
        path: of the file.
        cure: what to do about a file in which no entry begins.

    Raises:
        DatasetError: the file or the library that reads it is missing, or no entry
            begins in it.
    """
    require_library(path, "bibtex", "bibtexparser")
    from bibtexparser.entrypoint import parse_string  # noqa: PLC0415 - of an extra
    from pylatexenc.latex2text import LatexNodes2Text  # noqa: PLC0415 - likewise

    # what is wrong with an entry is said by its BadEntry
    logging.getLogger("bibtexparser").addHandler(logging.NullHandler())
    plain = LatexNodes2Text(math_mode="text").latex_to_text
    macros: list[str] = []
    number = 0
    for kind, block in _blocks(path):
        if kind == "string":
            macros.append(block)
        if kind in _NO_PAPERS:
            continue
        number += 1
        library = parse_string("\n".join((*macros, block)))
        if not library.entries:
            reason = "it is not to be parsed (check its braces, quotes and commas)"
            yield BadReference(number, reason)
            continue
        entry = library.entries[-1]
        fields = {field.key.lower(): str(field.value) for field in entry.fields}
        try:
            cells = _bibtex_cells(entry.key, fields, plain)
        except RecursionError:
            reason = "its braces are nested too deep (remove some)"
            yield BadReference(number, reason)
        else:
            yield cells
    if not number:
        raise DatasetError(f"{path.name}: no entry begins with @ ({cure}).")


def _blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each block that begins with @: its kind in lower case, and its text.

    That is where bibtexparser sees blocks begin too, whatever is still open.
    """
    kind, block = "", list[str]()
    for _, line in lines(path):
        match = _BEGINS.match(line)
        if match:
            if kind:
                yield kind, "".join(block)
            kind, block = match.group(1).lower(), []
        if kind:
            block.append(line)
    if kind:
        yield kind, "".join(block)


def _bibtex_cells(
    key: str, fields: Mapping[str, str], plain: Callable[[str], str]
) -> RecordCells:
    def text(*names: str) -> str:
        value = next((fields[name] for name in names if name in fields), "")
        return " ".join(plain(_escaped(value)).split())

    year = _YEAR.search(text("year", "date"))
    return {
        "document_id": key,
        "pmid": text("pmid"),
        "doi": text("doi"),
        "title": text("title"),
        "abstract": text("abstract"),
        "authors": _AND.split(text("author")),
        "journal": text("journal", "journaltitle"),
        "year": year.group() if year else None,
    }


def _escaped(text: str) -> str:
    """LaTeX as most programs export it: a bare % is a percent sign, not a comment.

    A dollar is money where dollars do not pair as marks of mathematics.
    """
    text = _PERCENT.sub(r"\\%", text)
    return _DOLLAR.sub(r"\\$", text) if len(_DOLLAR.findall(text)) % 2 else text


_PMID = re.compile(r"(?:pmid:?\s*)?([0-9]{1,8})", re.IGNORECASE)

_FIRST, _LAST = "TY  -", "ER  -"
_UNENDED = "it has no end (close it with a line ER  -)"


def read_ris(path: Path, cure: str = CURE) -> Iterator[RecordCells | BadReference]:
    """Reads the records of a file, from `TY` to `ER` each.

    Args:
        path: of the file.
        cure: what to do about a file in which no record begins.

    Raises:
        DatasetError: the file or the library that reads it is missing, or no record
            begins in it.
    """
    require_library(path, "ris", "rispy")
    from rispy import RisParser  # noqa: PLC0415 - of an extra

    parser = RisParser(skip_unknown_tags=True)
    record: list[str] = []
    number = 0
    for _, line in lines(path):
        begins = line.startswith(_FIRST)
        if begins:
            if record:
                yield BadReference(number, _UNENDED)
            number += 1
            record = []
        if begins or record:
            record.append(line)
        if record and line.startswith(_LAST):
            (fields,) = parser.parse_lines(iter(record))
            yield _ris_cells(fields)
            record = []
    if record:
        yield BadReference(number, _UNENDED)
    if not number:
        raise DatasetError(f"{path.name}: no record begins with TY ({cure}).")


def _ris_cells(fields: Mapping[str, Any]) -> RecordCells:
    """Cells by rispy's names of the tags."""
    year = _YEAR.search(fields.get("year") or fields.get("publication_year") or "")
    return {
        "document_id": fields.get("id"),
        "pmid": fields.get("pmid") or _pmid(fields),
        "doi": fields.get("doi"),
        "title": fields.get("title") or fields.get("primary_title"),
        "abstract": fields.get("abstract") or fields.get("notes_abstract"),
        "authors": fields.get("authors") or fields.get("first_authors"),
        "journal": fields.get("journal_name")
        or fields.get("alternate_title3")
        or fields.get("secondary_title"),
        "year": year.group() if year else None,
    }


def _pmid(fields: Mapping[str, Any]) -> str:
    """The PMID among the numbers that a database gave.

    Every database has its own: bare digits count where it is PubMed or Medline, or
    where none is named.
    """
    source = (fields.get("name_of_database") or "").lower()
    is_pubmed = not source or "pubmed" in source or "medline" in source
    for tag in ("accession_number", "custom2"):
        text = (fields.get(tag) or "").strip()
        match = _PMID.fullmatch(text)
        if match and (is_pubmed or not text.isdigit()):
            return match.group(1)
    return ""


def require_library(path: Path, form: str, library: str) -> None:
    """Raises `DatasetError` if the library that reads a format is not installed."""
    if find_spec(library) is None:
        raise DatasetError(
            f"{path.name}: reading {form} needs {library} (pip install "
            "'siftlog[refs]')."
        )


_NBIB_LINE: Final = re.compile(r"(?P<tag>[A-Z]{2,4}) *- (?P<text>.*)")
_NBIB_DOI: Final = re.compile(r"(\S+) \[doi\]")


def read_nbib(path: Path, cure: str = CURE) -> Iterator[RecordCells]:
    """Reads the records of PubMed's text format (`.nbib`), from `PMID` to a blank line.

    Args:
        path: of the file.
        cure: what to do about a file in which no record begins.

    Raises:
        DatasetError: the file cannot be read, or no record begins in it.
    """
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    records = 0
    for _, line in lines(path):
        match = _NBIB_LINE.match(line)
        if match is not None and match["tag"] == "PMID" and fields:
            yield _nbib_cells(fields)
            fields = {}
        if match is not None and (fields or match["tag"] == "PMID"):
            records += match["tag"] == "PMID"
            last = fields.setdefault(match["tag"], [])
            last.append(match["text"].strip())
        elif last and line.startswith("      "):
            last[-1] += f" {line.strip()}"
    if not records:
        raise DatasetError(f"{path.name}: no record begins with PMID- ({cure}).")
    yield _nbib_cells(fields)


def _nbib_cells(fields: Mapping[str, list[str]]) -> RecordCells:
    def first(*tags: str) -> str:
        return next((fields[tag][0] for tag in tags if tag in fields), "")

    ids = (*fields.get("LID", ()), *fields.get("AID", ()))
    dois = (match[1] for text in ids if (match := _NBIB_DOI.fullmatch(text)))
    year = _YEAR.search(first("DP"))
    return {
        "document_id": first("PMID"),
        "pmid": first("PMID"),
        "doi": next(dois, ""),
        "title": first("TI", "BTI"),
        "abstract": first("AB"),
        "authors": fields.get("FAU") or fields.get("AU") or [],
        "journal": first("JT", "TA"),
        "year": year.group() if year else None,
    }
