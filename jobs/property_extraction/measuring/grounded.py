"""Whether quotes stand in their papers, and numbers in quotes and papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.metrics import ratio
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import Predicted
from jobs.property_extraction.grounding.numbers import numbers_in, stands
from jobs.property_extraction.grounding.quote import GROUNDED, Grounded, Level, ground
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.settings import Grounding
from jobs.property_extraction.values.comparer import Comparer
from runner.scorecard import Metric

LEAST: dict[Grounding, frozenset[Level]] = {
    "none": frozenset(Level),
    "near": GROUNDED | {Level.NEAR},
    "grounded": GROUNDED,
}
"""The levels that a row may have, by what is asked for."""

JUDGED = GROUNDED | {Level.NEAR, Level.ABSENT}
"""Levels of rows that have both a quote and a text."""

UNSTATED = frozenset({Fate.OUTSIDE, Fate.ABSTAINED})
"""Rows that state no value of a scored paper, so that no quote is due."""

LEVELS = tuple(Level)
"""The best first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one row stands in its paper."""

    quote: Grounded
    is_in_quote: bool | None  #: its number; None: it has none, or no quote
    is_in_text: bool | None  #: likewise; None: no text either


def standings(
    dataset: Dataset, predicted: Predicted, comparer: Comparer
) -> Sequence[Standing]:
    """Where the quote and the number of each row stand, by row.

    Papers are read one after another, each once.
    """
    by_paper: dict[str, list[int]] = {}
    for place, row in enumerate(predicted.predictions):
        by_paper.setdefault(row.refno, []).append(place)
    found: dict[int, Standing] = {}
    for refno, places in sorted(by_paper.items()):
        paper = dataset.papers.paper(refno)
        stated = numbers_in(paper.text) if paper.text else ()
        for place in places:
            row = predicted.predictions[place]
            value = comparer.number(row.value).value
            found[place] = Standing(
                quote=ground(paper, row.quote),
                is_in_quote=None
                if value is None or not row.quote
                else stands(value, numbers_in(row.quote)),
                is_in_text=None
                if value is None or not paper.text
                else stands(value, stated),
            )
    return [found[place] for place in range(len(predicted.predictions))]


def metrics(fates: Fates, standing: Sequence[Standing]) -> Iterator[Metric]:
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
        value=ratio(levels[Level.ABSENT], judged),
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
