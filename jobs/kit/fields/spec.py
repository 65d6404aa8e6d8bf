"""Declares typed fields: a question, the type of its answer, and how it is judged.

>>> FieldSpec(ask="How many people were enrolled?", type="integer", quote=True).element
'integer'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from jobs.kit.inputs.toml_tables import TomlTable

FieldType: TypeAlias = Literal[
    "string",
    "integer",
    "number",
    "boolean",
    "date",
    "one-of",
    "list",
    "object",
    "list of objects",
]

PlainType: TypeAlias = Literal[
    "string", "integer", "number", "boolean", "date", "one-of"
]
"""Types of single values: of the elements of a list, and of the parts of an object."""

SUFFIXES: Final = (
    "quote",
    "page",
    "section",
    "grounded",
    "unparsed",
    "check",
    "unit",
    "gold",
    "right",
    "agreement",
)
"""Further columns of a field in the table of answers, such as `enrolled_quote`."""

RESERVED: Final = frozenset(
    {"id", "item", "model", "replicate", "replicates", "cost_usd", "file"}
    | {"reasoning", "error", "chunks"}
)
"""Columns of the table of answers, and names in replies, that no field can have."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")

NAME_CHARS: Final = 50
"""Longest name of a field; providers limit the names in a schema to 64 characters."""


def _name(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS:
        raise ValueError(
            f"{name!r} is not a field name (use lower-case letters, digits and _, "
            f"beginning with a letter, at most {NAME_CHARS})"
        )
    if name in RESERVED:
        raise ValueError(
            f"{name!r} is a column of the table of answers (rename the field)"
        )
    return name


FieldName: TypeAlias = Annotated[str, AfterValidator(_name)]
Sentence: TypeAlias = Annotated[str, Field(min_length=1)]


class ScoreRule(TomlTable):
    """Comparison of a field with its gold value.

    Written as a word (`score = "fuzzy"`) or as a table (`score = {method =
    "tolerance", relative = 0.05}`). Without a rule the field's type decides.
    """

    method: Literal["exact", "tolerance", "fuzzy", "set"]
    absolute: float = Field(0.0, ge=0.0)  #: tolerance in the unit of the field
    relative: float = Field(0.0, ge=0.0)  #: tolerance as a share of the gold value
    threshold: float = Field(90.0, ge=0.0, le=100.0)
    """Least similarity of fuzzy texts, in percent (rapidfuzz `token_sort_ratio`)."""
    key: str | None = None  #: the part by which objects of two lists are matched


def _rule(value: object) -> object:
    return {"method": value} if isinstance(value, str) else value


class PartSpec(TomlTable):
    """A part of an object: a single value without its own quote or gold."""

    ask: Sentence
    type: PlainType = "string"
    unit: str | None = None
    options: tuple[Sentence, ...] = ()
    required: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_options(self.type, self.options, self.unit)
        return self


class FieldSpec(TomlTable):
    """A field: one question with the type of its answer."""

    ask: Sentence  #: the question as the model sees it
    type: FieldType = "string"
    of: PlainType = "string"  #: type of the elements of a list
    unit: str | None = None
    """Unit of a number; a reply in another unit is converted if pint is installed."""
    options: tuple[Sentence, ...] = ()  #: values of a one-of, or of a list of them
    fields: Mapping[FieldName, PartSpec] = {}  #: parts of an object, in their order
    quote: bool = False
    """Ask for a verbatim quote per value (per element of a list), checked against the
    text."""
    required: bool = False
    """Whether a null value counts as unparsed instead of as "not reported"."""
    gold: str | None = None  #: column of the items, or of the gold file
    score: Annotated[ScoreRule | None, BeforeValidator(_rule)] = None

    @property
    def is_list(self) -> bool:
        """Return whether the value is a sequence of elements."""
        return self.type in {"list", "list of objects"}

    @property
    def element(self) -> PlainType | Literal["object"]:
        """Return the type of the value, or of one element of a list."""
        match self.type:
            case "list":
                return self.of
            case "object" | "list of objects":
                return "object"
            case plain:
                return plain

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.type != "list" and "of" in self.model_fields_set:
            raise ValueError("'of' belongs to fields of type list")
        if (self.element == "object") != bool(self.fields):
            raise ValueError(
                "an object needs its parts, as [fields.NAME.fields.PART] tables"
                if not self.fields
                else "'fields' belongs to fields of type object or list of objects"
            )
        _check_options(self.element, self.options, self.unit)
        return self


def _check_options(kind: str, options: tuple[str, ...], unit: str | None) -> None:
    if kind == "one-of" and len(options) < 2:  # noqa: PLR2004 - one is no choice
        raise ValueError("one-of needs at least two 'options'")
    if kind != "one-of" and options:
        raise ValueError("'options' belongs to fields of type one-of")
    if len({option.casefold() for option in options}) < len(options):
        raise ValueError("'options' names a value twice")
    if unit and kind not in {"number", "integer"}:
        raise ValueError("'unit' belongs to fields of type number or integer")
