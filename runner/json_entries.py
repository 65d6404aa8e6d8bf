"""Entries of a JSON file: one object a line (JSONL), or spread over lines by a printer.

A line is of bounded length. A file that holds a list of objects, or objects printed
over several lines each, is read like JSONL; only such a file is held in memory whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO, Final

from runner.errors import DatasetError

BOM = b"\xef\xbb\xbf"
"""What some editors put before the first line of a UTF-8 file."""

LINE_BYTES: Final = 1 << 26
"""Longest line of an input file, 64 MiB: four CSV fields of the longest kind, and more
than any paper. A line is held in memory whole, and decoded into as much again."""

WHOLE_BYTES: Final = 1 << 28
"""Longest file of objects that are spread over lines, 256 MiB; JSONL has no bound."""

_SCANNER = json.JSONDecoder()
_BETWEEN = " \t\r\n,"


def lines_of(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1, and their ends.

    Args:
        file: open for reading.
        name: of the file, as an error names it.

    Raises:
        DatasetError: a line is longer than `LINE_BYTES`; no more of it is read.
    """
    number = 0
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise DatasetError(
                f"{name} line {number}: longer than {LINE_BYTES:,} bytes "
                "(check the line endings and the format of the file)."
            )
        yield number, line


def entries_of(file: BinaryIO, name: str) -> Iterator[tuple[int, int, bytes]]:
    """The line, the byte offset and the bytes of each object in a file, from its start.

    Args:
        file: open for reading, seekable.
        name: of the file, as an error names it.

    Raises:
        DatasetError: a line is too long, or objects that are spread over lines are no
            valid JSON.
    """
    first = b""
    for _, line in lines_of(file, name):
        first = line.removeprefix(BOM).strip()
        if first:
            break
    file.seek(0)
    if is_spread(first):
        yield from _spread(file, name)
        return
    start = 0
    for number, raw in lines_of(file, name):
        if raw.removeprefix(BOM).strip():
            yield number, start, raw
        start += len(raw)


def is_spread(first: bytes) -> bool:
    """Whether a file with this first line holds objects that are not one a line."""
    if first.startswith(b"["):
        return first[1:].strip()[:1] in {b"", b"{"}
    return first.startswith(b"{") and first[-1:] in {b"{", b"[", b","}


def _spread(file: BinaryIO, name: str) -> Iterator[tuple[int, int, bytes]]:
    """The objects of a list, or one after the other, wherever their lines end."""
    data = file.read(WHOLE_BYTES + 1)
    if len(data) > WHOLE_BYTES:
        raise DatasetError(
            f"{name}: longer than {WHOLE_BYTES:,} bytes (write it as JSONL, one object "
            "a line)."
        )
    # bytes that are not UTF-8 survive, so that each reader complains of its own line
    text = data.decode(errors="surrogateescape").removeprefix("\ufeff")
    position = offset = len(text) - len(text.lstrip())
    offset += len(data) - len(text.encode(errors="surrogateescape"))
    line = 1 + text.count("\n", 0, position)
    is_list = text[position : position + 1] == "["
    if is_list:
        position, offset = position + 1, offset + 1
    while True:
        begin = position
        while text[begin : begin + 1] and text[begin] in _BETWEEN:
            begin += 1
        line += text.count("\n", position, begin)
        offset += begin - position
        if begin == len(text) or (is_list and text[begin] == "]"):
            return
        try:
            _, position = _SCANNER.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise DatasetError(
                f"{name} line {error.lineno}, column {error.colno}: not valid JSON, "
                f"{error.msg} (correct the file)."
            ) from error
        except (RecursionError, ValueError) as error:
            raise DatasetError(
                f"{name} line {line}: not valid JSON, {error} (correct the file)."
            ) from error
        raw = text[begin:position].encode(errors="surrogateescape")
        yield line, offset, raw
        offset += len(raw)
        line += text.count("\n", begin, position)
