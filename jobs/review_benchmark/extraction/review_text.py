"""Loads the text of a review and finds its sections and references without a model.

A heading is a line whose letters are those of a known one; blanks, numbers and marks in
it are ignored, since top headings are printed with spaced letters. An entry of a
Cochrane review is a study, headed by its name and year, with one or more publications;
in other reviews it is a numbered reference, a paragraph or a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from jobs.kit.inputs.documents import Document, TextSpan, read_document
from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import papers
from jobs.review_benchmark.prompts import WORDING
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_truth
from runner.errors import UsageError
from runner.job import InputFile
from runner.prompts import PromptBook
from runner.scorecard import Finding

Section: TypeAlias = Literal[
    "objectives", "criteria", "conclusions", "included", "excluded", "reasons"
]
Sections: TypeAlias = Mapping[Section, TextSpan]

NEEDED: Final[tuple[Section, ...]] = (
    "objectives",
    "criteria",
    "conclusions",
    "included",
)
"""Sections that a model locates if no heading marks them."""

_STARTS: Final[Mapping[Section, tuple[str, ...]]] = {
    "objectives": ("Objectives", "Objective"),
    "criteria": (
        "Criteria for considering studies for this review",
        "Criteria for considering studies",
    ),
    "conclusions": ("Authors' conclusions", "Authors' conclusion"),
    "included": ("References to studies included in this review",),
    "excluded": ("References to studies excluded from this review",),
    "reasons": ("Characteristics of excluded studies",),
}
_INNER: Final[Mapping[Section, tuple[str, ...]]] = {
    "criteria": (
        "Types of studies",
        "Types of participants",
        "Types of interventions",
        "Types of outcome measures",
        "Primary outcomes",
        "Secondary outcomes",
    ),
    "conclusions": ("Implications for practice", "Implications for research"),
}
"""Headings within a section."""

_OTHERS: Final = (
    "Abstract",
    "Background",
    "Methods",
    "Search methods",
    "Search methods for identification of studies",
    "Selection criteria",
    "Data collection and analysis",
    "Main results",
    "Plain language summary",
    "Summary of findings",
    "Results",
    "Description of studies",
    "Risk of bias in included studies",
    "Effects of interventions",
    "Discussion",
    "Acknowledgements",
    "References",
    "References to studies awaiting assessment",
    "References to ongoing studies",
    "Additional references",
    "References to other published versions of this review",
    "Characteristics of studies",
    "Characteristics of included studies",
    "Characteristics of studies awaiting assessment",
    "Characteristics of ongoing studies",
    "Data and analyses",
    "Appendices",
    "What's new",
    "History",
    "Contributions of authors",
    "Declarations of interest",
    "Sources of support",
    "Index terms",
)
"""Headings that only end a section."""

LONGEST: Final = 100
"""Most characters of a heading's line, spaced letters included."""

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_ORDERED: Final = re.compile(r"\[ordered by .*|\.\s?\.\s?\..*", re.IGNORECASE)
"""Text after a heading: the order of a table, or the dots of a table of contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionLine:
    """A line of a document."""

    text: str  #: without outer blanks
    span: TextSpan  #: with its line break


def lines(document: Document) -> Iterator[SectionLine]:
    """Yield the lines of a document, blank ones included."""
    at = 0
    for raw in document.text.splitlines(keepends=True):
        span = TextSpan(start=at, end=at + len(raw))
        yield SectionLine(text=raw.strip(), span=span)
        at = span.end


def sections(document: Document) -> dict[Section, TextSpan]:
    """Return the place of each section; one without a heading is left out.

    A heading may occur several times: in the abstract, in the contents, and at the
    section. The longest section counts.
    """
    headings = [
        (key, line.span)
        for line in lines(document)
        if (key := _key(line.text)) in _HEADING_KEYS
    ]
    spans: dict[Section, TextSpan] = {}
    for name, titles in _STARTS.items():
        starts = set(map(_letters, titles))
        inner = set(map(_letters, _INNER.get(name, ())))
        for index, (key, heading_span) in enumerate(headings):
            if key not in starts:
                continue
            later = (
                span.start
                for other, span in headings[index + 1 :]
                if other not in inner
            )
            end = next(later, len(document.text))
            span = TextSpan(start=heading_span.end, end=end)
            if document.piece(span) and len(span) > len(spans.get(name, ())):
                spans[name] = span
    return spans


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text)).lower()


def _key(line: str) -> str:
    if len(line) > LONGEST or not line or line[0].islower():
        return ""
    return _letters(_ORDERED.sub("", line))


_HEADING_KEYS: Final = frozenset(
    _letters(title)
    for titles in (*_STARTS.values(), *_INNER.values(), _OTHERS)
    for title in titles
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionInputs:
    """All inputs of a run that extracts a review."""

    settings: ReviewBenchmarkSettings
    document: Document
    sections: Sections  #: those that a heading marks
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    database: PaperDatabase | None = None  #: its titles verify the PMIDs
    against: tuple[Review, ...] = ()  #: truth for scoring the extraction
    findings: tuple[Finding, ...] = ()

    @property
    def missing_sections(self) -> tuple[Section, ...]:
        """Sections that a model must locate."""
        return tuple(name for name in NEEDED if name not in self.sections)


def inputs(settings: ReviewBenchmarkSettings) -> tuple[InputFile, ...]:
    """Return the files and folders that `load` reads under these settings."""
    files = (
        (name, getattr(settings, name)) for name in ("extract", "against", "prompts")
    )
    input_files = [InputFile(setting=name, path=path) for name, path in files if path]
    if settings.database is not None:
        input_files.append(papers(settings.database))
    return tuple(input_files)


def load(settings: ReviewBenchmarkSettings) -> ExtractionInputs:
    """Read the review and find its sections.

    Raises:
        DatasetError: an input is invalid.
        UsageError: no file is named.
    """
    if settings.extract is None:
        raise UsageError("Name the review: extract FILE, a .pdf, .txt or .xml.")
    findings = InputFindings()
    document = read_document(settings.extract)
    return ExtractionInputs(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        document=document,
        sections=sections(document),
        database=None
        if settings.database is None
        else PaperDatabase(settings.database),
        against=()
        if settings.against is None
        else read_truth(settings.against, findings),
        findings=findings.findings(),
    )


OVERLAP: Final = 2
"""Entries that a chunk shares with the previous one."""

STUDIES: Final = (
    re.compile(
        r"^[ \t]*(?P<id>[^\W_][^\n{}]{0,60}?)[ \t]*\{[^}\n]*\}[ \t]*$", re.MULTILINE
    ),
    re.compile(
        r"^[ \t]*(?P<id>[^\W\d_][^\n{}.,;:]{0,40}?[ ](?:18|19|20)\d\d[a-z]?)[ \t]*$",
        re.MULTILINE,
    ),
)
"""Heading of a study: `Ahn 2008 {published data only}`, or without the braces."""

BORDERS: Final = (
    *STUDIES,
    re.compile(r"^[ \t]*\[?\d{1,4}[.\])][ \t]+(?=\S)", re.MULTILINE),
    re.compile(r"(?<=\n)[ \t]*\n(?=[ \t]*\S)"),
    re.compile(r"^(?=[^\W\d_][\w'-]+ [A-Z]{1,3}[,.:])", re.MULTILINE),
)
"""Patterns of an entry's beginning, in order of preference. A pattern of studies
applies if it matches at all, any other if it matches more than once."""

PUBLICATION: Final = re.compile(
    r"(?<![^.\])}\n]\n)^[ \t]*(?:\*[ \t]*)?(?=[^\W\d_][\w' -]{0,40} [A-Z]{1,3}[,.])",
    re.MULTILINE,
)
"""Beginning of a reference to a publication: a star or its first author, after a
complete line; a list of authors may continue on the next line."""


def entries(document: Document, span: TextSpan) -> tuple[TextSpan, ...]:
    """Return the entries of a list of references, in order; at least one."""
    for border in BORDERS:
        is_study = border in STUDIES
        starts = [
            match.start()
            for match in border.finditer(document.text, span.start, span.end)
        ]
        if starts and not is_study:
            # the text before the first border is an entry too
            before = TextSpan(start=span.start, end=starts[0])
            starts[:0] = [span.start] if document.piece(before) else []
        if len(starts) > 1 or (starts and is_study):
            ends = (*starts[1:], span.end)
            return tuple(
                TextSpan(start=start, end=end)
                for start, end in zip(starts, ends, strict=True)
            )
    return (span,)


def study_name(entry: str) -> str:
    """Return the name that heads an entry, such as `Ahn 2008`, or an empty text."""
    matches = (border.match(entry) for border in STUDIES)
    return next((head["id"].strip() for head in matches if head), "")


def chunks(
    document: Document, entry_spans: tuple[TextSpan, ...], size: int
) -> tuple[TextSpan, ...]:
    """Return spans of about *size* publications that end at the borders of entries.

    Each one but the first begins with the last entries of the previous one.
    """
    chunk_spans = []
    begin = end = 0
    while end < len(entry_spans):
        publication_count = 0
        end = begin
        while end < len(entry_spans) and (end == begin or publication_count < size):
            publication_count += _publications(document, entry_spans[end])
            end += 1
        chunk_spans.append(
            TextSpan(start=entry_spans[begin].start, end=entry_spans[end - 1].end)
        )
        begin = max(end - OVERLAP, begin + 1)
    return tuple(chunk_spans)


def _publications(document: Document, entry: TextSpan) -> int:
    """Return the estimated number of publications of an entry; at least one."""
    return max(1, len(PUBLICATION.findall(document.text, entry.start, entry.end)))
