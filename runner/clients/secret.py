"""Keys that can be used and not shown."""

from __future__ import annotations

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

    __slots__ = ("_value", "_written")

    def __init__(self, value: str) -> None:
        if not value.isascii() or not value.isprintable() or " " in value or not value:
            raise UsageError(
                "The key in the environment is empty or holds blanks, line breaks or "
                "letters outside ASCII; set the variable again."
            )
        self._value = value
        # Some JSON writers escape the slash, so a key can come back in two spellings.
        spellings = {value, value.replace("/", "\\/")}
        self._written = (
            sorted(spellings, key=len, reverse=True)
            if len(value) >= SHORTEST_MASKED
            else []
        )

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def mask(self, text: str) -> str:
        """*text* with every occurrence of the key replaced."""
        for written in self._written:
            text = text.replace(written, MASK)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence of the key replaced."""
        for written in self._written:
            data = data.replace(written.encode(), MASK.encode())
        return data

    def is_in(self, data: bytes) -> bool:
        """Whether *data* holds the key; of a placeholder's length, none does."""
        return any(written.encode() in data for written in self._written)

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


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
