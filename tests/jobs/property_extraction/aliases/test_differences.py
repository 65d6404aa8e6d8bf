"""Rows that aliases gained or lost, booked on one alias each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.aliases.differences import (
    Bookable,
    BookedRow,
    changes_by_alias,
)

TC = AliasEntry(pred_name="Tonset", gt_name="Tc", source="human")
GAP = AliasEntry(pred_name="gap ratio", gt_name="2delta/kTc", source="llm")
SCOPED = AliasEntry(pred_name="Tonset", gt_name="Tc", refno="P2", source="human")


def row(number: int, *, tp: bool = False, by: AliasEntry | None = None) -> BookedRow:
    return BookedRow(number, "P1", tp, by)


def test_a_gained_row_is_booked_on_its_alias_and_a_displaced_one_on_none() -> None:
    made = changes_by_alias(
        Bookable(rows=(row(1), row(2, tp=True), row(3))),
        Bookable(rows=(row(1, tp=True, by=TC), row(2), row(3, by=GAP))),
    )
    assert made.change == 0
    assert made.table.rows == (
        ("Tonset", "Tc", "human", 1, 1, 0, 1),
        ("", "", "not renamed", 0, 0, 1, 1),
        ("gap ratio", "2delta/kTc", "llm", 1, 0, 0, 1),
    )


def test_a_row_that_lost_its_alias_is_booked_on_that_alias() -> None:
    made = changes_by_alias(
        Bookable(rows=(row(1, tp=True, by=TC),)), Bookable(rows=(row(1),))
    )
    assert made.table.rows == (("Tonset", "Tc", "human", 0, 0, 1, 1),)


def test_an_alias_that_renames_nothing_is_listed_without_effect() -> None:
    made = changes_by_alias(Bookable(rows=()), Bookable(rows=(), aliases=(TC,)))
    assert made.table.rows == (("Tonset", "Tc", "human", 0, 0, 0, 0),)
    assert made.change == 0


ALIASES = st.sampled_from([None, TC, GAP, SCOPED])
SIDES = st.dictionaries(st.integers(1, 12), st.tuples(st.booleans(), ALIASES))


def bookable(side: dict[int, tuple[bool, AliasEntry | None]]) -> Bookable:
    rows = (row(number, tp=tp, by=alias) for number, (tp, alias) in side.items())
    return Bookable(rows=tuple(rows), aliases=(TC, GAP))


@given(SIDES, SIDES)
def test_gains_less_losses_are_the_change_of_the_true_positives(
    before: dict[int, tuple[bool, AliasEntry | None]],
    after: dict[int, tuple[bool, AliasEntry | None]],
) -> None:
    made = changes_by_alias(bookable(before), bookable(after))
    change = sum(tp for tp, _ in after.values()) - sum(tp for tp, _ in before.values())
    gained, lost = (
        sum(row[made.table.columns.index(name)] for row in made.table.rows)
        for name in ("tp_gained", "tp_lost")
    )
    assert made.change == change == gained - lost
