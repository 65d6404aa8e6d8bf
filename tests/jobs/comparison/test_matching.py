"""Many metrics and models at once: what is compared, and what Holm corrects over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.comparison.models import ComparisonOptions, compare_models, largest_gaps
from jobs.metrics import holm, round12
from runner.errors import UsageError
from runner.scorecard import ItemValues
from tests.jobs.comparison.item_columns import MEANS, means, pooled, side

FEW_DRAWS = ComparisonOptions(b=20)
RISING = means({f"p{n}": n / 10 for n in range(10)})
FALLING = means({f"p{n}": 1 - n / 20 for n in range(10)})
FLAT = means({f"p{n}": 0.5 for n in range(10)})


@given(st.lists(st.tuples(MEANS, MEANS), min_size=1, max_size=4))
def test_holm_is_over_every_metric_of_every_pair(
    metrics: list[tuple[ItemValues, ItemValues]],
) -> None:
    a = side({f"m{n}": left for n, (left, _) in enumerate(metrics)})
    b = side({f"m{n}": right for n, (_, right) in enumerate(metrics)})
    made = compare_models([(a, b), (b, a)], (), FEW_DRAWS)
    found = [each for match in made for each in match.compared]
    raw = [each.p_values.primary and each.p_values.primary.p for each in found]
    expected = [None if p is None else round12(p) for p in holm(raw)]
    assert [each.p_holm for each in found] == expected
    assert len(found) == 2 * len(metrics)


def test_a_metric_whose_test_is_undefined_is_in_no_family() -> None:
    ratio = pooled({f"p{n}": (n / 10, 0.0) for n in range(10)})
    a, b = side({"m": RISING, "r": ratio}), side({"m": FALLING, "r": ratio})
    (match,) = compare_models([(a, b)], (), FEW_DRAWS)
    mean, pooled_one = match.compared
    assert mean.p_values.primary is not None
    assert mean.p_holm == mean.p_values.primary.p
    assert pooled_one.p_holm is None


def test_metrics_of_one_side_alone_are_named_and_not_compared() -> None:
    a, b = side({"both": RISING, "mine": FLAT}), side({"his": FLAT, "both": FLAT})
    (match,) = compare_models([(a, b)], (), FEW_DRAWS)
    assert [each.path for each in match.compared] == ["both"]
    assert (match.only_a, match.only_b) == (("mine",), ("his",))


def test_a_metric_defined_otherwise_is_refused_and_the_others_are_compared() -> None:
    other = means({"p1": 1.0}, definition="mean@1(other)")
    a, b = side({"m": RISING, "n": RISING}), side({"m": other, "n": FLAT})
    (match,) = compare_models([(a, b)], (), FEW_DRAWS)
    assert [each.path for each in match.compared] == ["n"]
    (refused,) = match.refused
    assert refused.path == "m"
    assert "mean@1(of a test) and B as mean@1(other)" in refused.reason


def test_metrics_are_chosen_by_pattern() -> None:
    a = side({"avg.x": RISING, "avg.y": RISING, "other": RISING})
    (match,) = compare_models([(a, a)], ("avg*", "avg.x"), FEW_DRAWS)
    assert [each.path for each in match.compared] == ["avg.x", "avg.y"]


def test_a_pattern_that_names_nothing_says_what_there_is() -> None:
    a = side({"avg.x": RISING, "other": RISING})
    with pytest.raises(UsageError, match=r"No metric 'avgx' .* avg\.x, other\."):
        compare_models([(a, a)], ("avgx",), FEW_DRAWS)


def test_sides_without_a_common_metric_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="no metric that both sides give"):
        compare_models([(side({}), side({"m": FLAT}))], (), FEW_DRAWS)


def test_columns_are_made_for_chosen_metrics_only() -> None:
    def asked_for() -> ItemValues:
        raise AssertionError

    a = side({"m": FLAT})
    lazy = replace(a, comparable={**a.comparable, "n": asked_for})
    (match,) = compare_models([(lazy, lazy)], ("m",), FEW_DRAWS)
    assert [each.path for each in match.compared] == ["m"]


def test_few_clusters_are_marked() -> None:
    nine = means({f"p{n}": 0.5 for n in range(9)})
    a, b = side({"m": RISING}), side({"m": nine})
    (few,) = compare_models([(a, b)], (), FEW_DRAWS)
    (enough,) = compare_models([(a, a)], (), FEW_DRAWS)
    assert few.compared[0].is_from_few
    assert not enough.compared[0].is_from_few


def test_items_are_listed_of_metrics_that_have_them() -> None:
    area = pooled({f"p{n}": (n % 2, n / 10) for n in range(10)}, kind="auroc")
    a, b = side({"m": RISING, "auroc": area}), side({"m": FLAT, "auroc": area})
    (match,) = compare_models([(a, b)], (), FEW_DRAWS)
    assert [gap.item for gap in largest_gaps(match, "m", 2)] == ["p0", "p1"]
    with pytest.raises(UsageError, match=r"'auroc' has no value for each item .* m"):
        largest_gaps(match, "auroc", 2)


def test_seed_and_level_and_replicates_are_those_asked_for() -> None:
    a, b = side({"m": RISING}), side({"m": FALLING})
    (one,), (other,), (wide,), (none,) = (
        compare_models([(a, b)], (), drawing)
        for drawing in (
            ComparisonOptions(b=50, form="percentile"),
            ComparisonOptions(b=50, seed=1, form="percentile"),
            ComparisonOptions(b=50, level=0.5, form="percentile"),
            ComparisonOptions(b=0),
        )
    )
    intervals = [match.compared[0].gap.interval for match in (one, other, wide, none)]
    first, reseeded, narrow, undefined = intervals
    assert (first.lo, first.hi) != (reseeded.lo, reseeded.hi)
    assert first.lo is not None
    assert narrow.lo is not None
    assert first.lo < narrow.lo
    assert undefined.lo is None
    assert none.compared[0].verdict == "undecided"
