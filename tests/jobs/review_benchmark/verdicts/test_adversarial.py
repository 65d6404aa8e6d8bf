"""Pairs of conclusions that words do not tell apart, and verdicts should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.review_benchmark.adversarial_pairs import KINDS, AdversarialReport
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from tests.jobs.screening.commanded import command

WRONG = ("opposite", "hedged")


def test_sixty_pairs_are_alike_by_words_and_the_direction_tells_them_apart() -> None:
    found = AdversarialReport.of(ReviewBenchmarkSettings())
    assert len({pair.id for pair in found.pairs}) == 60
    assert len({pair.authors for pair in found.pairs}) == 60
    figures = found.figures()
    assert tuple(figures) == KINDS
    # these figures stand in docs/review-benchmark.md
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
    assert f"Verdicts ({expected}): conclusions beside" in done.out
