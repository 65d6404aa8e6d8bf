"""Measures how the values, units and quotes of rows could be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics import ratio
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.grounding import (
    GROUNDED,
    GroundingLevel,
    QuoteMatch,
    ground,
    numbers_in,
    stands,
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
    fates: RowOutcomes, comparer: Comparer, told: Mapping[int, ValueComparison]
) -> Iterator[Metric]:
    """Abstentions, repeats, and the statuses of units and numbers.

    Args:
        fates: of one replicate.
        comparer: that reads their numbers.
        told: what `compared_rows` says of them.
    """
    inside = [
        (place, row)
        for place, row in enumerate(fates.predictions)
        if fates.fates[place] is not RowOutcome.OUTSIDE
    ]
    n = len(inside)
    abstained = sum(fates.fates[place] is RowOutcome.ABSTAINED for place, _ in inside)
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
    yield from _units(fates, told)
    yield from _numbers(fates, comparer)


def _numbers(fates: RowOutcomes, comparer: Comparer) -> Iterator[Metric]:
    rubric = fates.dataset.rubric
    for prefix, only_si in (("numbers", False), ("numbers.si", True)):
        statuses = Counter(
            comparer.number(row.value).status
            for place, row in enumerate(fates.predictions)
            if fates.fates[place] is not RowOutcome.OUTSIDE
            and (
                not only_si
                or rubric.kind(fates.renamed[place].name) is ComparisonKind.SI
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


def _units(fates: RowOutcomes, told: Mapping[int, ValueComparison]) -> Iterator[Metric]:
    """Of predictions against their partner, or the first truth row of their name."""
    every: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for place, own in told.items():
        every[own.unit_status] += 1
        if fates.partners[place] >= 0:
            matched[own.unit_status] += 1
    for prefix, counted, of in (
        ("units", every, "rows against the truth of their name"),
        ("units.tp", matched, "matched rows against their truth"),
    ):
        known = {status: counted[status] for status in UNITS}
        for status, n in known.items():
            yield Metric(
                path=f"{prefix}.{status}",
                value=n,
                n=sum(known.values()),
                definition=f"units@1({of}, of properties in SI)",
            )


def compared_rows(
    fates: RowOutcomes, comparer: Comparer
) -> Iterator[tuple[int, ValueComparison]]:
    """Each row that counts, by its place, with how it compares.

    With its partner, or with the first truth row of its name in its paper; a row of a
    name that the truth lacks is passed over.
    """
    rubric = fates.dataset.rubric
    first: dict[tuple[str, str], TruthRow] = {}
    for truth in fates.truth:
        first.setdefault((truth.refno, truth.name), truth)
    for place, fate in enumerate(fates.fates):
        if fate not in {RowOutcome.TP, RowOutcome.FP}:
            continue
        row, name, partner = (
            fates.predictions[place],
            fates.names[place],
            fates.partners[place],
        )
        other = first.get((row.refno, name)) if partner < 0 else fates.truth[partner]
        if other is not None:
            yield place, comparer.compare(rubric.kind(name), name, row, other)


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
    for place, row in enumerate(predicted.predictions):
        by_paper.setdefault(row.refno, []).append(place)
    found: dict[int, RowGrounding] = {}
    for refno, places in sorted(by_paper.items()):
        paper = dataset.papers.paper(refno)
        stated = numbers_in(paper.text) if paper.text else ()
        for place in places:
            row = predicted.predictions[place]
            value = comparer.number(row.value).value
            found[place] = RowGrounding(
                quote=ground(paper, row.quote),
                is_in_quote=None
                if value is None or not row.quote
                else stands(value, numbers_in(row.quote)),
                is_in_text=None
                if value is None or not paper.text
                else stands(value, stated),
            )
    return [found[place] for place in range(len(predicted.predictions))]


def grounding_metrics(
    fates: RowOutcomes, standing: Sequence[RowGrounding]
) -> Iterator[Metric]:
    """Levels, the rates of fabricated and grounded quotes, and numbers that stand."""
    inside = [
        own
        for own, fate in zip(standing, fates.fates, strict=True)
        if fate not in UNSTATED
    ]
    levels = Counter(own.quote.level for own in inside)
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
    for path, told, where in (
        ("value_in_quote", [own.is_in_quote for own in inside], "quote"),
        ("value_in_text", [own.is_in_text for own in inside], "text"),
    ):
        known = [each for each in told if each is not None]
        yield Metric(
            path=path,
            value=ratio(sum(known), len(known)),
            n=len(known),
            definition=f"{path}@1(rows whose number stands in the {where} / rows with "
            f"number and {where}; 1e-9)",
        )
