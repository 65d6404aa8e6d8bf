"""Drafts from the other papers: as if each paper was left out and all done anew."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.aliases.candidates import (
    PaperMismatch,
    crossfitted,
    draft_targets,
    near_names,
    review_candidates,
)
from jobs.property_extraction.inputs import load
from jobs.property_extraction.job import job
from jobs.property_extraction.predictions import run_predictions
from jobs.property_extraction.results import measure_run
from jobs.property_extraction.settings import PropertySettings
from jobs.testing import MemoryAnswers

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
