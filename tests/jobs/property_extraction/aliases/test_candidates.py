"""Candidates and alias sets are the same whatever Python hashes names to.

Candidates for aliases: by spelling, by value, in an order that is fixed. Drafts from
the other papers: as if each paper was left out and all done anew. How alike names are:
the ratio of python-Levenshtein, of many at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.testing import MemoryAnswers
from jobs.property_extraction.aliases import candidates
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.aliases.building import AliasEvidence, build_alias_set
from jobs.property_extraction.aliases.candidates import (
    AliasCandidate,
    PaperMismatch,
    PredictionExample,
    alias_candidates,
    blocks,
    contains,
    count_contained,
    crossfitted,
    draft_targets,
    near_names,
    review_candidates,
    similarity,
)
from jobs.property_extraction.aliases.files import set_json
from jobs.property_extraction.inputs import load
from jobs.property_extraction.job import job
from jobs.property_extraction.predictions import run_predictions
from jobs.property_extraction.results import measure_run
from jobs.property_extraction.settings import PropertySettings
from tests.conftest import ROOT
from tests.processes import environment


def made() -> str:
    wrong = frozenset(f"name {n}" for n in range(40))
    missed = frozenset(f"name of truth {n}" for n in range(40))
    papers = {
        refno: list(
            near_names(PaperMismatch(refno=refno, predicted=wrong, missed=missed), 3)
        )
        for refno in ("P1", "P2", "P3")
    }
    review = tuple(
        AliasEntry(
            pred_name=f"n{n % 17}",
            gt_name=f"n{n * 7 % 19}",
            refno=[None, "P1", "P2"][n % 3],
            status="accepted",
        )
        for n in range(60)
    )
    built = build_alias_set(
        AliasEvidence(review=review), canonical=frozenset({"n18"}), clash="set"
    )
    return "\n".join(
        [
            *map(repr, alias_candidates(papers.values())),
            *map(repr, crossfitted(papers, k=3, top=50, canonical=missed)),
            set_json(built.alias_set),
            *built.report,
        ]
    )


def test_another_hash_seed_gives_the_same_candidates_and_the_same_set() -> None:
    assert "cycle: " in made()
    other = "8" if os.environ.get("PYTHONHASHSEED") == "7" else "7"
    done = subprocess.run(
        [sys.executable, "-c", f"import {__name__} as own; print(own.made())"],
        cwd=ROOT,
        env=environment({"PYTHONHASHSEED": other, "PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{made()}\n"


def mismatch(
    predicted: str, missed: str, refno: str = "P1", **hits: dict[tuple[str, str], int]
) -> PaperMismatch:
    return PaperMismatch(
        refno=refno,
        predicted=frozenset(predicted.split()),
        missed=frozenset(missed.split()),
        **hits,
    )


def found(*papers: PaperMismatch, k: int = 3) -> tuple[AliasCandidate, ...]:
    return alias_candidates([list(near_names(paper, k)) for paper in papers])


def pairs(made: tuple[AliasCandidate, ...]) -> list[tuple[str, str]]:
    return [(each.pred_name, each.gt_name) for each in made]


def test_each_wrong_name_has_its_most_similar_targets_and_ties_go_by_name() -> None:
    made = found(mismatch("abcd", "abzz zzab abcz abcy zzzz"), k=3)
    assert pairs(made) == [("abcd", "abcy"), ("abcd", "abcz"), ("abcd", "abzz")]
    assert [each.rank for each in made] == [1, 2, 3]
    assert {each.clash for each in made} == {3}


def test_pairs_of_most_papers_come_first_and_then_the_most_similar() -> None:
    made = found(
        mismatch("ab xy", "abc", "P1"),
        mismatch("xy", "abc", "P2"),
        mismatch("qa", "abc", "P3"),
    )
    assert pairs(made) == [("xy", "abc"), ("ab", "abc"), ("qa", "abc")]
    assert [each.count for each in made] == [2, 1, 1]


def test_a_pair_that_values_speak_for_joins_with_the_rank_that_it_has() -> None:
    hits = {("abcd", "zzzz"): 2, ("abcd", "abcz"): 1}
    paper = mismatch("abcd", "abcz abzz zzzz", value_hits=hits)
    made = found(paper, k=1)
    assert [(each.gt_name, each.rank, each.value_hits) for each in made] == [
        ("abcz", 1, 1),
        ("zzzz", 3, 2),
    ]
    assert pairs(review_candidates([near_names(paper, 1)], k=1, top=9)) == [
        ("abcd", "abcz")
    ]


def test_a_paper_without_wrong_or_without_missed_names_has_no_candidates() -> None:
    assert found(mismatch("", "a"), mismatch("a", "")) == ()


def test_a_right_name_is_looked_at_and_never_drafted_unless_all_are_kept() -> None:
    papers = [list(near_names(mismatch("T1 a", "T1 T2"), 3))]
    reviewed = review_candidates(papers, k=3, top=200, canonical={"T1", "T2"})
    assert ("T1", "T1") in pairs(reviewed)
    assert draft_targets(reviewed) == {"a": "T1"}
    assert draft_targets(reviewed, "keep") == {"T1": "T1", "a": "T1"}


def test_the_draft_has_the_first_target_of_the_rows_that_are_looked_at() -> None:
    papers = [list(near_names(mismatch("b a", "a1 b1 c1"), 3))]
    assert draft_targets(review_candidates(papers, k=3, top=2)) == {
        "a": "a1",
        "b": "b1",
    }
    assert list(draft_targets(review_candidates(papers, k=3, top=200))) == ["a", "b"]


def test_examples_are_three_at_most_and_belong_to_the_predicted_name() -> None:
    stated = {"a": [PredictionExample(value=str(n)) for n in range(5)]}
    (made,) = alias_candidates([near_names(mismatch("a", "b"), 3)], examples=stated)
    assert [example.value for example in made.examples] == ["0", "1", "2"]


WORDS = st.frozensets(st.text(alphabet="abcİ ", min_size=1, max_size=6), max_size=9)


@settings(max_examples=60)
@given(WORDS, WORDS, st.integers(1, 4), st.data())
def test_what_is_found_is_what_sorting_every_pair_finds(
    predicted: frozenset[str], missed: frozenset[str], k: int, data: st.DataObject
) -> None:
    hits = {}
    if predicted and missed:
        pair = st.tuples(
            st.sampled_from(sorted(predicted)), st.sampled_from(sorted(missed))
        )
        hits = data.draw(st.dictionaries(pair, st.integers(0, 2), max_size=4))
    paper = PaperMismatch(
        refno="P1", predicted=predicted, missed=missed, value_hits=hits
    )
    wanted = []
    for name in sorted(predicted):
        ranked = sorted(missed, key=lambda gt: (-similarity(name, gt), gt))
        wanted += [
            (name, gt, rank, similarity(name, gt), hits.get((name, gt), 0))
            for rank, gt in enumerate(ranked, start=1)
            if rank <= k or hits.get((name, gt))
        ]
    seen = [
        (n.pred_name, n.gt_name, n.rank, n.similarity, n.value_hits)
        for n in near_names(paper, k)
    ]
    assert seen == wanted


NAMES = st.frozensets(st.sampled_from(["a", "ab", "abc", "b", "cb", "T1"]), max_size=5)
PAPERS = st.dictionaries(
    st.sampled_from(["P1", "P2", "P3", "P4"]), st.tuples(NAMES, NAMES), max_size=4
)


@given(PAPERS, st.integers(1, 3), st.integers(1, 6))
def test_each_paper_has_the_draft_of_the_others(
    papers: dict[str, tuple[frozenset[str], frozenset[str]]], k: int, top: int
) -> None:
    found = {
        refno: list(
            near_names(PaperMismatch(refno=refno, predicted=own[0], missed=own[1]), k)
        )
        for refno, own in papers.items()
    }
    made = defaultdict(dict)
    for entry in crossfitted(found, k=k, top=top, canonical={"T1"}):
        assert entry.is_draft
        made[entry.refno][entry.pred_name] = entry.gt_name
    for refno in papers:
        others = [found[other] for other in papers if other != refno]
        assert made[refno] == draft_targets(review_candidates(others, k, top, {"T1"}))


def test_a_paper_is_scored_with_what_the_other_papers_suggest(tmp_path: Path) -> None:
    truth, preds = tmp_path / "truth.csv", tmp_path / "preds.csv"
    truth.write_text(
        "refno,label,property_value,unit\n"
        "P1,critical temperature,5,K\n"
        "P2,critical temperature,6,K\n"
        "P2,Debye temperature,200,K\n",
        encoding="utf-8",
    )
    preds.write_text(
        "refno,property_name,value_string,units\n"
        "P1,critical temp,5,K\n"
        "P2,critical temp,6,K\n"
        "P2,Debye temp,200,K\n",
        encoding="utf-8",
    )
    settings = PropertySettings(
        truth=truth, unknown_rubric="exact", boot_b=0, crossfit=True
    )
    given = job.importer.read((preds,), settings, model="m", form=None, replicates={})
    dataset = load(settings)
    answers = MemoryAnswers.of_import(given)
    column = measure_run(dataset, run_predictions(dataset, answers)).columns["m"]
    assert [column.metric(path).value for path in ("tp", "fp", "fn")] == [2, 1, 1]
    acted = [(own.pred_name, own.refno) for own in column.first.aliases.accepted]
    assert acted == [
        ("Debye temp", "P1"),
        ("critical temp", "P1"),
        ("critical temp", "P2"),
    ]
    assert set(column.mismatches.draft) == {"Debye temp", "critical temp"}
    assert column.first.aliases.id in column.metric("f1").definition


SIMILARITY_NAMES = st.lists(
    st.text(alphabet="abAB İ-é", max_size=8), max_size=12, unique=True
)


def by_definition(a: str, b: str) -> float:
    """2 LCS / (length a + length b) of lower-cased names, by the textbook's table."""
    a, b = a.lower(), b.lower()
    line = [0] * (len(b) + 1)
    for left in a:
        before = line[:]
        for at, right in enumerate(b, start=1):
            line[at] = (
                before[at - 1] + 1 if left == right else max(before[at], line[at - 1])
            )
    return 2 * line[-1] / (len(a) + len(b)) if a or b else 1.0


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ("hc2", "upper critical field hc2", 0.2222222222222222),
        ("Debye temperature ΘD", "Debye temperature", 0.9189189189189189),
        ("normal temperature", "common name of structure", 0.47619047619047616),
        ("ABC", "abc", 1.0),
        ("İ", "i", 1 - 1 / 3),
        ("", "", 1.0),
    ],
)
def test_similarity_is_that_of_the_lower_cased_names_to_the_last_digit(
    a: str, b: str, alike: float
) -> None:
    assert candidates.similarity(a, b) == alike


@given(SIMILARITY_NAMES, SIMILARITY_NAMES)
def test_blocks_hold_the_similarity_of_every_pair_whatever_their_size(
    rows: list[str], columns: list[str]
) -> None:
    whole = np.full((len(rows), len(columns)), np.nan)
    cells, candidates.CELLS = candidates.CELLS, 7
    try:
        for start, block in blocks(rows, columns):
            assert block.dtype == np.float64
            assert len(block) == 1 or block.size <= 7
            whole[start : start + len(block)] = block
    finally:
        candidates.CELLS = cells
    for at, a in enumerate(rows):
        for other, b in enumerate(columns):
            assert whole[at, other] == candidates.similarity(a, b)
            assert whole[at, other] == pytest.approx(by_definition(a, b), abs=1e-12)


@given(SIMILARITY_NAMES, SIMILARITY_NAMES)
def test_names_within_others_are_counted_as_if_each_pair_was_looked_at(
    rows: list[str], columns: list[str]
) -> None:
    each = sum(contains(a, b) for a in rows for b in columns)
    assert count_contained(rows, columns) == each


def test_an_empty_name_is_no_part_of_any() -> None:
    assert contains("Hc2", "upper critical field hc2(0)")
    assert not contains("", "a")
    assert not contains("", "")
