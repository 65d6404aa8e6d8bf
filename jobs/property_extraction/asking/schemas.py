"""The JSON schemas that replies should follow.

The fields are answered in the order in which they are declared: the quote is copied
before the value is read from it, and a reason comes before its decision. The docstrings
of the classes are sent along.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from jobs.property_extraction.settings import Names
from runner.messages import Schema
from runner.structured import schema_of


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


class Verified(BaseModel):
    """Whether both names mean one property, and why."""

    reason: str
    is_match: bool


class Chosen(BaseModel):
    """The letter of the target that the name means, or none, and why."""

    reason: str
    target: str


EXTRACT: Final[dict[Names, Schema]] = {
    "free": schema_of(Values, "properties"),
    "listed": schema_of(ListedValues, "properties"),
}
REQUOTE: Final = schema_of(Requotes, "quotes")
VERIFY: Final = schema_of(Verified, "verdict")
CHOOSE: Final = schema_of(Chosen, "choice")
