"""Reads the text of XML and HTML, with marks where pages and sections begin.

JATS, TEI (as GROBID writes it) and HTML are recognised; of any other XML all text is
read. A file is read as it is parsed, so its depth and size cost nothing but time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import ParseError

from jobs.kit.inputs.marked_text import (
    HEADING,
    PAGE,
    UNPRINTED,
    MarkedText,
    section_mark,
    unmarked,
)
from runner.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkupFormat:
    """Elements of a format and what they mean for its text."""

    inline: frozenset[str]  #: end neither a line nor a word
    one_line: frozenset[str]  #: are one line, whatever they contain
    cells: frozenset[str] = frozenset()  #: of a table's row, which is one line
    spaced: frozenset[str] = frozenset()  #: end a word, but no line
    skipped: frozenset[str] = frozenset()  #: are no part of the text
    nesting: frozenset[str] = frozenset()  #: contain a section; the level counts them
    headings: frozenset[str] = frozenset()  #: head the `nesting` element around them
    levels: Mapping[str, int] = field(default_factory=dict)  #: headings of fixed level
    unprinted: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Elements that begin a section without a heading: its level and title."""
    metadata: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Names of metadata by the innermost elements around it; the first one counts."""
    only: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Attribute and value, in lower case, that a piece of metadata must have."""


_PHRASES: Final = frozenset(
    {"italic", "bold", "sup", "sub", "sc", "underline", "xref", "ext-link", "styled"}
    | {"i", "b", "em", "strong", "span", "a", "u", "named-content", "monospace"}
)
_MATHS: Final = frozenset(
    {"math", "mrow", "mi", "mo", "mn", "mtext", "msup", "msub", "msubsup", "mfrac"}
    | {"msqrt", "mroot", "mover", "munder", "munderover", "mfenced", "mspace", "mstyle"}
    | {"semantics", "mpadded", "inline-formula", "alternatives", "styled-content"}
)
_REFERENCES: Final = frozenset(
    {"ref", "mixed-citation", "element-citation", "citation"}
)

ANY_XML: Final = MarkupFormat(inline=_PHRASES, one_line=_REFERENCES)
"""All text of a file."""

JATS: Final = MarkupFormat(
    inline=_PHRASES | _MATHS | {"email", "uri", "roman", "sans-serif", "strike"},
    one_line=_REFERENCES | {"contrib", "aff", "kwd-group"},
    spaced=frozenset({"label"}),
    cells=frozenset({"td", "th"}),
    skipped=frozenset(
        {"journal-meta", "article-id", "article-categories", "pub-date", "volume"}
        | {"issue", "fpage", "lpage", "elocation-id", "history", "permissions"}
        | {"counts", "custom-meta-group", "self-uri", "processing-meta", "tex-math"}
        | {"related-article", "pub-history", "contrib-id", "object-id", "issue-id"}
        | {"article-version", "article-version-alternatives", "annotation"}
    ),
    nesting=frozenset({"sec", "abstract", "trans-abstract", "app", "ref-list", "ack"}),
    headings=frozenset({"title"}),
    unprinted={
        "abstract": (1, "Abstract"),
        "trans-abstract": (1, "Abstract"),
        "body": (1, ""),
        "back": (1, ""),
        "ack": (1, "Acknowledgements"),
        "ref-list": (1, "References"),
    },
    metadata={
        ("title-group", "article-title"): "title",
        ("article-meta", "abstract"): "abstract",
        ("journal-title",): "journal",
        ("article-meta", "pub-date", "year"): "year",
        ("article-meta", "article-id"): "doi",
    },
    only={"doi": ("pub-id-type", "doi")},
)

TEI: Final = MarkupFormat(
    inline=_PHRASES | _MATHS | {"hi", "ref", "term", "emph"},
    one_line=frozenset({"biblstruct", "bibl"}),
    spaced=frozenset({"s"}),
    cells=frozenset({"cell"}),
    skipped=frozenset(
        {"publicationstmt", "sourcedesc", "encodingdesc", "revisiondesc", "extent"}
        | {"langusage", "textclass", "editionstmt", "seriesstmt", "notesstmt"}
    ),
    nesting=frozenset({"div", "abstract", "listbibl"}),
    headings=frozenset({"head"}),
    unprinted={
        "abstract": (1, "Abstract"),
        "body": (1, ""),
        "back": (1, ""),
        "listbibl": (1, "References"),
    },
    metadata={
        ("titlestmt", "title"): "title",
        ("profiledesc", "abstract"): "abstract",
        ("monogr", "title"): "journal",
        ("idno",): "doi",
    },
    only={"doi": ("type", "doi")},
)

HTML: Final = MarkupFormat(
    inline=_PHRASES
    | _MATHS
    | {"code", "small", "mark", "cite", "q", "abbr", "time", "img", "wbr"}
    | {
        "label",
        "font",
        "kbd",
        "var",
        "samp",
        "del",
        "ins",
        "s",
        "strike",
        "dfn",
        "data",
        "tt",
    },
    one_line=frozenset(),
    cells=frozenset({"td", "th"}),
    skipped=frozenset(
        {"head", "script", "style", "noscript", "template", "nav", "svg", "button"}
        | {"select", "iframe", "object", "textarea", "annotation"}
    ),
    levels={f"h{level}": level for level in range(1, 7)},
    metadata={("title",): "title"},
)

_ROOTS: Final[Mapping[str, MarkupFormat]] = {"article": JATS, "tei": TEI}
"""Formats of XML by the root element."""

ROWS: Final = frozenset({"tr", "row"})
"""Elements that are a row of a table, in any format."""

_UNPRINTED_TITLE: Final = re.compile(f"{HEADING}+[^{HEADING}{UNPRINTED}]*{UNPRINTED}")
_LONE_MARK: Final = re.compile(f"({_UNPRINTED_TITLE.pattern})\n")
_BLANKS: Final = re.compile(rf"[^\S{PAGE}]+")
_COORDS: Final = re.compile(r"([0-9]{1,4}),")
"""GROBID's coordinates of an element: the page, from 1, and a box."""


_META_NAMES: Final[Mapping[str, str]] = {
    "citation_title": "title",
    "citation_doi": "doi",
    "citation_journal_title": "journal",
    "citation_abstract": "abstract",
}


class _Reader:
    """Collects the text that a parser reports, element by element."""

    def __init__(self, form: MarkupFormat | None) -> None:
        self._form = form  # None: the root decides
        self._open: list[str] = []
        self._pieces: list[str] = []
        self._one_line = 0  # open elements, from one that is a line on
        self._skipped = 0  # open elements, from one that is skipped on
        self._level = 0
        self._page = 1
        self._is_paged = False
        self._cells = 0  # of the row that is open
        self._captures: dict[str, tuple[int, list[str]]] = {}
        self._metadata: dict[str, str] = {}

    def start(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        name = _local(tag)
        if self._form is None:
            self._form = _ROOTS.get(name, ANY_XML)
        form = self._form
        self._open.append(name)
        self._begin_captures(attributes)
        if self._skipped or name in form.skipped:
            self._skipped += 1
            return
        if not self._one_line:
            self._turn_page(name, attributes)
        self._add(self._gap(name))
        if name in form.cells:
            self._add(" | " if self._cells else "")
            self._cells += 1
        if self._one_line or name in form.one_line or name in form.cells:
            self._one_line += 1
            return
        if name in ROWS:
            self._cells = 0
        self._begin_section(name, attributes)

    def _begin_section(self, name: str, attributes: Mapping[str, str | None]) -> None:
        """Marks a heading, or a section that has none."""
        form = self._form or ANY_XML
        if name in form.unprinted:
            self._add(section_mark(*form.unprinted[name]) + "\n")
        if name in form.nesting:
            self._level += 1
        elif name in form.levels:
            self._add(section_mark(form.levels[name]))
        elif name in form.headings and self._open[-2] in form.nesting:
            # GROBID nests no sections, but numbers them, such as 2.1
            number = (attributes.get("n") or "").strip(".")
            self._add(section_mark(max(self._level, min(number.count(".") + 1, 6))))

    def data(self, text: str) -> None:
        text = unmarked(text.replace("\n", " "))
        if self._skipped:
            self._capture(text)
        else:
            self._add(text)

    def end(self, tag: str) -> None:
        name = _local(tag)
        form = self._form or ANY_XML
        if self._skipped:
            self._skipped -= 1
        else:
            if self._one_line:
                self._one_line -= 1
            elif name in form.nesting:
                self._level -= 1
            self._add(self._gap(name))
        self._end_captures()
        self._open.pop()

    def close(self) -> None:
        """Nothing is held back."""

    def describe(self, attributes: Mapping[str, str | None]) -> None:
        """Takes metadata from a `meta` element, as pages of publishers have it."""
        name = _META_NAMES.get((attributes.get("name") or "").lower())
        if name is not None and (text := _lines(attributes.get("content") or "")):
            self._metadata[name] = text

    def result(self) -> MarkedText:
        """Returns what was read."""
        return MarkedText(
            pages=tuple(_lines("".join(self._pieces)).split(PAGE)),
            metadata={name: text for name, text in self._metadata.items() if text},
            is_paged=self._is_paged,
            heads_with_title=self._form is HTML,
        )

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        if self._captures:
            self._capture(_UNPRINTED_TITLE.sub("", piece).replace(HEADING, ""))

    def _gap(self, name: str) -> str:
        """Returns what separates the text before and after a tag."""
        form = self._form or ANY_XML
        if name in form.inline:
            return ""
        return " " if self._one_line or name in form.cells | form.spaced else "\n"

    def _turn_page(self, name: str, attributes: Mapping[str, str | None]) -> None:
        """Begins a page at a page break, or where coordinates name a later page."""
        page, coordinates = self._page, attributes.get("coords") or ""
        if self._form is TEI and name == "pb":
            # a file may begin with the break before its first page
            page += self._is_paged or any(map(str.strip, self._pieces))
            self._is_paged = True
        elif self._form is TEI and (match := _COORDS.match(coordinates)):
            self._is_paged = True
            page = int(match[1])
        if page > self._page:
            self._pieces.append(f"\n{PAGE * (page - self._page)}")
            self._page = page

    def _begin_captures(self, attributes: Mapping[str, str | None]) -> None:
        form = self._form or ANY_XML
        for path, name in form.metadata.items():
            if name in self._metadata or tuple(self._open[-len(path) :]) != path:
                continue
            attribute, value = form.only.get(name, ("", ""))
            if not attribute or (attributes.get(attribute) or "").lower() == value:
                self._captures.setdefault(name, (len(self._open), []))

    def _capture(self, text: str) -> None:
        for _, pieces in self._captures.values():
            pieces.append(text)

    def _end_captures(self) -> None:
        for name, (depth, pieces) in list(self._captures.items()):
            if depth == len(self._open):
                self._metadata.setdefault(name, _lines("".join(pieces)))
                del self._captures[name]


def _lines(text: str) -> str:
    """Returns text without blank lines and repeated blanks.

    An unprinted title stays with the line that it precedes.
    """
    lines = filter(
        None, (_BLANKS.sub(" ", line).strip(" ") for line in text.split("\n"))
    )
    return _LONE_MARK.sub(r"\1", "\n".join(lines))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].lower()


def xml_text(path: Path) -> str:
    """Reads all text of an XML file, in whatever format.

    Raises:
        DatasetError: it is not well formed, or declares entities or attributes.
    """
    return "\f".join(_parsed(path, _Reader(ANY_XML)).pages)


def xml_paper(path: Path) -> MarkedText:
    """Reads a paper in JATS or TEI; of other XML, all text.

    Raises:
        DatasetError: it is not well formed, or declares entities or attributes.
    """
    return _parsed(path, _Reader(None))


_CHUNK: Final = 1 << 16


def _parsed(path: Path, reader: _Reader) -> MarkedText:
    # brings a parser, and other kinds of documents need none
    from defusedxml.common import DefusedXmlException  # noqa: PLC0415 - see above
    from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415 - see above

    parser = DefusedXMLParser(target=reader)
    parser.parser.StartDoctypeDeclHandler = _guarded
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                parser.feed(chunk)
        parser.close()
    except ParseError as error:
        line, column = error.position
        raise DatasetError(
            f"{path.name} line {line}, column {column}: it is not well-formed XML "
            "(save it again, or give its text as .txt)."
        ) from None
    except DefusedXmlException:
        raise DatasetError(
            f"{path.name}: it declares entities or attributes of its own, which may "
            "hide anything (give its text as .txt instead)."
        ) from None
    return reader.result()


def _guarded(name: str, sysid: str, pubid: str, has_internal_subset: int) -> None:
    """Let a document type be named, as JATS files name theirs, but hold nothing.

    The default of an attribute can grow as an entity can.
    """
    if has_internal_subset:
        from defusedxml.common import DTDForbidden  # noqa: PLC0415 - see above

        raise DTDForbidden(name, sysid, pubid)


_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"}
    | {"source", "track", "wbr"}
)
_CLOSES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "td": (frozenset({"td", "th"}), "table"),
    "th": (frozenset({"td", "th"}), "table"),
    "tr": (frozenset({"tr"}), "table"),
    "body": (frozenset({"head"}), "html"),
}
"""Elements that a tag closes if their own end tag is left out, and the element up to
which they are looked for."""

_CHARSET: Final = re.compile(
    rb"<meta[^>]+charset=[\"']?([A-Za-z0-9_-]+)", re.IGNORECASE
)


class _HtmlParser(HTMLParser):
    """Reports each element of HTML with its begin and its end."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader
        self._open: list[str] = []
        self._count: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "meta":
            self._reader.describe(attributes)
        tags, within = _CLOSES.get(tag, (frozenset(), ""))
        for closed in sorted(tags):
            if self._count[closed] and self._is_inside(closed, within):
                self.handle_endtag(closed)
        self._reader.start(tag, attributes)
        self._open.append(tag)
        self._count[tag] += 1
        if tag in _VOID:
            self.handle_endtag(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # the slash means nothing in HTML
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        while self._count[tag]:
            closed = self._open.pop()
            self._count[closed] -= 1
            self._reader.end(closed)
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        self._reader.data(data)

    def close(self) -> None:
        super().close()
        while self._open:
            self.handle_endtag(self._open[-1])

    def _is_inside(self, tag: str, within: str) -> bool:
        """Returns whether *tag* is open, nearer than the last *within*."""
        return next(
            (name == tag for name in reversed(self._open) if name in {tag, within}),
            False,
        )


def html_paper(path: Path) -> MarkedText:
    """Reads a page in HTML without its navigation, scripts and styles.

    The encoding is UTF-8, or the one that the page declares.

    Raises:
        DatasetError: its bytes do not fit the encoding.
    """
    data = path.read_bytes()
    declared = _CHARSET.search(data[:2048])
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        text = data.decode("utf-8-sig" if encoding.lower() == "utf-8" else encoding)
    except (UnicodeDecodeError, LookupError):
        raise DatasetError(
            f"{path.name}: it is not in the encoding {encoding} (save it as UTF-8)."
        ) from None
    reader = _Reader(HTML)
    parser = _HtmlParser(reader)
    parser.feed(text)
    parser.close()
    return reader.result()
