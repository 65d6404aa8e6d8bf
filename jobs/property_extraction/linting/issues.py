"""The rows of all inputs, each held against the rules of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from jobs.property_extraction.linting.rules import (
    Problem,
    Rule,
    rubric_rules,
    truth_rules,
    unit_rules,
)
from jobs.property_extraction.row import TruthRow
from jobs.property_extraction.rubric import Rubric
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.unit_row import UnitRow

Source: TypeAlias = Literal["truth", "rubric", "unit_table"]
"""The inputs, by their setting."""


class _Row(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def source_row(self) -> int: ...


R = TypeVar("R", bound=_Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One odd thing about one row."""

    source: Source
    row: int  #: in its file; the header is row 1
    problem: Problem
    name: str  #: of the property, or the unit
    told: str  #: what is odd about it


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows that have a problem, of those that could have it."""

    n: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """All that was found."""

    issues: tuple[Issue, ...]  #: by input, then row
    tallies: Mapping[tuple[Source, Problem], Tally]  #: of every rule that was asked
    rows: Mapping[Source, int]

    @property
    def odd(self) -> int:
        """Rows with a problem."""
        return len({(each.source, each.row) for each in self.issues})


def look(
    truth: Sequence[TruthRow],
    rubric: Rubric,
    unit_table: Sequence[UnitRow],
    comparer: Comparer,
) -> Looked:
    """Hold every row against its rules; pure.

    Args:
        truth: rows with a value.
        rubric: without properties: the truth is not looked at for what follows of it.
        unit_table: of further units.
        comparer: how values and units are read.
    """
    issues: list[Issue] = []
    tallies: dict[tuple[Source, Problem], Tally] = {}

    def held(source: Source, every: Iterable[R], rules: Sequence[Rule[R]]) -> int:
        asked = dict.fromkeys((rule.problem for rule in rules), 0)
        found = dict(asked)
        n = 0
        for row in every:
            n += 1
            for rule in rules:
                if not rule.asks(row):
                    continue
                asked[rule.problem] += 1
                if told := rule.finds(row):
                    found[rule.problem] += 1
                    issues.append(
                        Issue(
                            source=source,
                            row=row.source_row,
                            problem=rule.problem,
                            name=row.name,
                            told=told,
                        )
                    )
        for problem, of in asked.items():
            if of:
                tallies[source, problem] = Tally(found[problem], of)
        return n

    rows: dict[Source, int] = {
        "truth": held("truth", truth, truth_rules(rubric, comparer)),
        "rubric": held("rubric", rubric.properties.values(), rubric_rules(comparer)),
        "unit_table": held("unit_table", unit_table, unit_rules(unit_table)),
    }
    return Looked(issues=tuple(issues), tallies=tallies, rows=rows)
