"""Lines of a JSONL file: of bounded length, each one object, or a complaint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import msgspec

from runner.errors import DatasetError

BOM = b"\xef\xbb\xbf"
"""What some editors put before the first line of a UTF-8 file."""

LINE_BYTES: Final = 1 << 26
"""Longest line of an input file, 64 MiB: four CSV fields of the longest kind, and more
than any paper. A line is held in memory whole, and decoded into as much again."""

_DECODER = msgspec.json.Decoder()


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
                f"{name} line {number}: longer than {LINE_BYTES:,} bytes (check the "
                "line ends, and that the file is what it should be)."
            )
        yield number, line


def object_of(text: str, where: str) -> dict[str, Any]:
    """The object that a line holds.

    Args:
        text: of the line.
        where: file and number of the line, as an error names them.

    Raises:
        DatasetError: it holds something else.
    """
    try:
        value = _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise DatasetError(
            f"{where}: not valid JSON, {error} (each line must hold one object)."
        ) from error
    if not isinstance(value, dict):
        raise DatasetError(
            f"{where}: {kind_of(value)} instead of an object "
            "(each line must hold one object)."
        )
    return value


def kind_of(value: object) -> str:
    """What sort of JSON value it is, in words."""
    return _KINDS[type(value)]


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
