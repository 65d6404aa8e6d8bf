"""The known answers of the full-size set, from the comparison that users are given.

Many metrics and models at once: what is compared, and what Holm corrects over. The rule
of verdicts: what it takes for a difference to have a winner.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison.difference import OPPOSITE, VerdictRule
from jobs.kit.comparison.models import (
    ComparisonOptions,
    compare_models,
    compared_pairs,
    largest_gaps,
    model_pairs,
    p_value_words,
)
from jobs.kit.metrics import Interval, delong_paired, holm, mcnemar, round12
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import UsageError
from runner.scorecard import ItemValues
from tests.jobs.kit.comparison.item_columns import MEANS, means, pooled, side
from tests.jobs.kit.metrics.set_a import SetA, set_a


@pytest.fixture(scope="module")
def a() -> SetA:
    return set_a()


def of(
    a: SetA, kind: str, first: list[float], second: list[float] | None
) -> ItemValues:
    return ItemValues(
        kind=kind,
        items=[f"{post}/{i % 10 + 1}" for i, post in enumerate(a.post)],
        clusters=a.post,
        cluster="post",
        first=first,
        second=second,
        definition="of a test",
    )


def test_two_models_of_the_full_size_set(a: SetA) -> None:
    labels = a.y.astype(float).tolist()
    sides = [
        side(
            {
                "auroc": of(a, "auroc", labels, p.tolist()),
                "right": of(
                    a, "mean", ((p >= 0.5) == a.y).astype(float).tolist(), None
                ),
            }
        )
        for p in (a.p2, a.p)
    ]
    (match,) = compare_models([(sides[0], sides[1])], (), ComparisonOptions())
    area, right = match.compared
    assert area.gap.b == pytest.approx(0.8109338369709094, abs=1e-12)
    assert area.gap.a == pytest.approx(0.7247741263776732, abs=1e-12)
    assert (area.gap.interval.lo, area.gap.interval.hi) == pytest.approx(
        (0.06776053859306257, 0.10398216096216743), rel=1e-11
    )
    assert area.verdict == "better"
    assert area.p_values.primary is not None
    assert area.p_values.primary.name == "DeLong by post"
    assert area.p_values.primary.p == pytest.approx(1.3057749162e-20, rel=1e-9)
    assert area.p_values.independent is not None
    delong = delong_paired(a.y, a.p, a.p2)
    assert delong is not None
    assert delong.z == pytest.approx(9.22695099985778, rel=1e-12)
    assert area.p_values.independent.p == round12(delong.p)
    assert right.outcomes is not None
    assert (right.outcomes.wins, right.outcomes.losses) == (3919, 2671)
    assert right.p_values.independent is not None
    assert right.p_values.independent.p == round12(mcnemar(3919, 2671).p)
    assert right.p_values.independent.p == pytest.approx(
        1.459910768307661e-53, rel=1e-11
    )
    assert right.overlap.clusters == 1477


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
    with pytest.raises(UsageError, match=r"No metric 'avgx' .* mean 'avg\.x'\?"):
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


ABOVE, BELOW = Interval(lo=0.1, hi=0.3), Interval(lo=-0.3, hi=-0.1)
AROUND, NONE = Interval(lo=-0.1, hi=0.3), Interval(lo=None, hi=None)


@pytest.mark.parametrize(
    ("interval", "p_holm", "clusters", "word"),
    [
        (ABOVE, 0.01, 30, "better"),
        (BELOW, 0.01, 30, "worse"),
        (ABOVE, 0.05, 30, "better"),
        (ABOVE, 0.051, 30, "undecided"),
        (AROUND, 0.01, 30, "undecided"),
        (NONE, 0.01, 30, "undecided"),
        (None, 0.01, 30, "undecided"),
        (ABOVE, None, 30, "undecided"),
        (ABOVE, 0.01, 10, "better"),
        (ABOVE, 0.01, 9, "too few"),
        (AROUND, 1.0, 2, "too few"),
    ],
)
def test_interval_p_and_number_of_clusters_must_agree(
    interval: Interval | None, p_holm: float | None, clusters: int, word: str
) -> None:
    rule = VerdictRule()
    assert rule.verdict(interval, p_holm, clusters, lower_is_better=False) == word
    turned = rule.verdict(interval, p_holm, clusters, lower_is_better=True)
    assert turned == OPPOSITE[word]  # type: ignore[index]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=14),
    st.integers(2, 12),
)
def test_no_side_wins_without_all_three(
    values: list[tuple[float, float]], min_clusters: int
) -> None:
    a = side({"m": means({f"p{n}": x for n, (x, _) in enumerate(values)})}, "a")
    b = side({"m": means({f"p{n}": y for n, (_, y) in enumerate(values)})}, "b")
    drawing = ComparisonOptions(b=50, min_clusters=min_clusters)
    (found,) = compare_models([(a, b)], (), drawing)[0].compared
    ends = found.gap.interval
    if found.verdict in {"better", "worse"}:
        assert len(values) >= min_clusters
        assert found.p_holm is not None
        assert found.p_holm <= 0.05
        assert ends.lo is not None
        assert ends.hi is not None
        assert ends.lo > 0 or ends.hi < 0
    assert (found.verdict == "too few") == (len(values) < min_clusters)


def test_an_interval_and_a_p_that_disagree_leave_it_undecided() -> None:
    # ten papers, of which few differ, all one way: the percentiles of the mean leave 0
    # out, and signs of five papers cannot say so
    values = {f"p{n:02}": 0.2 if n < 5 else 0.0 for n in range(10)}
    a = side({"m": means(dict.fromkeys(values, 0.0))}, "a")
    b = side({"m": means(values)}, "b")
    (found,) = compare_models([(a, b)], (), ComparisonOptions(form="percentile"))[
        0
    ].compared
    assert found.gap.interval.lo is not None
    assert found.gap.interval.lo > 0
    assert found.p_holm == 0.0625
    assert found.verdict == "undecided"


def test_two_papers_never_have_a_winner() -> None:
    a = side({"m": means({"p1": 0.0, "p2": 0.1})}, "a")
    b = side({"m": means({"p1": 0.9, "p2": 1.0})}, "b")
    (found,) = compare_models([(a, b)], (), ComparisonOptions())[0].compared
    assert found.verdict == "too few"


def test_holm_is_within_a_family_over_all_pairs() -> None:
    flat = means({f"p{n:02}": 0.0 for n in range(12)}, family="q")
    up = means({f"p{n:02}": n / 12 for n in range(12)}, family="q")
    more = means({f"p{n:02}": n / 24 for n in range(12)})
    sides = [
        side(
            {
                "m": own,
                "x": replace(more, first=[v * k for v in more.first if v is not None]),
            },
            name,
        )
        for own, name, k in ((flat, "a", 1), (up, "b", 2), (flat, "c", 3))
    ]
    pairs = [(x, y) for n, x in enumerate(sides) for y in sides[n + 1 :]]
    alone = compare_models(pairs, ("m",), ComparisonOptions(b=20))
    together = compare_models(pairs, (), ComparisonOptions(b=20))

    def corrected(made: tuple[object, ...]) -> list[float | None]:
        return [
            each.p_holm
            for match in made
            for each in match.compared  # type: ignore[attr-defined]
            if each.path == "m"
        ]

    # another metric of another family changes nothing
    assert corrected(alone) == corrected(together)


def test_the_models_of_a_run_have_the_p_and_the_word_of_compare() -> None:
    left = {"m": means({f"p{n:02}": n / 12 for n in range(12)}, family="m")}
    right = {"m": means({f"p{n:02}": n / 24 for n in range(12)}, family="m")}
    (match,) = compare_models(
        [(side(left, "l"), side(right, "r"))], (), ComparisonOptions()
    )
    (outside,) = match.compared
    (pair,) = model_pairs(
        {
            name: {path: (lambda own=values: own) for path, values in own.items()}
            for name, own in (("l", left), ("r", right))
        },
        ("m",),
        InvestigationSettings(),
        "m",
    )
    inside = pair.metrics["m"]
    assert (pair.left, pair.right) == ("l", "r")
    test = pair.sign_test
    assert (test.n, test.left_alone, test.right_alone) == (12, 11, 0)
    assert test.p == test.p_holm == 2 / 2**11
    assert inside.p_values == outside.p_values
    assert inside.p_holm == outside.p_holm
    assert (inside.verdict, outside.verdict) == ("better", "worse")
    assert outside.gap.value is not None
    assert inside.gap.value == -outside.gap.value
    assert inside.gap.interval.lo == pytest.approx(-(outside.gap.interval.hi or 0))
    words = p_value_words(inside)
    assert "won 11, lost 0, tied 1: left better" in words
    assert "sign flips by paper" in words


def test_only_the_named_pairs_are_compared_left_minus_right() -> None:
    sides = {
        name: {"m": (lambda share=share: means({f"p{n:02}": share for n in range(12)}))}
        for name, share in (("retriever", 0.25), ("reranked", 0.5), ("graph", 1.0))
    }
    pairs = [("reranked", "retriever"), ("graph", "reranked")]
    matches = compared_pairs(sides, pairs, InvestigationSettings())
    assert [(match.b.model, match.a.model) for match in matches] == pairs
    gaps = [metric.gap.value for match in matches for metric in match.compared]
    assert gaps == [0.25, 0.5]
    # Holm corrects over these pairs and no other
    tests = [metric.p_values.primary for m in matches for metric in m.compared]
    assert [metric.p_holm for m in matches for metric in m.compared] == [
        round12(2 * test.p) for test in tests if test
    ]
