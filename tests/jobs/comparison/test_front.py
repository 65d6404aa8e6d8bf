"""Quality beside cost and latency: who dominates whom, and over which items."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.comparison.models import ComparisonOptions, compare_models
from jobs.comparison.pareto_front import (
    Expense,
    ParetoFront,
    build_front,
    dominates,
    quality_metric,
)
from runner.scorecard import ItemValues
from tests.jobs.comparison.item_columns import means, pooled, side

DRAWING = ComparisonOptions(b=50, form="percentile")
LOW = means({f"p{n}": n / 40 for n in range(20)})
HIGH = means({f"p{n}": 0.8 + n / 400 for n in range(20)})
CHEAP, DEAR = Expense(usd=1.0, seconds=0.5), Expense(usd=2.0, seconds=0.5)

AMOUNTS = st.one_of(st.none(), st.sampled_from((0.0, 1.0, 2.0)))
EXPENSES = st.builds(Expense, usd=AMOUNTS, seconds=AMOUNTS)
QUALITIES = st.sampled_from((LOW, HIGH, means({"p1": None})))


def made_of(
    *sides: tuple[ItemValues, Expense],
    path: str = "m",
    lower: bool = False,
    drawing: ComparisonOptions = DRAWING,
) -> ParetoFront:
    """The front of models named a, b, ... in one run."""
    models = [side({"m": values}, chr(97 + at)) for at, (values, _) in enumerate(sides)]
    pairs = [(a, b) for at, a in enumerate(models) for b in models[at + 1 :]]
    spent = {each.key: own for each, (_, own) in zip(models, sides, strict=True)}
    found = build_front(
        compare_models(pairs, (), drawing), path, spent, "paper", drawing
    )
    assert found is not None
    assert found.lower_is_better == lower
    return found


def dominated(found: ParetoFront) -> dict[str, list[tuple[str, str]]]:
    return {
        place.side.model: [(each.by.model, each.quality) for each in place.dominated]
        for place in found.points
    }


def test_better_and_cheaper_dominates_and_says_that_it_is_sure() -> None:
    found = made_of((HIGH, CHEAP), (LOW, DEAR))
    assert dominated(found) == {"a": [], "b": [("a", "better")]}
    assert [place.quality.value for place in found.points] == [
        pytest.approx(0.82375),
        pytest.approx(0.2375),
    ]
    assert (found.n, found.unit, found.cluster) == (20, "paper", "paper")


def test_better_and_dearer_is_a_trade_and_no_dominance() -> None:
    assert dominated(made_of((HIGH, DEAR), (LOW, CHEAP))) == {"a": [], "b": []}


def test_as_good_and_cheaper_dominates_with_quality_undecided() -> None:
    found = made_of((LOW, DEAR), (LOW, CHEAP))
    assert dominated(found) == {"a": [("b", "undecided")], "b": []}


def test_where_lower_is_better_the_lower_dominates() -> None:
    low, high = (
        means(dict(zip(own.items, own.first, strict=True)), lower_is_better=True)
        for own in (LOW, HIGH)
    )
    found = made_of((high, DEAR), (low, CHEAP), lower=True)
    assert dominated(found) == {"a": [("b", "better")], "b": []}


def test_sides_that_share_no_known_cost_are_not_set_against_each_other() -> None:
    usd, seconds = Expense(usd=1.0), Expense(seconds=1.0)
    assert dominated(made_of((HIGH, usd), (LOW, seconds))) == {"a": [], "b": []}
    assert dominated(made_of((HIGH, Expense()), (LOW, DEAR))) == {"a": [], "b": []}
    assert not made_of((HIGH, Expense()), (LOW, Expense())).has_expenses


def test_quality_is_of_the_items_that_all_sides_have_a_value_for() -> None:
    one = means({"p1": 1.0, "p2": 0.0, "p3": 1.0})
    two = means({"p1": 0.5, "p2": None, "p4": 1.0})
    three = means({"p2": 0.0, "p1": 0.25})
    found = made_of((one, CHEAP), (two, CHEAP), (three, CHEAP))
    assert found.n == 1
    assert [place.quality.value for place in found.points] == [1.0, 0.5, 0.25]


def test_areas_and_ratios_have_a_place_too() -> None:
    right = pooled({f"p{n}": (n % 2, n % 2) for n in range(20)}, kind="auroc")
    wrong = pooled({f"p{n}": (n % 2, 0.5) for n in range(20)}, kind="auroc")
    found = made_of((right, CHEAP), (wrong, CHEAP), drawing=ComparisonOptions(b=50))
    assert [place.quality.value for place in found.points] == [1.0, 0.5]
    # nothing varies: ten pairs of clusters bound it
    assert found.points[0].quality.interval.lo == pytest.approx(0.025**0.1)
    ratio = pooled({f"p{n}": (n, n + 1.0) for n in range(20)})
    (place, _) = made_of((ratio, CHEAP), (ratio, CHEAP)).points
    assert place.quality.value == pytest.approx(190 / 210)
    assert place.quality.interval.lo is not None
    assert place.quality.interval.lo < 190 / 210


def test_metrics_of_other_definitions_have_no_front() -> None:
    other = means({"p1": 1.0}, definition="mean@1(other)")
    sides = side({"m": LOW, "n": LOW}, "a"), side({"m": other, "n": LOW}, "b")
    made = compare_models([sides], (), DRAWING)
    assert build_front(made, "m", {}, "paper", DRAWING) is None


def test_quality_is_the_headline_where_it_was_compared() -> None:
    both = side({"m": LOW, "n": LOW})
    made = compare_models([(both, both)], (), DRAWING)
    assert (quality_metric(made, "n"), quality_metric(made, "x")) == ("n", "m")
    assert quality_metric((), "n") is None


@given(st.lists(st.tuples(QUALITIES, EXPENSES), min_size=2, max_size=4))
def test_dominance_goes_one_way_and_leaves_somebody_on_the_front(
    sides: list[tuple[ItemValues, Expense]],
) -> None:
    places = made_of(*sides).points
    for one in places:
        assert not dominates(one, one, lower_is_better=False)
        for other in places:
            there = dominates(one, other, lower_is_better=False)
            assert not (there and dominates(other, one, lower_is_better=False))
    if all(None not in (own.usd, own.seconds) for _, own in sides):
        assert any(not place.dominated for place in places)
