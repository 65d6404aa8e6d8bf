"""Each item of a draw is in it as often as its recorded probability says."""

from __future__ import annotations

import math
import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.labels.draws import (
    DESIGNS,
    FLOOR,
    DrawDesign,
    DrawItem,
    disagreement,
    draw,
    majority,
    probabilities,
    spread_by_stratum,
    uncertainty,
)
from runner.errors import UsageError
from runner.labelling import ModelLabel

PROVE = "SIFTLOG_PROVE" in os.environ

ITEMS = st.lists(
    st.builds(
        lambda score, stratum, error: (score, stratum, error),
        st.floats(0, 1),
        st.sampled_from(["include", "exclude", "no reply"]),
        st.sampled_from([None, 0.0, 1.0]),
    ),
    min_size=1,
    max_size=60,
).map(
    lambda rows: [
        DrawItem(key=f"k{i}", score=score, stratum=stratum, error=error)
        for i, (score, stratum, error) in enumerate(rows)
    ]
)


@given(ITEMS, st.sampled_from(DESIGNS), st.integers(1, 80))
@settings(max_examples=60)
def test_probabilities_lie_in_the_unit_interval_and_add_up(
    items: list[DrawItem], design: DrawDesign, n: int
) -> None:
    shares = probabilities(design, items, n)
    assert all(0 < share <= 1 for share in shares)
    assert math.isclose(math.fsum(shares), min(n, len(items)), rel_tol=1e-9)
    least = FLOOR * min(n, len(items)) / len(items)
    assert min(shares) >= min(1, least) * (1 - 1e-9) or max(shares) == 1


@given(ITEMS, st.sampled_from(DESIGNS), st.integers(1, 80), st.integers(0, 9))
@settings(max_examples=40)
def test_a_draw_has_its_size_and_is_the_same_in_any_order(
    items: list[DrawItem], design: DrawDesign, n: int, seed: int
) -> None:
    drawn = draw(design, items, n, seed=seed)
    assert len(drawn) == min(n, len(items))
    assert [one.position for one in drawn] == [*range(1, len(drawn) + 1)]
    assert len({one.item.key for one in drawn}) == len(drawn)
    assert [one.item.key for one in draw(design, items[::-1], n, seed=seed)] == [
        one.item.key for one in drawn
    ]


@pytest.mark.parametrize("design", DESIGNS)
def test_items_are_drawn_as_often_as_their_probability_says(
    design: DrawDesign,
) -> None:
    items = [
        DrawItem(
            key=f"k{i:02}",
            score=(i % 7) / 6,
            stratum="include" if i % 5 == 0 else "exclude",
            error=float(i % 4 == 0) if i % 2 else None,
        )
        for i in range(40)
    ]
    rounds, n = (40_000 if PROVE else 1500), 12
    shares = {
        one.item.key: one.probability
        for seed in range(50)
        for one in draw(design, items, n, seed=seed)
    }
    counts = Counter(
        one.item.key
        for seed in range(rounds)
        for one in draw(design, items, n, seed=seed)
    )
    for key, share in shares.items():
        error = math.sqrt(share * (1 - share) / rounds)
        assert abs(counts[key] / rounds - share) <= 5 * error + 1e-12, key


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="cannot be drawn"):
        draw("random", [], 5, seed=1)
    with pytest.raises(UsageError, match="--n 1"):
        draw("random", [DrawItem(key="k")], 0, seed=1)


def reply(value: str | None, p: float | None = None) -> ModelLabel:
    return ModelLabel(
        item="k", field="", model="m", replicate=1, value=value, probability=p
    )


def test_scores_of_replies() -> None:
    assert disagreement([reply("a"), reply("a"), reply("b")]) == 0.5
    assert disagreement([reply("a"), reply("b"), reply("c")]) == 1.0
    assert disagreement([reply("a"), reply(None)]) == 0.0
    assert uncertainty([reply("a", 0.5)]) == 1.0
    assert uncertainty([reply("a", 1.0), reply("a", 0.0)]) == 1.0
    assert math.isclose(uncertainty([reply("a", 0.9)]), 0.2)
    assert uncertainty([reply("a"), reply("b")]) == 1.0
    assert majority([reply("b"), reply("a"), reply("b")]) == "b"
    assert majority([]) == ""


def test_a_stratum_with_few_labels_counts_as_widely_spread() -> None:
    items = [
        DrawItem(key="a", stratum="include", error=1.0),
        *(DrawItem(key=f"e{i}", stratum="exclude", error=0.0) for i in range(100)),
    ]
    spreads = spread_by_stratum(items)
    assert spreads["include"] == 0.5
    assert 0 < spreads["exclude"] < 0.1
