"""From which likeness on conclusions count as the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.conclusion_similarity import (
    FIXED,
    LEAST_PAIRS,
    threshold_from_labels,
    threshold_from_mismatched,
)

LABELS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.booleans()), max_size=12
)


def youden(pairs: list[tuple[float, bool]], threshold: float) -> float:
    """Sensitivity and specificity less 1, as the textbooks have it."""
    positives = [each for each, similar in pairs if similar]
    negatives = [each for each, similar in pairs if not similar]
    return sum(each >= threshold for each in positives) / len(positives) - sum(
        each >= threshold for each in negatives
    ) / len(negatives)


@given(LABELS)
def test_labels_draw_the_line_where_youdens_index_is_highest(
    pairs: list[tuple[float, bool]],
) -> None:
    found = threshold_from_labels(
        [each for each, _ in pairs], [label for _, label in pairs]
    )
    if len({label for _, label in pairs}) < 2:
        assert found is None
        return
    assert found is not None
    best = max(youden(pairs, each) for each, _ in pairs)
    at_best = {each for each, _ in pairs if youden(pairs, each) == pytest.approx(best)}
    assert found.value == max(at_best)
    assert (found.source, found.n) == ("labels", len(pairs))


def test_each_label_is_judged_by_the_line_that_the_others_draw() -> None:
    found = threshold_from_labels(
        [0.1, 0.2, 0.3, 0.8, 0.9], [False, False, True, True, True]
    )
    assert found is not None
    # without the 0.3 the line is at 0.8; without any other it stays at 0.3
    assert (found.value, found.accuracy) == (0.3, 0.8)
    # without the only one of its kind the others know of no line, and call all alike
    alone = threshold_from_labels([0.1, 0.2, 0.9], [False, False, True])
    assert alone is not None
    assert alone.accuracy == pytest.approx(2 / 3)


def test_mismatched_pairs_draw_a_line_if_there_are_enough() -> None:
    pairs = [n / 100 for n in range(1, LEAST_PAIRS + 1)]
    assert threshold_from_mismatched(pairs[1:]) is None
    found = threshold_from_mismatched(pairs)
    assert found is not None
    # linear between the 19th and the 20th of twenty: rank 0.95 x 19 = 18.05 from 0
    assert found.value == pytest.approx(0.1905)
    assert (found.source, found.n, found.accuracy) == ("mismatched pairs", 20, None)


def test_judges_and_vectors_borrow_pairs_or_have_a_fixed_threshold() -> None:
    own, others = [0.1] * 10, [0.5] * 10
    for kind in ("judge", "embedding"):
        found = threshold_from_mismatched(own, kind, borrowed=others)
        assert found is not None
        assert (found.source, found.n, found.value) == ("borrowed pairs", 20, 0.5)
        assert not found.admits(0.5)
        found = threshold_from_mismatched(own, kind, borrowed=others[:9])
        assert found is not None
        assert (found.source, found.n, found.value) == ("fixed", 0, FIXED[kind])
        assert found.admits(FIXED[kind])
        # nothing is borrowed where the own pairs are enough
        found = threshold_from_mismatched([0.1] * 20, kind, borrowed=others)
        assert found is not None
        assert (found.source, found.value) == ("mismatched pairs", 0.1)
    # words have no fixed threshold, and pass nothing by themselves
    assert threshold_from_mismatched(own, "tfidf", borrowed=others) is None
