"""Prompts of every stage: their blocks, their parts, the schemas of replies.

Their wording is in `prompts.toml`; no prompt contains values of the truth. Parts that
many requests share come first, so that a provider's prompt cache can reuse them. Texts
from files and models are between marks that carry the hash of the enclosed text, so no
text can close its mark, and instructions in it remain data.

Models fill the fields of a reply in the order of their declaration: the quote is copied
before the value is read from it, and a reason precedes its decision. The docstrings of
the schema classes are sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from jobs.kit.chat import data_block
from jobs.property_extraction.parsing import ReportedValue, letter
from jobs.property_extraction.settings import Names
from jobs.property_extraction.values.comparison import Property
from runner.messages import Schema, TextPart
from runner.prompts import Placeholder, PromptBlock, PromptCatalog
from runner.structured import schema_of

_MEANINGS: Final = {
    "paper": "the paper, or a piece of it, between marks",
    "names": "the listed properties, a line of JSON each, between marks",
    "rows": "the values whose quotes are not in the paper, a line of JSON each, "
    "between marks",
    "predicted": "the field of research, a predicted name, and values found under it, "
    "between marks",
    "target": "the property it may mean, between marks",
    "targets": "the properties it may mean, each with its letter, between marks",
}
"""Required parts of a prompt, by placeholder."""

_PAPER, _NAMES, _ROWS, _PREDICTED, _TARGET, _TARGETS = (
    Placeholder(name=name, meaning=meaning, needed=True)
    for name, meaning in _MEANINGS.items()
)
_QUOTE_CHARS: Final = Placeholder(
    name="quote_chars", meaning="characters that a quote has at most"
)

WORDING: Final = PromptCatalog(
    job="property-extraction",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="extract.free",
            meaning="which values does a paper report, properties named by its own "
            "words (names=free)",
            parts={"system": (_QUOTE_CHARS,), "user": (_PAPER,)},
        ),
        PromptBlock(
            name="extract.listed",
            meaning="the same, properties named by a list (names=listed)",
            parts={"system": (_QUOTE_CHARS,), "user": (_NAMES, _PAPER)},
        ),
        PromptBlock(
            name="extract.wanted",
            meaning="which values does a paper report of the properties that the "
            "rubric or the truth names (properties=rubric, truth)",
            parts={
                "system": (
                    _QUOTE_CHARS,
                    Placeholder(
                        name="naming",
                        meaning="naming_free or naming_listed, by the setting names",
                    ),
                ),
                "user": (_NAMES, _PAPER),
                "naming_free": (),
                "naming_listed": (),
            },
        ),
        PromptBlock(
            name="requote",
            meaning="where does the paper say values whose quotes are not in it",
            parts={"system": (_QUOTE_CHARS,), "user": (_PAPER, _ROWS)},
        ),
        PromptBlock(
            name="verify.pair",
            meaning="do two names mean one property (verify=pair)",
            parts={"system": (), "user": (_PREDICTED, _TARGET)},
        ),
        PromptBlock(
            name="verify.choice",
            meaning="which of several properties does a name mean (verify=choice)",
            parts={"system": (), "user": (_PREDICTED, _TARGETS)},
        ),
    ),
)


QUOTE_CHARS: Final = 300
"""Characters of a requested quote, and of an example in a prompt."""


def names_part(properties: Iterable[Property], *, are_all: bool) -> TextPart:
    """Return properties by name; a provider's cache may end after them.

    Args:
        properties: of the database.
        are_all: no others are requested.
    """
    lines = "\n".join(_line(**_property_fields(prop)) for prop in properties)
    return TextPart(
        text=data_block("wanted" if are_all else "names", lines), cache=True
    )


def paper_part(text: str) -> TextPart:
    """Return a paper or a chunk of it; a provider's cache may end after it."""
    return TextPart(text=data_block("paper", text), cache=True)


def rows_part(rows: Sequence[ReportedValue]) -> TextPart:
    """Return rows that need another quote, by their numbers from 1."""
    lines = (
        _line(
            id=number,
            property=row.name,
            material=row.material,
            value=row.value,
            unit=row.unit,
            condition=row.condition,
            quote=row.quote,
        )
        for number, row in enumerate(rows, start=1)
    )
    return TextPart(text=data_block("rows", "\n".join(lines)))


def predicted_part(field: str, name: str, examples: Sequence[str]) -> TextPart:
    """Return a predicted name, with predictions under it."""
    clipped = [example[:QUOTE_CHARS] for example in examples]
    lines = (_line(field=field), _line(name=name), *(_line(found=e) for e in clipped))
    return TextPart(text=data_block("predicted", "\n".join(lines)))


def target_part(target: Property) -> TextPart:
    """Return the property that a name may mean."""
    return TextPart(text=data_block("target", _line(**_property_fields(target))))


def targets_part(targets: Sequence[Property]) -> TextPart:
    """Return the properties that a name may mean, by their letters."""
    lines = (
        _line(letter=letter(index), **_property_fields(target))
        for index, target in enumerate(targets)
    )
    return TextPart(text=data_block("targets", "\n".join(lines)))


def _property_fields(target: Property) -> dict[str, str]:
    texts = {"name": target.name, "definition": target.definition, "unit": target.si}
    return {name: text for name, text in texts.items() if text}


def _line(**fields: object) -> str:
    """Format fields as one line; JSON escapes line breaks in texts."""
    return json.dumps(fields, ensure_ascii=False)


class Value(BaseModel):
    """One value as it is printed, and a verbatim quote of up to 300 characters."""

    property: str
    material: str | None
    condition: str | None
    quote: str
    value: str
    unit: str | None


class ListedValue(BaseModel):
    """One value as it is printed, and a verbatim quote of up to 300 characters.

    A property that is not listed is "other", with a label of its own.
    """

    property: str
    label: str | None
    material: str | None
    condition: str | None
    quote: str
    value: str
    unit: str | None


class Values(BaseModel):
    """Every value that the text reports; empty where there is none."""

    properties: list[Value]


class ListedValues(BaseModel):
    """Every value that the text reports; empty where there is none."""

    properties: list[ListedValue]


class Requote(BaseModel):
    """A verbatim quote for one row, or its withdrawal."""

    id: int
    quote: str | None
    withdraw: bool


class Requotes(BaseModel):
    """An entry for every row that was listed."""

    rows: list[Requote]


class VerdictReply(BaseModel):
    """Whether both names mean one property, and why."""

    reason: str
    is_match: bool


class ChoiceReply(BaseModel):
    """The letter of the target that the name means, or none, and why."""

    reason: str
    target: str


EXTRACT: Final[dict[Names, Schema]] = {
    "free": schema_of(Values, "properties"),
    "listed": schema_of(ListedValues, "properties"),
}
REQUOTE: Final = schema_of(Requotes, "quotes")
VERIFY: Final = schema_of(VerdictReply, "verdict")
CHOOSE: Final = schema_of(ChoiceReply, "choice")
