"""Pages tell why rows count as they do, and why names stand for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.explain import explain
from jobs.property_extraction.papers import read_papers
from jobs.property_extraction.rows import Prediction
from jobs.property_extraction.settings import PropertySettings
from runner.errors import UsageError
from store.document import WIDTH
from store.printable import display_width, printable
from tests.jobs.property_extraction.scored_rows import (
    ALIAS,
    RUBRIC,
    STATED,
    TRUTH,
    RowAnswers,
    truth,
)


def told(
    *items: str,
    rows: tuple[Prediction, ...] = STATED,
    aliases: AliasSet = ALIAS,
    papers: Path | None = None,
) -> list[str]:
    dataset = PropertyDataset(
        settings=PropertySettings(pymatgen="leave_out"),
        truth=TRUTH,
        rubric=RUBRIC,
        aliases=aliases,
    )
    if papers is not None:
        dataset = replace(dataset, papers=read_papers(papers))
    lines = explain(dataset, RowAnswers(rows), items).splitlines()
    assert all(display_width(line) <= WIDTH for line in lines)
    return lines


def test_a_paper_lists_its_properties_with_the_most_missed_first() -> None:
    lines = told("P2")
    assert lines[:3] == [
        "P2",
        "summary    truth: 2 rows; m1: TP 0 FP 1 FN 2",
        "truth      2 rows of 2 properties",
    ]
    at = lines.index("  TP 0  FP 1  FN 2")
    assert lines[at + 2 : at + 4] == ["   0   1   1  Tc", "   0   0   1  structure"]
    assert lines[-2].startswith("note: Left out of all counts: 1 property")


def test_a_property_has_both_sides_the_factor_the_edge_and_the_pair() -> None:
    lines = told("P1", "field")
    assert "    p1    3  20     kOe   20    TP      Hc2" in lines
    assert "    kOe -> T: converted, x 0.1" in lines
    assert "    p1  [= 0]" in lines
    assert "    p1 = t1" in lines


def test_a_name_that_was_stated_is_led_to_what_it_stands_for() -> None:
    lines = told("P1", "Hc2")
    assert lines[1].startswith("summary    truth: ")
    assert lines[2:4] == ["alias of   field", "rule       0.1% SI, in T"]
    without = told("P1", "Hc2", aliases=AliasSet())
    assert without[2] == "rule       exact: the rubric does not have the name"
    near = without[
        without.index(
            "  near targets: wrong names, and the missed ones that they may mean"
        ) :
    ]
    assert near[2].split() == ["0.0000", "1", "Hc2", "field"]


def test_a_value_that_is_not_the_true_one_has_its_error() -> None:
    lines = told("P2", "Tc")
    assert "    p1  0.05" in lines
    assert "    no pair" in lines


def test_a_quote_is_shown_with_its_place_in_the_paper(tmp_path: Path) -> None:
    (tmp_path / "P1.txt").write_text("Here Tc is\n10 K, we find.", "utf-8")
    own = replace(STATED[0], quote="Tc is 10 K", condition="at 0 T")
    lines = told("P1", "Tc", rows=(own,), papers=tmp_path)
    assert "    p1   normalised; characters 5 to 15 of the paper; at 0 T" in lines


def test_an_alias_says_who_decided_why_and_what_it_did() -> None:
    lines = told("Hc2")
    assert "  status   accepted by human" in lines
    assert "  reason   the same limit" in lines
    assert "  effect   m1: 1 row renamed in 1 paper, 1 matched" in lines
    rejected = told("Tonset")
    assert "  status   rejected by llm, 1 vote" in rejected
    assert "  effect   m1: no row is renamed by it" in rejected


def test_a_right_name_lists_what_stands_in_for_it() -> None:
    lines = told("field")
    assert "name       canonical (in truth or rubric)" in lines
    assert "  accepted   'Hc2' => 'field'" in lines


def test_a_name_without_an_entry_has_its_candidates() -> None:
    lines = told("Hc2", aliases=AliasSet())
    assert "no alias" in lines
    assert lines[-1].split() == ["1", "0.0000", "1", "field"]


def test_names_after_a_paper_are_about_it_and_pages_come_once() -> None:
    lines = told("P1", "Tc", "Tc", "P2")
    heads = [line for line in lines if line in {"P1", "P1  Tc", "P2"}]
    assert heads == ["P1  Tc", "P2"]


def test_what_nothing_is_called_is_refused_with_what_is_near() -> None:
    with pytest.raises(UsageError, match="the nearest is 'field'"):
        told("P1", "fields")


def test_before_any_run_the_truth_is_told() -> None:
    dataset = PropertyDataset(settings=PropertySettings(), truth=TRUTH, rubric=RUBRIC)
    lines = explain(dataset, None, ("P1", "Tc")).splitlines()
    assert "    t1    0  10     K     10    Tc" in lines


def test_hundreds_of_rows_are_cut_and_counted() -> None:
    rows = tuple(replace(STATED[0], value=str(n)) for n in range(300))
    dataset = PropertyDataset(
        settings=PropertySettings(),
        truth=tuple(truth("P1", "Tc", str(n), "K") for n in range(300)),
        rubric=RUBRIC,
    )
    lines = explain(dataset, RowAnswers(rows), ("P1", "Tc")).splitlines()
    assert lines.count("    and 280 more") == 2
    assert "    and 292 more truth rows" in lines


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1), st.text(min_size=1), st.text(), st.text(min_size=1))
def test_whatever_a_model_writes_a_page_is_printable_and_fits(
    name: str, value: str, unit: str, target: str
) -> None:
    row = Prediction(refno="P1", name=name, value=value, unit=unit, condition=unit)
    entry = replace(ALIAS.entries[0], pred_name=name, gt_name=target)
    aliases = AliasSet(entries=(entry,))
    for items in (("P1",), ("P1", name), (name,), (target,)):
        for line in told(*items, rows=(row,), aliases=aliases):
            assert line == printable(line)
