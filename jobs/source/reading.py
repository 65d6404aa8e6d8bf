"""Reads a document's file: PDF, text or XML, by its name's end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jobs.source.cleaning import PAGE, cleaned
from jobs.source.document import Document
from jobs.source.markup import xml_text
from jobs.source.pdf import pdf_pages
from runner.errors import DatasetError

MOST_BYTES: Final = 200 << 20


def read_document(path: Path) -> Document:
    """The text of a document.

    Raises:
        DatasetError: the file is missing, of another kind, too large, or not to be
            read.
    """
    if not path.is_file():
        raise DatasetError(f"{path}: no such file (name a .pdf, .txt or .xml).")
    if path.stat().st_size > MOST_BYTES:
        raise DatasetError(
            f"{path.name}: it has more than {MOST_BYTES >> 20} MB "
            "(keep what is to be read alone)."
        )
    match path.suffix.lower():
        case ".pdf":
            pages = pdf_pages(path)
        case ".txt":
            pages = _text(path).split(PAGE)
        case ".xml":
            pages = [xml_text(path)]
        case suffix:
            raise DatasetError(
                f"{path.name}: {suffix or 'a name without an end'} is not read (give a "
                ".pdf, .txt or .xml)."
            )
    found = cleaned(path.name, pages)
    if not found.text.strip():
        raise DatasetError(f"{path.name}: it holds no text (name another file).")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name}: byte {error.start} is not UTF-8 (save it as UTF-8)."
        ) from None
