"""Recorded answers of real models: the known differences, intervals and tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import siftlog

pytestmark = pytest.mark.realdata

OPUS, HAIKU = "anthropic/claude-opus-4-6", "anthropic/claude-haiku-4-5-20251001"
SONNET, MINI, GPT = "anthropic/claude-sonnet-4-5-20250929", "gpt-4o-mini", "gpt-5.2"

SCORES: dict[
    tuple[str, str], tuple[float, tuple[float, float], tuple[int, int, int]]
] = {
    (OPUS, GPT): (
        *(0.0262192046957672, (0.00895295678553, 0.0468840422454)),
        (20, 50, 2),
    ),
    (OPUS, SONNET): (
        *(0.06695503731094009, (0.0227442323783, 0.120107417804)),
        (23, 44, 5),
    ),
    (HAIKU, SONNET): (
        *(-0.019440599542286045, (-0.0741627492625, 0.0392655692292)),
        (10, 36, 26),
    ),
    (HAIKU, MINI): (
        *(0.11999020104674868, (0.0495991300447, 0.193722410859)),
        (25, 37, 10),
    ),
    (SONNET, GPT): (
        *(-0.0407358326151729, (-0.0949530530274, 0.00394222775039)),
        (13, 46, 13),
    ),
    (SONNET, MINI): (
        *(0.1394308005890347, (0.0590942606753, 0.220672977561)),
        (28, 38, 6),
    ),
}
"""First minus second, its interval, and the first's wins, ties and losses."""


def pairs(cwd: Path, *words: object) -> dict[tuple[str, str], dict[str, Any]]:
    said = json.loads(siftlog("compare", *words, "--json", cwd=cwd).stdout)
    return {
        (pair["a"]["model"], pair["b"]["model"]): pair["metrics"]
        for pair in said["pairs"]
    }


def test_paper_scores_of_five_models(realdata: Path, tmp_path: Path) -> None:
    folder = realdata / "clinpgx_qa/paper_investigation/20260213_053253_all_models"
    files = sorted(folder.glob("*responses.jsonl"))
    siftlog(
        *("import", "paper-investigation", *files, "--run-id=large", "--no-score"),
        cwd=tmp_path,
    )
    found = pairs(
        tmp_path, "large", "--metric=avg_paper_score", "--interval=percentile"
    )
    assert len(found) == 10
    for (first, second), (difference, ends, standing) in SCORES.items():
        # the command gives B minus A, in the run's order of models
        is_turned = (first, second) in found
        metric = found[(first, second) if is_turned else (second, first)]
        score = metric["avg_paper_score"]
        lo, hi = (
            (-score["hi"], -score["lo"]) if is_turned else (score["lo"], score["hi"])
        )
        assert (score["n"], score["only_a"], score["only_b"]) == (72, 0, 0)
        assert abs(score["difference"]) == pytest.approx(abs(difference), abs=1e-12)
        assert (lo, hi) == pytest.approx(ends, rel=1e-11)
        wins, losses, ties = score["standing"].values()
        assert (losses, ties, wins) == standing if is_turned else (wins, ties, losses)
        leaves_0_out = not ends[0] <= 0 <= ends[1]
        is_sure = leaves_0_out and score["test"]["p_holm"] <= 0.05
        assert (score["verdict"] in {"better", "worse"}) == is_sure
