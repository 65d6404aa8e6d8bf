"""What is left out, and what numbers do not show, is said with its denominators."""

from __future__ import annotations

import sys

import pytest

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.caveats import ExcludedRows, findings
from jobs.property_extraction.predictions import PaperOutcome, PaperState
from jobs.property_extraction.results import PropertyResults
from runner.scorecard import LIMITS, Finding
from tests.jobs.property_extraction.scored_rows import ALIAS, STATED, scored, stated


def found(results: PropertyResults) -> dict[str, Finding]:
    return {own.code: own for own in findings(results)}


def test_compositions_that_are_left_out_are_told_with_their_denominators() -> None:
    results = scored(STATED)
    own = found(results)["left_out"]
    assert own.message == (
        "Left out of all counts: 1 property compared as compositions "
        "(pymatgen=leave_out), with 1 of 5 truth rows and 1 predicted row."
    )
    assert own.where == LIMITS
    assert ExcludedRows.of(results).note == f" {own.message}"


def test_without_pymatgen_there_is_one_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pymatgen", None)
    results = scored(STATED, STATED, pymatgen="auto")
    warned = [own for own in findings(results) if own.code == "left_out"]
    assert [own.severity for own in warned] == ["warn"]
    assert "(pymatgen is not installed)" in warned[0].message


@pytest.mark.parametrize(("units", "said"), [("convert", 1), ("ignore", 0)])
def test_without_pint_unknown_units_are_told_where_units_are_converted(
    monkeypatch: pytest.MonkeyPatch, units: str, said: int
) -> None:
    monkeypatch.setitem(sys.modules, "pint", None)
    results = scored(STATED, units=units)
    assert ("no_pint" in found(results)) is bool(said)
    assert ExcludedRows.of(results).note.count("pint") == said


def test_nothing_is_said_of_what_is_there() -> None:
    many = tuple(stated(f"Q{n}", "Tc", "1", "K") for n in range(12))
    told = found(scored(many, pymatgen="on"))
    assert told.keys() == {"none_in_common", "not_in_truth", "not_predicted"}
    assert (told["not_in_truth"].n, told["not_in_truth"].example) == (12, "Q0")
    assert told["not_predicted"].n == 2


def test_few_papers_and_none_are_told() -> None:
    assert found(scored(STATED))["few_papers"].n == 2
    other = (stated("Q1", "Tc", "10", "K"),)
    assert "no_papers" in found(scored(other, paper_set="common"))


def test_aliases_that_nobody_checked_make_encompassment_worthless() -> None:
    drafted = AliasSet(
        entries=(
            AliasEntry(
                pred_name="Hc2", gt_name="field", status="accepted", source="draft"
            ),
        )
    )
    told = found(scored(STATED, aliases=drafted))
    assert (told["draft_aliases"].severity, told["draft_aliases"].n) == ("warn", 1)
    reviewed = scored(STATED, aliases=ALIAS)
    assert "draft_aliases" not in found(reviewed)
    assert "in_sample" in found(reviewed)
    note = reviewed.columns["m1"].metric("encompassment").note
    assert note == "aliases: 1 human, 1 rejected"


def test_papers_without_a_reply_are_told_with_the_first_reason() -> None:
    outcomes = {
        "P1": PaperOutcome(state=PaperState.SCORED),
        "P2": PaperOutcome(state=PaperState.FAILED, reason="truncated"),
    }
    told = found(scored(STATED[:3], outcomes=outcomes))
    assert told["papers_failed"].example == "P2 (truncated)"
