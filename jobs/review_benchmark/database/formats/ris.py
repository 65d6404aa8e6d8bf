"""Reads RIS by `rispy`, a record at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.inputs.files import lines
from jobs.review_benchmark.database.formats.entry import Cells, entry_of
from jobs.review_benchmark.database.paper import BadEntry, Entry
from runner.errors import DatasetError

_PMID = re.compile(r"(?:pmid:?\s*)?([0-9]{1,8})", re.IGNORECASE)
_YEAR = re.compile(r"[0-9]{4}")

_FIRST, _LAST = "TY  -", "ER  -"


def read_ris(path: Path) -> Iterator[Entry | BadEntry]:
    """The records of a file, from `TY` to `ER` each.

    Raises:
        DatasetError: the file is not to be read, or no record begins in it.
    """
    from rispy import RisParser  # noqa: PLC0415 - of an extra; see choice.py

    parser = RisParser(skip_unknown_tags=True)
    record: list[str] = []
    number = 0
    for _, line in lines(path):
        begins = line.startswith(_FIRST)
        if begins:
            if record:
                yield _unended(number)
            number += 1
            record = []
        if begins or record:
            record.append(line)
        if record and line.startswith(_LAST):
            (found,) = parser.parse_lines(iter(record))
            yield entry_of(number, _cells(found))
            record = []
    if record:
        yield _unended(number)
    if not number:
        raise DatasetError(
            f"{path.name}: no record begins with TY (say what the file is with "
            "--format)."
        )


def _unended(number: int) -> BadEntry:
    return BadEntry(number=number, reason="it has no end (close it with a line ER  -)")


def _cells(found: Mapping[str, Any]) -> Cells:
    """Cells by rispy's names of the tags."""
    year = _YEAR.search(found.get("year") or found.get("publication_year") or "")
    return {
        "document_id": found.get("id"),
        "pmid": found.get("pmid") or _pmid(found),
        "doi": found.get("doi"),
        "title": found.get("title") or found.get("primary_title"),
        "abstract": found.get("abstract") or found.get("notes_abstract"),
        "authors": found.get("authors") or found.get("first_authors"),
        "journal": found.get("journal_name")
        or found.get("alternate_title3")
        or found.get("secondary_title"),
        "year": year.group() if year else None,
    }


def _pmid(found: Mapping[str, Any]) -> str:
    """The PMID among the numbers that a database gave.

    Every database has its own: bare digits count where it is PubMed or Medline, or
    where none is named.
    """
    source = (found.get("name_of_database") or "").lower()
    is_pubmed = not source or "pubmed" in source or "medline" in source
    for tag in ("accession_number", "custom2"):
        text = (found.get(tag) or "").strip()
        match = _PMID.fullmatch(text)
        if match and (is_pubmed or not text.isdigit()):
            return match.group(1)
    return ""
