"""The rule of verdicts: what it takes for a difference to have a winner."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.comparison.difference import OPPOSITE, VerdictRule
from jobs.comparison.models import (
    ComparisonOptions,
    compare_models,
    model_pairs,
    p_value_words,
)
from jobs.metrics import Interval
from jobs.paper_investigation.settings import InvestigationSettings
from tests.jobs.comparison.item_columns import means, side

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
    )
    inside = pair.metrics["m"]
    assert (pair.left, pair.right) == ("l", "r")
    assert inside.p_values == outside.p_values
    assert inside.p_holm == outside.p_holm
    assert (inside.verdict, outside.verdict) == ("better", "worse")
    assert outside.gap.value is not None
    assert inside.gap.value == -outside.gap.value
    assert inside.gap.interval.lo == pytest.approx(-(outside.gap.interval.hi or 0))
    words = p_value_words(inside)
    assert "won 11, lost 0, tied 1: left better" in words
    assert "sign flips by paper" in words
