"""Checks references that models read against the text they were read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobs.kit.inputs.documents import Document, TextSpan
from jobs.review_benchmark.data import TruthPaper
from jobs.review_benchmark.extraction.checks import (
    ExtractionFlag,
    FlagCode,
    QuoteSpan,
    SourceText,
    doi_in,
    pmid_in,
    year_in,
)
from jobs.review_benchmark.extraction.parsing import Reference
from jobs.review_benchmark.extraction.review_text import study_name
from jobs.review_benchmark.matching import Normaliser, pmid_of

_ENTRY_CHARS: Final = 80
"""Characters of an entry in a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedReference:
    """A reference that is in the text."""

    paper: TruthPaper
    span: TextSpan  #: of its quote; of its title, if the quote spans more entries
    page: int
    quote: str  #: as in the text
    ratio: float  #: the lower of quote and title; 1.0: verbatim
    reason: str = ""  #: of an excluded one, as in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedReference:
    """A reference that was dropped."""

    reference: Reference
    flag: ExtractionFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReferences:
    """Result of checking the references of some chunks."""

    references: tuple[GroundedReference, ...] = ()  #: in the order of the text
    dropped: tuple[DroppedReference, ...] = ()
    flags: tuple[ExtractionFlag, ...] = ()
    repeated: int = 0  #: references that repeat an earlier one


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceChecker:
    """Checks references against a document."""

    document: Document
    grounds: SourceText
    latest: int | None  #: the review's year, if it states one

    def check(
        self,
        chunks: Iterable[tuple[TextSpan, Sequence[Reference]]],
        entry_spans: Sequence[TextSpan],
        reasons: TextSpan | None = None,
    ) -> CheckedReferences:
        """Check references, and merge repeated ones.

        Args:
            chunks: the place of each, with the references read from it.
            entry_spans: the entries of the list, by headings and borders.
            reasons: the section with reasons of exclusion.
        """
        grounded: list[GroundedReference] = []
        dropped: list[DroppedReference] = []
        flags: list[ExtractionFlag] = []
        entries_by_study = self._entries_by_study(entry_spans)
        for span, references in chunks:
            occurrences: Counter[tuple[str, str]] = Counter()
            for reference in references:
                words = reference.ref_id, reference.quote.lower()
                quote = self._quote(
                    reference, span, entries_by_study, occurrences[words]
                )
                occurrences[words] += 1
                outcome = self._check_reference(reference, quote, entry_spans, reasons)
                if isinstance(outcome, ExtractionFlag):
                    dropped.append(DroppedReference(reference=reference, flag=outcome))
                else:
                    grounded_reference, noted = outcome
                    grounded.append(grounded_reference)
                    flags += noted
        flags += (dropped_reference.flag for dropped_reference in dropped)
        merged = _merged(grounded, entry_spans)
        flags += self._unread(merged, entry_spans)
        return CheckedReferences(
            references=tuple(merged),
            dropped=tuple(dict.fromkeys(dropped)),
            flags=tuple(dict.fromkeys(flags)),
            repeated=len(grounded) - len(merged),
        )

    def _check_reference(
        self,
        reference: Reference,
        quote: QuoteSpan | None,
        entry_spans: Sequence[TextSpan],
        reasons: TextSpan | None,
    ) -> tuple[GroundedReference, list[ExtractionFlag]] | ExtractionFlag:
        if quote is None:
            return ExtractionFlag(
                "not_grounded", reference.name, reference.quote or "(no quote)"
            )
        # the entry of the quote; the title must not be another entry's
        around = _around(quote.span, entry_spans)
        title = self.grounds.find(reference.title, around)
        if reference.title and title is None:
            return ExtractionFlag("not_grounded", reference.name, reference.title)
        # a quote may cover several entries; the title identifies one
        meant = around if title is None else _around(title.span, entry_spans)
        entry_text = self.document.text[meant.start : meant.end]
        paper, flags = _paper(reference, entry_text, self.latest)
        if paper.ref_id and self.grounds.find(paper.ref_id, meant) is None:
            flags.append(ExtractionFlag("id_removed", reference.name, paper.title))
            paper = replace(paper, ref_id="")
        if not (paper.title or paper.doi or paper.pmid):
            return ExtractionFlag("no_title", reference.name)
        span = quote.span if title is None or meant == around else title.span
        grounded_reference = GroundedReference(
            paper=paper,
            span=span,
            page=self.document.page(span.start),
            quote=" ".join(self.document.piece(span).split()),
            ratio=min(quote.ratio, 1.0 if title is None else title.ratio),
            reason=self._reason(reference, reasons, flags),
        )
        return grounded_reference, flags

    def _entries_by_study(
        self, entry_spans: Sequence[TextSpan]
    ) -> Mapping[str, Sequence[TextSpan]]:
        """Return the entries of each study that has a heading."""
        entries_by_study: dict[str, list[TextSpan]] = {}
        for entry in entry_spans:
            if name := study_name(self.document.piece(entry)):
                entries_by_study.setdefault(name, []).append(entry)
        return entries_by_study

    def _quote(
        self,
        reference: Reference,
        span: TextSpan,
        entries_by_study: Mapping[str, Sequence[TextSpan]],
        before: int,
    ) -> QuoteSpan | None:
        """Return the place of a quote: below its study's name, else in its chunk.

        A review may list one paper under two studies, in the same words, and even under
        one name: a repeated reference means the next entry.
        """
        study_entries = [
            entry
            for entry in entries_by_study.get(reference.ref_id, ())
            if entry.overlaps(span)
        ]
        order = (*study_entries[before:], *study_entries[:before], span)
        matches = (
            self.grounds.find(reference.quote, candidate_span)
            for candidate_span in order
        )
        return next(filter(None, matches), None)

    def _reason(
        self,
        reference: Reference,
        reasons: TextSpan | None,
        flags: list[ExtractionFlag],
    ) -> str:
        if not reference.reason:
            return ""
        if reasons and self.grounds.find(reference.reason, reasons):
            return reference.reason
        flags.append(ExtractionFlag("not_grounded", reference.name, reference.reason))
        return ""

    def _unread(
        self, references: Sequence[GroundedReference], entry_spans: Sequence[TextSpan]
    ) -> Iterator[ExtractionFlag]:
        """Yield a flag for each entry of the list without a reference."""
        for span in entry_spans:
            if not any(reference.span.overlaps(span) for reference in references):
                first = self.document.piece(span).split("\n")[0]
                page = self.document.page(span.start)
                yield ExtractionFlag("unread", first[:_ENTRY_CHARS], f"page {page}")


def _around(quote: TextSpan, entry_spans: Sequence[TextSpan]) -> TextSpan:
    """Return the entries that a quote overlaps, from border to border."""
    overlapping = [span for span in entry_spans if span.overlaps(quote)]
    if not overlapping:
        return quote
    return TextSpan(start=overlapping[0].start, end=overlapping[-1].end)


def _paper(
    reference: Reference, text: str, latest: int | None
) -> tuple[TruthPaper, list[ExtractionFlag]]:
    """Return a reference's truth paper, without the values that *text* lacks."""
    flags: list[ExtractionFlag] = []

    def removed(code: FlagCode, value: str) -> None:
        flags.append(ExtractionFlag(code, reference.name, value))

    doi = Normaliser().doi(reference.doi)
    if doi and not doi_in(doi, text):
        removed("doi_removed", doi)
        doi = ""
    pmid = pmid_of(reference.pmid)
    if reference.pmid and not pmid_in(reference.pmid, text):
        removed("pmid_removed", reference.pmid)
        pmid = ""
    year = year_in(reference.year, text, latest) if reference.year else None
    if reference.year and year is None:
        removed("year_removed", reference.year)
    paper = TruthPaper(
        pmid=pmid,
        doi=doi,
        title=reference.title,
        authors=reference.authors,
        year=year,
        ref_id=reference.ref_id,
        further={"journal": reference.journal} if reference.journal else {},
    )
    return paper, flags


def _merged(
    references: Sequence[GroundedReference], entry_spans: Sequence[TextSpan]
) -> list[GroundedReference]:
    """Merge references to the same paper of an entry: by PMID, by DOI, by title.

    First values win, and blanks are filled. Papers with different PMIDs or years remain
    separate, even if other values match, and so does one that the review lists under
    two studies.
    """
    normal = Normaliser()
    merged: list[GroundedReference] = []
    index_by_key: dict[tuple[int, str, str], int] = {}
    for reference in sorted(
        references, key=lambda reference: (reference.span.start, reference.span.end)
    ):
        entry = _around(reference.span, entry_spans).start if entry_spans else 0
        values = {
            "pmid": reference.paper.pmid,
            "doi": reference.paper.doi,
            "title": normal.title(reference.paper.title),
        }
        keys = [(entry, name, value) for name, value in values.items() if value]
        index = next((index_by_key[key] for key in keys if key in index_by_key), None)
        if index is not None and _differ(merged[index].paper, reference.paper):
            index = None
        if index is None:
            index = len(merged)
            merged.append(reference)
        else:
            merged[index] = replace(
                merged[index], paper=_filled(merged[index].paper, reference.paper)
            )
        for key in keys:
            index_by_key.setdefault(key, index)
    return merged


def _differ(first: TruthPaper, second: TruthPaper) -> bool:
    return any(
        value and other and value != other
        for value, other in ((first.pmid, second.pmid), (first.year, second.year))
    )


def _filled(first: TruthPaper, second: TruthPaper) -> TruthPaper:
    return replace(
        first,
        pmid=first.pmid or second.pmid,
        doi=first.doi or second.doi,
        title=first.title or second.title,
        authors=first.authors or second.authors,
        year=first.year if first.year is not None else second.year,
        ref_id=first.ref_id or second.ref_id,
        further={**second.further, **first.further},
    )
