"""Intervals of a recorded run, where its own figures are those of the default rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.metrics import Interval, Resamples, mcnemar, mean

pytestmark = pytest.mark.realdata

RUN = "clinpgx_qa/paper_investigation/20260213_053253_all_models"


@pytest.fixture(scope="module")
def records(realdata: Path) -> Mapping[str, list[Any]]:
    """Model -> its papers; haiku is left out: its default verdicts differ."""
    files = {
        "opus": "anthropic_claude-opus-4-6",
        "gpt-5.2": "gpt-5.2",
        "sonnet": "anthropic_claude-sonnet-4-5-20250929",
        "mini": "gpt-4o-mini",
    }
    return {
        model: [
            json.loads(line)
            for line in (realdata / RUN / f"{name}_paper_investigation_responses.jsonl")
            .read_bytes()
            .splitlines()
        ]
        for model, name in files.items()
    }


def ends(interval: Interval) -> tuple[float | None, float | None]:
    return interval.lo, interval.hi


@pytest.mark.parametrize(
    ("model", "recall", "score", "accuracy", "pooled"),
    [
        (
            "opus",
            (0.738188244048, 0.899822255291),
            (0.387241568609, 0.585788768555),
            (0.863392366278, 0.92360607188),
            (0.879250275838, 0.933274957515),
        ),
        (
            "gpt-5.2",
            (0.707386326058, 0.875105406746),
            (0.359859303236, 0.559933749908),
            (0.828284138352, 0.897909244452),
            (0.849994477172, 0.913240141335),
        ),
        (
            "sonnet",
            (0.603735720298, 0.793054540945),
            (0.322221067738, 0.521648328836),
            (0.831318593993, 0.895800002439),
            (0.850646344396, 0.909899057004),
        ),
        (
            "mini",
            (0.453888024591, 0.645823525433),
            (0.20000416706, 0.36967984251),
            (0.778994524705, 0.862090792706),
            (0.776643134258, 0.830190608481),
        ),
    ],
)
def test_every_metric_has_the_known_interval(
    records: Mapping[str, list[Any]],
    *,
    model: str,
    recall: tuple[float, float],
    score: tuple[float, float],
    accuracy: tuple[float, float],
    pooled: tuple[float, float],
) -> None:
    papers = records[model]
    variants = [paper["variant_results"].values() for paper in papers]
    resamples = Resamples([paper["pmcid"] for paper in papers], form="percentile")

    assert ends(resamples.mean([p["variant_recall"] for p in papers])) == recall
    assert ends(resamples.mean([p["paper_score"] for p in papers])) == score
    means = [mean(v["question_accuracy"] for v in own) for own in variants]
    assert ends(resamples.mean(means)) == accuracy
    right = [sum(v["questions_correct"] for v in own) for own in variants]
    asked = [sum(v["questions_asked"] for v in own) for own in variants]
    assert ends(resamples.ratio(right, asked)) == pooled


@pytest.mark.parametrize(
    ("one", "other", "difference", "interval", "wins_losses", "p"),
    [
        (
            "opus",
            "gpt-5.2",
            0.0262192046957672,
            (0.00895295678553, 0.0468840422454),
            (20, 2),
            0.00012111663818359375,
        ),
        (
            "opus",
            "sonnet",
            0.06695503731094009,
            (0.0227442323783, 0.120107417804),
            (23, 5),
            0.0009122341871261597,
        ),
        (
            "sonnet",
            "gpt-5.2",
            -0.0407358326151729,
            (-0.0949530530274, 0.00394222775039),
            (13, 13),
            1.0,
        ),
        (
            "sonnet",
            "mini",
            0.1394308005890347,
            (0.0590942606753, 0.220672977561),
            (28, 6),
            None,
        ),
    ],
)
def test_every_pair_has_the_known_difference(
    records: Mapping[str, list[Any]],
    *,
    one: str,
    other: str,
    difference: float,
    interval: tuple[float, float],
    wins_losses: tuple[int, int],
    p: float | None,
) -> None:
    scores = [
        {paper["pmcid"]: paper["paper_score"] for paper in records[model]}
        for model in (one, other)
    ]
    shared = list(scores[0])
    left, right = ([side[pmcid] for pmcid in shared] for side in scores)
    pairs = list(zip(left, right, strict=True))

    assert mean(a - b for a, b in pairs) == pytest.approx(difference, rel=1e-12)
    assert (
        ends(Resamples(shared, form="percentile").difference(left, right)) == interval
    )
    counts = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    assert counts == wins_losses
    if p is not None:
        assert mcnemar(*counts).p == p
