"""Pairs within a paper: order, target sets, materials, and what greedy loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.matching import NamedPrediction, pairs_of_paper
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
