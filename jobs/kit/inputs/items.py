r"""Reads the items of a job: papers in a folder, rows of a table, or references.

An item has a key, fields by name, and a document in which quotes are looked up. The
document of a file is its text with pages and sections. The document of a row is text
made of its columns, or the file that a column names.

>>> template = text_template("{title}\n\n{abstract}", ("title", "abstract"), "a.csv")
>>> template.render({"title": "A trial", "abstract": "We enrolled 12 adults."})
'A trial\n\nWe enrolled 12 adults.'
"""

from __future__ import annotations

import glob
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from string import Formatter
from typing import Final, Literal, TypeAlias, TypeVar

from jobs.kit.inputs.column_map import missing_column, name_list, near_words
from jobs.kit.inputs.documents import (
    SUFFIXES,
    Document,
    read_paper,
    text_document,
)
from jobs.kit.inputs.item_rows import (
    TABLES,
    ItemRow,
    is_table,
    table_rows,
    table_suffix,
)
from jobs.kit.inputs.pdf import MAX_PAGES
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError

KEYS: Final = ("id", "key", "pmid", "pubmedid", "doi", "record_id", "document_id")
"""Columns that serve as the key if none is named, in any case of letters."""

NAME_IDS: Final = "name the column of the ids with --id, or id of the recipe"
"""The next step if no column can be the key, or several rows share one."""

TEXTS: Final = ("text", "full_text", "fulltext", "body")
"""Columns that serve as the text if none is named, before title and abstract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A unit that a job asks about: a paper, or a row of a table."""

    key: str  #: unique
    fields: Mapping[str, str]
    """Columns of a table, or what a document's file says about itself; always has
    `file`, the name of the file."""
    document: Document  #: whose text is asked about, and in which quotes are looked up
    file: str  #: name of the file that it is from
    row: int | None = None  #: of a table; None: the file is the item
    unit: str = "row"  #: what rows are counted by, such as `line`
    path: Path | None = None  #: of the document's file; None: the text is a table's

    @property
    def where(self) -> str:
        """The file and the row, as an error names them."""
        return self.file if self.row is None else f"{self.file} {self.unit} {self.row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTemplate:
    """Text with placeholders, `{title}`, for fields of an item."""

    parts: tuple[tuple[str, str | None], ...]  #: literal text, and the field after it

    def render(self, fields: Mapping[str, str]) -> str:
        """Returns the text of an item, without the blanks around it."""
        return "".join(
            text + ("" if name is None else fields.get(name, ""))
            for text, name in self.parts
        ).strip()


def text_template(text: str, names: Sequence[str], file: str) -> TextTemplate:
    """Parses a template, or the name of a column.

    Args:
        text: such as `abstract` or `{title}. {abstract}`; a brace is written twice.
        names: the fields that there are.
        file: that has them, for errors.

    Raises:
        DatasetError: a placeholder names no field, or a brace is not closed.
    """
    if text in names:
        return TextTemplate(parts=(("", text),))
    try:
        parts = [(before, name) for before, name, _, _ in Formatter().parse(text)]
    except ValueError as error:
        raise DatasetError(
            f"text = {text!r}: {error} (write {{{{ and }}}} for braces in the text)."
        ) from None
    placeholders = [name for _, name in parts if name is not None]
    if not placeholders:
        raise missing_column(
            file, text, names, 'set text to one of them, or to a template "{column}"'
        )
    for name in placeholders:
        if name not in names:
            near = near_words(name, names)
            hint = f"the nearest is {near}" if near else f"found: {name_list(names)}"
            raise DatasetError(
                f"{file}: text = {text!r} has a placeholder {{{name}}}, but there is "
                f"no column {name!r} ({hint})."
            )
    return TextTemplate(parts=tuple(parts))


def source_files(source: str | Path, findings: InputFindings) -> list[Path]:
    """Returns the files that a folder, a glob or a path names, sorted.

    Of a folder these are the documents in it, not those in its subfolders.

    Raises:
        DatasetError: there is none.
    """
    path = Path(source)
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES and table_suffix(path) not in TABLES:
            formats = dict.fromkeys((*SUFFIXES, *TABLES))
            raise DatasetError(
                f"{path.name}: {path.suffix or 'a name without an end'} is not read "
                f"(give a {', '.join(formats)})."
            )
        return [path]
    if path.is_dir():
        return _documents_in(path, findings)
    if glob.has_magic(str(source)):
        # unlike Path.glob it takes a pattern of any path
        names = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207
        files = [path for path in map(Path, names) if path.is_file()]
        if not files:
            raise DatasetError(f"{source}: no file matches (correct the pattern).")
        return files
    raise DatasetError(f"{source}: no such file or folder (correct the path).")


def _documents_in(folder: Path, findings: InputFindings) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DatasetError(
            f"{folder}: {error.strerror} (check the path and its permissions)."
        ) from error
    visible = [path for path in entries if not path.name.startswith(".")]
    documents = [
        path for path in visible if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
    if not documents:
        tables = [path for path in visible if table_suffix(path) in TABLES]
        if tables:
            advice = f"to read the rows of a table, name it: {tables[0]}"
        elif any(path.is_dir() for path in visible):
            advice = f"to read subfolders, write '{folder}/**/*.pdf'"
        else:
            advice = f"put files in it that end in {', '.join(SUFFIXES)}"
        raise DatasetError(f"{folder}: there is no paper in this folder ({advice}).")
    for path in visible:
        if path not in documents:
            findings.add(
                "skipped_files",
                "info",
                folder.name,
                "Files in the folder were not read.",
                example=path.name,
            )
    return documents


def read_items(
    source: str | Path | Sequence[str | Path],
    *,
    id: str | None = None,  # noqa: A002 - named as in a recipe
    text: str | None = None,
    document: str | None = None,
    limit: int | None = None,
    max_pages: int = MAX_PAGES,
    vision: bool = False,
    findings: InputFindings,
) -> Iterator[Item]:
    """Reads items in the order of their files and rows.

    Args:
        source: a folder of documents, a glob, or a file; or several of them.
        id: the column with the keys. Default: the first of `KEYS`; for documents the
            name of the file without its suffix.
        text: the column with the text, or a template over fields. Default: the first
            of `TEXTS`, or title and abstract; for documents all their text.
        document: the column that names the file of each row's document, relative to
            the table.
        limit: number of items after which reading ends.
        max_pages: of a PDF; a longer one is an error.
        vision: whether pages are also shown as images, so that a PDF without text is
            a finding and not an error.
        findings: learns of what is odd but can be used.

    Raises:
        DatasetError: there is nothing to read, a column is missing, two items have one
            key, or a file cannot be read; names file, row and column.
    """
    reader = _ItemReader(
        id=id,
        text=text,
        document=document,
        max_pages=max_pages,
        vision=vision,
        findings=findings,
    )
    named = [source] if isinstance(source, str | Path) else source
    files = [path for name in named for path in source_files(name, findings)]
    return islice(_unique(reader.items(files, limit)), limit)


_GROBID: Final = re.compile(r"(\.grobid)?\.tei$")
"""Ends the names of files that GROBID's clients write, before the suffix."""

AHEAD: Final = 8
"""Documents that are read ahead of the one that is needed."""

READERS: Final = 4
"""Documents that are read at once; each PDF has a process of its own."""

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def read_ahead(
    inputs: Iterator[_In], read: Callable[[_In], _Out]
) -> Iterator[tuple[_In, _Out]]:
    """Yields inputs with what is read for them, in their order.

    Args:
        inputs: only the next few are taken from it.
        read: runs in a thread.
    """
    with ThreadPoolExecutor(READERS) as pool:
        waiting = deque((one, pool.submit(read, one)) for one in islice(inputs, AHEAD))
        try:
            while waiting:
                one, future = waiting.popleft()
                result = future.result()
                for following in islice(inputs, 1):
                    waiting.append((following, pool.submit(read, following)))
                yield one, result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _unique(items: Iterable[Item]) -> Iterator[Item]:
    seen: dict[str, tuple[str, int | None, Path | None]] = {}
    for item in items:
        place = item.file, item.row, item.path
        first = seen.setdefault(item.key, place)
        if first is not place:
            file, row, path = first
            other = file if row is None else f"{file} {item.unit} {row}"
            if row is None and file == item.file:
                other = str(path)
            raise DatasetError(
                f"{item.where}: id {item.key!r} also occurs in {other} (ids must be "
                f"unique; rename one, or {NAME_IDS})."
            )
        yield item


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A document to read, for a file or for a row of a table."""

    path: Path
    row: ItemRow | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ItemReader:
    """Options of `read_items`, and how files are read under them."""

    id: str | None
    text: str | None
    document: str | None
    max_pages: int
    vision: bool
    findings: InputFindings

    def items(self, files: Sequence[Path], limit: int | None) -> Iterator[Item]:
        """Reads the items of files; no documents but the first *limit* are read."""
        for is_rows, paths in groupby(files, key=is_table):
            if is_rows:
                for path in paths:
                    yield from self._table(path, limit)
            else:
                wanted = (_Wanted(path=path) for path in paths)
                yield from self._documents(islice(wanted, limit))

    def _documents(self, wanted: Iterator[_Wanted]) -> Iterator[Item]:
        """Reads documents ahead; the first that cannot be read names the others."""
        unreadable: list[tuple[_Wanted, DatasetError]] = []
        for one, (result, findings) in read_ahead(wanted, self._read):
            self.findings.extend(findings)
            if isinstance(result, DatasetError):
                unreadable.append((one, result))
            elif not unreadable:
                yield self._item(one, result)
        if not unreadable:
            return
        first, error = unreadable[0]
        sentence = str(error).removesuffix(".")
        if first.row is not None:
            sentence = f"{first.row.location}: {sentence}"
        if others := [one.path.name for one, _ in unreadable[1:]]:
            sentence += f"; unreadable as well: {name_list(others)}"
        raise DatasetError(f"{sentence}.") from error

    def _read(self, one: _Wanted) -> tuple[Document | DatasetError, InputFindings]:
        findings = InputFindings()
        try:
            document = read_paper(
                one.path, findings, max_pages=self.max_pages, vision=self.vision
            )
        except DatasetError as error:
            return error, findings
        return document, findings

    def _item(self, one: _Wanted, document: Document) -> Item:
        path, row = one.path, one.row
        if row is not None:
            return Item(
                key=one.key,
                fields={"file": path.name, **document.metadata, **row.cells},
                document=document,
                file=row.source.file,
                row=row.number,
                unit=row.source.unit,
                path=path,
            )
        fields = {"file": path.name, **document.metadata, "text": document.text}
        key = _GROBID.sub("", path.stem)
        if self.id is not None:
            key = fields.get(self.id, "").strip()
            if not key:
                filled = [name for name in fields if fields[name]]
                raise DatasetError(
                    f"{path.name}: it has no {self.id} to serve as id (found: "
                    f"{name_list(filled)})."
                )
        if self.text not in {None, "text"}:
            template = text_template(str(self.text), tuple(fields), path.name)
            document = text_document(path.name, template.render(fields))
        del fields["text"]
        return Item(
            key=key, fields=fields, document=document, file=path.name, path=path
        )

    def _table(self, path: Path, limit: int | None) -> Iterator[Item]:
        rows = self._keyed(path)
        first = next(rows, None)
        if first is None:
            raise DatasetError(f"{path.name}: no row in it (name another file).")
        template = self._template(path, tuple(first[1].cells))
        rows = chain((first,), rows)
        if template is None:
            wanted = (
                _Wanted(path=self._named_file(path, row), row=row, key=key)
                for key, row in rows
            )
            yield from self._documents(islice(wanted, limit))
            return
        for key, row in rows:
            yield self._row_item(path, row, key, template)

    def _keyed(self, path: Path) -> Iterator[tuple[str, ItemRow]]:
        """Yields the rows of a table with their keys."""
        column: str | None = None
        for row in table_rows(path):
            if column is None:
                column = self._key_column(path, tuple(row.cells))
            key = row.cells.get(column, "").strip()
            if not key:
                raise row.error(f"{column} is blank (fill it in)")
            yield key, row

    def _row_item(
        self, path: Path, row: ItemRow, key: str, template: TextTemplate
    ) -> Item:
        document = text_document(row.location, template.render(row.cells))
        if not document.text:
            self.findings.add(
                "empty_text",
                "warn",
                path.name,
                "Rows have no text.",
                example=f"{row.source.unit} {row.number}",
            )
        return Item(
            key=key,
            fields={"file": path.name, **row.cells},
            document=document,
            file=row.source.file,
            row=row.number,
            unit=row.source.unit,
        )

    def _named_file(self, table: Path, row: ItemRow) -> Path:
        name = row.cells.get(str(self.document), "").strip()
        if not name:
            raise row.error(f"{self.document} is blank (name the paper's file)")
        file = table.parent / name
        if not file.is_file():
            raise row.error(
                f"{self.document} names {name!r}, but there is no such file in "
                f"{table.parent} (correct the path)"
            )
        return file

    def _key_column(self, path: Path, names: Sequence[str]) -> str:
        if self.id is not None:
            if self.id not in names:
                raise missing_column(path.name, self.id, names, NAME_IDS)
            return self.id
        by_lower = {name.lower(): name for name in reversed(names)}
        for key in KEYS:
            if key in by_lower:
                return by_lower[key]
        raise missing_column(path.name, "id", names, NAME_IDS)

    def _template(self, path: Path, names: Sequence[str]) -> TextTemplate | None:
        """Returns how the text of a row is made; None: a column names its file."""
        if self.document is not None:
            if self.document not in names:
                raise missing_column(
                    path.name,
                    self.document,
                    names,
                    "name the column with the files with document",
                )
            return None
        if self.text is not None:
            return text_template(self.text, names, path.name)
        by_lower = {name.lower(): name for name in reversed(names)}
        for name in TEXTS:
            if name in by_lower:
                return TextTemplate(parts=(("", by_lower[name]),))
        columns = [by_lower[name] for name in ("title", "abstract") if name in by_lower]
        if not columns:
            raise missing_column(
                path.name, "text", names, "name the column with the text with text"
            )
        return TextTemplate(
            parts=tuple(("\n\n" if n else "", name) for n, name in enumerate(columns))
        )


COLUMN_ROWS: Final = 1_000
"""Rows that `columns` looks at."""

COLUMN_EXAMPLES: Final = 3

DISTINCT: Final = 20
"""Distinct values that are kept, enough to see the words of a category."""

BOOLEANS: Final = frozenset({"true", "false", "yes", "no"})

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ].*)?")

ColumnKind: TypeAlias = Literal["empty", "integer", "number", "boolean", "date", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemColumn:
    """A column of a table, as its first rows show it."""

    name: str
    kind: ColumnKind  #: of all cells that are not blank
    blank_n: int
    distinct: tuple[str, ...]  #: values in order of first sight; the first 20
    mean_chars: float  #: of the cells that are not blank

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few values."""
        return self.distinct[:COLUMN_EXAMPLES]


def holds_table(source: str | Path) -> bool:
    """Returns whether the first file of a source is a table, a row for each item."""
    return is_table(source_files(source, InputFindings())[0])


def columns(
    source: str | Path, findings: InputFindings | None = None
) -> tuple[ItemColumn, ...]:
    """Looks at the columns of a table, or the fields of the first documents.

    Raises:
        DatasetError: there is nothing to read, or a row is invalid.
    """
    findings = InputFindings() if findings is None else findings
    path = source_files(source, findings)[0]
    if is_table(path):
        rows = [row.cells for row in islice(table_rows(path), COLUMN_ROWS)]
    else:
        papers = read_items(
            source, limit=COLUMN_EXAMPLES, vision=True, findings=findings
        )
        rows = [item.fields for item in papers]
    cells: dict[str, list[str]] = {}
    for row in rows:
        for name, cell in row.items():
            cells.setdefault(name, []).append(cell.strip())
    return tuple(_column(name, values, len(rows)) for name, values in cells.items())


def _column(name: str, cells: Sequence[str], row_n: int) -> ItemColumn:
    filled = [cell for cell in cells if cell]
    kinds = list(dict.fromkeys(map(_kind, filled)))
    kind: ColumnKind = "text"
    if not kinds:
        kind = "empty"
    elif len(kinds) == 1:
        kind = kinds[0]
    elif set(kinds) == {"integer", "number"}:
        kind = "number"
    return ItemColumn(
        name=name,
        kind=kind,
        blank_n=row_n - len(filled),
        distinct=tuple(dict.fromkeys(filled))[:DISTINCT],
        mean_chars=sum(map(len, filled)) / len(filled) if filled else 0.0,
    )


def _kind(cell: str) -> ColumnKind:
    if _INTEGER.fullmatch(cell):
        return "integer"
    if _NUMBER.fullmatch(cell):
        return "number"
    if _DATE.fullmatch(cell):
        return "date"
    return "boolean" if cell.lower() in BOOLEANS else "text"
