"""Pairs of conclusions that words do not tell apart, and verdicts should.

From which likeness on conclusions count as the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.adversarial_pairs import KINDS, AdversarialReport
from jobs.review_benchmark.conclusion_similarity import (
    FIXED,
    LEAST_PAIRS,
    threshold_from_labels,
    threshold_from_mismatched,
)
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from tests.commands import command, summary_of

WRONG = ("opposite", "hedged")


def test_sixty_pairs_are_alike_by_words_and_the_direction_tells_them_apart() -> None:
    found = AdversarialReport.of(ReviewBenchmarkSettings())
    assert len({pair.id for pair in found.pairs}) == 60
    assert len({pair.authors for pair in found.pairs}) == 60
    figures = found.figures()
    assert tuple(figures) == KINDS
    assert {
        kind: own["alike_by_words"] for kind, own in figures.items()
    } == dict.fromkeys(KINDS, 20)
    assert {
        kind: (own["passed"], own["failed"], own["not_judged"])
        for kind, own in figures.items()
    } == {"opposite": (0, 20, 0), "hedged": (0, 20, 0), "paraphrase": (20, 0, 0)}


def test_without_certainty_only_directions_count() -> None:
    figures = AdversarialReport.of(
        ReviewBenchmarkSettings(certainty_within=3)
    ).figures()
    assert (figures["opposite"]["passed"], figures["hedged"]["passed"]) == (0, 10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    done = command("prepare", "review-benchmark", "pairs", "--out", "pairs")
    assert done.code == 0, done.err
    assert "opposite       20       0.873              20       0      20" in done.out
    return Path("pairs")


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_can_be_imported_and_scored_by_words(
    folder: Path, kind: str
) -> None:
    own = folder / kind
    words = ("--truth", own / "truth", "--results", own / "results", "--run-id", kind)
    done = command(
        "import", "review-benchmark", *words, "--verdict", "tfidf", "--no-report"
    )
    assert done.code == 0, done.err
    expected = (20, 0, 20) if kind in WRONG else (20, 20, 20)
    assert measured(kind, kind) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_can_be_run_with_a_judge_that_knows_words_only(
    folder: Path, kind: str
) -> None:
    own = folder / kind
    model = f"recorded:{own}/replies.jsonl"
    words = ("--truth", own / "truth", "--database", folder / "papers.db")
    judge = ("--verdict", "judge", "--judge-model", "baseline/lexical")
    done = command(
        "run",
        "review-benchmark",
        *("--model", model, "--run-id", kind, "--no-report"),
        *words,
        *judge,
    )
    assert done.code == 0, done.err
    # it calls no direction the same: no pair passes, however alike it finds them
    assert measured(kind, model) == (20, None, 0)


def measured(run: str, model: str) -> tuple[float | None, ...]:
    card = json.loads(Path(f"runs/{run}/scores/1/scorecard.json").read_text())
    found = card["models"][model]["metrics"]
    names = ("verdict.above", "verdict.passed", "verdict.judged")
    return tuple(found[name]["value"] for name in names)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "direction"),
        (("--judge-model", "baseline/lexical"), "judge"),
        (("--embed-model", "baseline/lexical"), "embedding"),
        (("--judge-model", "baseline/lexical", "--verdict", "tfidf"), "tfidf"),
    ],
)
def test_a_judge_that_is_named_judges(
    words: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(
        "run",
        "review-benchmark",
        *("--review", "CD990005", "--run-id", "r", "--no-report"),
        *words,
    )
    assert done.code == 0, done.err
    assert f"Verdicts ({expected}): conclusions compared with" in summary_of("r")


LABELS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.booleans()), max_size=12
)


def youden(pairs: list[tuple[float, bool]], threshold: float) -> float:
    """Sensitivity and specificity less 1, as the textbooks have it."""
    positives = [each for each, similar in pairs if similar]
    negatives = [each for each, similar in pairs if not similar]
    return sum(each >= threshold for each in positives) / len(positives) - sum(
        each >= threshold for each in negatives
    ) / len(negatives)


@given(LABELS)
def test_labels_draw_the_line_where_youdens_index_is_highest(
    pairs: list[tuple[float, bool]],
) -> None:
    found = threshold_from_labels(
        [each for each, _ in pairs], [label for _, label in pairs]
    )
    if len({label for _, label in pairs}) < 2:
        assert found is None
        return
    assert found is not None
    best = max(youden(pairs, each) for each, _ in pairs)
    at_best = {each for each, _ in pairs if youden(pairs, each) == pytest.approx(best)}
    assert found.value == max(at_best)
    assert (found.source, found.n) == ("labels", len(pairs))


def test_each_label_is_judged_by_the_line_that_the_others_draw() -> None:
    found = threshold_from_labels(
        [0.1, 0.2, 0.3, 0.8, 0.9], [False, False, True, True, True]
    )
    assert found is not None
    # without the 0.3 the line is at 0.8; without any other it stays at 0.3
    assert (found.value, found.accuracy) == (0.3, 0.8)
    # without the only one of its kind the others know of no line, and call all alike
    alone = threshold_from_labels([0.1, 0.2, 0.9], [False, False, True])
    assert alone is not None
    assert alone.accuracy == pytest.approx(2 / 3)


def test_mismatched_pairs_draw_a_line_if_there_are_enough() -> None:
    pairs = [n / 100 for n in range(1, LEAST_PAIRS + 1)]
    assert threshold_from_mismatched(pairs[1:]) is None
    found = threshold_from_mismatched(pairs)
    assert found is not None
    # linear between the 19th and the 20th of twenty: rank 0.95 x 19 = 18.05 from 0
    assert found.value == pytest.approx(0.1905)
    assert (found.source, found.n, found.accuracy) == ("mismatched pairs", 20, None)


def test_judges_and_vectors_borrow_pairs_or_have_a_fixed_threshold() -> None:
    own, others = [0.1] * 10, [0.5] * 10
    for kind in ("judge", "embedding"):
        found = threshold_from_mismatched(own, kind, borrowed=others)
        assert found is not None
        assert (found.source, found.n, found.value) == ("borrowed pairs", 20, 0.5)
        assert not found.admits(0.5)
        found = threshold_from_mismatched(own, kind, borrowed=others[:9])
        assert found is not None
        assert (found.source, found.n, found.value) == ("fixed", 0, FIXED[kind])
        assert found.admits(FIXED[kind])
        # nothing is borrowed where the own pairs are enough
        found = threshold_from_mismatched([0.1] * 20, kind, borrowed=others)
        assert found is not None
        assert (found.source, found.value) == ("mismatched pairs", 0.1)
    # words have no fixed threshold, and pass nothing by themselves
    assert threshold_from_mismatched(own, "tfidf", borrowed=others) is None
