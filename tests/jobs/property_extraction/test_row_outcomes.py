"""Counts and rates of generated rows, against a plain second reading of them.

What is left out, and what numbers do not show, is said with its denominators.
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.caveats import ExcludedRows, findings
from jobs.property_extraction.predictions import PaperOutcome, PaperState
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcome
from jobs.property_extraction.values.numbers import is_abstention
from runner.scorecard import LIMITS, Finding
from tests.jobs.property_extraction.made_rows import Fields, column, values
from tests.jobs.property_extraction.scored_rows import ALIAS, STATED, scored, stated

PAPERS = ("P1", "P2", "P3", "P4")
NAMES = ("Tc", "field", "structure", "formula", "free")
VALUES = ("1", "1.0005", "2", "A15", "a15 like", "NOT_FOUND", "> 2")
UNITS = ("", "K", "mK", "T")

FIELDS = st.tuples(*map(st.sampled_from, (PAPERS, NAMES, VALUES, UNITS)))
ROWS = st.lists(FIELDS, max_size=14)
OPTIONS = st.fixed_dictionaries(
    {
        "matching": st.sampled_from(["maximum", "greedy"]),
        "paper_set": st.sampled_from(["union", "common"]),
        "abstentions": st.sampled_from(["leave_out", "value"]),
        "units": st.sampled_from(["convert", "ignore"]),
    }
)
WORDS = ("precision", "recall", "f1")


def over(above: float, below: float) -> float | None:
    return above / below if below else None


def rates(tp: int, fp: int, fn: int) -> tuple[float | None, ...]:
    return over(tp, tp + fp), over(tp, tp + fn), over(2 * tp, 2 * tp + fp + fn)


def statuses(own: ScoredModel) -> Counter[tuple[str, str, str]]:
    """Rows by paper, name and status, as the file of matches lists them."""
    fates = own.first.row_outcomes
    found: Counter[tuple[str, str, str]] = Counter()
    for place, fate in enumerate(fates.prediction_outcomes):
        if fate in {RowOutcome.TP, RowOutcome.FP}:
            found[fates.predictions[place].refno, fates.names[place], str(fate)] += 1
    for row, fate in zip(fates.truth, fates.truth_outcomes, strict=True):
        if fate is RowOutcome.FN:
            found[row.refno, row.name, "FN"] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, OPTIONS)
def test_every_row_counts_once_or_is_left_out_for_a_reason(
    truth: list[Fields], predictions: list[Fields], options: dict[str, Any]
) -> None:
    own = column(truth, predictions, **options)
    tp, fp, fn = values(own, "tp", "fp", "fn")
    curated, stated = {row[0] for row in truth}, {row[0] for row in predictions}
    is_common = options["paper_set"] == "common"
    papers = curated & stated if is_common else curated | stated
    assert list(own.first.row_outcomes.papers) == sorted(papers)
    inside = [row for row in predictions if row[0] in papers]
    kept = [row for row in inside if row[1] != "formula"]
    if options["abstentions"] == "leave_out":
        kept = [row for row in kept if not is_abstention(row[2])]
    assert tp + fp == len(kept)
    wanted = [row for row in truth if row[0] in papers and row[1] != "formula"]
    assert tp + fn == len(wanted)
    partners = own.first.row_outcomes.truth_partners
    matched = [place for place in partners if place >= 0]
    assert len(matched) == len(set(matched)) == tp
    for place, partner in own.first.row_outcomes.pairs():
        assert predictions[place][:2] == truth[partner][:2]
        assert partners[partner] == place


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, OPTIONS)
def test_a_plain_second_reading_comes_to_the_same(
    truth: list[Fields], predictions: list[Fields], options: dict[str, Any]
) -> None:
    own = column(truth, predictions, **options)
    found = statuses(own)
    total: Counter[str] = Counter()
    by_name: dict[str, Counter[str]] = {}
    by_paper = {refno: Counter[str]() for refno in own.first.row_outcomes.papers}
    groups: dict[tuple[str, str], Counter[str]] = {}
    for (refno, name, status), n in found.items():
        for cell in (
            total,
            by_paper[refno],
            by_name.setdefault(name, Counter()),
            groups.setdefault((refno, name), Counter()),
        ):
            cell[status] += n
    counted = ("TP", "FP", "FN")
    told = rates(*(total[word] for word in counted))
    assert values(own, *WORDS) == pytest.approx(told, nan_ok=True)
    tables = {
        "macro": [rates(*(cell[w] for w in counted)) for cell in by_name.values()],
        "by_paper": [rates(*(cell[w] for w in counted)) for cell in by_paper.values()],
    }
    for at, word in enumerate(WORDS):
        filled = [row[at] or 0.0 for row in tables["macro"]]
        defined = [row[at] for row in tables["macro"] if row[at] is not None]
        papers = [row[at] for row in tables["by_paper"] if row[at] is not None]
        for path, rows in (
            (f"macro.{word}", filled),
            (f"macro.{word}~defined", defined),
            (f"by_paper.{word}", papers),
        ):
            (value,) = values(own, path)
            assert value == (pytest.approx(statistics.fmean(rows)) if rows else None)
    missed = [cell for cell in groups.values() if cell["FN"]]
    wrong = [cell for cell in missed if cell["FP"]]
    paths = ("misses", "name_matches", "encompassment", "encompassment~fn_values")
    replaced = sum(min(cell["FP"], cell["FN"]) for cell in missed)
    assert values(own, *paths) == pytest.approx(
        (
            len(missed),
            len(wrong),
            over(100 * len(wrong), len(missed)),
            over(100 * replaced, total["FN"]),
        )
    )


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS, st.randoms(use_true_random=False), OPTIONS)
def test_the_order_of_rows_changes_no_metric(
    truth: list[Fields],
    predictions: list[Fields],
    random: Any,
    options: dict[str, Any],
) -> None:
    options["matching"] = "maximum"
    first = column(truth, predictions, **options)
    random.shuffle(truth)
    random.shuffle(predictions)
    second = column(truth, predictions, **options)
    # the status of units is that against the first truth row of a name
    first_ones, second_ones = (
        {
            metric.path: metric.value
            for metric in own.metrics
            if not metric.path.startswith("units.")
        }
        for own in (first, second)
    )
    assert first_ones == second_ones


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS)
def test_greedy_never_finds_more(
    truth: list[Fields], predictions: list[Fields]
) -> None:
    found, greedy = (
        values(column(truth, predictions, matching=matching), "tp")
        for matching in ("maximum", "greedy")
    )
    assert found >= greedy


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS)
def test_names_that_are_found_are_those_of_the_rows(
    truth: list[Fields], predictions: list[Fields]
) -> None:
    own = column(truth, predictions)
    wanted = {row[:2] for row in truth if row[1] != "formula"}
    told = {row[:2] for row in predictions if not is_abstention(row[2])}
    names, said = ({name for _, name in rows} for rows in (wanted, told))
    assert values(own, "name_coverage", "name_recall") == (
        over(len(names & said), len(names)),
        over(len(wanted & told), len(wanted)),
    )


def doubled(rows: Iterable[Fields]) -> Sequence[Fields]:
    return [row for row in rows for _ in range(2)]


def test_a_row_said_twice_counts_once_only_if_that_is_wanted() -> None:
    truth = [("P1", "Tc", "5", "K")]
    said = doubled(truth)
    assert values(column(truth, said), "tp", "fp", "repeats") == (1, 1, 1)
    once = column(truth, said, dedupe="exact")
    assert values(once, "tp", "fp", "repeats") == (1, 0, 1)


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
