"""Keys that can be used and not shown."""

from __future__ import annotations

import re
from typing import Final

from runner.errors import UsageError

MASK: Final = "***"

SHORTEST_MASKED: Final = 12
"""Shorter values are the placeholders ("none", "EMPTY") that servers without keys ask
for; blotting them out would damage replies that hold the same word."""


class Secret:
    """A key for an endpoint.

    `repr`, `str` and tracebacks show `***`; only `reveal` gives the value, and only
    the line that writes the request's header may call it. Not a place for comparing
    or storing keys.
    """

    __slots__ = ("_escape", "_in_bytes", "_in_text", "_value")

    def __init__(self, value: str) -> None:
        if not value.isascii() or not value.isprintable() or " " in value or not value:
            raise UsageError(
                "The key in the environment is empty or holds blanks, line breaks or "
                "letters outside ASCII; set the variable again."
            )
        self._value = value
        is_masked = len(value) >= SHORTEST_MASKED
        pattern = "".join(map(_spellings, value)) if is_masked else "(?!)"
        self._in_text = re.compile(pattern)
        self._in_bytes = re.compile(pattern.encode())
        codes = "|".join(sorted({f"{ord(letter):02x}" for letter in value}))
        marks = "".join(re.escape(mark) for mark in '/"\\' if mark in value)
        self._escape = re.compile(
            (
                rf"\\(?:(?:u00|x)(?i:{codes})" + (f"|[{marks}])" if marks else ")")
            ).encode()
        )

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def mask(self, text: str) -> str:
        """*text* with every occurrence of the key replaced, JSON's escapes included."""
        if self._value not in text and "\\" not in text:
            return text
        return self._in_text.sub(MASK, text)

    def mask_bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence of the key replaced, JSON's escapes included."""
        return self._in_bytes.sub(MASK.encode(), data) if self._may_hold(data) else data

    def is_in(self, data: bytes) -> bool:
        """Whether *data* holds the key; of a placeholder's length, none does."""
        return self._may_hold(data) and self._in_bytes.search(data) is not None

    def _may_hold(self, data: bytes) -> bool:
        """A quick test: the whole pattern takes a hundred times as long."""
        return self._value.encode() in data or bool(self._escape.search(data))

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


def _spellings(letter: str) -> str:
    r"""A pattern of the ways in which *letter* appears in JSON, and in its strings.

    Any letter may be `\u002f`; a slash, quote or backslash may stand after a backslash.
    JSON within a string of JSON doubles the backslashes, so any number of them fits.
    """
    code = f"{ord(letter):02x}"
    escaped = rf"\\+(?:u00|x)(?i:{code})"
    plain = re.escape(letter)
    if letter in '/"':
        plain = rf"\\*{plain}"
    elif letter == "\\":
        plain = r"\\+"
    return f"(?:{escaped}|{plain})"


class Keyring:
    """Keys that are masked together in whatever comes back."""

    def __init__(self, *keys: Secret) -> None:
        # a key that holds another one must go first, or a piece of it would stay
        self._keys = sorted(keys, key=lambda key: len(key.reveal()), reverse=True)

    def with_also(self, *keys: Secret) -> Keyring:
        """These keys and *keys*."""
        return Keyring(*self._keys, *keys)

    def mask(self, text: str) -> str:
        """*text* with every occurrence of a key replaced."""
        for key in self._keys:
            text = key.mask(text)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence of a key replaced."""
        for key in self._keys:
            data = key.mask_bytes(data)
        return data
