"""Reads a document's file (PDF, text or XML) as one clean text with pages.

Ligatures become letters, soft and line-end hyphens join what they part, and the lines
that a page's head or foot repeats are left out.

A PDF is read in a process with limits, which is killed when it hangs. XML is read as it
is parsed, so depth and size of the file cost nothing but time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import ParseError

from jobs.kit.replies import wellformed
from runner.errors import DatasetError


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
class Document:
    """A text, cleaned; all offsets are into it."""

    name: str  #: of the file
    text: str
    starts: tuple[int, ...]  #: where each page begins, ascending from 0

    @property
    def key(self) -> str:
        """What tasks call it: the same whether it is read as PDF or as text."""
        return Path(self.name).stem

    def page(self, offset: int) -> int:
        """The page of a character, from 1."""
        return bisect_right(self.starts, offset)

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

PAGE = "\f"
"""Parts pages while they are joined; no cleaned text holds it."""

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


def cleaned_document(name: str, pages: Sequence[str]) -> Document:
    """The document that pages of raw text make up."""
    text = PAGE.join(_without_running([_plain(page) for page in pages]))
    hyphened = set(_HYPHENED.findall(text.lower()))

    def joined(match: re.Match[str]) -> str:
        first, between, second = match.groups()
        # a name has its hyphen by right, and so has a word that has it within a line
        has_hyphen = second[0].isupper() or f"{first}-{second}".lower() in hyphened
        pages = PAGE * between.count(PAGE)
        return f"{first}{'-' if has_hyphen else ''}{second}{pages}"

    text = _BREAK.sub(joined, text)
    starts = (0, *(match.end() for match in re.finditer(PAGE, text)))
    return Document(name=name, text=text.replace(PAGE, "\n"), starts=starts)


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


READER: Final = Path(__file__).with_name("pdf_pages.py")

SCANNED_CHARS: Final = 200
"""A page with fewer characters is most likely a picture of one."""

_GIVE_TEXT: Final = "give its text as .txt instead"

ERRORS: Final = {
    "encrypted": f"it is encrypted (save it without a password, or {_GIVE_TEXT})",
    "broken": f"it is no PDF, or a broken one ({_GIVE_TEXT})",
}
"""What the process may say, but for too much of something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfLimits:
    """What reading one file may take."""

    pages: int = 2_000
    chars: int = 20_000_000  #: a page of print has some 5,000
    seconds: float = 120.0
    memory_bytes: int = 2 << 30


PDF_LIMITS: Final = PdfLimits()


def pdf_pages(path: Path, limits: PdfLimits = PDF_LIMITS) -> list[str]:
    """The raw text of each page.

    Raises:
        DatasetError: the reader is not installed, or the file is encrypted, scanned,
            broken or beyond a limit.
    """
    if find_spec("pypdfium2") is None:
        raise DatasetError(
            f"{path.name}: reading PDF files needs pypdfium2 (install siftlog[pdf], or "
            f"{_GIVE_TEXT})."
        )
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and no shell
            [
                sys.executable,
                "-P",
                READER,
                path,
                str(limits.pages),
                str(limits.chars),
                # the processor's seconds are whole ones
                str(int(limits.seconds) + 1),
                str(limits.memory_bytes),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limits.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DatasetError(
            f"{path.name}: reading it took more than {limits.seconds:g} s and was "
            f"ended ({_GIVE_TEXT})."
        ) from None
    if done.returncode != 0:
        raise DatasetError(
            f"{path.name}: its reader crashed, or needed more than "
            f"{limits.memory_bytes >> 20:,} MB ({_GIVE_TEXT})."
        )
    output = json.loads(done.stdout)
    most = {"pages": limits.pages, "characters": limits.chars}.get(output.get("error"))
    if most is not None:
        raise DatasetError(
            f"{path.name}: it has more than {most:,} {output['error']} "
            "(keep only what is to be read)."
        )
    if "error" in output:
        raise DatasetError(f"{path.name}: {ERRORS[output['error']]}.")
    pages: list[str] = output["pages"]
    thin = sum(len(page.strip()) < SCANNED_CHARS for page in pages)
    if 2 * thin > len(pages) or not pages:
        raise DatasetError(
            f"{path.name}: most pages hold no text, as scanned ones do (run it through "
            f"OCR, or {_GIVE_TEXT})."
        )
    return pages


REFERENCES: Final = frozenset({"ref", "mixed-citation", "element-citation", "citation"})
"""Elements that are one line, whatever stands in them."""

INLINE: Final = frozenset(
    {"italic", "bold", "sup", "sub", "sc", "underline", "xref", "ext-link", "styled"}
    | {"i", "b", "em", "strong", "span", "a", "u", "named-content", "monospace"}
)
"""Elements that end neither a line nor a word."""

_CHUNK: Final = 1 << 16


def xml_text(path: Path) -> str:
    """All text of a file; one that declares anything of its own is refused.

    Raises:
        DatasetError: it is not well formed, or declares entities or attributes.
    """
    # brings a parser, and other kinds of documents need none
    from defusedxml.common import DefusedXmlException  # noqa: PLC0415 - see above
    from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415 - see above

    lines = _TextTarget()
    parser = DefusedXMLParser(target=lines)
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
    return lines.text()


def _guarded(name: str, sysid: str, pubid: str, has_internal_subset: int) -> None:
    """Let a document type be named, as JATS files name theirs, but hold nothing.

    The default of an attribute can grow as an entity can.
    """
    if has_internal_subset:
        from defusedxml.common import DTDForbidden  # noqa: PLC0415 - see above

        raise DTDForbidden(name, sysid, pubid)


class _TextTarget:
    """What the parser tells: text, and where lines end."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._open_references = 0  # elements that are open, from that of a reference on

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        del attributes
        self._pieces.append(self._gap(tag))
        if self._open_references or _local(tag) in REFERENCES:
            self._open_references += 1

    def data(self, text: str) -> None:
        self._pieces.append(text.replace("\n", " "))

    def end(self, tag: str) -> None:
        self._open_references = max(self._open_references - 1, 0)
        self._pieces.append(self._gap(tag))

    def close(self) -> None:
        """Nothing is held back."""

    def text(self) -> str:
        lines = ("".join(self._pieces)).split("\n")
        return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))

    def _gap(self, tag: str) -> str:
        """What an element's begin or end parts."""
        if _local(tag) in INLINE:
            return ""
        return " " if self._open_references else "\n"


def _local(tag: str) -> str:
    return tag.rpartition("}")[2].lower()


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
            f"{path.name}: it has more than {MOST_BYTES >> 20} MB (keep "
            "only what is to be read)."
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
    document = cleaned_document(path.name, pages)
    if not document.text.strip():
        raise DatasetError(f"{path.name}: it holds no text (name another file).")
    return document


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path.name}: byte {error.start} is not UTF-8 (save it as UTF-8)."
        ) from None
