"""Reads PubMed XML, a record at a time.

Entities, and whatever else a document type of its own could bring, are refused before
the parser that builds elements sees them. They can be declared only before the root
element, so the slow parser that watches for them stops there: `defusedxml` follows
every element in Python, which would take longer than all else together.

Paths begin at the record and go one level at a time, so that what a record says of
other papers (its references, comments and corrections) is never taken for its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from jobs.kit.inputs.files import chunks
from jobs.kit.inputs.references import RecordCells
from runner.errors import DatasetError

_YEAR = re.compile(r"[0-9]{4}")


def article(record: Element) -> RecordCells:
    """The cells of a `PubmedArticle`."""
    citation = "MedlineCitation"
    within = f"{citation}/Article"
    pmid = _text(record, f"{citation}/PMID")
    return {
        "document_id": pmid,
        "pmid": pmid,
        "doi": _doi(record, "PubmedData/ArticleIdList/ArticleId")
        or _doi(record, f"{within}/ELocationID", "EIdType"),
        "title": _text(record, f"{within}/ArticleTitle")
        or _text(record, f"{within}/VernacularTitle"),
        "abstract": _abstract(record, f"{within}/Abstract"),
        "authors": _authors(record, f"{within}/AuthorList"),
        "journal": _text(record, f"{within}/Journal/Title"),
        "year": _year(record, f"{within}/Journal/JournalIssue/PubDate"),
    }


def book(record: Element) -> RecordCells:
    """The cells of a `PubmedBookArticle`: a chapter, or a book as a whole."""
    within = "BookDocument"
    pmid = _text(record, f"{within}/PMID")
    title = _text(record, f"{within}/ArticleTitle")
    whole = _text(record, f"{within}/Book/BookTitle")
    return {
        "document_id": pmid,
        "pmid": pmid,
        "doi": _doi(record, f"{within}/ArticleIdList/ArticleId"),
        "title": title or whole,
        "abstract": _abstract(record, f"{within}/Abstract"),
        "authors": _authors(record, f"{within}/AuthorList"),
        "journal": whole if title else "",
        "year": _year(record, f"{within}/Book/PubDate"),
    }


def _flat(element: Element) -> str:
    """Its text without markup, blanks collapsed."""
    # nearly all elements have no markup inside
    text = "".join(element.itertext()) if len(element) else element.text or ""
    return " ".join(text.split())


def _text(record: Element, path: str) -> str:
    element = record.find(path)
    return "" if element is None else _flat(element)


def _doi(record: Element, path: str, kind: str = "IdType") -> str:
    """The first valid DOI among elements whose attribute *kind* says what they are."""
    for identifier in record.iterfind(path):
        if identifier.get(kind) == "doi" and identifier.get("ValidYN") != "N":
            return _flat(identifier)
    return ""


def _abstract(record: Element, path: str) -> str:
    sections = (
        (section.get("Label"), _flat(section))
        for section in record.iterfind(f"{path}/AbstractText")
    )
    return "\n".join(
        f"{label}: {text}" if label else text for label, text in sections if text
    )


def _authors(record: Element, path: str) -> list[str]:
    names = []
    for author in record.iterfind(f"{path}/Author"):
        group = author.find("CollectiveName")
        if group is not None:
            names.append(_flat(group))
        else:
            parts = _text(author, "LastName"), _text(author, "Initials")
            names.append(" ".join(filter(None, parts)))
    return names


def _year(record: Element, path: str) -> str:
    """Return the year of a date; of a date in words, the first four digits in a row."""
    match = _YEAR.search(
        _text(record, f"{path}/Year") or _text(record, f"{path}/MedlineDate")
    )
    return match.group() if match else ""


CURE: Final = "export from PubMed as XML"

ROOTS = frozenset({"PubmedArticleSet", "PubmedBookArticleSet"})

RECORD_BYTES = 1 << 25
"""Longest record: 32 MB, where whole books have less than one."""

DEPTH = 200
"""Most elements inside each other, where PubMed has a dozen."""

_READ: Mapping[str, Callable[[Element], RecordCells]] = {
    "PubmedArticle": article,
    "PubmedBookArticle": book,
}


def read_pubmed(path: Path, cure: str = CURE) -> Iterator[RecordCells | int]:
    """Reads the records of a file from PubMed.

    Args:
        path: of the file.
        cure: what to do about a file that is not from PubMed.

    Yields:
        The cells of a record, or a number of records that the file deletes.

    Raises:
        DatasetError: it is not to be read, not XML, not from PubMed, or hostile.
    """
    for element in _elements(path, cure):
        read = _READ.get(element.tag)
        if read is not None:
            yield read(element)
        elif element.tag == "DeleteCitation":
            yield len(element.findall("PMID"))


def _elements(path: Path, cure: str) -> Iterator[Element]:
    """The children of the root, each let go of before the next."""
    parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
    root: Element | None = None
    depth = fed = 0
    try:
        for data in _guarded(path):
            parser.feed(data)
            fed += len(data)
            events = cast("Iterator[tuple[str, Element]]", parser.read_events())
            for event, element in events:
                if event == "start":
                    depth += 1
                    if depth > DEPTH:
                        raise DatasetError(
                            f"{path.name}: elements are nested deeper than {DEPTH} "
                            "(those of PubMed are not; leave the file out)."
                        )
                    if root is None:
                        root = _root(element, path, cure)
                    continue
                depth -= 1
                if depth == 1 and root is not None:
                    yield element
                    root.clear()
                    fed = 0
            if fed > RECORD_BYTES:
                raise DatasetError(
                    f"{path.name}: a record is longer than {RECORD_BYTES >> 20} MB "
                    "(no record of PubMed is; leave the file out)."
                )
        parser.close()
    except ParseError as error:
        raise DatasetError(
            f"{path.name}: not XML, {error} (fetch the file again)."
        ) from error


def _root(element: Element, path: Path, cure: str) -> Element:
    if element.tag not in ROOTS:
        raise DatasetError(
            f"{path.name}: {element.tag} instead of PubmedArticleSet ({cure})."
        )
    return element


def _guarded(path: Path) -> Iterator[bytes]:
    """A file by pieces, none of them before it is known to declare nothing."""
    from defusedxml import (  # noqa: PLC0415 - only this format needs it
        DefusedXmlException,
    )
    from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415 - likewise

    seen = _RootSeen()
    guard = DefusedXMLParser(target=seen)
    guard.parser.StartDoctypeDeclHandler = _doctype
    for data in chunks(path):
        if not seen.root:
            try:
                guard.feed(data)
            except (DefusedXmlException, _InternalSubset) as error:
                raise DatasetError(
                    f"{path.name}: it declares entities or a document type of its own, "
                    "which are refused (fetch the file from PubMed again)."
                ) from error
            except (LookupError, ValueError) as error:
                raise DatasetError(
                    f"{path.name}: not XML, {error} (save the file as UTF-8)."
                ) from error
        yield data


class _InternalSubset(Exception):
    """A document type holds more than a name and an address."""


def _doctype(name: str, system: str, public: str, has_internal_subset: bool) -> None:
    """PubMed's document type may be named, and is never loaded."""
    del name, system, public
    if has_internal_subset:
        raise _InternalSubset


class _RootSeen:
    """Target of the guard: it builds nothing, but knows whether the root has begun."""

    root = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        del tag, attributes
        self.root = True

    def close(self) -> None:
        """The file is at its end."""
