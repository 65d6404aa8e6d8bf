"""Checks that a model's extraction is in the review's text; it makes no call.

Quotes are located in the source, identifiers are compared character by character, and
PMIDs are compared with the titles that a paper database has for them. Every fault
becomes a flag for a person to review.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Final, Literal, Protocol, TypeAlias

from rapidfuzz import fuzz

from jobs.kit.inputs.documents import Document, TextSpan
from jobs.review_benchmark.data import QuestionParts, TruthPaper
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.extraction.parsing import ReviewMeta
from jobs.review_benchmark.extraction.review_text import Sections
from jobs.review_benchmark.lookup import ratio
from jobs.review_benchmark.matching import MatchingRules, Normaliser, pmid_of

FlagCode: TypeAlias = Literal[
    "not_grounded",
    "doi_removed",
    "pmid_removed",
    "year_removed",
    "id_removed",
    "no_title",
    "unread",
    "study_count",
    "pmid_other_title",
    "section_not_found",
    "no_answer",
    "unusable",
    "missing",
]

FLAG_MEANINGS: Final[Mapping[FlagCode, str]] = {
    "not_grounded": "does not occur in the text and was dropped",
    "doi_removed": "DOI that is not in its reference was removed",
    "pmid_removed": "PMID that is not in its reference was removed",
    "year_removed": "year that is not in its reference was removed",
    "id_removed": "study's name that is not in its reference was removed",
    "no_title": "reference without title or identifier was dropped",
    "unread": "entry of the list that no answer gives",
    "study_count": "number of studies differs from the abstract's",
    "pmid_other_title": "PMID has another title in the paper database",
    "section_not_found": "section was found neither by heading nor by the model",
    "no_answer": "question has no readable answer",
    "unusable": "entries of an answer that are no objects",
    "missing": "field that a truth file needs is empty",
}
"""Meaning of each code, for display."""


@dataclass(frozen=True, slots=True)
class ExtractionFlag:
    """A fault for a person to review."""

    code: FlagCode
    where: str  #: field, reference or section
    detail: str = ""  #: the value in question, or both values


LEAST: Final = 0.90
"""Least partial ratio of rapidfuzz at which a text that is not verbatim is in the
source."""

SHORTEST: Final = 10
"""Fewest characters of a text that may differ from the source; shorter words are part
of many others."""

_WORD: Final = re.compile(r"\w+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_FULL: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteSpan:
    """The place of a text in the document."""

    span: TextSpan  #: in the document
    ratio: float  #: 1.0: verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A document's words in normal form: lower case, with a blank around each."""

    normal: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)  #: of each word in `normal`
    words: tuple[TextSpan, ...] = field(repr=False)  #: of each word in the document

    @classmethod
    def of(cls, document: Document) -> SourceText:
        """Return the words of a document."""
        starts, words, normal_words = [], [], []
        at = 1
        for match in _WORD.finditer(document.text):
            word = match.group().lower()
            starts.append(at)
            words.append(TextSpan(start=match.start(), end=match.end()))
            normal_words.append(word)
            at += len(word) + 1
        normal = f" {' '.join(normal_words)} "
        return cls(normal=normal, starts=tuple(starts), words=tuple(words))

    def find(self, text: str, within: TextSpan) -> QuoteSpan | None:
        """Return where *text* is in a span of the document, if it is there.

        It is found verbatim, or as the most similar part, from 0.90 on. A text without
        a letter, such as a year, is never found, since it proves nothing.
        """
        needle = " ".join(word.lower() for word in _WORD.findall(text))
        first = bisect_right(self.words, within.start, key=attrgetter("end"))
        last = bisect_right(self.words, within.end - 1, key=attrgetter("start"))
        if not _LETTER.search(needle) or first >= last:
            return None
        begin = self.starts[first]
        end = self.starts[last] - 1 if last < len(self.starts) else len(self.normal) - 1
        at = self.normal.find(f" {needle} ", begin - 1, end + 1) + 1
        if at > 0:
            return QuoteSpan(span=self._span(at, at + len(needle)), ratio=1.0)
        # a text longer than the span would match with a part of it, and a short word
        # any longer word that contains it
        if not SHORTEST <= len(needle) <= end - begin:
            return None
        alignment = fuzz.partial_ratio_alignment(
            needle, self.normal[begin:end], score_cutoff=_FULL * LEAST
        )
        if alignment is None:
            return None
        span = self._span(begin + alignment.dest_start, begin + alignment.dest_end)
        return QuoteSpan(span=span, ratio=alignment.score / _FULL)

    def _span(self, begin: int, end: int) -> TextSpan:
        """Map a range of the normal form to the document."""
        first = bisect_right(self.starts, begin) - 1
        last = bisect_right(self.starts, max(end - 1, begin)) - 1
        return TextSpan(start=self.words[first].start, end=self.words[last].end)


_DOI: Final = re.compile(r"10\.\d{4,9}/\S{1,250}")
_PMID: Final = re.compile(r"[1-9]\d{0,7}")
_BREAK: Final = r"(?:[ \t]*\n[ \t]*)?"
"""A line may break anywhere in an identifier; blanks within a line separate words."""

FIRST_YEAR: Final = 1800


def doi_in(doi: str, text: str) -> bool:
    """Return whether a DOI is valid and is completely contained in *text*.

    A resolver or `doi:` before it is ignored, and so is case.
    """
    plain = Normaliser().doi(doi)
    return bool(_DOI.fullmatch(plain)) and _occurs(plain, text, r"(?![\w/-])")


def pmid_in(pmid: str, text: str) -> bool:
    """Return whether a PMID is valid and is in *text* as a separate number."""
    plain = pmid_of(pmid)
    return bool(_PMID.fullmatch(plain)) and _occurs(plain, text, r"(?!\d)")


def year_in(year: str, text: str, latest: int | None) -> int | None:
    """Return a year in *text*, from 1800 to the review's year, or None."""
    if not re.fullmatch(r"[12]\d{3}", year):
        return None
    year_number = int(year)
    is_late = latest is not None and year_number > latest
    if year_number < FIRST_YEAR or is_late or not _occurs(year, text, r"(?!\d)"):
        return None
    return year_number


def _occurs(plain: str, text: str, after: str) -> bool:
    pattern = _BREAK.join(map(re.escape, plain))
    return bool(re.search(rf"(?<![\w.]){pattern}{after}", text, re.IGNORECASE))


CHECKED_HEAD: Final = 20_000
"""Characters that contain the citation and the abstract."""

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
class FieldEvidence:
    """The place in the text of a field of the record."""

    field: str
    quote: str  #: as in the text
    page: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReview:
    """The part of a record that is in the text."""

    meta: ReviewMeta
    evidence: tuple[FieldEvidence, ...] = ()
    flags: tuple[ExtractionFlag, ...] = ()


def checked_record(
    meta: ReviewMeta, document: Document, grounds: SourceText, spans: Sections
) -> CheckedReview:
    """Return the checked record; the question falls back to the objectives section."""
    evidence: list[FieldEvidence] = []
    flags: list[ExtractionFlag] = []

    def grounded(name: str, text: str) -> str:
        match = grounds.find(text, document.whole) if text else None
        if match is not None:
            evidence.append(_evidence(name, document, match))
            return text
        if text:
            flags.append(ExtractionFlag("not_grounded", name, text))
        return ""

    question = grounded("research_question", meta.question)
    if not question and "objectives" in spans:
        question = " ".join(document.piece(spans["objectives"]).split())
    checked_meta = ReviewMeta(
        id=_id(meta.id, document, flags),
        title=grounded("title", meta.title),
        question=question,
        pico=None if meta.pico is None else _pico(meta.pico, grounded),
        inclusion=tuple(
            text
            for criterion in meta.inclusion
            if (text := grounded("inclusion", criterion))
        ),
        exclusion=tuple(
            text
            for criterion in meta.exclusion
            if (text := grounded("exclusion", criterion))
        ),
        conclusion=grounded("authors_conclusion", meta.conclusion),
        date_range=_grounded_years(meta.date_range, document, flags),
    )
    return CheckedReview(
        meta=checked_meta, evidence=tuple(evidence), flags=tuple(flags)
    )


def issue_year(document: Document) -> int | None:
    """Return the year in which the review was issued, if its first pages state it."""
    match = _ISSUED.search(document.text[:CHECKED_HEAD])
    return int(match[1] or match[2]) if match else None


def stated_count(document: Document) -> int | None:
    """Return the number of studies in the abstract, such as `(12 studies ...)`."""
    match = _COUNT.search(document.text[:CHECKED_HEAD])
    if match is None:
        return None
    count_text = (match[1] or match[2]).lower()
    return int(count_text) if count_text.isdigit() else _WORDS.index(count_text) + 1


def _id(stated_id: str, document: Document, flags: list[ExtractionFlag]) -> str:
    """Return the id if it is in the text, else the first id in the text, if any."""
    if stated_id and re.search(rf"(?<!\w){re.escape(stated_id)}(?!\w)", document.text):
        return stated_id
    if stated_id:
        flags.append(ExtractionFlag("not_grounded", "cochrane_id", stated_id))
    match = _ID.search(document.text[:CHECKED_HEAD])
    return match.group() if match else ""


def _pico(pico: QuestionParts, grounded: Callable[[str, str], str]) -> QuestionParts:
    """Return the question's parts that are in the text."""
    parts = asdict(pico).items()
    return QuestionParts(**{name: grounded(f"pico.{name}", it) for name, it in parts})


def _grounded_years(
    years: tuple[int, int] | None, document: Document, flags: list[ExtractionFlag]
) -> tuple[int, int] | None:
    """Return the years if both are in the text."""
    if years is None:
        return None
    latest = issue_year(document)
    is_possible = years[0] >= FIRST_YEAR and (latest is None or years[1] <= latest)
    if is_possible and all(
        re.search(rf"(?<!\d){year}(?!\d)", document.text) for year in years
    ):
        return years
    detail = f"{years[0]} to {years[1]}"
    flags.append(ExtractionFlag("not_grounded", "date_range", detail))
    return None


def _evidence(name: str, document: Document, match: QuoteSpan) -> FieldEvidence:
    return FieldEvidence(
        field=name,
        quote=" ".join(document.piece(match.span).split()),
        page=document.page(match.span.start),
        ratio=match.ratio,
    )


class DatabaseTitles(Protocol):
    """Papers by PMID, as a paper database has them."""

    def by_pmid(self, pmid: str) -> int | None:
        """Return the id of the paper with a PMID, in normal form."""
        ...

    def paper(self, number: int) -> DatabasePaper | None:
        """Return a paper by its id."""
        ...


def other_titles(
    papers: Iterable[TruthPaper], database: DatabaseTitles, rules: MatchingRules
) -> Iterator[ExtractionFlag]:
    """Yield a flag for each paper whose PMID has another title in the database."""
    for paper in papers:
        number = database.by_pmid(paper.pmid) if paper.pmid else None
        database_paper = None if number is None else database.paper(number)
        if database_paper is None or not database_paper.title or not paper.title:
            continue
        title_ratio = ratio(
            rules.normal.title(paper.title),
            rules.normal.title(database_paper.title),
            autojunk=rules.autojunk,
        )
        if title_ratio < rules.title_cutoff:
            yield ExtractionFlag(
                "pmid_other_title",
                paper.name,
                f"{paper.pmid} is {database_paper.title!r}",
            )
