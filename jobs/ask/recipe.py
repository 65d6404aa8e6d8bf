"""Defines recipes: sources of items, fields to ask for, and how to judge them.

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

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from jobs.kit.fields.conditions import Condition, ConditionError
from jobs.kit.fields.spec import SUFFIXES, FieldName, FieldSpec, Sentence
from jobs.kit.inputs.chunks import Chunking
from jobs.kit.inputs.toml_tables import TomlTable, near_hint, read_tables


class Example(TomlTable):
    """A solved example for the prompt: a text with its answers."""

    text: Sentence
    answers: Mapping[str, Any]  #: by field; an omitted field is not reported
    quotes: Mapping[str, str] = {}  #: verbatim quotes, by field


class Then(TomlTable):
    """Follow-up questions for items whose answers meet a condition."""

    when: str  #: over `fields`, such as `design == "RCT" and enrolled > 20`
    fields: Mapping[FieldName, FieldSpec] = Field(min_length=1)
    instructions: str = ""


class Check(TomlTable):
    """Asks a model to verify values against their quotes."""

    fields: tuple[str, ...] = ()  #: fields with quotes; empty: all such fields
    by: Literal["judge", "same"] = "judge"
    """The model of `--judge-model`, or the model that answered."""


class Recipe(TomlTable):
    """A complete recipe."""

    items: str | None = None  #: folder, glob or file, relative to the recipe
    id: str | None = None  #: column of an item's key
    text: str | None = None  #: column, or template such as "{title}\n\n{abstract}"
    document: str | None = None  #: column with the name of a file with the text
    instructions: str = ""
    vision: bool = False  #: send pages of PDF files as images too
    explain: bool = False  #: request a reasoning before the values
    replicates: int = Field(1, ge=1, le=100)
    chunk: Chunking | None = None
    gold: str | None = None  #: file of gold labels, relative to the recipe
    fields: Mapping[FieldName, FieldSpec] = {}
    examples: tuple[Example, ...] = ()
    then: tuple[Then, ...] = ()
    check: tuple[Check, ...] = ()

    @property
    def every_field(self) -> dict[str, FieldSpec]:
        """All fields by name, those of follow-ups after the others."""
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
    """Yield the contradictions between the parts of a recipe."""
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


def read_recipe(text: str, name: str = "recipe.toml") -> Recipe:
    """Parse and validate a recipe.

    Args:
        text: the TOML text.
        name: name of the file, for errors.

    Raises:
        DatasetError: it is not TOML, or a table or key is wrong.
    """
    return read_tables(text, Recipe, name, "the recipe")
