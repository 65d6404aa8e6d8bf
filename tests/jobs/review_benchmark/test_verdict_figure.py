"""The figure of conclusions: how many pairs lie above each similarity."""

from __future__ import annotations

from dataclasses import replace

from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.score import score
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.scorecard import LineSeries
from tests.jobs.review_benchmark.agents import imported
from tests.jobs.review_benchmark.small_review import REVIEW

SAID = {"CD1": "Walking helps.", "CD2": "Singing harms.", "CD3": "Rest heals."}


def test_pairs_step_down_at_each_similarity() -> None:
    reviews = tuple(replace(REVIEW, id=own, conclusion=SAID[own]) for own in SAID)
    said = {**SAID, "CD3": "Walking helps."}
    results = [
        AgentResult(review=own, label="m", records=(), conclusion=said[own])
        for own in said
    ]
    dataset = ReviewDataset(settings=ReviewBenchmarkSettings(boot_b=0), reviews=reviews)
    figures = {own.name: own for own in score(dataset, imported(*results)).figures}
    (panel,) = figures["verdicts"].panels
    matched, mismatched = (mark for mark in panel.marks if isinstance(mark, LineSeries))
    assert (matched.label, mismatched.label) == ("matched (3)", "mismatched (6)")
    # CD3 has nothing in common with its own authors, and all with those of CD1
    assert (matched.x, matched.y) == ((0.0, 0.0, 1.0), (1.0, 1 - 1 / 3, 0.0))
    assert (mismatched.x, mismatched.y) == ((0.0, 0.0, 1.0), (1.0, 1 - 5 / 6, 0.0))
