"""Rows of a JSONL file, read one line at a time, and what a row may be asked.

Every complaint is a `DatasetError` of one sentence that names file, line and field.
UTF-8 with or without a byte order mark, LF or CRLF; blank lines are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jobs.kit.inputs.cells import kind_of
from jobs.kit.inputs.rows import InputFindings, object_of
from runner.errors import DatasetError
from runner.json_entries import BOM, entries_of

Encoding: TypeAlias = Literal["strict", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRow:
    """One object of a file, and where it stands."""

    file: str
    line: int  #: from 1
    start: int  #: byte offset of the line
    size: int  #: bytes of the line
    fields: Mapping[str, Any]

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this row."""
        return DatasetError(f"{self.file} line {self.line}: {sentence}.")

    def text(self, name: str) -> str:
        """A field as trimmed text: "" where it is absent or null, a number's digits."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return repr(value)
        raise self.error(
            f"{name} is {kind_of(value)} (text is expected; put it in quotes)"
        )

    def required(self, name: str) -> str:
        """A field that must hold text."""
        text = self.text(name)
        if not text:
            problem = "blank" if name in self.fields else "missing"
            raise self.error(f"{name} is {problem} (fill it in or remove the line)")
        return text

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of texts, without the blank ones; () if absent."""
        return _texts(self, name, self.fields.get(name))

    def groups(self, name: str) -> tuple[tuple[str, ...], ...]:
        """A field that is a list of lists of texts; () if absent."""
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(
                f"{name} is {kind_of(value)} (a list of lists is expected)"
            )
        return tuple(_texts(self, name, group) for group in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of a file, before it is known to be a row."""

    file: str
    number: int
    start: int
    raw: bytes

    def row(self, encoding: Encoding, findings: InputFindings) -> JsonRow:
        return JsonRow(
            file=self.file,
            line=self.number,
            start=self.start,
            size=len(self.raw),
            fields=object_of(
                self._text(encoding, findings), f"{self.file} line {self.number}"
            ),
        )

    def _text(self, encoding: Encoding, findings: InputFindings) -> str:
        body = self.raw.removeprefix(BOM) if self.number == 1 else self.raw
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            offset = self.start + len(self.raw) - len(body) + error.start
            if encoding == "strict":
                raise DatasetError(
                    f"{self.file} line {self.number}: byte {offset} is not UTF-8 "
                    "(save the file as UTF-8, or use --encoding-errors replace)."
                ) from error
            findings.add(
                "replaced_bytes",
                "warn",
                self.file,
                "Bytes that are not UTF-8 were replaced in some lines.",
                example=f"line {self.number}",
            )
            return body.decode(errors="replace")


def read_rows(
    path: Path, encoding: Encoding, findings: InputFindings
) -> Iterator[JsonRow]:
    """The objects in *path*, in file order; JSONL, or JSON spread over lines."""
    try:
        with path.open("rb") as file:
            for number, start, raw in entries_of(file, path.name):
                line = _Line(file=path.name, number=number, start=start, raw=raw)
                yield line.row(encoding, findings)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DatasetError:
    """The error for a file that the system does not let us read."""
    reason = error.strerror or type(error).__name__
    return DatasetError(f"{path}: {reason} (check the path and its permissions).")


def _texts(row: JsonRow, name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise row.error(f"{name} is {kind_of(value)} (a list of texts is expected)")
    for entry in value:
        if entry is not None and not isinstance(entry, str):
            raise row.error(f"{name} holds {kind_of(entry)} (only texts are expected)")
    return tuple(entry.strip() for entry in value if entry and entry.strip())
