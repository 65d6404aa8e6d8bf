"""Declared names, meanings and directions: how they compose, and that none is missing.

`conftest.py` checks each scorecard that a test of a job makes; here are the samples as
the command line scores them, under every profile.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.measures import Measure, MeasurePart, Measures, MetricWords
from runner.scorecard import Metric
from tests.latex import assert_compiles
from tests.processes import siftlog

WORDS = Measures(
    measures={
        "recall": Measure(
            name="Recall", meaning="Share of all that is found", direction="higher"
        ),
        "recall@{k}": Measure(
            name="Recall at {k}",
            meaning="Share found in the first {k}",
            direction="higher",
        ),
        "all.recall": Measure(
            name="Recall of everything",
            meaning="Share of everything that is found",
            direction="higher",
        ),
        "nDCG": Measure(name="nDCG", meaning="Order of the list", direction="higher"),
        "loss.{cause}": Measure(
            name="lost {cause}", meaning="Lost {cause}", direction="lower"
        ),
        "type.{type*}.recall": Measure(
            name="Recall of type {type}", meaning="Share found of the type {type}"
        ),
    },
    scopes={
        "fold.{fold*}.": MeasurePart(name="fold {fold}"),
        "all.": MeasurePart(name="", meaning="all records"),
        "micro.": MeasurePart(name="pooled"),
    },
    forms={
        "~std": MeasurePart(name="standard deviation", direction="neither"),
        "~wilson": MeasurePart(name="Wilson interval"),
    },
    slots={"cause": {"by_date": "by its date"}},
    headlines=("recall", "recall@{k}"),
)


@pytest.mark.parametrize(
    ("path", "name", "meaning", "direction"),
    [
        ("recall", "Recall", "Share of all that is found.", "higher"),
        (
            "fold.2.recall@10~std",
            "Recall at 10, fold 2, standard deviation",
            "Share found in the first 10; fold 2; standard deviation.",
            "neither",
        ),
        (
            "all.micro.recall~wilson",
            "Recall, pooled, Wilson interval",
            "Share of all that is found; pooled; all records; Wilson interval.",
            "higher",
        ),
        (
            "all.recall",
            "Recall of everything",
            "Share of everything that is found.",
            "higher",
        ),
        ("nDCG", "nDCG", "Order of the list.", "higher"),
        ("loss.by_date", "Lost by its date", "Lost by its date.", "lower"),
        # ids may hold full stops and tildes
        (
            "fold.A.1.recall",
            "Recall, fold A.1",
            "Share of all that is found; fold A.1.",
            "higher",
        ),
        (
            "type.a~b.c.recall",
            "Recall of type a~b.c",
            "Share found of the type a~b.c.",
            "neither",
        ),
    ],
)
def test_words_are_composed_from_the_parts_of_a_path(
    path: str, name: str, meaning: str, direction: Any
) -> None:
    assert WORDS.of(path) == MetricWords(
        name=name, meaning=meaning, direction=direction
    )


@pytest.mark.parametrize(
    "path", ["precision", "loss.by_taste", "fold.2.precision", "recall~odd", "recall."]
)
def test_a_path_with_an_undeclared_part_has_no_words(path: str) -> None:
    assert WORDS.of(path) is None
    metric = Metric(path=path, value=1, n=1)
    assert WORDS.describe([metric]) == (metric,)
    assert metric.label == path


def test_metrics_are_described_and_headlines_marked() -> None:
    described = WORDS.describe(
        Metric(path=path, value=0.5, n=2) for path in ("recall@5", "fold.1.recall")
    )
    assert [(m.name, m.is_headline) for m in described] == [
        ("Recall at 5", True),
        ("Recall, fold 1", False),
    ]


PROFILES = {
    "evidence-retrieval": ("siftlog", "published-lists", "published-cv"),
    "paper-investigation": ("siftlog", "clinpgx-qa"),
    "property-extraction": ("siftlog", "document", "published"),
    "review-benchmark": (),
    "screening": (),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", PROFILES)
def test_every_metric_of_a_sample_has_words_under_every_profile(
    job: str, tmp_path: Path
) -> None:
    siftlog("run", job, "--run-id=r", "--replicates=2", "--no-report", cwd=tmp_path)
    for words in ((), *(("--profile", profile) for profile in PROFILES[job])):
        done = siftlog("score", "r", "--no-record", "--json", *words, cwd=tmp_path)
        card = json.loads(done.stdout.splitlines()[-1])
        for own in card["models"].values():
            metrics = own["metrics"]
            named = {metric["name"] for metric in metrics.values()}
            assert len(metrics) > 50
            assert len(named) == len(metrics)
            for path, metric in metrics.items():
                assert metric["name"] != path
                assert metric["meaning"].endswith(".")
                assert metric["direction"] in {"higher", "lower", "neither"}
        assert card["headlines"]
    again = ("score", "r", "--no-record", "--format")
    made = siftlog(*again, "latex", cwd=tmp_path).stdout
    assert made.count(r"\begin{tabular}") >= 1
    every = siftlog(*again, "latex", "--table=metrics", cwd=tmp_path).stdout
    assert_compiles(f"{made}\n{every}", tmp_path)
    page = siftlog(*again, "markdown", cwd=tmp_path).stdout
    assert all(f"| `{path}` |" in page for path in card["headlines"])
