"""Chance that is the same on every machine, in every version and in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")
_WORD_BYTES = 8


class Chance:
    """A stream of draws that depends on *parts* and nothing else.

    Unlike a shared generator, what one request draws cannot depend on which requests
    came before it.
    """

    __slots__ = ("_bytes", "_seed")

    def __init__(self, *parts: str | int) -> None:
        self._seed = hashlib.blake2b(repr(parts).encode()).digest()
        self._bytes = self._seed

    def unit(self) -> float:
        """A number in [0, 1)."""
        if not self._bytes:
            self._seed = hashlib.blake2b(self._seed).digest()
            self._bytes = self._seed
        word, self._bytes = self._bytes[:_WORD_BYTES], self._bytes[_WORD_BYTES:]
        # 53 bits: all that a float holds, so that 1.0 is never reached
        return (int.from_bytes(word, "big") >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """A whole number in [0, *bound*)."""
        return int(self.unit() * bound)

    def pick(self, choices: Sequence[_T]) -> _T:
        """One of *choices*."""
        return choices[self.below(len(choices))]
