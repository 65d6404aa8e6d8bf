"""What a PubMed record says of a paper: pure, from its XML element.

Paths begin at the record and go one level at a time, so that what a record says of
other papers (its references, comments and corrections) is never taken for its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from jobs.review_benchmark.database.formats.entry import Cells

_YEAR = re.compile(r"[0-9]{4}")


def article(record: Element) -> Cells:
    """The cells of a `PubmedArticle`."""
    citation = "MedlineCitation"
    within = f"{citation}/Article"
    pmid = _text(record, f"{citation}/PMID")
    return {
        "document_id": pmid,
        "pmid": pmid,
        "doi": _doi(record, "PubmedData/ArticleIdList") or _location(record, within),
        "title": _text(record, f"{within}/ArticleTitle")
        or _text(record, f"{within}/VernacularTitle"),
        "abstract": _abstract(record, f"{within}/Abstract"),
        "authors": _authors(record, f"{within}/AuthorList"),
        "journal": _text(record, f"{within}/Journal/Title"),
        "year": _year(record, f"{within}/Journal/JournalIssue/PubDate"),
    }


def book(record: Element) -> Cells:
    """The cells of a `PubmedBookArticle`: a chapter, or a book as a whole."""
    within = "BookDocument"
    pmid = _text(record, f"{within}/PMID")
    title = _text(record, f"{within}/ArticleTitle")
    whole = _text(record, f"{within}/Book/BookTitle")
    return {
        "document_id": pmid,
        "pmid": pmid,
        "doi": _doi(record, f"{within}/ArticleIdList"),
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
    found = record.find(path)
    return "" if found is None else _flat(found)


def _doi(record: Element, path: str) -> str:
    for each in record.iterfind(f"{path}/ArticleId"):
        if each.get("IdType") == "doi":
            return _flat(each)
    return ""


def _location(record: Element, path: str) -> str:
    for each in record.iterfind(f"{path}/ELocationID"):
        if each.get("EIdType") == "doi" and each.get("ValidYN") != "N":
            return _flat(each)
    return ""


def _abstract(record: Element, path: str) -> str:
    return "\n".join(_parts(record, path))


def _parts(record: Element, path: str) -> Iterator[str]:
    for each in record.iterfind(f"{path}/AbstractText"):
        label, text = each.get("Label"), _flat(each)
        if text:
            yield f"{label}: {text}" if label else text


def _authors(record: Element, path: str) -> list[str]:
    names = []
    for each in record.iterfind(f"{path}/Author"):
        group = each.find("CollectiveName")
        if group is not None:
            names.append(_flat(group))
        else:
            parts = _text(each, "LastName"), _text(each, "Initials")
            names.append(" ".join(filter(None, parts)))
    return names


def _year(record: Element, path: str) -> str:
    """Of the date; of a date in words the first four digits in a row."""
    found = _YEAR.search(
        _text(record, f"{path}/Year") or _text(record, f"{path}/MedlineDate")
    )
    return found.group() if found else ""
