"""Measures how the values, units and quotes of rows could be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from jobs.kit.grounding import GROUNDED, GroundingLevel, QuoteMatch, ground
from jobs.kit.grouping import grouped
from jobs.kit.measurements import MeasuredValue, count, counts, share
from jobs.kit.measures import ValueMeasure
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.predictions import ReplicatePredictions
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes, identity
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import Grounding
from jobs.property_extraction.stated_numbers import is_among, numbers_in
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind, ValueComparison
from runner.evaluation import STAYS

UNITS: Mapping[str, str] = {
    "same": "same unit",
    "converted": "converted",
    "missing": "no unit",
    "unknown": "unknown unit",
    "incompatible": "incompatible unit",
}
"""Results of comparing units, in words."""

NUMBERS: Mapping[str, str] = {
    "value": "number",
    "bound": "bound",
    "range": "range",
    "not_a_number": "not a number",
}
"""Kinds of values, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReading:
    """A predicted row of a scored paper, with the results of reading it."""

    is_abstained: bool  #: whether it states that there is no value
    same_as: int  #: index of the first row that equals it
    number: str = field(metadata=STAYS)  #: kind of its value
    is_si: bool  #: whether its property is in SI
    unit: str | None = field(metadata=STAYS)
    """Result for its unit, compared with its partner or the first truth row of its
    name; None: it was not compared."""
    is_matched: bool


RowReadings: TypeAlias = Sequence[RowReading]
"""The rows of one replicate."""


def row_readings(
    outcomes: RowOutcomes,
    comparer: Comparer,
    comparisons: Mapping[int, ValueComparison],
) -> Iterator[RowReading]:
    """Yield the rows of one replicate.

    Args:
        outcomes: of the replicate.
        comparer: reads their numbers.
        comparisons: results of `compared_rows`.
    """
    first: dict[tuple[str, ...], int] = {}
    rubric = outcomes.dataset.rubric
    for index, outcome in enumerate(outcomes.prediction_outcomes):
        if outcome is RowOutcome.OUTSIDE:
            continue
        row, comparison = outcomes.predictions[index], comparisons.get(index)
        yield RowReading(
            is_abstained=outcome is RowOutcome.ABSTAINED,
            same_as=first.setdefault(identity(row), index),
            number=comparer.number(row.value).status,
            is_si=rubric.kind(outcomes.renamed[index].name) is ComparisonKind.SI,
            unit=None if comparison is None else comparison.unit_status,
            is_matched=outcomes.partners[index] >= 0,
        )


def _abstained(rows: RowReadings) -> int:
    return sum(row.is_abstained for row in rows)


def _repeats(rows: RowReadings) -> int:
    """Count the rows that equal an earlier one."""
    return len(rows) - len({row.same_as for row in rows})


def _units(rows: RowReadings, *, matched: bool) -> dict[str, MeasuredValue]:
    """Count rows by unit status."""
    statuses = Counter(row.unit for row in rows if row.is_matched or not matched)
    by_status = {status: statuses[status] for status in UNITS}
    return counts(by_status, sum(by_status.values()))


def _numbers(rows: RowReadings, *, only_si: bool) -> dict[str, MeasuredValue]:
    """Count rows by the kind of their value."""
    statuses = Counter(row.number for row in rows if row.is_si or not only_si)
    by_status = {status: statuses[status] for status in NUMBERS}
    return counts(by_status, statuses.total())


ROWS: Mapping[str, ValueMeasure[RowReadings]] = {
    "rows": ValueMeasure(
        "Predicted rows",
        "Rows predicted in scored papers",
        of=lambda rows: count(len(rows)),
        definition="rows@1(predicted in scored papers)",
    ),
    "abstained": ValueMeasure(
        "Abstentions",
        "Rows that say that there is no value",
        of=lambda rows: count(_abstained(rows), len(rows)),
        definition="abstained@1(rows that say that there is no value)",
    ),
    "abstention_rate": ValueMeasure(
        "Abstention rate",
        "Share of rows that say that there is no value",
        of=lambda rows: share(_abstained(rows), len(rows)),
        definition="abstention_rate@1(abstained / rows)",
    ),
    "repeats": ValueMeasure(
        "Repeated rows",
        "Rows that equal an earlier one in all fields",
        "lower",
        of=lambda rows: count(_repeats(rows), len(rows)),
        definition="repeats@1(rows that equal an earlier one in all fields)",
    ),
    "units.{unit_status}": ValueMeasure(
        "Units, {unit_status}",
        "Rows of SI properties by unit, against the curated row of their name: "
        "{unit_status}",
        of=lambda rows: _units(rows, matched=False),
        definition="units@1(rows against the truth of their name, of properties in SI)",
    ),
    "units.tp.{unit_status}": ValueMeasure(
        "Units of true positives, {unit_status}",
        "Matched rows of SI properties by unit, against their curated row: "
        "{unit_status}",
        of=lambda rows: _units(rows, matched=True),
        definition="units@1(matched rows against their truth, of properties in SI)",
    ),
    "numbers.{number_status}": ValueMeasure(
        "Values read as {number_status}",
        "Rows by how their value reads: {number_status}",
        of=lambda rows: _numbers(rows, only_si=False),
        definition="numbers@1(rows of all properties by how their value reads)",
    ),
    "numbers.si.{number_status}": ValueMeasure(
        "Values of SI properties read as {number_status}",
        "Rows of SI properties by how their value reads: {number_status}",
        of=lambda rows: _numbers(rows, only_si=True),
        definition="numbers@1(rows of properties in SI by how their value reads)",
    ),
}


def compared_rows(
    outcomes: RowOutcomes, comparer: Comparer
) -> Iterator[tuple[int, ValueComparison]]:
    """Yield each row that counts, by index, with a comparison.

    It is compared with its partner, or else with the first truth row of its name in its
    paper; a row of a name that the truth lacks is skipped.
    """
    rubric = outcomes.dataset.rubric
    first: dict[tuple[str, str], TruthRow] = {}
    for truth in outcomes.truth:
        first.setdefault((truth.refno, truth.name), truth)
    for index, row in outcomes.predicted_as(RowOutcome.TP, RowOutcome.FP):
        name, partner = outcomes.names[index], outcomes.partners[index]
        other = first.get((row.refno, name)) if partner < 0 else outcomes.truth[partner]
        if other is not None:
            yield index, comparer.compare(rubric.kind(name), name, row, other)


LEAST: dict[Grounding, frozenset[GroundingLevel]] = {
    "none": frozenset(GroundingLevel),
    "near": GROUNDED | {GroundingLevel.NEAR},
    "grounded": GROUNDED,
}
"""Levels that a row may have, by the required grounding."""

JUDGED = GROUNDED | {GroundingLevel.NEAR, GroundingLevel.ABSENT}
"""Levels of rows that have both a quote and a text."""

UNSTATED = frozenset({RowOutcome.OUTSIDE, RowOutcome.ABSTAINED})
"""Rows that state no value of a scored paper, and need no quote."""

LEVELS = tuple(GroundingLevel)
"""The best first."""


@dataclass(frozen=True, slots=True)
class RowGrounding:
    """The places of one row's quote and number in its paper."""

    quote: QuoteMatch
    is_in_quote: bool | None  #: whether it has its number; None: no number, or no quote
    is_in_text: bool | None  #: the same for the text; None: no number, or no text


def row_groundings(
    dataset: PropertyDataset, predicted: ReplicatePredictions, comparer: Comparer
) -> Sequence[RowGrounding]:
    """Return the grounding of each row, by row.

    Papers are read one after another, each one once.
    """
    by_paper = grouped(
        (row.refno, index) for index, row in enumerate(predicted.predictions)
    )
    groundings: dict[int, RowGrounding] = {}
    for refno, indices in sorted(by_paper.items()):
        paper = dataset.papers.paper(refno)
        stated = numbers_in(paper.text) if paper.text else ()
        for index in indices:
            row = predicted.predictions[index]
            value = comparer.number(row.value).value
            groundings[index] = RowGrounding(
                quote=ground(paper, row.quote),
                is_in_quote=None
                if value is None or not row.quote
                else is_among(value, numbers_in(row.quote)),
                is_in_text=None
                if value is None or not paper.text
                else is_among(value, stated),
            )
    return [groundings[index] for index in range(len(predicted.predictions))]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedRows:
    """The groundings of rows that need a quote."""

    rows: Sequence[RowGrounding]

    @classmethod
    def of(
        cls, outcomes: RowOutcomes, groundings: Sequence[RowGrounding]
    ) -> GroundedRows:
        """Return the rows of one replicate."""
        pairs = zip(groundings, outcomes.prediction_outcomes, strict=True)
        return cls(rows=[row for row, outcome in pairs if outcome not in UNSTATED])

    @property
    def without_places(self) -> GroundedRows:
        """The rows without the places of quotes, which metrics do not use."""
        return GroundedRows(
            rows=[
                replace(row, quote=QuoteMatch(level=row.quote.level))
                for row in self.rows
            ]
        )

    @property
    def levels(self) -> dict[str, MeasuredValue]:
        """Rows by the level of their quote."""
        levels = Counter(row.quote.level for row in self.rows)
        return counts({level: levels[level] for level in LEVELS}, len(self.rows))

    def judged(self, levels: Collection[GroundingLevel]) -> MeasuredValue:
        """Return the share with one of these levels, of rows with quote and text."""
        judged = [row.quote.level for row in self.rows if row.quote.level in JUDGED]
        return share(sum(level in levels for level in judged), len(judged))


def _true(checks: Iterable[bool | None]) -> MeasuredValue:
    defined = [check for check in checks if check is not None]
    return share(sum(defined), len(defined))


GROUNDING: Mapping[str, ValueMeasure[GroundedRows]] = {
    "grounding.{level}": ValueMeasure(
        "Quotes found, {level}",
        "Rows by how their quote occurs in the paper: {level}",
        of=lambda grounded: grounded.levels,
        definition="grounding@1(rows by how their quote stands in the paper)",
    ),
    "fabricated_quote_rate": ValueMeasure(
        "Fabricated quotes",
        "Share of the quotes that can be checked which the paper lacks",
        "lower",
        of=lambda grounded: grounded.judged({GroundingLevel.ABSENT}),
        definition="fabricated_quote_rate@1(absent / rows with quote and text)",
    ),
    "grounded_rate": ValueMeasure(
        "Grounded quotes",
        "Share of the quotes that can be checked which occur in the paper",
        "higher",
        of=lambda grounded: grounded.judged(GROUNDED),
        definition="grounded_rate@1((exact + normalised + elided) / rows with quote "
        "and text)",
    ),
    "value_in_quote": ValueMeasure(
        "Number in the quote",
        "Share of rows with a number whose quote contains it",
        "higher",
        of=lambda grounded: _true(row.is_in_quote for row in grounded.rows),
        definition="value_in_quote@1(rows whose number stands in the quote / rows with "
        "number and quote; 1e-9)",
    ),
    "value_in_text": ValueMeasure(
        "Number in the text",
        "Share of rows with a number whose paper contains it",
        "higher",
        of=lambda grounded: _true(row.is_in_text for row in grounded.rows),
        definition="value_in_text@1(rows whose number stands in the text / rows with "
        "number and text; 1e-9)",
    ),
}
