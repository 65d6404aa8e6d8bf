"""Reads entries of a JSON file: one object per line (JSONL), or pretty-printed.

A line is of bounded length. A list of objects, or objects spread over several lines, is
read like JSONL; only such a file is loaded as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO, Final

from runner.errors import DatasetError

BOM = b"\xef\xbb\xbf"
"""Byte order mark that some editors put before the first line of a UTF-8 file."""

LINE_BYTES: Final = 1 << 26
"""Maximum length of a line, 64 MiB: four CSV fields of maximum length, and more than
any paper. A line is held in memory, and again when decoded."""

WHOLE_BYTES: Final = 1 << 28
"""Maximum size of a file of objects spread over lines, 256 MiB; JSONL is unlimited."""

_SCANNER = json.JSONDecoder()
_BETWEEN = " \t\r\n,"


def lines_of(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1, and line ends.

    Args:
        file: open for reading.
        name: the file's name in errors.

    Raises:
        DatasetError: a line is longer than `LINE_BYTES`.
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
    """Yield line number, byte offset and bytes of each object in a file.

    Args:
        file: open for reading, seekable.
        name: the file's name in errors.

    Raises:
        DatasetError: a line is too long, or objects spread over lines are not valid
            JSON.
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
    """Return whether a file with this first line is not JSONL."""
    if first.startswith(b"["):
        return first[1:].strip()[:1] in {b"", b"{"}
    return first.startswith(b"{") and first[-1:] in {b"{", b"[", b","}


def _spread(file: BinaryIO, name: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the objects of a list, or consecutive objects over any lines."""
    data = file.read(WHOLE_BYTES + 1)
    if len(data) > WHOLE_BYTES:
        raise DatasetError(
            f"{name}: longer than {WHOLE_BYTES:,} bytes (write it as JSONL, one object "
            "a line)."
        )
    # invalid UTF-8 is preserved, so that each reader reports its own line
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
