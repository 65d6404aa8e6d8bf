"""The recorded likeness of real conclusions, as commands print and write it."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from statistics import mean, median

import pytest

from jobs.review_benchmark.effects import read_effect
from tests.commands import command, summary_of
from tests.csv_files import rows

pytestmark = pytest.mark.realdata

MATCHED = {
    "CD008080": 0.3196244439527169,
    "CD010452": 0.5010517037156852,
    "CD012199": 0.5235215662055811,
    "CD013328": 0.619054666352995,
    "CD013640": 0.49378164196999685,
    "CD015016": 0.5305623142886214,
    "CD015244": 0.43694493660427,
    "CD015249": 0.42511874137360445,
}
NUMBERS = [
    "Verdicts (tfidf): conclusions compared with those of the authors",
    "  model    n  matched  null (pairs)  AUROC  threshold  above  passed",
    "  first  8/8    0.481    0.035 (56)  1.000      0.122    8/8     6/6",
    "  own    8/8    1.000    0.056 (56)  1.000      0.093    8/8     8/8",
    "  first against its authors: 6 same effect, 2 not judged (none stated)",
    "  own against its authors: 8 same effect",
    "  Most similar: CD015244 and CD015249 (0.579).",
]
"""All are above the threshold; two of the first sentences state no effect."""

EXACT = 1e-11
"""Similarities are rounded to twelve digits, and recorded with more."""


@pytest.fixture
def truth(realdata: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results that conclude with the first sentence of the authors' conclusion."""
    monkeypatch.chdir(tmp_path)
    truth = realdata / "bmlibrarian" / "ground_truth"
    Path("results").mkdir()
    for name, conclusion in conclusions(truth).items():
        concludes(name, "first", re.split(r"(?<=[.!?])\s+", conclusion)[0])
    return truth


def conclusions(truth: Path) -> dict[str, str]:
    """The authors' own, by review."""
    whole = [json.loads(path.read_text("utf-8-sig")) for path in truth.glob("*.json")]
    found = {each["cochrane_id"]: each["authors_conclusion"] for each in whole}
    return dict(sorted(found.items()))


def concludes(review: str, library: str, conclusion: str) -> None:
    """The result of an agent that includes nothing."""
    result = {
        "cochrane_id": review,
        "included_papers": [],
        "conclusion": conclusion,
    }
    (Path("results") / f"{review}__{library}.json").write_text(json.dumps(result))


def test_first_sentences_are_told_from_those_of_other_reviews(truth: Path) -> None:
    # beside them the authors' own words: those pairs are of the truth with itself
    for name, conclusion in conclusions(truth).items():
        concludes(name, "own", conclusion)
    options = ("--truth", truth, "--results", "results", "--run-id", "r")
    done = command(
        "import", "review-benchmark", "--no-report", "--verdict", "tfidf", *options
    )
    assert done.code == 0, done.err
    assert "\n".join(NUMBERS) in summary_of("r")
    verdicts = rows(Path("runs/r/scores/1/verdicts.csv"))
    similarity = {
        row["cochrane_id"]: float(row["similarity"])
        for row in verdicts
        if row["model"] == "first"
    }
    assert similarity == pytest.approx(MATCHED, abs=EXACT)
    # all are alike, and those pass that state the effect of the authors
    assert {row["passed"] for row in verdicts} == {"true", ""}
    found = metrics(1)
    assert found["verdict.threshold"] == pytest.approx(0.12167017397283639, abs=EXACT)
    assert (found["verdict.auroc"], found["verdict.above"]) == (1.0, 8)
    assert (found["verdict.passed"], found["verdict.judged"]) == (6, 6)
    # no paper was included, and so no review passes: the two are told apart
    assert (found["passed"], found["macro.recall"]) == (0, 0.0)
    null = rows(Path("runs/r/scores/1/verdict_null.csv"))
    assert all(row["cochrane_id"] != row["truth_cochrane_id"] for row in null)
    assert sum(row["model"] == "first" for row in null) == 56
    among = {
        (row["cochrane_id"], row["truth_cochrane_id"]): float(row["similarity"])
        for row in null
        if row["model"] == "own"
    }
    assert len(among) == 56
    assert mean(among.values()) == pytest.approx(0.056468153128409374, abs=EXACT)
    assert median(among.values()) == pytest.approx(0.03570654641213064, abs=EXACT)
    assert max(among.values()) == pytest.approx(0.5786220172123175, abs=EXACT)
    assert max(among, key=among.__getitem__) == ("CD015244", "CD015249")
    # the default shows the same numbers, which decide nothing there
    done = command("score", "r", "--no-report", "--verdict", "direction")
    assert "\n".join(NUMBERS[1:]) in done.out
    default = metrics(2)
    assert {path for path in default if default[path] != metrics(1)[path]} == set()
    found = metrics(1, "own")
    assert found["verdict.null"] == pytest.approx(0.056468153128409374, abs=EXACT)
    assert found["verdict.threshold"] == pytest.approx(0.09347339658223956, abs=EXACT)


def test_labels_take_the_place_of_mismatched_pairs(truth: Path) -> None:
    # the authors' own words, mismatched by one place: these are the recorded pairs
    whole = conclusions(truth)
    names = list(whole)
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        concludes(name, "next", whole[other])
    options = ("--truth", truth, "--results", "results", "--run-id", "r")
    done = command("import", "review-benchmark", "--no-report", *options)
    assert done.code == 0, done.err
    verdicts = rows(Path("runs/r/scores/1/verdicts.csv"))
    for row in verdicts:
        row["similar"] = str(int(row["model"] == "first"))
    with Path("labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, verdicts[0])
        writer.writeheader()
        writer.writerows(verdicts)
    done = command("score", "r", "--no-report", "--verdict-labels", "labels.csv")
    assert done.code == 0, done.err
    found = metrics(2, "first")
    # CD015244 and CD015249 follow each other: 0.579 without belonging together
    assert found["verdict.threshold"] == pytest.approx(min(MATCHED.values()), abs=EXACT)
    assert "drawn by 16 labels; leave-one-out accuracy 0.875" in done.out
    assert (found["verdict.above"], found["verdict.label_accuracy"]) == (8, 0.875)


def test_the_rule_reads_the_effects_that_eight_authors_state(truth: Path) -> None:
    found = {name: read_effect(text) for name, text in conclusions(truth).items()}
    assert {name: (own.direction, own.certainty) for name, own in found.items()} == {
        # each read by hand too: the leading statement, and the level named first
        "CD008080": ("no_difference", "very_low"),
        "CD010452": ("improves", "very_low"),
        "CD012199": ("improves", "low"),
        "CD013328": ("improves", "high"),
        "CD013640": ("unclear", "very_low"),
        "CD015016": ("unclear", "very_low"),
        "CD015244": ("unclear", "very_low"),
        "CD015249": ("unclear", "very_low"),
    }


def metrics(number: int, model: str = "first") -> dict[str, float]:
    """A scoring's metrics, by path."""
    card = json.loads(Path(f"runs/r/scores/{number}/scorecard.json").read_text())
    return {
        path: each["value"] for path, each in card["models"][model]["metrics"].items()
    }
