"""What a run's models cost and how long they took, from its log and its units.

Quality beside cost and latency: who dominates whom, and over which items. The picture
of quality against cost and latency: its points, its line, its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison import pareto_front
from jobs.kit.comparison.difference import SideEstimate
from jobs.kit.comparison.models import ComparisonOptions, compare_models
from jobs.kit.comparison.pareto_front import (
    Dominance,
    Expense,
    FrontPoint,
    ParetoFront,
    build_front,
    cost_unit,
    dominates,
    expenses,
    quality_metric,
)
from jobs.kit.comparison.rescoring import RescoredRun
from jobs.kit.metrics import Interval
from runner.errors import UsageError
from runner.score.scoring import Scoring
from runner.scorecard import ItemValues, LineSeries, Points, Scorecard
from store.database import open_reader
from store.read.status import run_started
from store.runs import RunFolder
from tests.jobs.kit.comparison.item_columns import means, pooled, side
from tests.store.logs import COURSE, written
from tests.store.samples import completed, plan, started, task
from tests.store.samples import reply as answered

MODELS = ("m-large", "m-small", "m-none")


def replayed(
    folder: Path, units: Mapping[str, Mapping[str, int]] | None = None, cached: int = 0
) -> RescoredRun:
    """A run of two models; the cache answers a further task of it if it is to."""
    again = [
        [plan([task(6)], first=6), started(6)],
        [answered(6, b"again", cached=True), completed(6)],
    ]
    written(folder / "log.db", *COURSE, *again[: 2 * cached])
    with open_reader(folder / "log.db") as reader:
        first = run_started(reader)
    card = Scorecard(
        models=dict.fromkeys(MODELS, ()), summary="", units=dict(units or {})
    )
    made = Scoring(
        number=None,
        job="sample-job",
        scorecard=card,
        content=b"",
        artifacts=(),
        folder=None,
        is_partial=True,
        inputs=(),
        changed_settings=(),
        seq=1,
        ended=3,
    )
    return RescoredRun(folder=RunFolder(folder), started=first, scoring=made)


def test_without_units_dollars_are_for_a_task_that_ended(tmp_path: Path) -> None:
    run = replayed(tmp_path)
    assert cost_unit(run) == "task"
    found = expenses(run, "task")
    assert found["m-large"].usd == pytest.approx(0.25 / 2)
    assert found["m-small"].usd == pytest.approx(0.625)
    assert found["m-large"].seconds is not None
    assert found["m-none"] == Expense()


def test_dollars_are_for_the_first_unit_that_the_job_names(tmp_path: Path) -> None:
    units = {"m-large": {"record": 10, "answer": 20}, "m-small": {}}
    run = replayed(tmp_path, units)
    assert cost_unit(run) == "record"
    found = expenses(run, "record")
    assert found["m-large"].usd == pytest.approx(0.025)
    assert found["m-small"].usd is None


def test_answers_of_the_cache_make_dollars_unknown(tmp_path: Path) -> None:
    found = expenses(replayed(tmp_path, cached=1), "task")
    assert [found[model].usd for model in MODELS] == [None, None, None]
    assert found["m-small"].seconds is not None


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


A = side({}, "a")


def place(model: str, value: float, expense: Expense) -> FrontPoint:
    return FrontPoint(
        side=side({}, model),
        quality=SideEstimate(
            value=value, interval=Interval(lo=value - 0.1, hi=value + 0.1)
        ),
        expense=expense,
        dominated=(Dominance(by=A, quality="better"),) if model == "c" else (),
    )


def three(**changes: object) -> ParetoFront:
    return ParetoFront(
        **{
            "path": "score",
            "unit": "paper",
            "cluster": "paper",
            "lower_is_better": False,
            "n": 12,
            "points": (
                place("a", 0.5, Expense(usd=1.0)),
                place("b", 0.7, Expense(usd=2.0)),
                place("c", 0.4, Expense(usd=4.0)),
            ),
            **changes,
        }
    )


def test_each_side_is_a_point_and_the_line_joins_the_front() -> None:
    (panel,) = pareto_front.front_figure(three(), 0.9).panels
    line, *points = panel.marks
    assert isinstance(line, LineSeries)
    assert (line.x, line.y) == ((1.0, 2.0, pytest.approx(4.4)), (0.5, 0.7, 0.7))
    assert [
        (each.x, each.label, each.notes) for each in points if isinstance(each, Points)
    ] == [
        ((1.0,), "r  a", ("",)),
        ((2.0,), "r  b", ("",)),
        ((4.0,), "r  c", ("dominated",)),
    ]
    assert panel.title == "12 items, 90% intervals by paper"
    assert panel.x.label == "USD per paper"


def test_where_lower_is_better_the_line_joins_the_lowest() -> None:
    (panel,) = pareto_front.front_figure(three(lower_is_better=True), 0.95).panels
    (line, *_) = panel.marks
    assert isinstance(line, LineSeries)
    assert line.y == (0.5, 0.4, 0.4)


def test_without_cost_and_latency_there_is_nothing_to_draw() -> None:
    unknown = three(points=(place("a", 0.5, Expense()), place("b", 0.5, Expense())))
    with pytest.raises(UsageError, match="No side has a cost or a latency"):
        pareto_front.front_figure(unknown, 0.95)
    with pytest.raises(UsageError, match="in different ways"):
        pareto_front.front_figure(None, 0.95)


@pytest.mark.parametrize(
    ("name", "begins"), [("x.png", b"\x89PNG\r\n"), ("x.SVG", b"<?xml version")]
)
def test_the_file_is_what_its_name_says(
    tmp_path: Path, name: str, begins: bytes
) -> None:
    pareto_front.check_figure_format(tmp_path / name)
    pareto_front.write_figure(pareto_front.front_figure(three(), 0.95), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]
