"""Differences with their intervals and tests: what must hold for every metric."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison.difference import (
    OPPOSITE,
    Gap,
    VerdictRule,
    gap,
    outcome_agreement,
    p_values,
)
from jobs.kit.comparison.models import ComparisonOptions
from jobs.kit.comparison.pairing import PairedItems, pair_items
from jobs.kit.metrics import (
    Interval,
    Resamples,
    auprc,
    auroc,
    delong_paired,
    mcnemar,
    mean,
    round12,
    sign_flip,
)
from runner.scorecard import ItemValues
from tests.jobs.kit.comparison.item_columns import (
    MEANS,
    RATIOS,
    VERDICTS,
    areas,
    means,
    pooled,
)
from tests.replacing import replace

SAME_KIND = st.one_of(
    st.tuples(MEANS, MEANS),
    st.tuples(VERDICTS, VERDICTS),
    st.tuples(RATIOS, RATIOS),
    areas("auroc"),
    areas("auprc"),
)
Two = tuple[ItemValues, ItemValues]
SURE = 1e-6
"""A p-value that decides."""


def drawn(paired: PairedItems) -> Gap:
    return gap(
        paired,
        ComparisonOptions(b=50, form="percentile").maker()(paired.resampled_clusters),
    )


@given(SAME_KIND)
def test_a_model_against_itself_differs_by_exactly_nothing(two: Two) -> None:
    paired = pair_items(two[0], two[0])
    found = drawn(paired)
    assert found.a == found.b
    assert found.value in {0.0, None}
    assert found.interval.lo in {0.0, None}
    assert found.interval.hi == found.interval.lo
    for lower_is_better in (False, True):
        said = VerdictRule().verdict(
            found.interval, SURE, 10, lower_is_better=lower_is_better
        )
        assert said == "undecided"
    made = p_values(paired, 1)
    assert all(test.p == 1.0 for test in (made.primary, made.independent) if test)


@given(SAME_KIND)
def test_swapping_the_sides_negates_the_difference(two: Two) -> None:
    there, back = pair_items(*two), pair_items(*two[::-1])
    one, other = drawn(there), drawn(back)
    assert (one.a, one.b) == (other.b, other.a)
    assert one.value == (None if other.value is None else -other.value)
    for lower_is_better in (False, True):
        here, over_there = (
            VerdictRule().verdict(
                each.interval, SURE, 10, lower_is_better=lower_is_better
            )
            for each in (one, other)
        )
        assert here == OPPOSITE[over_there]
    if one.interval.lo is not None:
        assert other.interval.hi == pytest.approx(-one.interval.lo, rel=1e-11)
        assert other.interval.lo == pytest.approx(-one.interval.hi, rel=1e-11)
    assert p_values(there, 1) == p_values(back, 1)
    won, lost = there.outcomes(), back.outcomes()
    assert (won.wins, won.ties, won.losses) == (lost.losses, lost.ties, lost.wins)
    met, again = outcome_agreement(there), outcome_agreement(back)
    assert (met is None) == (again is None)
    if met and again:
        assert (met.kappa, met.ac) == pytest.approx((again.kappa, again.ac))


@given(SAME_KIND)
def test_what_one_side_has_alone_changes_nothing(two: Two) -> None:
    a, b = two
    common = set(a.items) & set(b.items)

    def cut(values: ItemValues) -> ItemValues:
        kept = [at for at, item in enumerate(values.items) if item in common]
        return ItemValues(
            kind=values.kind,
            items=[values.items[at] for at in kept],
            clusters=[values.clusters[at] for at in kept],
            cluster=values.cluster,
            first=[values.first[at] for at in kept],
            second=None
            if values.second is None
            else [values.second[at] for at in kept],
            definition=values.definition,
        )

    whole, part = pair_items(a, b), pair_items(cut(a), cut(b))
    assert drawn(whole) == drawn(part)
    assert p_values(whole, 1) == p_values(part, 1)
    assert outcome_agreement(whole) == outcome_agreement(part)
    assert whole.outcomes() == part.outcomes()


ENDS = st.one_of(st.none(), st.sampled_from((-0.5, -1e-12, 0.0, 1e-12, 0.5)))


@given(ENDS, ENDS, st.booleans())
def test_nobody_wins_without_an_interval_that_leaves_0_out(
    lo: float | None, hi: float | None, lower_is_better: bool
) -> None:
    ends = Interval(lo=lo, hi=hi)
    said = VerdictRule().verdict(ends, SURE, 10, lower_is_better=lower_is_better)
    if lo is None or hi is None or lo <= 0 <= hi:
        assert said == "undecided"
    elif min(lo, hi) > 0:
        assert said == ("worse" if lower_is_better else "better")


@given(MEANS, MEANS)
def test_a_mean_is_that_of_the_differences_item_by_item(
    a: ItemValues, b: ItemValues
) -> None:
    left = dict(zip(a.items, a.first, strict=True))
    right = dict(zip(b.items, b.first, strict=True))
    both = [
        (x, y)
        for item in left.keys() & right.keys()
        if (x := left[item]) is not None and (y := right[item]) is not None
    ]
    found = drawn(pair_items(a, b))
    assert found.value == mean(y - x for x, y in both)
    assert found.a == mean(x for x, _ in both)
    assert found.b == mean(y for _, y in both)


def test_a_ratio_is_of_sums_and_not_a_mean_of_ratios() -> None:
    a = pooled({"p1": (1.0, 1.0), "p2": (0.0, 9.0)})
    b = pooled({"p1": (1.0, 1.0), "p2": (9.0, 9.0)})
    found = drawn(pair_items(a, b))
    assert (found.a, found.b, found.value) == (0.1, 1.0, 0.9)
    own = p_values(pair_items(a, b), 1).primary
    # one of two papers differs, so that swapping it gives as large a difference
    assert own is not None
    assert (own.name, own.p) == ("side swaps by paper", 1.0)


@given(MEANS, MEANS)
def test_a_ratio_over_ones_has_the_p_of_the_mean(a: ItemValues, b: ItemValues) -> None:
    def over_ones(values: ItemValues) -> ItemValues:
        return replace(values, kind="ratio", second=[1.0] * len(values.items))

    if pair_items(a, b).is_right_or_wrong:
        return
    mean_p = p_values(pair_items(a, b), 1).primary
    ratio_p = p_values(pair_items(over_ones(a), over_ones(b)), 1).primary
    assert (mean_p and mean_p.p) == (ratio_p and ratio_p.p)


def test_few_clusters_have_the_interval_of_the_library() -> None:
    a = means({"p1": 0.5, "p2": 0.25, "p3": 1.0})
    b = means({"p1": 0.75, "p2": 0.5, "p3": 0.0})
    paired = pair_items(a, b)
    draws = Resamples(["p1", "p2", "p3"], b=200)
    assert gap(paired, draws).interval == draws.difference(b.first, a.first)


# -- which test a metric gets ----------------------------------------------------------


def test_right_and_wrong_of_independent_items_is_mcnemars() -> None:
    a = means({f"p{n}": float(n < 10) for n in range(20)})
    b = means({f"p{n}": float(n >= 7) for n in range(20)})
    made = p_values(pair_items(a, b), 1)
    # of B ten are right where A is wrong, and seven the other way round
    assert made.primary is not None
    assert (made.primary.name, made.primary.p) == ("McNemar", round12(mcnemar(10, 7).p))
    assert made.independent is None


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(10, 3, 0.09228515625), (0, 0, 1.0), (5, 5, 1.0), (1, 0, 1.0)],
)
def test_mcnemars_test_has_the_known_values(wins: int, losses: int, p: float) -> None:
    a = means({f"p{n}": float(n >= wins) for n in range(wins + losses + 4)})
    b = means(
        {
            f"p{n}": float(not wins <= n < wins + losses)
            for n in range(wins + losses + 4)
        }
    )
    made = p_values(pair_items(a, b), 1)
    assert made.primary is not None
    assert (made.primary.name, made.primary.p) == ("McNemar", p)


def test_right_and_wrong_within_papers_is_permuted_by_paper_and_mcnemar_beside() -> (
    None
):
    a = means({"p1/1": 0.0, "p1/2": 0.0, "p1/3": 0.0, "p2/1": 1.0})
    b = means({"p1/1": 1.0, "p1/2": 1.0, "p1/3": 1.0, "p2/1": 1.0})
    made = p_values(pair_items(a, b), 1)
    assert made.primary is not None
    assert made.independent is not None
    # one paper differs, and one sign says nothing; three items would say 0.25
    assert (made.primary.name, made.primary.p) == ("sign flips by paper", 1.0)
    assert (made.independent.name, made.independent.p) == ("McNemar", 0.25)


@given(MEANS, MEANS, st.integers(0, 9))
def test_other_means_are_permuted_by_paper(
    a: ItemValues, b: ItemValues, seed: int
) -> None:
    paired = pair_items(a, b)
    made = p_values(paired, seed)
    if not paired.items:
        assert made.primary is None
        return
    assert made.primary is not None
    if made.primary.name == "McNemar":
        assert not paired.is_clustered
        return
    gaps = (paired.b.first - paired.a.first).tolist()
    assert made.primary.p == round12(sign_flip(gaps, paired.clusters, seed))


LABELS = {f"p{n}": float(n % 3 == 0) for n in range(12)}
SCORES_A = {item: (n * 7 % 12) / 12 for n, item in enumerate(LABELS)}
SCORES_B = {item: (n * 5 % 12) / 12 for n, item in enumerate(LABELS)}


def scored(scores: dict[str, float], post: str = "", kind: str = "auroc") -> ItemValues:
    return pooled(
        {f"{post}{item}": (LABELS[item], scores[item]) for item in LABELS}, kind=kind
    )


def test_areas_are_the_librarys_and_delongs_test_is_their_own() -> None:
    found = drawn(paired := pair_items(scored(SCORES_A), scored(SCORES_B)))
    labels = [LABELS[item] for item in paired.items]
    first = [SCORES_A[item] for item in paired.items]
    second = [SCORES_B[item] for item in paired.items]
    assert (found.a, found.b) == (auroc(labels, first), auroc(labels, second))
    delong = delong_paired(labels, second, first)
    made = p_values(paired, 1)
    assert delong is not None
    assert made.primary is not None
    assert (made.primary.name, made.primary.p) == ("DeLong", round12(delong.p))


def test_delongs_test_stands_beside_where_posts_have_several_rows() -> None:
    def in_posts(scores: dict[str, float]) -> ItemValues:
        own = scored(scores)
        return replace(own, clusters=[f"p{int(key[1:]) // 3}" for key in own.items])

    made = p_values(pair_items(in_posts(SCORES_A), in_posts(SCORES_B)), 1)
    assert made.primary is not None
    assert made.independent is not None
    assert (made.primary.name, made.independent.name) == ("DeLong by paper", "DeLong")
    # one post that holds everything tests nothing
    alone = p_values(pair_items(scored(SCORES_A, "p/"), scored(SCORES_B, "p/")), 1)
    assert alone.primary is None


def test_average_precision_is_tested_on_the_replicates_of_its_interval() -> None:
    a, b = scored(SCORES_A, kind="auprc"), scored(SCORES_B, kind="auprc")
    found = drawn(paired := pair_items(a, b))
    labels = [LABELS[item] for item in paired.items]
    assert found.a == auprc(labels, [SCORES_A[item] for item in paired.items])
    assert found.interval.lo is not None
    assert p_values(paired, 1).primary is None
    own = p_values(
        paired,
        1,
        ComparisonOptions(b=50, form="percentile").maker()(paired.resampled_clusters),
    ).primary
    assert own is not None
    assert own.name == "bootstrap by paper"
    assert 0 < own.p <= 1


def test_one_class_has_neither_area_nor_interval_nor_test() -> None:
    one = pooled({"p1": (1.0, 0.5), "p2": (1.0, 0.25)}, kind="auroc")
    found = drawn(paired := pair_items(one, one))
    assert (found.a, found.value, found.interval.lo) == (None, None, None)
    word = VerdictRule().verdict(found.interval, SURE, 10, lower_is_better=False)
    assert word == "undecided"
    assert p_values(paired, 1).primary is None
