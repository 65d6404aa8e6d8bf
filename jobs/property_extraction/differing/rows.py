"""The predictions of a model as a difference books them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.differing.booking import (
    Alias,
    Bookable,
    BookedRow,
    booked,
)
from jobs.property_extraction.measuring.fate import Fate, Fates
from runner.scorecard import Booking

SETTINGS = frozenset({"aliases", "accept_drafts", "clash", "name_match"})
"""What decides which aliases act; a change of anything else is booked on none."""


def is_of_aliases(names: Collection[str]) -> bool:
    """Whether a change of these settings is one of aliases alone."""
    return bool(names) and SETTINGS.issuperset(names)


def booked_on_aliases(
    names: Collection[str], before: Bookable, after: Bookable
) -> Booking | None:
    """The rows that a change of these settings gained or lost; None: of others too."""
    return booked(before, after) if is_of_aliases(names) else None


def bookable(fates: Fates) -> Bookable:
    """The rows of one replicate, by their place, each with the alias that it has."""
    return Bookable(
        rows=tuple(_rows(fates)),
        aliases=tuple(map(_alias, fates.dataset.aliases.accepted)),
    )


def _rows(fates: Fates) -> Iterator[BookedRow]:
    for place, (prediction, fate) in enumerate(
        zip(fates.predictions, fates.fates, strict=True)
    ):
        partner = fates.partners[place]
        name = None if partner < 0 else fates.truth[partner].name
        entry = fates.renamed[place].entry(name)
        alias = None if entry is None else _alias(entry)
        yield BookedRow(place, prediction.refno, fate is Fate.TP, alias)


def _alias(entry: AliasEntry) -> Alias:
    return Alias(entry.pred_name, entry.gt_name, entry.refno, entry.source)
