"""Intervals from few labels and a biased judge hold the truth.

With SIFTLOG_PROVE 20,000 populations a cell and all cells; else a few hundred of some.
`design/estimates-from-labels.md` has the figures of all.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy.stats import binom

from jobs.kit.labels.draws import DrawDesign, DrawnItem, draw, draw_items
from jobs.kit.labels.quality import field_quality
from jobs.kit.metrics.intervals import clopper_pearson
from jobs.kit.metrics.label_estimates import (
    LabelledPopulation,
    RateEstimate,
    estimate_rate,
    labels_needed,
    labels_until_nominal,
)
from jobs.kit.metrics.prediction_powered import RATIOS
from runner.labelling import LabelChoice, LabelField, ModelLabel
from store.labels.events import ItemDrawn, LabelRecorded
from store.labels.fold import EventId, ItemField, LabelEntry, LabelSet
from tests.jobs.kit.metrics.judged_worlds import (
    BY_MODEL,
    FRESH,
    JUDGE,
    KINDS,
    METRICS,
    MODEL,
    PREDICTION,
    SEED,
    TRUTH,
    TUNED,
    Cell,
    DrawnStratum,
    by_verdict,
    coverage,
    estimated,
)

PROVE = "SIFTLOG_PROVE" in os.environ
POPULATIONS = 20_000 if PROVE else 400
FEW_CELLS = (
    replace(TUNED, labels=(100,), prevalences=(0.5,), judges=((-0.2, 0.1), (0.2, 0.1))),
    replace(FRESH, labels=(300,), prevalences=(0.3,), judges=((0.15, 0.05),)),
)

CELLS = [
    pytest.param(cell, worlds.seed, id=str(cell))
    for worlds in ((TUNED, FRESH) if PROVE else FEW_CELLS)
    for cell in worlds.cells()
]


def slack(share: float) -> float:
    """Three standard errors of a share of few populations."""
    return 0.0 if PROVE else 3 * (share * (1 - share) / POPULATIONS) ** 0.5


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("cell", "seed"), CELLS)
def test_intervals_hold_the_truth_whatever_the_judge(cell: Cell, seed: int) -> None:
    for found in coverage(cell, POPULATIONS, seed):
        assert found.powered >= 0.94 - slack(0.94), found
        assert found.widest <= 1.05 + 1e-9, found
        # few labels that say anything: no interval covers 94 to 96 %, see below
        if found.is_nominal:
            assert found.powered <= 0.96 + slack(0.96), found


def test_some_cells_are_nominal_and_some_conservative() -> None:
    many = Cell(prevalence=0.5, bias=0.1, labels=500, design="random")
    few = replace(many, prevalence=0.1, labels=100)
    (of_many, *_) = coverage(many, 400)
    assert (of_many.metric, of_many.conservative) == ("prevalence", 0.0)
    assert all(one.conservative > 0.9 for one in coverage(few, 400))


def test_no_interval_covers_95_percent_where_few_errors_can_be_seen() -> None:
    """A draw by disagreement holds 16 labels on which all agree, of 82 % of items.

    They are wrong in 0.01 / 0.82 of them. An interval is a function of the errors that
    are seen. One that covers with none and with one holds the truth in 98 %; one that
    covers with none alone in 82 %. Nothing lies between.
    """
    errors = binom(16, 0.01 / 0.82)
    attainable = np.cumsum(errors.pmf(np.arange(3)))
    assert attainable[0] < 0.83
    assert attainable[1] > 0.98
    assert not ((attainable >= 0.94) & (attainable <= 0.96)).any()


def test_a_good_judge_makes_intervals_a_third_shorter() -> None:
    balanced = Cell(prevalence=0.5, bias=0.0, labels=200, design="random", is_sure=True)
    rare = Cell(prevalence=0.1, bias=0.0, labels=200, design="random", is_sure=True)
    by_metric = {one.metric: one for one in coverage(balanced, POPULATIONS)}
    assert by_metric["prevalence"].median_width <= 0.7
    assert {one.metric: one for one in coverage(rare, POPULATIONS)}[
        "prevalence"
    ].median_width <= 0.85


def test_taking_the_judge_for_the_truth_fails() -> None:
    cell = Cell(prevalence=0.5, bias=0.1, labels=100, design="random")
    for found in coverage(cell, 200):
        assert found.naive < 0.2


@pytest.mark.parametrize("design", get_args(DrawDesign))
def test_the_simulation_estimates_as_the_command_does(design: DrawDesign) -> None:
    """One population of a cell, drawn, labelled and estimated item by item."""
    cell = Cell(prevalence=0.4, bias=0.1, labels=120, design=design)
    kinds = np.random.default_rng(SEED).choice(len(KINDS), cell.items, p=cell.shares)
    replies: dict[ItemField, list[ModelLabel]] = {}
    for number, kind in enumerate(kinds):
        about = ItemField(f"{number:04}", "")
        chance = PREDICTION[kind]
        replies[about] = [
            _replied(about.item, "model", MODEL[kind], None),
            _replied(about.item, "judge", JUDGE[kind], max(chance, 1 - chance)),
        ]
    by_item = {about.item: of_item for about, of_item in replies.items()}
    chosen = draw(design, draw_items(by_item, by_item, design, {}), 120, seed=1)
    truth = {
        one.item.key: WORDS[int(TRUTH[kinds[int(one.item.key)]])] for one in chosen
    }
    events = [_drawn(design, one) for one in chosen]
    labels = [LabelRecorded(author="a", item=key, value=truth[key]) for key in truth]
    found = field_quality(
        LabelField(
            name="",
            question="?",
            choices=tuple(LabelChoice(value=word, key=word[0]) for word in WORDS[::-1]),
        ),
        LabelSet.of(
            LabelEntry(at, EventId("ff", at), event)
            for at, event in enumerate([*events, *labels])
        ),
        {},
        replies,
        judge="judge",
    )
    chances = np.zeros(len(KINDS))
    for one in chosen:
        chances[kinds[int(one.item.key)]] = one.probability
    drawn = DrawnStratum(
        counts=np.bincount(kinds, minlength=len(KINDS))[None],
        labelled=np.bincount(
            [kinds[int(one.item.key)] for one in chosen], minlength=len(KINDS)
        )[None],
        chances=np.where(chances, chances, 1.0)[None],
    )
    strata = next(by_verdict(drawn)) if design in BY_MODEL else [drawn]
    assert len(found.strata or [""]) == len(strata)
    by_model = {
        of.model: {e.metric: e.estimate for e in of.estimates} for of in found.models
    }
    for metric in METRICS:
        by_kind = estimated(cell, metric, strata).powered
        by_items = by_model["model"][metric].powered
        assert by_items.value == pytest.approx(float(by_kind.value[0]))
        assert by_items.lo == pytest.approx(float(by_kind.lo[0]))
        assert by_items.hi == pytest.approx(float(by_kind.hi[0]))


WORDS = ("no", "yes")


def _replied(item: str, model: str, verdict: float, chance: float | None) -> ModelLabel:
    return ModelLabel(
        item=item,
        field="",
        model=model,
        replicate=1,
        value=WORDS[int(verdict)],
        probability=chance,
    )


def _drawn(design: DrawDesign, one: DrawnItem) -> ItemDrawn:
    return ItemDrawn(
        author="a",
        item=one.item.key,
        design=design,
        probability=one.probability,
        stratum=one.item.stratum if design in BY_MODEL else "",
        seed=1,
        position=one.position,
        expected=120.0,
        population=1320,
        population_sha256="",
    )


def population(seed: int = SEED, **changes: object) -> LabelledPopulation:
    """2,000 items, 150 of them labelled at random; a judge that is right in 90 %."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(2000) < 0.3).astype(np.float64)
    judge = np.where(rng.random(2000) < 0.1, 1 - truth, truth)
    model = np.where(rng.random(2000) < 0.15, 1 - truth, truth)
    labelled = np.sort(rng.choice(2000, 150, replace=False))
    columns: dict[str, object] = {
        "verdicts": model,
        "predictions": judge,
        "labelled": labelled.tolist(),
        "truth": truth[labelled],
    }
    return LabelledPopulation(**columns | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", RATIOS)
def test_ends_contain_the_value_and_are_rates(metric: str) -> None:
    estimate = estimate_rate(metric, population())
    for rate in (estimate.powered, estimate.labels_alone, estimate.naive):
        assert rate.value is not None
        assert rate.lo is not None
        assert rate.hi is not None
        assert 0 <= rate.lo <= rate.value <= rate.hi <= 1


def test_a_judge_without_information_gets_no_weight() -> None:
    useless = estimate_rate("prevalence", population(predictions=[0.5] * 2000))
    assert useless.weights[""] == pytest.approx(0, abs=1e-9)
    assert useless.powered.value == pytest.approx(useless.labels_alone.value)
    assert useless.powered.width == pytest.approx(useless.labels_alone.width, rel=0.01)


def test_few_residuals_widen_an_interval_to_the_exact_one() -> None:
    """Two of 40 random labels are positive; the judge knows nothing."""
    few = LabelledPopulation(
        verdicts=np.ones(10**5),
        predictions=np.full(10**5, 0.5),
        labelled=range(40),
        truth=[1.0, 1.0, *[0.0] * 38],
    )
    estimate = estimate_rate("prevalence", few)
    assert estimate.is_conservative
    rate, exact = estimate.powered, clopper_pearson(2, 40)
    assert rate.lo is not None
    assert rate.hi is not None
    assert rate.lo <= exact[0]
    assert rate.hi >= exact[1]
    more = labels_until_nominal(estimate)
    truth = ([*few.truth] * 99)[: 40 + more]
    many = replace(few, labelled=range(40 + more), truth=truth)
    nominal = estimate_rate("prevalence", many)
    assert nominal.residuals == pytest.approx(30, rel=0.1)
    assert labels_until_nominal(nominal) < 60


def test_labels_of_all_items_leave_no_doubt() -> None:
    rng = np.random.default_rng(1)
    truth = (rng.random(60) < 0.4).astype(np.float64)
    everything = LabelledPopulation(
        verdicts=np.ones(60),
        predictions=rng.random(60),
        labelled=range(60),
        truth=truth,
    )
    estimate = estimate_rate("prevalence", everything).powered
    assert estimate.value == pytest.approx(truth.mean())
    assert estimate.width == pytest.approx(0, abs=1e-4)


def test_equal_chances_are_a_random_draw_and_their_scale_does_not_matter() -> None:
    plain = estimate_rate("recall", population())
    for chance in (150 / 2000, 0.5):
        same = estimate_rate("recall", population(chances=[chance] * 150))
        assert same.powered.lo == pytest.approx(plain.powered.lo)
        assert same.powered.hi == pytest.approx(plain.powered.hi)


def test_strata_of_the_verdict_estimate_the_same_rate() -> None:
    whole = population()
    strata = ["+" if verdict else "-" for verdict in whole.verdicts]
    apart = estimate_rate("precision", population(strata=strata))
    together = estimate_rate("precision", whole)
    assert set(apart.weights) == {"+", "-"}
    assert apart.powered.value == pytest.approx(together.powered.value, abs=0.02)


def test_undefined_where_no_label_is_about_it() -> None:
    assert estimate_rate("precision", population(verdicts=[0.0] * 2000)).powered == (
        estimate_rate("precision", population(verdicts=[0.0] * 2000)).naive
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labelled": [4] * 150}, "Item 4 is labelled twice"),
        ({"labelled": [*range(149), 2000]}, "outside 0 to 1999"),
        ({"truth": [1.0] * 149}, "must speak of the same items"),
        ({"chances": [0.0, *[0.1] * 149]}, "A chance is 0"),
        ({"strata": ["a", *["b"] * 1999]}, "has 0 labels"),
    ],
)
def test_impossible_populations_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        estimate_rate("accuracy", population(**changes))


def widths(metric: str, labels: int) -> list[float]:
    """Widths of intervals from so many labels, of some populations."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        whole = population(seed)
        truth = (np.random.default_rng(seed).random(2000) < 0.3).astype(np.float64)
        labelled = np.sort(rng.choice(2000, labels, replace=False))
        again = population(seed, labelled=labelled.tolist(), truth=truth[labelled])
        assert np.array_equal(again.verdicts, whole.verdicts)
        width = estimate_rate(metric, again).powered.width
        assert width is not None
        found.append(width)
    return found


@pytest.mark.parametrize("metric", ["prevalence", "precision", "recall"])
def test_the_labels_that_are_needed_reach_the_width(metric: str) -> None:
    def needed(estimate: RateEstimate) -> int:
        more = labels_needed(estimate, 0.07)
        assert more is not None
        return more

    estimates = [estimate_rate(metric, population(seed)) for seed in range(20)]
    total = 150 + round(float(np.median([needed(one) for one in estimates])))
    assert np.median(widths(metric, total)) == pytest.approx(0.07, rel=0.1)
    assert labels_needed(estimates[0], 0.9) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        labels_needed(estimates[0], 1.5)
