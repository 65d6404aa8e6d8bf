"""What a review says of itself, held against its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.inputs.documents import Document
from jobs.review_benchmark.extracting.asking.answers import Meta
from jobs.review_benchmark.extracting.checking.flags import Flag
from jobs.review_benchmark.extracting.checking.grounds import Ground, Grounds
from jobs.review_benchmark.extracting.checking.identifiers import FIRST_YEAR
from jobs.review_benchmark.extracting.cutting.sections import Sections
from jobs.review_benchmark.review import Pico

HEAD: Final = 20_000
"""Characters that hold the citation and the abstract."""

_ISSUED: Final = re.compile(
    r"Cochrane Database of Systematic Reviews\s*,?\s*((?:19|20)\d\d)"
    r"|(?:\u00a9|\(c\)|copyright)\D{0,40}((?:19|20)\d\d)",
    re.IGNORECASE,
)
_UNITS: Final = r"(?:studies|trials|RCTs|study|trial|RCT)"
_NUMBERS: Final = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
"""
_WORDS: Final = _NUMBERS.split()
_COUNT: Final = re.compile(
    rf"\(\s*(\d+)\s+{_UNITS}\b"
    r"|\b(?:we\s+)?(?:includ|identif|found)\w*\s+(?:a\s+total\s+of\s+)?"
    rf"(\d+|{'|'.join(_WORDS)})\s+(?:\w+\s+){{0,3}}?{_UNITS}\b",
    re.IGNORECASE,
)
_ID: Final = re.compile(r"\bCD\d{6}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a field of the record stands."""

    field: str
    quote: str  #: as the text has it
    page: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record with all that stands in the text, and nothing else."""

    meta: Meta
    evidence: tuple[Evidence, ...] = ()
    flags: tuple[Flag, ...] = ()


def checked_record(
    meta: Meta, document: Document, grounds: Grounds, spans: Sections
) -> Recorded:
    """What of a record stays; the question falls back to the section of objectives."""
    evidence: list[Evidence] = []
    flags: list[Flag] = []

    def grounded(name: str, text: str) -> str:
        found = grounds.find(text, document.whole) if text else None
        if found is not None:
            evidence.append(_evidence(name, document, found))
            return text
        if text:
            flags.append(Flag(code="not_grounded", where=name, detail=text))
        return ""

    question = grounded("research_question", meta.question)
    if not question and "objectives" in spans:
        question = " ".join(document.piece(spans["objectives"]).split())
    own = Meta(
        id=_id(meta.id, document, flags),
        title=grounded("title", meta.title),
        question=question,
        pico=None if meta.pico is None else _pico(meta.pico, grounded),
        inclusion=tuple(
            text for each in meta.inclusion if (text := grounded("inclusion", each))
        ),
        exclusion=tuple(
            text for each in meta.exclusion if (text := grounded("exclusion", each))
        ),
        conclusion=grounded("authors_conclusion", meta.conclusion),
        date_range=_years(meta.date_range, document, flags),
    )
    return Recorded(meta=own, evidence=tuple(evidence), flags=tuple(flags))


def issued(document: Document) -> int | None:
    """The year in which the review came out, where its first pages say it."""
    found = _ISSUED.search(document.text[:HEAD])
    return int(found[1] or found[2]) if found else None


def stated_count(document: Document) -> int | None:
    """How many studies the abstract says that the review has: `(12 studies ...)`."""
    found = _COUNT.search(document.text[:HEAD])
    if found is None:
        return None
    said = (found[1] or found[2]).lower()
    return int(said) if said.isdigit() else _WORDS.index(said) + 1


def _id(given: str, document: Document, flags: list[Flag]) -> str:
    """The id where the text has it; else the first that the text has, if any."""
    if given and re.search(rf"(?<!\w){re.escape(given)}(?!\w)", document.text):
        return given
    if given:
        flags.append(Flag(code="not_grounded", where="cochrane_id", detail=given))
    found = _ID.search(document.text[:HEAD])
    return found.group() if found else ""


def _pico(given: Pico, grounded: Callable[[str, str], str]) -> Pico:
    """The question's parts; each of them must stand in the text like the question."""
    parts: Mapping[str, str] = {
        name: getattr(given, name)
        for name in ("population", "intervention", "comparison", "outcome")
    }
    return Pico(
        **{name: grounded(f"pico.{name}", text) for name, text in parts.items()}
    )


def _years(
    given: tuple[int, int] | None, document: Document, flags: list[Flag]
) -> tuple[int, int] | None:
    """Years that both stand in the text."""
    if given is None:
        return None
    latest = issued(document)
    is_possible = given[0] >= FIRST_YEAR and (latest is None or given[1] <= latest)
    if is_possible and all(
        re.search(rf"(?<!\d){year}(?!\d)", document.text) for year in given
    ):
        return given
    detail = f"{given[0]} to {given[1]}"
    flags.append(Flag(code="not_grounded", where="date_range", detail=detail))
    return None


def _evidence(name: str, document: Document, found: Ground) -> Evidence:
    return Evidence(
        field=name,
        quote=" ".join(document.piece(found.span).split()),
        page=document.page(found.span.start),
        ratio=found.ratio,
    )
