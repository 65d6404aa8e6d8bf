"""Pairs within a paper: order, target sets, materials, and what greedy loses.

Solutions against all that there are, on small assignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction import matching
from jobs.property_extraction.matching import (
    BundleFlow,
    BundleLink,
    NamedPrediction,
    pairs_of_paper,
    solve,
)
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.values.comparison import Edge


def close(
    _name: str, stated: Sequence[Prediction], truths: Sequence[TruthRow]
) -> Iterator[Edge]:
    """Numbers within 0.1 % of the truth's."""
    for i, own in enumerate(stated):
        for j, row in enumerate(truths):
            p, g = float(own.value), float(row.value)
            if abs(p - g) <= 0.001 * abs(g):
                yield Edge(i, j, abs(p - g) / abs(g))


def stated(value: str, name: str = "Tc", material: str = "") -> Prediction:
    return Prediction(refno="P", name=name, value=value, material=material)


def told(value: str, name: str = "Tc", material: str = "") -> TruthRow:
    return TruthRow(refno="P", name=name, value=value, material=material)


def named(row: Prediction, *names: str) -> NamedPrediction:
    return NamedPrediction(row, names or (row.name,))


def test_trap_1_greedy_loses_a_pair_that_the_best_matching_keeps() -> None:
    predictions = [named(stated("100.00")), named(stated("100.09"))]
    truths = [told("100.05"), told("99.95")]
    assert pairs_of_paper(predictions, truths, close) == [(0, 1), (1, 0)]
    assert pairs_of_paper(predictions, truths, close, method="greedy") == [(0, 0)]


def test_a_value_goes_to_the_row_that_needs_no_alias() -> None:
    renamed = named(stated("5", name="critical temperature"), "Tc")
    own = named(stated("5"))
    assert pairs_of_paper([renamed, own], [told("5")], close) == [(1, 0)]


def test_of_equal_rows_the_earliest_are_matched_on_both_sides() -> None:
    predictions = [named(stated("5")), named(stated("5"))]
    truths = [told("5"), told("5"), told("5")]
    assert pairs_of_paper(predictions, truths, close) == [(0, 0), (1, 1)]


def test_trap_29_hundreds_of_values_of_one_name_pair_each_once() -> None:
    predictions = [named(stated(str(1 + place))) for place in range(300)]
    truths = [told(str(300 - place)) for place in range(300)]
    pairs = pairs_of_paper(predictions, truths, close)
    assert pairs == [(place, 299 - place) for place in range(300)]


def test_a_target_set_takes_the_truth_of_each_of_its_names() -> None:
    predictions = [named(stated("1"), "a", "b"), named(stated("2"), "a", "b")]
    truths = [told("2", name="b"), told("1", name="a"), told("1", name="c")]
    assert pairs_of_paper(predictions, truths, close) == [(0, 1), (1, 0)]


def test_trap_30_values_of_different_materials_meet_only_where_they_are_not_asked() -> (
    None
):
    predictions = [named(stated("1", material="AB2"))]
    truths = [told("1", material="AB3")]
    assert pairs_of_paper(predictions, truths, close) == [(0, 0)]
    assert not pairs_of_paper(predictions, truths, close, material=str)


@given(
    st.lists(st.sampled_from(["1", "1.0005", "1.001", "1.002", "2"]), max_size=6),
    st.lists(st.sampled_from(["1", "1.0005", "1.001", "1.002", "2"]), max_size=6),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_changes_no_count(
    left: list[str], right: list[str], chance: object
) -> None:
    def count(a: list[str], b: list[str]) -> int:
        return len(
            pairs_of_paper([named(stated(x)) for x in a], [told(x) for x in b], close)
        )

    first = count(left, right)
    shuffled_left, shuffled_right = left[:], right[:]
    chance.shuffle(shuffled_left)  # type: ignore[attr-defined]
    chance.shuffle(shuffled_right)  # type: ignore[attr-defined]
    assert count(shuffled_left, shuffled_right) == first


SIZES = st.lists(st.integers(1, 2), min_size=1, max_size=3)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[int], list[BundleLink]]:
    left, right = draw(SIZES), draw(SIZES)
    links = [
        BundleLink(i, j, is_own, error)
        for i in range(len(left))
        for j in range(len(right))
        if draw(st.booleans())
        for is_own, error in [
            (draw(st.booleans()), draw(st.sampled_from([0.0, 1e-4, 5e-4])))
        ]
    ]
    return left, right, links


def worth(flows: list[BundleFlow], links: list[BundleLink]) -> tuple[int, int, float]:
    """Pairs, pairs with their own name, and the sum of errors as less of it."""
    by_ends = {(link.left, link.right): link for link in links}
    told = [by_ends[flow.left, flow.right] for flow in flows for _ in range(flow.n)]
    return (
        len(told),
        sum(link.is_unaliased for link in told),
        -round(sum(link.error for link in told) * 1e4),
    )


def best(
    left: list[int], right: list[int], links: list[BundleLink]
) -> tuple[int, int, float]:
    """The worth of the best of all assignments, tried one by one."""
    single = [
        (f"l{link.left}.{i}", f"r{link.right}.{j}", link)
        for link in links
        for i in range(left[link.left])
        for j in range(right[link.right])
    ]
    found = (0, 0, 0.0)
    for size in range(1, min(sum(left), sum(right)) + 1):
        for chosen in combinations(single, size):
            if len({a for a, _, _ in chosen}) == size == len({b for _, b, _ in chosen}):
                told = [link for *_, link in chosen]
                found = max(
                    found,
                    (
                        size,
                        sum(link.is_unaliased for link in told),
                        -round(sum(link.error for link in told) * 1e4),
                    ),
                )
    return found


@given(problems())
def test_no_assignment_is_better_than_the_one_that_is_found(
    given_problem: tuple[list[int], list[int], list[BundleLink]],
) -> None:
    left, right, links = given_problem
    if sum(left) * sum(right) > 16:
        return
    flows = solve(left, right, links)
    assert worth(flows, links) == best(left, right, links)
    for place, n in enumerate(left):
        assert sum(flow.n for flow in flows if flow.left == place) <= n
    for place, n in enumerate(right):
        assert sum(flow.n for flow in flows if flow.right == place) <= n


@given(problems())
def test_both_solvers_agree(
    given_problem: tuple[list[int], list[int], list[BundleLink]],
) -> None:
    left, right, links = given_problem
    dense = solve(left, right, links)
    limit = matching._DENSE
    try:
        matching._DENSE = 0
        sparse = solve(left, right, links)
    finally:
        matching._DENSE = limit
    assert worth(sparse, links) == worth(dense, links)


def test_ten_thousand_equal_rows_on_both_sides_are_one_edge() -> None:
    assert solve(
        [10_000], [9_000], [BundleLink(0, 0, is_unaliased=False, error=0.0)]
    ) == [BundleFlow(0, 0, 9_000)]
