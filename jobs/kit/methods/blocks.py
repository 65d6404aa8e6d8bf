"""Blocks of a methods text: paragraphs, lists and tables of texts with values.

All words of a template are ours, and everything else in it is a value, written as
`{name}`: numbers, names of models, settings. A number may bring the words that follow
it, in singular and plural: `{count:tasks.failed|task|tasks}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from jobs.kit.methods.references import QuotedValue, QuotedValues
from store.document import Heading

Line: TypeAlias = tuple[str | QuotedValue, ...]
"""A text with its references."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    line: Line


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list without numbers."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsTable:
    """A table of texts with references; the last column is the widest."""

    caption: Line
    columns: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


Block: TypeAlias = Heading | Paragraph | Bullets | MethodsTable

_PLACE: Final = re.compile(r"\{([^{}|]+)(?:\|([^{}|]*)\|([^{}|]*))?\}")


def filled(template: str, known: QuotedValues) -> Line:
    """Return a template with its references.

    Raises:
        KeyError: the template names a reference that the run does not have.
    """
    pieces: list[str | QuotedValue] = []
    at = 0
    for place in _PLACE.finditer(template):
        reference = known[place[1]]
        pieces += [template[at : place.start()], reference]
        if place[2] is not None:
            pieces.append(f" {place[2] if reference.value == 1 else place[3]}")
        at = place.end()
    return tuple(piece for piece in (*pieces, template[at:]) if piece != "")


def joined(words: Iterable[str]) -> str:
    """Join words as a sentence lists them: "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
