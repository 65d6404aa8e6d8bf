"""Finds texts that share a piece of some bytes with other texts, in one pass."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

PIECE: Final = 20
"""Bytes of a text that a redacted bundle never holds in a row."""

_STRIDE: Final = 8
_GRAM: Final = PIECE - _STRIDE + 1
"""Every piece of a text has a gram that begins at a multiple of the stride."""

_BITS: Final = 18
"""Of the table: a scorecard has some ten thousand grams."""

_FIBONACCI: Final = np.uint64(11400714819323198485)

ENVELOPE: Final = frozenset(
    {"model", "provider", "id", "object", "type", "role", "service_tier", "form"}
)
"""Fields of stored replies that are about the call and no part of the text."""


_AROUND: Final = ((b'": "', b'",\n'), (b'\n "', b'": '))
"""What JSON has around a value, and around a name: texts in replies may be JSON too."""


class PieceIndex:
    """The pieces of some short texts, to be looked up in long ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._grams: defaultdict[bytes, list[tuple[bytes, int, str]]] = defaultdict(
            list
        )
        self._may_begin = np.zeros(1 << _BITS, dtype=np.bool_)
        self.shared: set[str] = set()  #: those that share a piece with a scanned text
        for text in texts:
            for before, after in _AROUND:
                data = before + text.encode() + after
                if len(data) >= PIECE:
                    for at in range(len(data) - _GRAM + 1):
                        self._grams[data[at : at + _GRAM]].append((data, at, text))
        for gram in self._grams:
            self._may_begin[_hashes(gram, 1)] = True

    def scan(self, content: bytes) -> None:
        """Look for the pieces in a text."""
        grams = self._grams
        places = (len(content) - _GRAM) // _STRIDE + 1
        if not grams or places < 1:
            return
        # a table of bits passes over nearly all places, eight bytes at a time
        hits = self._may_begin[_hashes(content, places)]
        for at in (np.flatnonzero(hits) * _STRIDE).tolist():
            if content[at : at + _GRAM] in grams:
                for data, start, text in grams[content[at : at + _GRAM]]:
                    if _common_length(content, at, data, start) >= PIECE:
                        self.shared.add(text)


def _hashes(content: bytes, places: int) -> npt.NDArray[np.uint64]:
    """A number of a few bits for the first bytes at each multiple of the stride."""
    words = np.frombuffer(content, dtype="<u8", count=places)
    # Fibonacci hashing: the product's highest bits depend on all others
    hashes: npt.NDArray[np.uint64] = (words * _FIBONACCI) >> np.uint64(64 - _BITS)
    return hashes


def _common_length(a: bytes, at: int, b: bytes, start: int) -> int:
    """The length of the longest common piece through two equal grams."""
    left = 0
    while left < min(at, start) and a[at - left - 1] == b[start - left - 1]:
        left += 1
    right = _GRAM
    while at + right < len(a) and start + right < len(b):
        if a[at + right] != b[start + right]:
            break
        right += 1
    return left + right


def texts_in(content: bytes) -> Iterator[bytes]:
    """Yield the texts in a value: itself, or what JSON in it holds, without escapes."""
    if content[:1] in {b"{", b"["}:
        try:
            yield from _leaves(json.loads(content))
        except (ValueError, RecursionError):
            yield content
    else:
        yield content


def _leaves(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - JSON
    match value:
        case dict():
            for name, item in value.items():
                if name not in ENVELOPE:
                    yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case str():
            data = value.encode(errors="replace")
            yield data
            if value[:1] in {"{", "["}:
                yield from texts_in(data)
        case _:
            pass
