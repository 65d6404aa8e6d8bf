"""Aliases at work: which name a row is matched under, and what it is booked on."""

from __future__ import annotations

from jobs.property_extraction.aliases.alias_set import (
    AliasEntry,
    AliasSet,
    Renaming,
    Status,
)


def alias(
    name: str, target: str, refno: str | None = None, status: Status = "accepted"
) -> AliasEntry:
    return AliasEntry(
        pred_name=name, gt_name=target, refno=refno, status=status, source="human"
    )


def renaming(*entries: AliasEntry, **options: object) -> Renaming:
    return Renaming.of(AliasSet(entries=entries), **options)


def test_a_name_without_an_alias_stands_for_itself() -> None:
    renamed = renaming(alias("a", "T1")).renamed("P1", "b")
    assert (renamed.name, renamed.targets, renamed.entry()) == ("b", ("b",), None)


def test_what_is_not_accepted_does_nothing() -> None:
    made = renaming(
        alias("a", "T1", status="rejected"), alias("b", "T1", status="undecided")
    )
    assert made.renamed("P1", "a").name == "a"
    assert made.renamed("P1", "b").name == "b"


def test_one_step_is_made_whatever_the_target_stands_for() -> None:
    made = renaming(alias("a", "b"), alias("b", "c"))
    assert made.renamed("P1", "a").name == "b"


def test_names_go_by_their_letters_unless_they_are_to_be_folded() -> None:
    entry = alias("Hc2 (0)", "T1")
    assert renaming(entry).renamed("P1", "hc2  (0)").name == "hc2  (0)"
    folded = renaming(entry, name_match="fold")
    assert folded.renamed("P1", " ｈc2  (0)").name == "T1"


def test_a_folded_alias_never_takes_a_right_name_that_is_spelled_otherwise() -> None:
    entry = alias("debye temperature", "T1")
    made = renaming(entry, name_match="fold", canonical={"Debye temperature"})
    assert made.renamed("P1", "Debye temperature").name == "Debye temperature"
    assert made.renamed("P1", "DEBYE temperature").name == "T1"


def test_the_alias_of_a_paper_goes_first_and_then_the_exact_spelling() -> None:
    made = renaming(
        alias("a", "T1"), alias("A", "T2"), alias("a", "T3", "P1"), name_match="fold"
    )
    assert made.renamed("P1", "A").name == "T3"
    assert made.renamed("P2", "A").name == "T2"
    assert made.renamed("P2", "a").name == "T1"


def test_a_row_of_a_target_set_is_booked_on_the_target_it_met() -> None:
    renamed = renaming(alias("a", "T2"), alias("a", "T1")).renamed("P1", "a")
    assert renamed.targets == ("T1", "T2")
    assert renamed.entry() == renamed.entry("T1") == alias("a", "T1")
    assert renamed.entry("T2") == alias("a", "T2")
