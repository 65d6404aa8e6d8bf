"""What the first K of a list hold, K by K."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.metrics import hits, select

NEARLY = 1e-12


def test_recall_precision_and_f1_by_hand() -> None:
    found = hits([{"a", "b"}, {"a", "b"}, {"z"}, set()], ["axb", "axb", "axb", "axb"])
    cut = select(found, np.array([3, 0, 2, 1]))
    assert cut.shown.tolist() == [3, 0, 2, 1]
    assert cut.recall[:3].tolist() == [1.0, 0.0, 0.0]
    assert cut.precision.tolist() == [pytest.approx(2 / 3), 0.0, 0.0, 0.0]
    assert cut.f1[:3].tolist() == [pytest.approx(0.8), 0.0, 0.0]
    assert np.isnan([cut.recall[3], cut.f1[3]]).all()


@given(st.sets(st.sampled_from("abcdef"), min_size=1), st.integers(0, 8))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(
    gold: set[str], k: int
) -> None:
    cut = select(hits([gold], ["abcd"]), np.array([k]))
    recall, precision = float(cut.recall[0]), float(cut.precision[0])
    both = recall + precision
    wanted = 2 * recall * precision / both if both else 0.0
    assert float(cut.f1[0]) == pytest.approx(wanted, abs=NEARLY)
