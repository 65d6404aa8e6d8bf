"""Figures hold the scorecard's own numbers, and only those there is input for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.queries import Sheet
from jobs.evidence_retrieval.scoring import score
from jobs.report.figures import write
from runner.figure import Figure, Line, Points, Rule
from runner.scorecard import Scorecard
from tests.jobs.evidence_retrieval.sheets import MODEL, dataset, full_sheet, small_sheet


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    """Set A with a sweep, and a configuration before the headline."""
    whole = full_sheet()
    (full,) = whole.predictions
    rows = np.arange(len(whole.queries))
    swept = replace(full, sweep={0.7: 4 + rows % 3, 0.9: 8 + rows % 3})
    first = replace(
        full,
        config="first stage",
        score=full.prob,
        prob=None,
        prob_raw=None,
        tau_neg=None,
        tau_pos=None,
        state=None,
        k=None,
        k_rule="10",
    )
    return replace(whole, predictions=(first, swept))


@pytest.fixture(scope="module")
def card(sheet: Sheet) -> Scorecard:
    return score(dataset(boot_b=50), sheet)


def by_name(card: Scorecard) -> dict[str, Figure]:
    return {figure.name: figure for figure in card.figures}


def test_a_whole_run_has_every_figure_and_all_can_be_drawn(
    card: Scorecard, tmp_path: Path
) -> None:
    figures = by_name(card)
    assert list(figures) == [
        "roc",
        "precision-recall",
        "reliability",
        "risk-coverage",
        "k",
        "gamma-sweep",
        "states",
        "criteria",
        "ablation",
    ]
    write(tuple(figures.values()), tmp_path)
    drawn = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {f"{name}.{kind}" for name in figures for kind in ("svg", "png")} == drawn


def test_marks_are_the_numbers_of_the_tables(card: Scorecard) -> None:
    figures, known = by_name(card), {m.path: m for m in card.models[MODEL]}
    (panel,) = figures["precision-recall"].panels
    rule = next(mark for mark in panel.marks if isinstance(mark, Rule))
    assert rule.at == pytest.approx(1379 / 14_770)
    points = next(mark for mark in panel.marks if isinstance(mark, Points))
    assert points.notes == ("p >= 0.5", "screening: not NEG", "alert: POS")
    assert points.y[2] == known["alert_precision"].value
    assert points.x[1] == known["screening_sensitivity"].value
    ndcg = next(p for p in figures["ablation"].panels if p.title == "nDCG@10")
    steps = next(mark for mark in ndcg.marks if isinstance(mark, Points))
    assert steps.x == (known["ndcg@10"].value,) * 2
    assert steps.lo == (known["ndcg@10"].lo,) * 2


def test_criteria_carry_their_n_and_a_dynamic_k_is_never_a_number(
    card: Scorecard,
) -> None:
    panels = by_name(card)["criteria"].panels
    assert [panel.title for panel in panels] == [
        "AUROC",
        "nDCG@10",
        "evidence recall@K",
    ]
    assert panels[0].y.names[0] == "A.1\nn = 153"
    curve = by_name(card)["roc"].panels[0].marks[2]
    assert isinstance(curve, Line)
    assert (curve.x[0], curve.y[-1]) == (0.0, 1.0)


def test_there_are_no_figures_of_what_is_not_there() -> None:
    keys = [(f"p{i}", "A.1") for i in range(4)]
    lists = [(f"p{i}_0",) for i in range(4)]
    plain = small_sheet(keys, y=[1, 0, 1, 0], gold=lists, lists={"a": lists}, final="a")
    assert [f.name for f in score(dataset(boot_b=20), plain).figures] == ["criteria"]
    bare = small_sheet(keys, y=[1, 0, 1, 0])
    assert list(score(dataset(boot_b=20), bare).figures) == []
