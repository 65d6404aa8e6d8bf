"""`report.txt` says what was scored by what, every property, and each definition.

The summary fits a terminal, and holds the scorecard's own numbers. The pairs of names
that a person is to look at, by the profile of a scoring.
"""

from __future__ import annotations

from typing import Any

from jobs.property_extraction.aliases.alias_set import SOURCES
from jobs.property_extraction.caveats import findings
from jobs.property_extraction.results import PropertyResults
from jobs.property_extraction.summary import report, run_text
from jobs.property_extraction.tables import ModelFolders, candidate_tables
from store.document import WIDTH
from store.events import Input
from store.printable import display_width
from tests.jobs.property_extraction.scored_rows import (
    ALIAS,
    STATED,
    scored,
    stated,
    truth,
)
from tests.replacing import replace

TRUTH_FILE = Input(setting="truth", path="/home/of/somebody/gt.csv", sha256="ab" * 32)


def lines(results: PropertyResults) -> list[str]:
    dataset = replace(results.dataset, rules=(TRUTH_FILE,))
    return report(replace(results, dataset=dataset)).text.splitlines()


def test_inputs_stand_by_name_and_hash_alone() -> None:
    told = lines(scored(STATED))
    assert any(line.split() == ["truth", "gt.csv", "ab" * 8] for line in told)
    assert not any("somebody" in line for line in told)


def test_every_property_and_every_metric_stands_in_it() -> None:
    results = scored(STATED, STATED, aliases=ALIAS)
    told = lines(results)
    assert told.count("Properties (3), by misses") == 2
    for name in results.columns["m1"].first.counts.names:
        assert sum(line.startswith(f"  {name} ") for line in told) >= 2
    definitions = told[told.index("Definitions") :]
    for metric in results.columns["m1"].metrics:
        assert any(line.startswith(f"  {metric.path}: ") for line in definitions)


def test_encompassment_stands_beside_who_vouches_for_the_aliases() -> None:
    told = lines(scored(STATED, aliases=ALIAS))
    at = told.index("Encompassment: misses whose name was found")
    assert told[at + 2] == f"  alias set {ALIAS.id} (1 human, 1 rejected)"


def test_names_of_any_length_fit_the_page() -> None:
    rows = (truth("P1", "a very long name " * 20, "1"), *scored(STATED).dataset.truth)
    for line in lines(scored(STATED, rows=rows)):
        assert display_width(line) <= WIDTH


def summary_lines(results: PropertyResults) -> list[str]:
    return run_text(results, tuple(findings(results))).splitlines()


def test_the_counts_rates_and_statuses_of_a_model_stand_in_it() -> None:
    told = summary_lines(scored(STATED))
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
    told = summary_lines(scored(STATED, aliases=ALIAS))
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
    for line in summary_lines(scored(other, other, aliases=aliases)):
        assert display_width(line) <= WIDTH


def test_nothing_to_score_is_said_and_not_zero() -> None:
    other = (stated("Q1", "Tc", "10", "K"),)
    told = summary_lines(scored(other, paper_set="common"))
    assert "  all rows     P n/a  R n/a  F1 n/a" in told
    note = "note: No paper is scored: no paper is in both truth and predictions."
    assert note in told


TRUTH = (
    truth("P1", "gap", "1"),
    truth("P2", "gap", "2"),
    truth("P1", "length", "3"),
)
FILE_STATED = (
    stated("P1", "the gap", "7"),
    stated("P2", "the gap", "7"),
    stated("P1", "a length", "7"),
)


def reviewed(**settings: Any) -> list[tuple[object, ...]]:
    results = scored(FILE_STATED, rows=TRUTH, **settings)
    tables = {own.name: own for own in candidate_tables(results, ModelFolders(["m1"]))}
    return [row[:3] for row in tables["alias_candidates_review"].rows]


def test_the_first_pairs_by_count_are_reviewed() -> None:
    assert reviewed(top=2) == [("the gap", "gap", 2), ("a length", "length", 1)]


def test_the_published_file_has_all_pairs_by_name_and_then_by_count() -> None:
    assert reviewed(top=2, profile="published") == [
        ("a length", "length", 1),
        ("a length", "gap", 1),
        ("the gap", "gap", 2),
        ("the gap", "length", 1),
    ]
