"""Defines a recipe: what to read, which fields to ask for, and how to judge them.

A recipe is a TOML file. Its smallest form names the papers and one field:

    >>> recipe = read_recipe('''
    ... items = "papers/"
    ...
    ... [fields.enrolled]
    ... ask = "How many people were enrolled?"
    ... type = "integer"
    ... quote = true
    ... ''')
    >>> recipe.fields["enrolled"].type, recipe.fields["enrolled"].required
    ('integer', False)

Every error names the file, the line where it is known, the table and the key; for an
unknown key also the nearest known one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from jobs.ask.conditions import Condition, ConditionError
from jobs.kit.inputs.column_map import nearest
from runner.errors import DatasetError

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


class _Table(BaseModel):
    """A table of a recipe; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScoreRule(_Table):
    """How a field is compared with its gold value.

    Written as a word (`score = "fuzzy"`) or as a table (`score = {method =
    "tolerance", relative = 0.05}`). Without a rule the field's type decides.
    """

    method: Literal["exact", "tolerance", "fuzzy", "set", "judge"]
    absolute: float = Field(0.0, ge=0.0)  #: tolerance in the unit of the field
    relative: float = Field(0.0, ge=0.0)  #: tolerance as a share of the gold value
    threshold: float = Field(90.0, ge=0.0, le=100.0)
    """Least similarity of fuzzy texts, in percent (rapidfuzz `token_sort_ratio`)."""
    key: str | None = None  #: the part by which objects of two lists are matched


def _rule(value: object) -> object:
    return {"method": value} if isinstance(value, str) else value


class PartSpec(_Table):
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


class FieldSpec(_Table):
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


class Chunking(_Table):
    """How a long text is split: each chunk is asked, and the answers are merged."""

    tokens: int = Field(ge=50)  #: longest chunk
    overlap: int = Field(0, ge=0)  #: tokens that a chunk repeats of the one before

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.overlap * 2 > self.tokens:
            raise ValueError("'overlap' is more than half of 'tokens'")
        return self


class Example(_Table):
    """A solved example that the prompt shows: a text with its answers."""

    text: Sentence
    answers: Mapping[str, Any]  #: by field; a field left out is not reported
    quotes: Mapping[str, str] = {}  #: verbatim quotes, by field


class Then(_Table):
    """Follow-up questions for items whose answers meet a condition."""

    when: str  #: over `fields`, such as `design == "RCT" and enrolled > 20`
    fields: Mapping[FieldName, FieldSpec] = Field(min_length=1)
    instructions: str = ""


class Check(_Table):
    """Asks a model to verify values against their quotes."""

    fields: tuple[str, ...] = ()  #: fields with quotes; empty: all of them
    by: Literal["judge", "same"] = "judge"
    """The model of `--judge-model`, or the model that answered."""


class Recipe(_Table):
    """A whole recipe."""

    items: str | None = None  #: folder, glob or file, relative to the recipe
    id: str | None = None  #: column of an item's key
    text: str | None = None  #: column, or template such as "{title}\n\n{abstract}"
    document: str | None = None  #: column that names a file with the text
    instructions: str = ""
    explain: bool = False  #: ask for a reasoning before the values
    replicates: int = Field(1, ge=1, le=100)
    chunk: Chunking | None = None
    gold: str | None = None  #: file of right values, relative to the recipe
    fields: Mapping[FieldName, FieldSpec]
    examples: tuple[Example, ...] = ()
    then: tuple[Then, ...] = ()
    check: tuple[Check, ...] = ()

    @property
    def every_field(self) -> dict[str, FieldSpec]:
        """Return all fields by name, those of follow-ups after the others."""
        return {
            **self.fields,
            **{name: spec for then in self.then for name, spec in then.fields.items()},
        }

    def requested(self, number: int) -> Mapping[str, FieldSpec]:
        """Return the fields of one request: 0 for the first, then of each follow-up."""
        return self.then[number - 1].fields if number else self.fields

    def checked(self, check: Check) -> tuple[str, ...]:
        """Return the fields that a check verifies."""
        return check.fields or tuple(
            name for name, spec in self.every_field.items() if spec.quote
        )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for sentence in _faults(self):
            raise ValueError(sentence)
        return self


def _faults(recipe: Recipe) -> Iterator[str]:
    """Yield what is wrong between the parts of a recipe."""
    if not recipe.fields:
        yield "it asks nothing; add a [fields.NAME] table with ask"
    yield from _name_faults(recipe)
    for number, then in enumerate(recipe.then, 1):
        try:
            Condition.parse(then.when).check(recipe.fields)
        except ConditionError as error:
            yield f"[[then]] number {number}: when = {then.when!r}: {error}"
    for number, check in enumerate(recipe.check, 1):
        for sentence in _check_faults(recipe, check):
            yield f"[[check]] number {number}: {sentence}"
    for number, example in enumerate(recipe.examples, 1):
        for name in (*example.answers, *example.quotes):
            if name not in recipe.fields:
                hint = near_hint(name, list(recipe.fields))
                yield f"[[examples]] number {number}: there is no field {name!r}{hint}"


def _name_faults(recipe: Recipe) -> Iterator[str]:
    names = [*recipe.fields, *(name for then in recipe.then for name in then.fields)]
    for name in names:
        if names.count(name) > 1:
            yield f"the field {name!r} is declared twice (rename one)"
        for suffix in SUFFIXES:
            base = name.removesuffix(f"_{suffix}")
            if base != name and base in names:
                yield (
                    f"the field {name!r} has the name of a column of the field "
                    f"{base!r} in the table of answers (rename it)"
                )


def _check_faults(recipe: Recipe, check: Check) -> Iterator[str]:
    every = recipe.every_field
    for name in check.fields:
        if name not in every:
            yield f"there is no field {name!r}{near_hint(name, list(every))}"
        elif not every[name].quote:
            yield (
                f"the field {name!r} has no quote to check (write quote = true in its "
                "table)"
            )
    if not recipe.checked(check):
        yield "no field has a quote (write quote = true in a field's table)"


def near_hint(name: str, names: list[str] | tuple[str, ...]) -> str:
    """Return a hint at the nearest of *names*: " (did you mean 'x'?)"."""
    near = nearest(name, names, n=1)
    if near:
        return f" (did you mean {near[0]!r}?)"
    return f" (there are: {', '.join(names)})" if names else ""


def read_recipe(text: str, name: str = "recipe.toml") -> Recipe:
    """Parse and validate a recipe.

    Args:
        text: the TOML text.
        name: the file, as errors name it.

    Raises:
        DatasetError: it is not TOML, or a table or key is wrong.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{name}: not valid TOML, {error} (correct it).") from None
    try:
        return Recipe.model_validate(tables)
    except ValidationError as error:
        raise DatasetError(_sentence(error, text, name)) from None


def _sentence(error: ValidationError, text: str, name: str) -> str:
    """Return one sentence for the first error, unknown keys before others."""
    errors = error.errors(include_url=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    place = tuple(part for part in first["loc"] if part != "[key]")
    line = _line(place, text)
    where = f"{name} line {line}" if line else name
    table = _table_name(place[:-1])
    key = str(place[-1]) if place else ""
    match first["type"]:
        case "extra_forbidden":
            known = list(_model_at(place[:-1]).model_fields)
            return f"{where}: {table} has no key {key!r}{near_hint(key, known)}."
        case "missing":
            if key == "fields" and len(place) == 1:
                return f"{name}: it asks nothing; add a [fields.NAME] table with ask."
            return f"{where}: {table} needs the key {key!r} (add it)."
        case "value_error":
            subject = _table_name(place) if place else ""
            complaint = str(first["ctx"]["error"])
            return f"{where}: {subject}{': ' if subject else ''}{complaint}."
        case "literal_error":
            words = str(first["ctx"]["expected"])
            options = [word.strip("'") for word in re.split(", | or ", words)]
            hint = near_hint(str(first["input"]), options)
            return f"{where}: {key} = {first['input']!r} in {table} is unknown{hint}."
        case _:
            subject = f"{key} in {table}" if key else "the recipe"
            return f"{where}: {subject}: {first['msg']} (correct it)."


_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "fields": FieldSpec,
    "then": Then,
    "check": Check,
    "examples": Example,
    "chunk": Chunking,
    "score": ScoreRule,
}


def _model_at(place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model of the table at *place*."""
    model: type[BaseModel] = Recipe
    for part in place:
        if isinstance(part, str) and part in _MODELS:
            is_part = model is FieldSpec and part == "fields"
            model = PartSpec if is_part else _MODELS[part]
    return model


def _table_name(place: tuple[int | str, ...]) -> str:
    """Return a table as a recipe writes its header, such as [fields.enrolled]."""
    names = [str(part) for part in place if isinstance(part, str)]
    if not names:
        return "the recipe"
    numbers = [part for part in place if isinstance(part, int)]
    header = f"[{'.'.join(names)}]"
    if names[0] in {"then", "check", "examples"}:
        header = f"[{header}]" if len(names) == 1 else header
        return f"{header} number {numbers[0] + 1}" if numbers else header
    return header


def _line(place: tuple[int | str, ...], text: str) -> int | None:
    """Return the line of a key or a table, from 1; None if it is not certain."""
    names = [str(part) for part in place if isinstance(part, str)]
    numbers = [part for part in place if isinstance(part, int)]
    lines = text.split("\n")
    for depth in range(len(names), -1, -1):
        header, rest = ".".join(names[:depth]), names[depth:]
        pattern = re.compile(rf"\s*\[\[?\s*{re.escape(header)}\s*\]\]?\s*(#.*)?")
        starts = [n for n, line in enumerate(lines, 1) if pattern.fullmatch(line)]
        skip = numbers[0] if numbers and len(starts) > 1 else 0
        start = starts[min(skip, len(starts) - 1)] if starts and header else 0
        if header and not start:
            continue
        if not rest:
            return start or None
        key = re.compile(rf"\s*{re.escape(rest[0])}\s*[.=]")
        for n, line in enumerate(lines[start:], start + 1):
            if line.lstrip().startswith("["):
                break
            if key.match(line):
                return n
        if header:
            return start
    return None
