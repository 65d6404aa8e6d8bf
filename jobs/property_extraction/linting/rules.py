"""What each row of an input is looked at for, as tables of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from jobs.property_extraction.row import TruthRow
from jobs.property_extraction.rubric import Kind, Property, Rubric
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.disagreement import disagreements
from jobs.property_extraction.values.number import NumberStatus
from jobs.property_extraction.values.unit_row import UnitRow

Row = TypeVar("Row")

ERRORS = frozenset({"#NAME?", "#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"})
"""What a spreadsheet leaves where it took a text for a formula."""


class Problem(StrEnum):
    """What is odd about a row."""

    SPREADSHEET = "spreadsheet_error"
    NOT_IN_RUBRIC = "not_in_rubric"
    NO_UNIT = "no_unit"
    UNIT_ON_TEXT = "unit_on_text"
    UNKNOWN_UNIT = "unknown_unit"
    NO_NUMBER = "no_number"
    SI_UNFIT = "si_unfit"
    FACTOR = "factor"


ADVICE: Mapping[Problem, str] = {
    Problem.SPREADSHEET: "names that a spreadsheet replaced; write them anew, as text",
    Problem.NOT_IN_RUBRIC: "names without a rubric; compared as exact texts",
    Problem.NO_UNIT: "numbers without a unit; compared as they are",
    Problem.UNIT_ON_TEXT: "units of values that are compared as text; not looked at",
    Problem.UNKNOWN_UNIT: "units not understood; numbers are compared as they are",
    Problem.NO_NUMBER: "values that are no number under a rubric of numbers; missed",
    Problem.SI_UNFIT: "SI units under a rubric of texts; is a cell one row off?",
    Problem.FACTOR: "factors that known units contradict; those known are used",
}
"""What a problem means for a score, or what may be done about it."""


READ: Mapping[NumberStatus, str] = {
    "bound": "a bound",
    "range": "a range",
    "not_a_number": "no number",
}
"""What a value is that is no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Row]):
    """One thing to look for."""

    problem: Problem
    asks: Callable[[Row], bool]  #: is it a question about this row at all?
    finds: Callable[[Row], str]  #: what is odd, in a few words; empty: nothing


def truth_rules(rubric: Rubric, comparer: Comparer) -> Sequence[Rule[TruthRow]]:
    """The rules of curated values; those by the rubric's word need a rubric."""

    def is_si(row: TruthRow) -> bool:
        return rubric.kind(row.name) is Kind.SI

    def no_number(row: TruthRow) -> str:
        found = comparer.number(row.value)
        return (
            "" if found.value is not None else f"{row.value!r} is {READ[found.status]}"
        )

    return (
        Rule(
            problem=Problem.SPREADSHEET,
            asks=_always,
            finds=lambda row: row.name if row.name in ERRORS else "",
        ),
        Rule(
            problem=Problem.NOT_IN_RUBRIC,
            asks=lambda _: bool(rubric.properties),
            finds=lambda row: "" if row.name in rubric else row.name,
        ),
        Rule(
            problem=Problem.NO_UNIT,
            asks=is_si,
            finds=lambda row: row.value if comparer.unit(row.unit).blank else "",
        ),
        Rule(
            problem=Problem.UNIT_ON_TEXT,
            asks=lambda row: bool(rubric.properties) and not is_si(row),
            finds=lambda row: "" if comparer.unit(row.unit).blank else row.unit,
        ),
        Rule(
            problem=Problem.UNKNOWN_UNIT,
            asks=is_si,
            finds=lambda row: _unknown(comparer, row.unit),
        ),
        Rule(problem=Problem.NO_NUMBER, asks=is_si, finds=no_number),
    )


def rubric_rules(comparer: Comparer) -> Sequence[Rule[Property]]:
    """The rules of a rubric."""
    return (
        Rule(
            problem=Problem.SPREADSHEET,
            asks=_always,
            finds=lambda own: own.name if own.name in ERRORS else "",
        ),
        Rule(
            problem=Problem.SI_UNFIT,
            asks=lambda own: own.kind is not Kind.SI,
            finds=lambda own: f"{own.kind} in {own.si}" if own.si else "",
        ),
        Rule(
            problem=Problem.UNKNOWN_UNIT,
            asks=lambda own: own.kind is Kind.SI,
            finds=lambda own: _unknown(comparer, own.si),
        ),
    )


def unit_rules(table: Iterable[UnitRow]) -> Sequence[Rule[UnitRow]]:
    """The rule of a table of units."""
    off = {own.row: own.factor for own in disagreements(table)}

    def told(row: UnitRow) -> str:
        if row not in off:
            return ""
        known = off[row]
        if known is None:
            return f"{row.name} is none of {row.si}"
        return f"{row.name} is {known:.7g} {row.si}, not {row.factor:.7g}"

    return (Rule(problem=Problem.FACTOR, asks=_always, finds=told),)


def _unknown(comparer: Comparer, cell: str) -> str:
    found = comparer.unit(cell)
    return "" if found.blank or found.unit is not None else cell


def _always(_: object) -> bool:
    return True
