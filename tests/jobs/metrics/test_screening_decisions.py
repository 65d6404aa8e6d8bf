"""Agreement from counts, agreement of many judges, precision at another prevalence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.metrics import agreement, agreement_of, fleiss_kappa, ppv_at_prevalence

PAIRS = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("xy")))


@given(PAIRS)
def test_agreement_of_counts_is_that_of_the_pairs(pairs: list[tuple[str, str]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    table = np.array([[pairs.count((x, y)) for y in "xy"] for x in "xy"], dtype=float)
    assert agreement_of(table) == agreement(a, b, "xy")


def test_fleiss_kappa_of_the_example_of_1971() -> None:
    # ten items, fourteen judges, five categories
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1], [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(table) == pytest.approx(0.20993070442195522, abs=1e-12)


def test_judges_who_say_nothing_or_all_the_same_have_no_fleiss_kappa() -> None:
    assert fleiss_kappa(np.empty((0, 2))) is None
    assert fleiss_kappa([[1, 0], [0, 1]]) is None
    assert fleiss_kappa([[2, 0], [3, 0]]) is None
    # items with one judge change nothing
    assert fleiss_kappa([[2, 0], [0, 2], [1, 0]]) == fleiss_kappa([[2, 0], [0, 2]])


def test_precision_is_foretold_by_bayes_rule() -> None:
    assert ppv_at_prevalence(0.8, 0.9, 0.5) == pytest.approx(0.4 / 0.45)
    assert ppv_at_prevalence(0.0, 1.0, 0.5) is None
    assert ppv_at_prevalence(None, 0.9, 0.5) is None
    assert ppv_at_prevalence(0.9, None, 0.5) is None
