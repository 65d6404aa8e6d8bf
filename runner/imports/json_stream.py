"""Reads chosen values of a JSON file of any size, one at a time.

A log of another tool is one object with a list of samples in it, and can be larger than
memory. `values_in` walks the file once, and yields the bytes of the values at chosen
paths; everything else is skipped without being held. Only the structure is checked
here: who decodes a value finds what is wrong inside of it.

>>> from io import BytesIO
>>> file = BytesIO(b'{"version": 2, "samples": [{"id": 1}, {"id": 2}]}')
>>> for value in values_in(file, "log.json", [("version",), ("samples", ELEMENT)]):
...     print(value.path, value.raw)
('version',) b'2'
('samples', '*') b'{"id": 1}'
('samples', '*') b'{"id": 2}'
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Final, TypeAlias

from runner.errors import DatasetError

ELEMENT: Final = "*"
"""In a path: each element of a list."""

CHUNK: Final = 1 << 16
"""Bytes of the first read; reads grow while a single string does not fit."""

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
# an incomplete string, at the end of what was read, matches only as its quotation mark
_TOKEN: Final = re.compile(rb'%b|"|[{}\[\],:]|[^\s{}\[\],:"]+' % _STRING, re.DOTALL)
_BRACKET: Final = re.compile(rb'%b|"|[{}\[\]]' % _STRING, re.DOTALL)
_OPEN: Final = frozenset({b"{", b"["})
_CLOSE: Final = frozenset({b"}", b"]"})
_ENDED: Final = frozenset({b"{", b"}", b"[", b"]", b",", b":", b'"'})
"""First bytes of tokens that are complete wherever what was read ends."""

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A value of a file."""

    path: Path
    line: int  #: on which it begins, from 1
    raw: bytes


class _Tokens:
    """The tokens of a file; holds what was read since `mark`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._data = b""
        self._at = 0  #: of the next token in the data
        self._mark: int | None = None  #: from here on, bytes are kept
        self._lines = 1  #: line on which the data begin
        self._size = CHUNK

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self._lines + self._data.count(b"\n", 0, self._at)

    def fault(self, words: str) -> DatasetError:
        """Return the error of the file at the current line."""
        return DatasetError(
            f"{self._name} line {self.line}: {words} (export the file again)."
        )

    def _more(self) -> bool:
        """Read on; return whether there was more."""
        start = self._at if self._mark is None else self._mark
        piece = self._file.read(self._size)
        if not piece:
            return False
        # a long string is searched once per read: reads that double keep that linear
        self._size = max(CHUNK, len(self._data) - start)
        self._lines += self._data.count(b"\n", 0, start)
        self._data = self._data[start:] + piece
        self._at -= start
        if self._mark is not None:
            self._mark = 0
        return True

    def next(self) -> bytes:
        """Return the next token; empty at the end of the file."""
        while True:
            match = _TOKEN.search(self._data, self._at)
            if match is None:
                self._at = len(self._data)
                if not self._more():
                    return b""
                continue
            token = match[0]
            # a word at the end of what was read may go on, and so may a string
            may_go_on = token == b'"' or (
                match.end() == len(self._data) and token[:1] not in _ENDED
            )
            self._at = match.start()
            if may_go_on and self._more():
                continue
            if token == b'"':
                raise self.fault("the file ends within a text")
            self._at += len(token)
            return token

    def value(self, first: bytes) -> bytes:
        """Return the bytes of the value whose first token was just read."""
        self._mark = self._at - len(first)
        self.skip(first)
        raw = self._data[self._mark : self._at]
        self._mark = None
        return raw

    def skip(self, first: bytes) -> None:
        """Read to the end of the value whose first token was just read."""
        if first in _CLOSE or first in {b",", b":", b""}:
            raise self.fault(
                f"{first.decode()!r} instead of a value"
                if first
                else "the file ends before its last value"
            )
        depth = int(first in _OPEN)
        while depth:
            match = _BRACKET.search(self._data, self._at)
            if match is None or match[0] == b'"':
                self._at = len(self._data) if match is None else match.start()
                if not self._more():
                    raise self.fault("the file ends within a value")
                continue
            self._at = match.end()
            if match[0] in _OPEN:
                depth += 1
            elif match[0] in _CLOSE:
                depth -= 1


def values_in(
    file: BinaryIO, name: str, paths: Collection[Path]
) -> Iterator[JsonValue]:
    """Yield the values at *paths*, in file order.

    Args:
        file: open for reading, at a JSON value.
        name: the file's name in errors.
        paths: keys from the outside in; `ELEMENT` stands for each element of a list. No
            path may begin another.

    Raises:
        DatasetError: the file is cut, or is no JSON between its values.
    """
    tokens = _Tokens(file, name)
    inner = {path[:depth] for path in paths for depth in range(len(path))}
    yield from _walk(tokens, tokens.next(), (), frozenset(paths), inner)


def _walk(
    tokens: _Tokens, first: bytes, path: Path, wanted: frozenset[Path], inner: set[Path]
) -> Iterator[JsonValue]:
    if path in wanted:
        line = tokens.line
        yield JsonValue(path=path, line=line, raw=tokens.value(first))
    elif path not in inner or first not in _OPEN:
        tokens.skip(first)
    else:
        close = b"}" if first == b"{" else b"]"
        token = tokens.next()
        while token != close:
            name = ELEMENT
            if first == b"{":
                name = _key(tokens, token)
                token = tokens.next()
            yield from _walk(tokens, token, (*path, name), wanted, inner)
            token = tokens.next()
            if token == b",":
                token = tokens.next()
            elif token != close:
                raise tokens.fault(
                    f"{token.decode(errors='replace')!r} after a value"
                    if token
                    else "the file ends before its last value"
                )


def _key(tokens: _Tokens, token: bytes) -> str:
    if token[:1] != b'"' or tokens.next() != b":":
        raise tokens.fault(
            f"{token.decode(errors='replace')!r} instead of a key"
            if token
            else "the file ends before its last value"
        )
    return str(json.loads(token.decode(errors="replace")))


def first_keys(file: BinaryIO, name: str) -> list[str]:
    """Return the keys of the first object in a file, up to the first that fails.

    A list is entered, and counts as a key "[]". Only the keys that the first `CHUNK`
    bytes show are read: a form is recognised by the beginning of its file.
    """
    tokens = _Tokens(BytesIO(file.read(CHUNK)), name)
    keys: list[str] = []
    try:
        token = tokens.next()
        if token == b"[":
            keys.append("[]")
            token = tokens.next()
        if token != b"{":
            return keys
        token = tokens.next()
        while token[:1] == b'"':
            keys.append(_key(tokens, token))
            tokens.skip(tokens.next())
            if tokens.next() != b",":
                break
            token = tokens.next()
    except (DatasetError, ValueError):
        return keys
    return keys
