"""Figures hold the scorecard's own numbers, and only those there is input for."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from jobs.evidence_retrieval import figures as evidence_figures
from jobs.evidence_retrieval.metrics.results import EvidenceResults, measure_models
from jobs.evidence_retrieval.queries import Predictions, ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.kit.charts import MOST_MODELS
from jobs.kit.metrics.calibration import reliability
from jobs.kit.metrics.classification import curve
from jobs.kit.report.figures import write_figures
from runner.scorecard import (
    Figure,
    Histogram,
    LineSeries,
    Mark,
    Metric,
    Panel,
    Points,
    ReferenceLine,
    Scorecard,
    Stack,
)
from tests.jobs.evidence_retrieval.sheets import (
    MODEL,
    dataset,
    full_sheet,
    settings,
    small_sheet,
)
from tests.jobs.kit.metrics.set_a import set_a

WHOLE = [
    "roc",
    "precision-recall",
    "reliability",
    "criteria",
    "k-by-state",
    "risk-coverage",
    "gamma-sweep",
    "states-by-fold",
    "ablation",
]

Kind = TypeVar("Kind", bound=Mark)


@pytest.fixture(scope="module")
def sheet() -> ScoringInput:
    """Set A with a sweep, a configuration before the headline, and a second model."""
    whole = full_sheet(second=True)
    full, second = whole.predictions
    rows = np.arange(len(whole.queries))
    swept = replace(full, sweep={0.7: 4 + rows % 3, 0.9: 8 + rows % 3})
    return replace(whole, predictions=(_first_stage(full), swept, second))


def _first_stage(full: Predictions) -> Predictions:
    return replace(
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


@pytest.fixture(scope="module")
def card(sheet: ScoringInput) -> Scorecard:
    return score(dataset(boot_b=50), sheet)


@pytest.fixture(scope="module")
def figures(card: Scorecard) -> dict[str, Figure]:
    return {figure.name: figure for figure in card.figures}


def known(card: Scorecard, model: str = MODEL) -> dict[str, Metric]:
    return {each.path: each for each in card.models[model]}


def marks(panel: Panel, kind: type[Kind]) -> list[Kind]:
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def one(panel: Panel, kind: type[Kind], series: int = 0) -> Kind:
    (found,) = (mark for mark in marks(panel, kind) if series_of(mark) == series)
    return found


def series_of(mark: Any) -> int:
    series: int = mark.series
    return series


def test_a_whole_run_has_every_figure_and_all_can_be_drawn(
    figures: dict[str, Figure], tmp_path: Path
) -> None:
    assert list(figures) == WHOLE
    write_figures(tuple(figures.values()), tmp_path)
    drawn = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {f"{name}.{kind}" for name in figures for kind in ("svg", "png")} == drawn


def test_looking_twice_shows_the_same(
    card: Scorecard, figures: dict[str, Figure]
) -> None:
    assert tuple(card.figures) == tuple(figures.values())


def test_nothing_is_made_for_figures_that_nobody_looks_at() -> None:
    sheet = small_sheet([("p", "A.1"), ("q", "A.1")], y=[1, 0], prob=[0.9, 0.1])
    results = measure_models(sheet, settings(boot_b=20))
    looked: list[str] = []

    class Watched(EvidenceResults):
        def __getattribute__(self, name: str) -> Any:
            looked.append(name)
            return super().__getattribute__(name)

    parts = {each.name: getattr(results, each.name) for each in fields(results)}
    gallery = evidence_figures.figures(Watched(**parts))
    assert looked == []
    assert [figure.name for figure in gallery][:2] == ["roc", "precision-recall"]
    assert "draws" in looked


def test_a_small_curve_has_every_point_of_the_roc() -> None:
    y, p = [0, 1, 0, 1, 1, 0], [0.1, 0.4, 0.4, 0.7, 0.9, 0.95]
    keys = [(f"p{i}", "A.1") for i in range(len(y))]
    card = score(dataset(boot_b=20), small_sheet(keys, y=y, prob=p))
    drawn = {figure.name: figure.panels[0] for figure in card.figures}
    points = curve(np.array(y), np.array(p))
    line = one(drawn["roc"], LineSeries)
    assert line.x == tuple(points.fpr.tolist())
    assert line.y == tuple(points.tpr.tolist())
    # each precision is drawn up to the recall that it is reached at
    steps = one(drawn["precision-recall"], LineSeries)
    assert steps.steps
    assert steps.x == tuple(points.tpr.tolist())
    assert steps.y[:-1] == tuple(points.precision[1:].tolist())
    at_tau = one(drawn["roc"], Points)
    assert (at_tau.x[0], at_tau.y[0]) in zip(line.x, line.y, strict=True)
    assert at_tau.notes == ("p >= 0.5",)


def test_operating_points_lie_on_the_curves(figures: dict[str, Figure]) -> None:
    (panel,) = figures["roc"].panels
    for series in (0, 1):
        line, points = one(panel, LineSeries, series), one(panel, Points, series)
        assert points.y == pytest.approx(
            np.interp(floats(points.x), floats(line.x), floats(line.y)), abs=0.003
        )
    # beside two lines letters stand for names, and the caption has both
    assert one(panel, Points).notes == ("P", "S", "A")
    assert "P p >= 0.5, S screening: not NEG, A alert: POS" in figures["roc"].caption


def floats(values: tuple[float | None, ...]) -> list[float]:
    assert None not in values
    return [value for value in values if value is not None]


def test_precision_and_its_chance_are_those_of_the_tables(
    card: Scorecard, figures: dict[str, Figure]
) -> None:
    (panel,) = figures["precision-recall"].panels
    (rule,) = marks(
        panel, ReferenceLine
    )  # one, since both models have answered everything
    assert rule.at == pytest.approx(1379 / 14_770)
    points = one(panel, Points)
    assert points.y[2] == known(card)["alert_precision"].value
    assert points.x[1] == known(card)["screening_sensitivity"].value
    assert one(panel, LineSeries).label == f"AUPRC 0.543: {MODEL}"


def test_each_model_has_its_calibration_with_its_counts_below(
    figures: dict[str, Figure],
) -> None:
    figure = figures["reliability"]
    assert figure.columns == 2
    assert [panel.title for panel in figure.panels] == [MODEL, f"{MODEL}-2", "", ""]
    bins = reliability(set_a().y, set_a().p)
    points = one(figure.panels[0], Points)
    assert points.y == tuple(each.rate for each in bins)
    assert points.lo == tuple(each.interval.lo for each in bins)
    for series, panel in enumerate(figure.panels[2:]):
        assert sum(one(panel, Histogram, series).counts) == 14_770


def test_a_bin_without_queries_has_no_point_and_a_count_of_none() -> None:
    keys = [(f"p{i}", "A.1") for i in range(4)]
    plain = small_sheet(keys, y=[1, 0, 1, 0], prob=[0.9, 0.1, 0.8, 0.2])
    (figure,) = (
        f for f in score(dataset(boot_b=20), plain).figures if f.name == "reliability"
    )
    points = one(figure.panels[0], Points)
    assert len(points.x) == 4
    assert None not in (*points.x, *points.y)
    assert one(figure.panels[1], Histogram).counts.count(0) == 6


def test_criteria_have_their_metrics_with_n_beside_them(
    card: Scorecard, figures: dict[str, Figure]
) -> None:
    area, order, found = figures["criteria"].panels
    assert area.y.names == order.y.names == found.y.names
    assert (area.y.names[0], area.row_notes[0]) == ("A.1", "153 of 1,477")
    assert (area.y.names[9], order.row_notes[9]) == ("A.10", "125")
    # a dynamic K is never called by a number
    assert [each.x.label for each in (area, order, found)] == [
        *("AUROC", "nDCG@10", "evidence recall@K")
    ]
    third = known(card)["criterion.A.3.auroc"]
    points = one(area, Points)
    of_third = (points.x[2], points.lo[2], points.hi[2])
    assert of_third == (third.value, third.lo, third.hi)
    # the second model has no lists, and so no points where these matter
    assert [len(marks(each, Points)) for each in (area, order, found)] == [2, 1, 1]


def test_few_queries_with_evidence_are_marked_and_one_class_has_no_point() -> None:
    keys = [(f"p{i}", f"A.{c}") for i in range(4) for c in (1, 2)]
    y = [1, 0, 0, 0, 1, 0, 0, 0]
    card = score(dataset(boot_b=20), small_sheet(keys, y=y, prob=[0.5] * 8))
    (figure,) = (each for each in card.figures if each.name == "criteria")
    (panel,) = figure.panels
    assert panel.y.names == ("A.1", "A.2")
    assert panel.row_notes == ("2* of 4", "0* of 4")
    assert one(panel, Points).x == (0.5, None)


def test_every_query_is_in_one_histogram_of_k(figures: dict[str, Figure]) -> None:
    panels = figures["k-by-state"].panels
    assert [panel.title for panel in panels] == [
        *("NEG (n = 1,350)", "UNCERTAIN (n = 12,431)", "POS (n = 989)")
    ]
    own = [one(panel, Histogram) for panel in panels]
    assert own[0].counts[0] == 1350
    assert sum(sum(each.counts) for each in own) == 14_770
    assert all(each.edges == own[0].edges for each in own)


def test_shares_of_states_fill_each_fold(figures: dict[str, Figure]) -> None:
    (panel,) = figures["states-by-fold"].panels
    assert panel.y.names[4] == "fold 4\nn = 2,970"
    shares = zip(*(floats(mark.values) for mark in marks(panel, Stack)), strict=True)
    assert [sum(each) for each in shares] == pytest.approx([1.0] * 5)


def test_the_last_risk_is_the_error_of_all_decisions(
    figures: dict[str, Figure],
) -> None:
    (panel,) = figures["risk-coverage"].panels
    line = one(panel, LineSeries)
    assert line.x[-1] == 1.0
    assert line.y[-1] == pytest.approx((3843 + 428) / 14_770)


def test_the_sweep_shows_what_each_gamma_costs_and_finds(
    figures: dict[str, Figure],
) -> None:
    panels = figures["gamma-sweep"].panels
    assert [panel.y.label for panel in panels] == [
        *("sentences, all queries", "sentences, with evidence"),
        *("evidence recall@K", "evidence precision@K"),
    ]
    assert panels[0].x.names == ("0.7", "0.9")
    assert one(panels[0], Points).y == pytest.approx([4.742, 8.095], abs=0.001)
    recall = one(panels[2], Points)
    ends = zip(*map(floats, (recall.lo, recall.y, recall.hi)), strict=True)
    assert all(lo < value < hi for lo, value, hi in ends)


def test_steps_stand_beside_what_they_add(
    card: Scorecard, figures: dict[str, Figure]
) -> None:
    panels = figures["ablation"].panels
    assert [panel.x.label for panel in panels[::2]] == [
        *("nDCG@10", "AUROC", "evidence recall", "sentences shown, mean")
    ]
    own = known(card)
    values, added = one(panels[0], Points), one(panels[1], Points)
    assert values.x == (own["ndcg@10"].value,) * 2
    assert values.lo == (own["ndcg@10"].lo,) * 2
    assert added.x == (None, 0.0)
    shown = one(panels[4], Points)
    before = own["config.first stage.evidence_recall@10"].value
    assert shown.x == (before, own["evidence_recall@K"].value)
    gained = one(panels[5], Points)
    assert gained.x[1] == pytest.approx(floats(shown.x)[1] - floats(shown.x)[0])
    assert floats(gained.lo[1:])[0] <= floats(gained.x[1:])[0]


def test_only_the_first_models_are_drawn_and_the_caption_says_so() -> None:
    keys = [(f"p{i}", "A.1") for i in range(4)]
    plain = small_sheet(keys, y=[1, 0, 1, 0], prob=[0.9, 0.1, 0.8, 0.2])
    (first,) = plain.predictions
    names = [f"m{i}" for i in range(MOST_MODELS + 2)]
    many = replace(
        plain,
        predictions=tuple(replace(first, model=name) for name in names),
        models=tuple(names),
    )
    for figure in score(dataset(boot_b=20), many).figures:
        assert figure.caption.endswith("The first 6 of 8 models; the tables hold all.")
        series = {
            series_of(mark)
            for panel in figure.panels
            for mark in panel.marks
            if not isinstance(mark, ReferenceLine)
        }
        assert series == set(range(MOST_MODELS))


def test_there_are_no_figures_of_what_is_not_there() -> None:
    keys = [(f"p{i}", "A.1") for i in range(4)]
    lists = [(f"p{i}_0",) for i in range(4)]
    plain = small_sheet(keys, y=[1, 0, 1, 0], gold=lists, lists={"a": lists}, final="a")
    assert [f.name for f in score(dataset(boot_b=20), plain).figures] == ["criteria"]
    bare = small_sheet(keys, y=[1, 0, 1, 0])
    card = score(dataset(boot_b=20), bare)
    assert list(card.figures) == []
    assert "gate, calibration and risk: no probabilities" in card.not_available
    assert "gamma sweep: no K under other gammas" in card.not_available


def test_what_only_some_models_lack_is_said_with_their_name(card: Scorecard) -> None:
    assert card.not_available == (
        f"{MODEL}-2: states: no thresholds and no states",
        f"{MODEL}-2: ranking: no rankings",
        f"{MODEL}-2: dynamic K: no K",
        f"{MODEL}-2: gamma sweep: no K under other gammas",
    )
