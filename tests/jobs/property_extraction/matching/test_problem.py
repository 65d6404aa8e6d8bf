"""Solutions against all that there are, on small assignments."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction import matching
from jobs.property_extraction.matching import BundleFlow, BundleLink, solve

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
