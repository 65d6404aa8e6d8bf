"""Reads BibTeX by `bibtexparser`, an entry at a time."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jobs.inputs.files import lines
from jobs.review_benchmark.database.formats.entry import Cells, entry_of
from jobs.review_benchmark.database.paper import BadEntry, Entry
from runner.errors import DatasetError

_BEGINS = re.compile(r"\s*@\s*(\w+)\s*[{(]")
_AND = re.compile(r"\s+and\s+")
_DOLLAR = re.compile(r"(?<!\\)\$")
_PERCENT = re.compile(r"(?<!\\)%")
_YEAR = re.compile(r"[0-9]{4}")

_NO_PAPERS = frozenset({"comment", "preamble", "string"})


def read_bibtex(path: Path) -> Iterator[Entry | BadEntry]:
    """The entries of a file; LaTeX in them becomes plain text.

    Raises:
        DatasetError: the file is not to be read, or no entry begins in it.
    """
    from bibtexparser.entrypoint import parse_string  # noqa: PLC0415 - of an extra; see choice.py
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
            yield BadEntry(number=number, reason=reason)
            continue
        entry = library.entries[-1]
        fields = {field.key.lower(): str(field.value) for field in entry.fields}
        try:
            cells = _cells(entry.key, fields, plain)
        except RecursionError:
            reason = "its braces are nested too deep (remove some)"
            yield BadEntry(number=number, reason=reason)
        else:
            yield entry_of(number, cells)
    if not number:
        raise DatasetError(
            f"{path.name}: no entry begins with @ (say what the file is with --format)."
        )


def _blocks(path: Path) -> Iterator[tuple[str, str]]:
    """What begins with @ at a line's beginning: its kind in lower case, and its text.

    That is where bibtexparser sees blocks begin too, whatever is still open.
    """
    kind, block = "", list[str]()
    for _, line in lines(path):
        found = _BEGINS.match(line)
        if found:
            if kind:
                yield kind, "".join(block)
            kind, block = found.group(1).lower(), []
        if kind:
            block.append(line)
    if kind:
        yield kind, "".join(block)


def _cells(key: str, fields: Mapping[str, str], plain: Callable[[str], str]) -> Cells:
    def text(*names: str) -> str:
        found = next((fields[name] for name in names if name in fields), "")
        return " ".join(plain(_escaped(found)).split())

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
