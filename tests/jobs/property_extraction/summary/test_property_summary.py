"""The summary fits a terminal, and holds the scorecard's own numbers."""

from __future__ import annotations

from dataclasses import replace

from jobs.property_extraction.aliases.alias_set import SOURCES
from jobs.property_extraction.caveats import findings
from jobs.property_extraction.results import PropertyResults
from jobs.property_extraction.summary import run_text
from jobs.text_format import WIDTH, display_width
from tests.jobs.property_extraction.scored_rows import ALIAS, STATED, scored, stated


def lines(results: PropertyResults) -> list[str]:
    return run_text(results, tuple(findings(results))).splitlines()


def test_the_counts_rates_and_statuses_of_a_model_stand_in_it() -> None:
    told = lines(scored(STATED))
    assert told[:5] == [
        "Property extraction   profile siftlog",
        "aliases: none",
        "m1",
        "  papers 2 scored   rows 5 predicted, 4 truth   abstained 1",
        "  TP 1  FP 2  FN 3",
    ]
    assert "  units    same 2" in told
    assert "  misses 3, name found in 1 (33.3%)" in told


def test_what_aliases_gain_stands_in_it() -> None:
    told = lines(scored(STATED, aliases=ALIAS))
    assert told[1] == f"aliases: {ALIAS.id} (1 human, 1 rejected)"
    gained = "  aliases  1 row renamed, TP 1 without, 2 with (+1); 0 renamed none"
    assert gained in told


def test_no_line_is_wider_than_a_terminal() -> None:
    entries = tuple(
        replace(ALIAS.entries[0], pred_name=f"n{n}", source=source)
        for n, source in enumerate(SOURCES)
    )
    aliases = replace(ALIAS, entries=(*ALIAS.entries, *entries))
    other = (*STATED, stated("a paper with a name that goes on " * 5, "Tc", "1"))
    for line in lines(scored(other, other, aliases=aliases)):
        assert display_width(line) <= WIDTH


def test_nothing_to_score_is_said_and_not_zero() -> None:
    other = (stated("Q1", "Tc", "10", "K"),)
    told = lines(scored(other, paper_set="common"))
    assert "  all rows     P n/a  R n/a  F1 n/a" in told
    note = "note: No paper is scored: no paper is in both truth and predictions."
    assert note in told
