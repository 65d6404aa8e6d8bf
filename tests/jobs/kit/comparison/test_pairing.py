"""Pairing goes by key, and what it leaves out is counted.

Labels of two models against each other: what both say, and of which items.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison.pairing import (
    Incomparable,
    Overlap,
    label_agreement,
    pair_items,
)
from jobs.kit.metrics import agreement
from runner.scorecard import ItemValues, Labels
from tests.jobs.kit.comparison.item_columns import ANY, MEANS, means, pooled


def test_only_items_of_both_are_paired_and_the_rest_is_counted() -> None:
    a = means({"p1/1": 1.0, "p1/2": 0.5, "p2/1": None, "p3/1": 0.0, "p9/1": 0.25})
    b = means({"p3/1": 1.0, "p2/1": 1.0, "p1/2": 0.25, "p4/1": 1.0})
    both = pair_items(a, b)
    assert both.items == ["p1/2", "p3/1"]
    assert both.a.first.tolist() == [0.5, 0.0]
    assert both.b.first.tolist() == [0.25, 1.0]
    assert both.overlap == Overlap(n=2, clusters=2, only_a=2, only_b=1, undefined=1)


def test_metrics_of_one_frame_share_their_common_items() -> None:
    a, b = means({"p1/1": 1.0, "p2/1": 0.5}), means({"p2/1": 0.0, "p1/1": None})
    first = pair_items(a, b)
    other = replace(a, first=[None, 0.25]), replace(b, first=[1.0, 0.5])
    shared = pair_items(*other, first.common)
    assert shared.common is first.common
    alone = pair_items(*other)
    assert (shared.items, shared.clusters) == (alone.items, alone.clusters)
    assert (shared.overlap, shared.resampled_clusters) == (
        alone.overlap,
        alone.resampled_clusters,
    )
    assert shared.a.first.tolist() == alone.a.first.tolist() == [0.25]
    assert shared.b.first.tolist() == alone.b.first.tolist() == [1.0]
    for changed in (replace(a, items=[*a.items]), replace(b, clusters=[*b.clusters])):
        sides = (changed, b) if changed.first is a.first else (a, changed)
        assert pair_items(*sides, first.common).common is not first.common
    with pytest.raises(ValueError, match="columns of"):
        pair_items(replace(a, first=[1.0]), b, first.common)


def test_documents_of_undefined_items_are_drawn_too() -> None:
    both = pair_items(
        means({"p1/1": 1.0, "p2/1": None}), means({"p1/1": 0.0, "p2/1": 1.0})
    )
    assert both.resampled_clusters == ("p1", "p2")
    assert both.overlap.clusters == 1


@given(MEANS, MEANS)
def test_every_item_is_somewhere_and_none_is_twice(
    a: ItemValues, b: ItemValues
) -> None:
    found = pair_items(a, b).overlap
    assert found.n + found.undefined + found.only_a == len(a.items)
    assert found.n + found.undefined + found.only_b == len(b.items)


@given(ANY, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(
    values: ItemValues, chance: random.Random
) -> None:
    order = list(range(len(values.items)))
    chance.shuffle(order)
    shuffled = ItemValues(
        kind=values.kind,
        items=[values.items[at] for at in order],
        clusters=[values.clusters[at] for at in order],
        cluster=values.cluster,
        first=[values.first[at] for at in order],
        second=None if values.second is None else [values.second[at] for at in order],
        definition=values.definition,
    )
    one, other = pair_items(values, shuffled), pair_items(values, values)
    assert one.items == other.items
    assert one.clusters == other.clusters
    assert one.b.first.tolist() == other.b.first.tolist()
    assert one.outcomes() == other.outcomes()


def test_different_definitions_of_one_metric_are_not_compared() -> None:
    a, b = means({"p1/1": 1.0}), means({"p1/1": 1.0}, definition="mean@2(other)")
    with pytest.raises(Incomparable, match=r"as mean@1.* and B as mean@2"):
        pair_items(a, b)


def test_scores_of_different_labels_are_not_compared() -> None:
    a = pooled({"p1/1": (1.0, 0.4), "p2/1": (0.0, 0.3)}, kind="auroc")
    b = pooled({"p1/1": (0.0, 0.4), "p2/1": (0.0, 0.3)}, kind="auroc")
    with pytest.raises(Incomparable, match="the label of 1 items"):
        pair_items(a, b)


@pytest.mark.parametrize(
    "changes",
    [{"items": ["p1/1", "p1/1"]}, {"first": [1.0]}, {"second": [1.0, 2.0, 3.0]}],
)
def test_an_item_given_twice_and_a_column_too_short_are_mistakes(
    changes: dict[str, object],
) -> None:
    good = means({"p1/1": 1.0, "p1/2": 0.0})
    with pytest.raises(ValueError, match="B gives"):
        pair_items(good, means({"p1/1": 1.0, "p1/2": 0.0}, **changes))


def test_items_that_differ_most_come_first_and_equal_ones_not_at_all() -> None:
    a = means({"p3/1": 0.0, "p1/1": 1.0, "p2/1": 0.5, "p4/1": 0.5, "p5/1": 0.3})
    b = means({"p3/1": 1.0, "p1/1": 0.0, "p2/1": 0.75, "p4/1": 0.5, "p5/1": 0.8})
    found = [(each.item, each.a, each.b) for each in pair_items(a, b).furthest(3)]
    assert found == [("p1/1", 1.0, 0.0), ("p3/1", 0.0, 1.0), ("p5/1", 0.3, 0.8)]
    assert len(list(pair_items(a, b).furthest(9))) == 4


def test_a_ratio_wins_by_item_where_both_have_a_denominator() -> None:
    a = pooled({"p1": (1.0, 2.0), "p2": (0.0, 0.0), "p3": (1.0, 4.0)})
    b = pooled({"p1": (2.0, 2.0), "p2": (1.0, 1.0), "p3": (2.0, 8.0)})
    found = pair_items(a, b).outcomes()
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)


@given(MEANS, MEANS)
def test_where_lower_is_better_wins_are_losses(a: ItemValues, b: ItemValues) -> None:
    plain = pair_items(a, b)
    turned = pair_items(*(replace(each, lower_is_better=True) for each in (a, b)))
    won, lost = plain.outcomes(), turned.outcomes()
    assert (won.wins, won.ties, won.losses) == (lost.losses, lost.ties, lost.wins)
    favours = [plain.favour(gap) for gap in plain.every()]
    assert [-favour for favour in favours] == [
        turned.favour(gap) for gap in turned.every()
    ]
    assert [favours.count(n) for n in (1, 0, -1)] == [won.wins, won.ties, won.losses]


WORDS = ("no", "yes", "unclear")
SAID = st.dictionaries(
    st.sampled_from("abcdefgh"), st.one_of(st.none(), st.sampled_from(WORDS))
)


def of(said: dict[str, str | None]) -> Labels:
    return Labels(
        what="decision", categories=WORDS, items=[*said], assigned=[*said.values()]
    )


@given(SAID, SAID)
def test_only_items_that_both_label_count_and_sides_may_be_swapped(
    mine: dict[str, str | None], theirs: dict[str, str | None]
) -> None:
    found, back = (
        label_agreement(of(mine), of(theirs)),
        label_agreement(of(theirs), of(mine)),
    )
    both = [item for item in mine if mine[item] and theirs.get(item)]
    if not both:
        assert found is back is None
        return
    assert found is not None
    assert back is not None
    assert found.n == back.n == len(both)
    said = ([side[item] for item in both] for side in (mine, theirs))
    assert found.agreement == agreement(*said, WORDS)
    assert found.agreement.percent == back.agreement.percent


@given(SAID)
def test_a_model_agrees_with_itself(said: dict[str, str | None]) -> None:
    found = label_agreement(of(said), of(said))
    assert found is None or found.agreement.percent == 1.0


def test_labels_from_other_lists_are_not_set_against_each_other() -> None:
    own = of({"a": "yes"})
    assert label_agreement(own, replace(own, categories=("yes",))) is None
    assert label_agreement(own, replace(own, what="state")) is None
