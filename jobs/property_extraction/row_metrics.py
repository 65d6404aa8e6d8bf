"""Measures how the values, units and quotes of rows could be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.kit.metrics import ratio
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.grounding import (
    GROUNDED,
    GroundingLevel,
    QuoteMatch,
    ground,
    is_among,
    numbers_in,
)
from jobs.property_extraction.predictions import ReplicatePredictions
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes, identity
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import Grounding
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind, ValueComparison
from jobs.property_extraction.values.numbers import NumberStatus
from runner.scorecard import Metric

UNITS = ("same", "converted", "missing", "unknown", "incompatible")
NUMBERS: tuple[NumberStatus, ...] = ("value", "bound", "range", "not_a_number")


def status_metrics(
    outcomes: RowOutcomes,
    comparer: Comparer,
    comparisons: Mapping[int, ValueComparison],
) -> Iterator[Metric]:
    """Abstentions, repeats, and the statuses of units and numbers.

    Args:
        outcomes: of one replicate.
        comparer: that reads their numbers.
        comparisons: what `compared_rows` says of them.
    """
    inside = [
        (index, row)
        for index, row in enumerate(outcomes.predictions)
        if outcomes.prediction_outcomes[index] is not RowOutcome.OUTSIDE
    ]
    n = len(inside)
    abstained = sum(
        outcomes.prediction_outcomes[index] is RowOutcome.ABSTAINED
        for index, _ in inside
    )
    yield Metric(
        path="rows", value=n, n=n, definition="rows@1(predicted in scored papers)"
    )
    yield Metric(
        path="abstained",
        value=abstained,
        n=n,
        definition="abstained@1(rows that say that there is no value)",
    )
    yield Metric(
        path="abstention_rate",
        value=ratio(abstained, n),
        n=n,
        definition="abstention_rate@1(abstained / rows)",
    )
    repeats = n - len({identity(row) for _, row in inside})
    yield Metric(
        path="repeats",
        value=repeats,
        n=n,
        definition="repeats@1(rows that equal an earlier one in all fields)",
    )
    yield from _units(outcomes, comparisons)
    yield from _numbers(outcomes, comparer)


def _numbers(outcomes: RowOutcomes, comparer: Comparer) -> Iterator[Metric]:
    rubric = outcomes.dataset.rubric
    for prefix, only_si in (("numbers", False), ("numbers.si", True)):
        statuses = Counter(
            comparer.number(row.value).status
            for index, row in enumerate(outcomes.predictions)
            if outcomes.prediction_outcomes[index] is not RowOutcome.OUTSIDE
            and (
                not only_si
                or rubric.kind(outcomes.renamed[index].name) is ComparisonKind.SI
            )
        )
        of = "of properties in SI" if only_si else "of all properties"
        for status in NUMBERS:
            yield Metric(
                path=f"{prefix}.{status}",
                value=statuses[status],
                n=statuses.total(),
                definition=f"numbers@1(rows {of} by how their value reads)",
            )


def _units(
    outcomes: RowOutcomes, comparisons: Mapping[int, ValueComparison]
) -> Iterator[Metric]:
    """Of predictions against their partner, or the first truth row of their name."""
    every: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for index, comparison in comparisons.items():
        every[comparison.unit_status] += 1
        if outcomes.partners[index] >= 0:
            matched[comparison.unit_status] += 1
    for prefix, counted, of in (
        ("units", every, "rows against the truth of their name"),
        ("units.tp", matched, "matched rows against their truth"),
    ):
        status_counts = {status: counted[status] for status in UNITS}
        for status, n in status_counts.items():
            yield Metric(
                path=f"{prefix}.{status}",
                value=n,
                n=sum(status_counts.values()),
                definition=f"units@1({of}, of properties in SI)",
            )


def compared_rows(
    outcomes: RowOutcomes, comparer: Comparer
) -> Iterator[tuple[int, ValueComparison]]:
    """Each row that counts, by its place, with how it compares.

    With its partner, or with the first truth row of its name in its paper; a row of a
    name that the truth lacks is passed over.
    """
    rubric = outcomes.dataset.rubric
    first: dict[tuple[str, str], TruthRow] = {}
    for truth in outcomes.truth:
        first.setdefault((truth.refno, truth.name), truth)
    for index, outcome in enumerate(outcomes.prediction_outcomes):
        if outcome not in {RowOutcome.TP, RowOutcome.FP}:
            continue
        row, name, partner = (
            outcomes.predictions[index],
            outcomes.names[index],
            outcomes.partners[index],
        )
        other = first.get((row.refno, name)) if partner < 0 else outcomes.truth[partner]
        if other is not None:
            yield index, comparer.compare(rubric.kind(name), name, row, other)


LEAST: dict[Grounding, frozenset[GroundingLevel]] = {
    "none": frozenset(GroundingLevel),
    "near": GROUNDED | {GroundingLevel.NEAR},
    "grounded": GROUNDED,
}
"""The levels that a row may have, by what is asked for."""

JUDGED = GROUNDED | {GroundingLevel.NEAR, GroundingLevel.ABSENT}
"""Levels of rows that have both a quote and a text."""

UNSTATED = frozenset({RowOutcome.OUTSIDE, RowOutcome.ABSTAINED})
"""Rows that state no value of a scored paper, so that no quote is due."""

LEVELS = tuple(GroundingLevel)
"""The best first."""


@dataclass(frozen=True, slots=True)
class RowGrounding:
    """How one row stands in its paper."""

    quote: QuoteMatch
    is_in_quote: bool | None  #: its number; None: it has none, or no quote
    is_in_text: bool | None  #: likewise; None: no text either


def row_groundings(
    dataset: PropertyDataset, predicted: ReplicatePredictions, comparer: Comparer
) -> Sequence[RowGrounding]:
    """Where the quote and the number of each row stand, by row.

    Papers are read one after another, each once.
    """
    by_paper: dict[str, list[int]] = {}
    for index, row in enumerate(predicted.predictions):
        by_paper.setdefault(row.refno, []).append(index)
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


def grounding_metrics(
    outcomes: RowOutcomes, groundings: Sequence[RowGrounding]
) -> Iterator[Metric]:
    """Levels, the rates of fabricated and grounded quotes, and numbers that stand."""
    inside = [
        grounding
        for grounding, outcome in zip(
            groundings, outcomes.prediction_outcomes, strict=True
        )
        if outcome not in UNSTATED
    ]
    levels = Counter(grounding.quote.level for grounding in inside)
    for level in LEVELS:
        yield Metric(
            path=f"grounding.{level}",
            value=levels[level],
            n=len(inside),
            definition="grounding@1(rows by how their quote stands in the paper)",
        )
    judged = sum(levels[level] for level in JUDGED)
    yield Metric(
        path="fabricated_quote_rate",
        value=ratio(levels[GroundingLevel.ABSENT], judged),
        n=judged,
        definition="fabricated_quote_rate@1(absent / rows with quote and text)",
    )
    yield Metric(
        path="grounded_rate",
        value=ratio(sum(levels[level] for level in GROUNDED), judged),
        n=judged,
        definition="grounded_rate@1((exact + normalised + elided) / rows with quote "
        "and text)",
    )
    for path, checks, source in (
        ("value_in_quote", [grounding.is_in_quote for grounding in inside], "quote"),
        ("value_in_text", [grounding.is_in_text for grounding in inside], "text"),
    ):
        defined = [check for check in checks if check is not None]
        yield Metric(
            path=path,
            value=ratio(sum(defined), len(defined)),
            n=len(defined),
            definition=f"{path}@1(rows whose number stands in the {source} / rows with "
            f"number and {source}; 1e-9)",
        )
