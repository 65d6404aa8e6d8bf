"""Writes blocks of a methods text as DOCX (needs python-docx, the extra `docx`).

A value is the result of a field whose instruction is ` ADDIN siftlog NAME `, as
programs for references mark their citations: word processors keep the field when its
text is edited, and do not show the name. `siftlog check` reads these fields again.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from defusedxml import ElementTree

from jobs.kit.methods.blocks import Block, Bullets, Line, MethodsTable, Paragraph
from jobs.kit.methods.manuscript import Manuscript, Mark, Source, source_in
from jobs.kit.methods.references import QuotedValue
from runner.errors import DatasetError, UsageError
from store.document import Heading
from store.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

    from docx.document import Document
    from docx.text.paragraph import Paragraph as DocxParagraph

_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ADDIN: Final = re.compile(r"ADDIN\s+siftlog\s+(\S+)")
_LARGEST: Final = 256 << 20
"""Bytes of the text of a file at most, unpacked."""


def write_docx(path: Path, blocks: Iterable[Block], source: str) -> None:
    """Write the blocks as a file of Word.

    Raises:
        UsageError: python-docx is not installed.
    """
    try:
        import docx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "--format docx needs python-docx; install it with: pip install "
            "'siftlog[docx]'"
        ) from error
    document = docx.Document()
    document.core_properties.comments = source
    document.core_properties.author = ""
    for block in blocks:
        _add(document, block)
    document.save(str(path))


def _add(document: Document, block: Block) -> None:
    match block:
        case Heading():
            document.add_heading(one_line(block.text), level=block.level)
        case Paragraph():
            _fill(document.add_paragraph(), block.line)
        case Bullets():
            for line in block.lines:
                _fill(document.add_paragraph(style="List Bullet"), line)
        case MethodsTable():
            _fill(document.add_paragraph(style="Caption"), block.caption)
            table = document.add_table(rows=1, cols=len(block.columns))
            table.style = "Table Grid"
            for cell, name in zip(table.rows[0].cells, block.columns, strict=True):
                cell.text = one_line(name)
            for row in block.rows:
                for cell, line in zip(table.add_row().cells, row, strict=True):
                    _fill(cell.paragraphs[0], line)
        case _:
            assert_never(block)


def _fill(paragraph: DocxParagraph, line: Line) -> None:
    for piece in line:
        if isinstance(piece, str):
            paragraph.add_run(one_line(piece))
        else:
            _add_field(paragraph, piece)


def _add_field(paragraph: DocxParagraph, reference: QuotedValue) -> None:
    from docx.oxml import OxmlElement  # noqa: PLC0415 - an extra
    from docx.oxml.ns import qn  # noqa: PLC0415 - an extra

    def mark(kind: str) -> None:
        char = OxmlElement("w:fldChar")
        char.set(qn("w:fldCharType"), kind)
        paragraph.add_run()._r.append(char)  # noqa: SLF001 - python-docx has no fields

    mark("begin")
    instruction = OxmlElement("w:instrText")
    instruction.set(qn("xml:space"), "preserve")
    instruction.text = f" ADDIN siftlog {reference.name} "
    paragraph.add_run()._r.append(instruction)  # noqa: SLF001 - as above
    mark("separate")
    paragraph.add_run(reference.text)
    mark("end")


def read_docx(path: Path) -> Manuscript:
    """Return the references of a file of Word; a line is a paragraph.

    Raises:
        DatasetError: it is not such a file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > _LARGEST:
                raise DatasetError(f"{path} is too large to be checked.")
            body = archive.read("word/document.xml")
            names = archive.namelist()
            about = archive.read(_CORE) if _CORE in names else b""
        root = ElementTree.fromstring(body)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError) as error:
        raise DatasetError(
            f"{path} is no DOCX file ({error}); save it again as DOCX."
        ) from error
    source = source_in(about.decode(errors="replace"))
    marks: list[Mark] = []
    rest: list[str] = []
    for line, paragraph in enumerate(root.iter(f"{_WORD}p"), 1):
        reader = _ParagraphReader(line, source)
        reader.read(paragraph)
        marks += reader.marks
        rest.append(reader.rest)
    return Manuscript(
        marks=tuple(marks),
        sources=() if source is None else (source,),
        rest="\n\n".join(rest),
    )


_CORE: Final = "docProps/core.xml"


class _ParagraphReader:
    """Reads the fields of a paragraph; fields may be nested, as in an index."""

    def __init__(self, line: int, source: Source | None) -> None:
        self._line, self._source = line, source
        self._column = 1
        self._open: list[tuple[str, int, str | None]] = []
        self.marks: list[Mark] = []
        self.rest = ""

    def read(self, paragraph: Element) -> None:
        """Read all runs, in their order."""
        for element in self._elements(paragraph):
            match element.tag.removeprefix(_WORD):
                case "fldChar":
                    self._step(element.get(f"{_WORD}fldCharType", ""))
                case "instrText" if self._open:
                    instruction, column, text = self._open[-1]
                    self._open[-1] = (instruction + (element.text or ""), column, text)
                case "t":
                    self._text(element.text or "")
                case _:
                    pass
        for instruction, column, _ in self._open:
            self._close(instruction, column, None)

    def _elements(
        self, paragraph: ElementTree.Element
    ) -> Iterator[ElementTree.Element]:
        deleted = {
            id(inner) for gone in paragraph.iter(f"{_WORD}del") for inner in gone.iter()
        }
        yield from (e for e in paragraph.iter() if id(e) not in deleted)

    def _step(self, kind: str) -> None:
        if kind == "begin":
            self._open.append(("", self._column, None))
        elif self._open and kind == "separate":
            instruction, _, _ = self._open[-1]
            self._open[-1] = (instruction, self._column, "")
        elif self._open and kind == "end":
            self._close(*self._open.pop())

    def _text(self, text: str) -> None:
        self._column += len(text)
        if self._open and self._open[-1][2] is not None:
            instruction, column, before = self._open[-1]
            self._open[-1] = (instruction, column, (before or "") + text)
        else:
            self.rest += text

    def _close(self, instruction: str, column: int, text: str | None) -> None:
        addin = _ADDIN.search(instruction)
        if addin is None:
            self.rest += text or ""
            return
        self.rest += "\ufffc"
        self.marks.append(
            Mark(
                line=self._line,
                column=column,
                name=addin[1],
                text=None if text is None else " ".join(text.split()),
                source=self._source,
            )
        )
