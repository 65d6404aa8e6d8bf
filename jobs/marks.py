"""Blocks of data in a prompt, between marks that no text can close itself.

A mark is a name and the first digits of a hash: of what it encloses, or of a seed such
as a task's key. Where the text has those digits they are hashed again, so instructions
in it stay data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

MARK_LENGTH = 8

_OPENING = re.compile(rf"<([a-z]+)-([0-9a-f]{{{MARK_LENGTH}}})>\n")


def mark(text: str, length: int = MARK_LENGTH, *, seed: str | None = None) -> str:
    """Digits that *text* does not have.

    Args:
        text: what they are to enclose.
        length: how many.
        seed: what they are derived from; None: the text itself.
    """
    digest = text if seed is None else seed
    while True:
        # a lone surrogate, which JSON can hold, has no other bytes
        packed = digest.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(packed).hexdigest()
        if digest[:length] not in text:
            return digest[:length]


def block(name: str, text: str, *, seed: str | None = None) -> str:
    """*text* between its marks."""
    own = mark(text, seed=seed)
    return f"<{name}-{own}>\n{text}\n</{name}-{own}>\n\n"


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Name and content of each block of a prompt."""
    for _, name, content in _cut(text):
        if name:
            yield name, content


def outside(text: str) -> str:
    """What a prompt says beside its blocks."""
    return "".join(before for before, _, _ in _cut(text))


def _cut(text: str) -> Iterator[tuple[str, str, str]]:
    """The text before each block, its name and content; the rest has no name."""
    at = 0
    while opening := _OPENING.search(text, at):
        name, own = opening.groups()
        closing = f"\n</{name}-{own}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        yield text[at : opening.start()], name, text[opening.end() : end]
        at = end + len(closing)
    yield text[at:], "", ""
