"""Declared names, meanings and directions: how they compose, and that none is missing.

Trivial baselines: beside every headline, in the summary, in explain.

`conftest.py` checks each scorecard that a test of a job makes; here are the samples as
the command line scores them, under every profile.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.evidence_retrieval.metrics.results import (
    expected_ndcg,
    expected_recall,
    expected_reciprocal,
)
from jobs.kit.baselines import TrivialBaseline, add_baselines
from jobs.kit.measures import (
    BASELINE_FORMS,
    Measure,
    MeasurePart,
    Measures,
    MetricWords,
)
from jobs.kit.metrics import evaluate, hits
from runner.scorecard import BASELINES, Metric, Scorecard
from tests.commands import siftlog
from tests.latex import assert_compiles

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
    "evidence-retrieval": ("published-lists", "published-cv"),
    "paper-investigation": ("clinpgx-qa",),
    "property-extraction": ("document", "published"),
    "review-benchmark": (),
    "screening": (),
}
"""Beside that of no name."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", PROFILES)
def test_every_metric_of_a_sample_has_words_under_every_profile(
    job: str, tmp_path: Path
) -> None:
    siftlog("run", job, "--run-id=r", "--replicates=2", "--no-score", cwd=tmp_path)
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


HEADLINES = {
    "paper-investigation": "avg_paper_score",
    "screening": "all.micro.sensitivity",
    "evidence-retrieval": "auroc",
    "property-extraction": "f1",
    "review-benchmark": "macro.recall",
}


BASELINES_WORDS = Measures(
    measures={"score": Measure(name="Score", meaning="a score", direction="higher")},
    forms=BASELINE_FORMS,
)


def score(value: float | None) -> Metric:
    return BASELINES_WORDS.describe([Metric(path="score", value=value, n=9)])[0]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def baseline(value: float | None, *, lower: bool = False) -> TrivialBaseline:
    return TrivialBaseline(
        of="score",
        key="random",
        name="chance",
        value=value,
        n=9,
        formula="a share",
        lower_is_better=lower,
    )


def test_what_a_model_adds_stands_beside_its_number() -> None:
    card = Scorecard(
        models={
            "m": (score(0.75),),
            "w": (score(0.25),),
            "u": (score(None),),
        },
        summary="made\n",
    )
    found = add_baselines(
        card, {model: [baseline(0.5)] for model in card.models}, BASELINES_WORDS
    )
    assert [m.path for m in found.models["m"]] == ["score", "score~random"]
    assert [m.path for m in found.models["u"]] == ["score"]
    assert found.tables[-1].rows == (
        ("m", "score", 0.75, "chance", 0.5, 0.25),
        ("w", "score", 0.25, "chance", 0.5, -0.25),
    )
    assert found.summary == (
        "made\nOver trivial baselines:\n"
        "  m\n    Score (score) 0.750: chance 0.500 (adds 0.250)\n"
        "  w\n    Score (score) 0.250: chance 0.500 (0.250 worse)\n"
    )
    assert BASELINES in [own.name for own in found.artifacts]


def test_where_lower_is_better_less_is_more() -> None:
    assert baseline(0.2, lower=True).added(0.05) == pytest.approx(0.15)
    assert baseline(None).added(0.5) is None


def test_a_scorecard_without_baselines_stays_as_it_is() -> None:
    card = Scorecard(models={"m": ()}, summary="made\n")
    assert add_baselines(card, {"m": [baseline(0.5)]}, BASELINES_WORDS) is card


@pytest.mark.parametrize(("n", "gold"), [(1, 1), (4, 1), (5, 2), (5, 5), (6, 3)])
def test_a_random_order_has_the_mean_over_all_orders(n: int, gold: int) -> None:
    names = [f"s{i}" for i in range(n)]
    orders = [list(order) for order in itertools.permutations(names)]
    found = evaluate(hits([names[:gold]] * len(orders), orders), ks=[2])
    for name, expected in (
        ("recall@2", expected_recall(2)),
        ("ndcg@2", expected_ndcg(2)),
        ("mrr", expected_reciprocal),
    ):
        mean = sum(found[name].tolist()) / len(orders)
        assert expected(n, gold) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("job", HEADLINES)
def test_every_job_says_what_its_model_adds(job: str, tmp_path: Path) -> None:
    siftlog("run", job, "--run-id=r", cwd=tmp_path)
    said = siftlog("score", "r", "--no-record", cwd=tmp_path).stdout
    assert "Over trivial baselines:" in said
    folder = tmp_path / "runs" / "r" / "scores" / "1"
    rows = table(folder / "baselines.csv")
    card = json.loads((folder / "scorecard.json").read_text("utf-8"))
    assert HEADLINES[job] in {row["metric"] for row in rows}
    for row in rows:
        value, of_baseline = float(row["value"]), float(row["of_baseline"])
        assert abs(float(row["adds"])) == pytest.approx(abs(value - of_baseline))
    item = card.get("worth_explaining", "")
    if item:
        told = siftlog("explain", "r", item, cwd=tmp_path).stdout
        assert "The whole run over trivial baselines:" in told


@pytest.mark.realdata
def test_most_derived_study_questions_expect_not_found(realdata: Path) -> None:
    folder = realdata / "clinpgx_qa" / "derived_questions" / "study_param_questions"
    rows = [
        json.loads(line)
        for line in (folder / "study_param_questions.jsonl").read_bytes().splitlines()
    ]
    said = Counter(
        (row["expected_answer_p_value"], row["expected_answer_significance"])
        for row in rows
    )
    assert said.most_common(1) == [(("not found", "not found"), 125)]
    assert 125 / len(rows) == pytest.approx(0.735, abs=5e-4)


@pytest.mark.realdata
def test_a_real_model_adds_little_to_always_not_found(
    realdata: Path, tmp_path: Path
) -> None:
    folder = realdata / "clinpgx_qa/paper_investigation/20260213_053253_all_models"
    file = folder / "gpt-4o-mini_paper_investigation_responses.jsonl"
    siftlog("import", "paper-investigation", str(file), "--run-id=r", cwd=tmp_path)
    folder = tmp_path / "runs" / "r" / "scores" / "1"
    rows = {
        (row["metric"], row["baseline"]): row for row in table(folder / "baselines.csv")
    }
    study = rows["pipeline.study_param.accuracy", "always not found"]
    asked = [
        row
        for row in table(folder / "questions.csv")
        if row["pipeline"] == "study_param" and row["correct"]
    ]
    absent = sum(row["expected"] == "p=not found, sig=not found" for row in asked)
    assert float(study["of_baseline"]) == pytest.approx(absent / len(asked))
    assert float(study["adds"]) == pytest.approx(0.060, abs=1e-3)
