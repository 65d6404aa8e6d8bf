"""Reads a document (PDF, text or XML) as one clean text with pages and sections.

Ligatures become letters, soft and line-end hyphens join what they part, and the lines
that a page's head or foot repeats are left out.

A PDF is read in a process with limits, which is killed when it hangs. XML is read as it
is parsed, so depth and size of the file cost nothing but time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jobs.kit.inputs.docling import docling_paper
from jobs.kit.inputs.marked_text import (
    HEADING,
    PAGE,
    UNPRINTED,
    MarkedText,
    markdown_text,
    unmarked,
)
from jobs.kit.inputs.markup import html_paper, xml_paper, xml_text
from jobs.kit.inputs.pdf import MAX_PAGES, paper_pages, pdf_pages
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError
from runner.messages import wellformed


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSpan:
    """A piece of a document's text."""

    start: int
    end: int  #: exclusive

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and self.start <= offset < self.end

    def overlaps(self, other: TextSpan) -> bool:
        """Whether a character stands in both."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSection:
    """The beginning of a section; it ends where the next one begins."""

    title: str  #: "": text after a section that belongs to none
    start: int  #: offset of the heading, or of the text if the heading is not printed
    level: int = 1  #: 1 is the outermost


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPlace:
    """The place of a quote, as a reader finds it in the original file."""

    page: int | None = None  #: from 1; None: the file has no pages
    sections: tuple[str, ...] = ()  #: titles, the outermost first

    @property
    def section(self) -> str:
        """The titles as one text, such as `Methods > Participants`."""
        return " > ".join(self.sections)

    def __str__(self) -> str:
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(filter(None, (page, self.section)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text, cleaned; all offsets are into it."""

    name: str  #: of the file
    text: str
    starts: tuple[int, ...]  #: where each page begins, ascending from 0
    sections: tuple[DocumentSection, ...] = ()  #: ascending by offset
    is_paged: bool = True  #: False: the file has no pages, `starts` is (0,)
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Metadata in the file: `title`, `abstract`, `doi`, `journal`, `year`,
    as far as present."""

    @property
    def key(self) -> str:
        """Key in tasks: the same whether it is read as PDF or as text."""
        return Path(self.name).stem

    def page(self, offset: int) -> int:
        """The page of a character, from 1."""
        return bisect_right(self.starts, offset)

    def place(self, offset: int) -> DocumentPlace:
        """Returns page and sections of a character."""
        titles: list[str] = []
        index = bisect_right(self.sections, offset, key=lambda section: section.start)
        level = 1 << 30
        for section in reversed(self.sections[:index]):
            if section.level < level:
                level = section.level
                titles.append(section.title)
            if level <= 1:
                break
        return DocumentPlace(
            page=self.page(offset) if self.is_paged else None,
            sections=tuple(filter(None, reversed(titles))),
        )

    def piece(self, span: TextSpan) -> str:
        """The text of a span, without outer blanks."""
        return self.text[span.start : span.end].strip()

    @property
    def whole(self) -> TextSpan:
        """All of it."""
        return TextSpan(start=0, end=len(self.text))


EDGE = 2
"""Lines at a page's head and foot that may be running titles or page numbers."""

LEAST_PAGES = 3
"""Fewer pages repeat nothing that could be told from text."""

_REPLACEMENTS = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\u00a0": " ",
        "\u00ad": "",
        "\u2010": "-",
        "\u2011": "-",
        # what PDFium makes of a hyphen at the end of a line, and of the line's end
        "\x02": "-\n",
        "\ufffe": "-\n",
    }
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]")
_BREAK = re.compile(
    # whole words alone: the hyphen of a DOI or an address is its own
    r"(?<![^\s(])([^\W\d_]+)-([ \t]*[\n\f]\s*)([^\W\d_]+)"
)
_HYPHENED = re.compile(r"(?<![^\W\d_])[^\W\d_]+-[^\W\d_]+")
_NUMBER = re.compile(r"[0-9]+")


_MARK = re.compile(
    f"{PAGE}|(?P<level>{HEADING}+)"
    f"(?:(?P<unprinted>[^{HEADING}{UNPRINTED}\n]*){UNPRINTED}"
    f"|(?=(?P<printed>[^{HEADING}{UNPRINTED}{PAGE}\n]*)))"
)


def cleaned_document(
    name: str,
    pages: Sequence[str],
    *,
    is_paged: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> Document:
    """The document that pages of raw text make up.

    Args:
        name: of its file.
        pages: raw text, in which marks may precede headings (see `markup`).
        is_paged: whether the pages are those of the file.
        metadata: what the file says about itself.
    """
    text = PAGE.join(_without_running([_plain(page) for page in pages]))
    hyphened = set(_HYPHENED.findall(text.lower()))

    def joined(match: re.Match[str]) -> str:
        first, between, second = match.groups()
        # a name has its hyphen by right, and so has a word that has it within a line
        has_hyphen = second[0].isupper() or f"{first}-{second}".lower() in hyphened
        pages = PAGE * between.count(PAGE)
        return f"{first}{'-' if has_hyphen else ''}{second}{pages}"

    return _unmark(
        Document(
            name=name,
            text=_BREAK.sub(joined, text),
            starts=(0,),
            is_paged=is_paged,
            metadata=metadata or {},
        )
    )


def _unmark(document: Document) -> Document:
    """Turns marks in the text into offsets of pages and sections."""
    pieces: list[str] = []
    starts, sections = [0], list[DocumentSection]()
    end = length = 0
    marked = document.text
    for match in _MARK.finditer(marked):
        pieces.append(marked[end : match.start()])
        length += len(pieces[-1])
        end = match.end()
        if match["level"] is None:
            pieces.append("\n")
            length += 1
            starts.append(length)
            continue
        title = (match["unprinted"] or match["printed"] or "").strip()
        level = len(match["level"])
        if sections and sections[-1].start == length and sections[-1].level >= level:
            # the same section, whose heading is printed after all, or an empty one
            sections.pop()
        sections.append(
            DocumentSection(
                title=title.strip(), start=length, level=len(match["level"])
            )
        )
    pieces.append(marked[end:])
    return replace(
        document,
        text="".join(pieces),
        starts=tuple(starts),
        sections=tuple(sections),
    )


def _with_title(document: Document) -> Document:
    """Takes the only heading of the first level as title, if it comes first."""
    first, *others = document.sections or (None,)
    if first is None or first.level != 1 or not others:
        return document
    if any(section.level == 1 for section in others):
        return document
    return replace(
        document,
        metadata={"title": first.title, **document.metadata},
        sections=tuple(replace(section, level=section.level - 1) for section in others),
    )


def _plain(page: str) -> str:
    lines = page.replace("\r\n", "\n").replace("\r", "\n").replace(PAGE, "\n")
    lines = wellformed(_CONTROL.sub("", lines.translate(_REPLACEMENTS)))
    return "\n".join(line.rstrip() for line in lines.split("\n")).strip("\n")


def _without_running(pages: list[str]) -> list[str]:
    """Pages without the lines that half of them have at an edge, numbers aside."""
    seen = Counter(line for page in pages for line in set(map(_shape, _edges(page))))
    least = max(LEAST_PAGES, (len(pages) + 1) // 2)
    running = {line for line, n in seen.items() if n >= least}
    return [_stripped(page, running) for page in pages]


def _edges(page: str) -> list[str]:
    lines = [line for line in page.split("\n") if line.strip()]
    return [*lines[:EDGE], *lines[-EDGE:]]


def _stripped(page: str, running: set[str]) -> str:
    lines = page.split("\n")
    filled = [index for index, line in enumerate(lines) if line.strip()]
    edges = {*filled[:EDGE], *filled[-EDGE:]}
    return "\n".join(
        line
        for index, line in enumerate(lines)
        if index not in edges or _shape(line) not in running
    ).strip("\n")


def _shape(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()))


MOST_BYTES: Final = 200 << 20


def read_document(path: Path) -> Document:
    """The text of a document.

    Raises:
        DatasetError: the file is missing, of another kind, too large, or not to be
            read.
    """
    _check_size(path, "a .pdf, .txt or .xml")
    match path.suffix.lower():
        case ".pdf":
            pages = list(map(unmarked, pdf_pages(path)))
        case ".txt":
            pages = list(map(unmarked, _text(path).split(PAGE)))
        case ".xml":
            pages = [xml_text(path)]
        case suffix:
            raise DatasetError(
                f"{path.name}: {suffix or 'a name without an end'} is not read (give a "
                ".pdf, .txt or .xml)."
            )
    document = cleaned_document(path.name, pages)
    if not document.text.strip():
        raise DatasetError(f"{path.name}: it holds no text (name another file).")
    return document


def _plain_text(path: Path) -> MarkedText:
    text = _text(path)
    return MarkedText(
        pages=tuple(map(unmarked, text.split(PAGE))), is_paged=PAGE in text
    )


_READERS: Final[Mapping[str, Callable[[Path], MarkedText]]] = {
    **dict.fromkeys((".txt", ".text"), _plain_text),
    **dict.fromkeys((".md", ".markdown"), lambda path: markdown_text(_text(path))),
    **dict.fromkeys((".xml", ".nxml", ".jats", ".tei"), xml_paper),
    **dict.fromkeys((".html", ".htm", ".xhtml"), html_paper),
    ".json": docling_paper,
}

SUFFIXES: Final = (".pdf", *_READERS)
"""Files that `read_paper` reads."""


def read_paper(
    path: Path,
    findings: InputFindings,
    *,
    max_pages: int = MAX_PAGES,
    vision: bool = False,
) -> Document:
    """Reads a paper in any format, with sections and what the file says about itself.

    Args:
        path: its file; the suffix is one of `SUFFIXES`.
        findings: learns of pages without text and of scrambled columns.
        max_pages: of a PDF; a longer one is an error.
        vision: whether the pages are also shown to a model, so that a PDF without text
            is a finding and not an error.

    Raises:
        DatasetError: the file is missing, of another kind, too large, empty, encrypted
            or broken.
    """
    kinds = f"a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    _check_size(path, kinds)
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        pages = paper_pages(path, findings, max_pages=max_pages, vision=vision)
        document = cleaned_document(path.name, list(map(unmarked, pages)))
    elif suffix in _READERS:
        text = _READERS[suffix](path)
        document = cleaned_document(
            path.name, text.pages, is_paged=text.is_paged, metadata=text.metadata
        )
        if text.heads_with_title:
            document = _with_title(document)
    else:
        raise DatasetError(
            f"{path.name}: {suffix or 'a name without an end'} is not read (give "
            f"{kinds})."
        )
    if not document.text.strip() and not vision:
        raise DatasetError(f"{path.name}: it holds no text (name another file).")
    return document


def text_document(name: str, text: str) -> Document:
    """Returns text that is in no file of its own as a document, unchanged."""
    return Document(name=name, text=text, starts=(0,), is_paged=False)


def _check_size(path: Path, expected: str) -> None:
    if not path.is_file():
        raise DatasetError(f"{path}: no such file (name {expected}).")
    if path.stat().st_size > MOST_BYTES:
        raise DatasetError(
            f"{path.name}: it has more than {MOST_BYTES >> 20} MB (keep "
            "only what is to be read)."
        )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name}: byte {error.start} is not UTF-8 (save it as UTF-8)."
        ) from None
