"""What is sent instead of what an endpoint refuses: one table; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from runner.clients.refused_fields import FORMAT, PACKED, ROOM, SYSTEM
from runner.wire import Shape, Structure

PLAIN_SCHEMA: Final = "plain schema"

Step: TypeAlias = tuple[str | None, Shape]
"""What is sent instead, in words, and the shape that sends it."""

_TEMPLATE: Final = re.compile(r"alternate|template|jinja|instruction", re.IGNORECASE)
_FEATURES: Final = re.compile(
    r"schema.{0,80}(features?|keywords?|propert|not permitted|not supported by|contain)"
    r"|xgrammar|outlines|unsupported schema|(min|max)(Items|Length|imum)|pattern|anyOf",
    re.IGNORECASE,
)
_STRICT: Final = re.compile(
    r"\bstrict\b|additionalProperties|'required' is required", re.IGNORECASE
)


def _structure(shape: Shape, words: str) -> Step | None:
    """Strict schema, schema, JSON object, words alone."""
    is_schema = shape.structure in {Structure.SCHEMA, Structure.LOOSE}
    if shape.structure is Structure.SCHEMA and _STRICT.search(words):
        return Structure.LOOSE.value, replace(shape, structure=Structure.LOOSE)
    if is_schema and not shape.plain_schema and _FEATURES.search(words):
        return PLAIN_SCHEMA, replace(shape, plain_schema=True)
    match shape.structure:
        case Structure.SCHEMA | Structure.LOOSE:
            return Structure.OBJECT.value, replace(shape, structure=Structure.OBJECT)
        case Structure.OBJECT:
            return Structure.TEXT.value, replace(shape, structure=Structure.TEXT)
        case Structure.TEXT:
            return None


def _system(shape: Shape, words: str) -> Step | None:
    """Role system, role developer, the beginning of the first user message."""
    match shape.system:
        case "system" if not _TEMPLATE.search(words):
            return "developer", replace(shape, system="developer")
        case "system" | "developer":
            return "user", replace(shape, system="user")
        case "user":
            return None


def _packed(shape: Shape, words: str) -> Step | None:
    """Vectors in base64, vectors as numbers."""
    del words
    return (None, replace(shape, packed=False)) if shape.packed else None


def _room(shape: Shape, words: str) -> Step | None:
    """A token limit with room for reasoning, the job's own."""
    del words
    return ("the job's limit", replace(shape, room=False)) if shape.room else None


STEPS: Final[Mapping[str, Callable[[Shape, str], Step | None]]] = {
    FORMAT: _structure,
    SYSTEM: _system,
    PACKED: _packed,
    ROOM: _room,
}
"""What follows the refusal of each; `None`: there is nothing plainer. The names of the
token limit follow one another (`Ladder._limit`); every other field is left out."""
