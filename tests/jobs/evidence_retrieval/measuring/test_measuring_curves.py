"""What figures are drawn from says the same as the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.evidence_retrieval.curve_figures import (
    bins,
    k_by_state,
    risk,
    separation,
    states_by_fold,
)
from jobs.evidence_retrieval.metrics.bootstrap import PostBootstrap
from jobs.evidence_retrieval.metrics.judged import JudgedPredictions, block_of
from tests.jobs.evidence_retrieval.sheets import full_sheet, settings, small_sheet

CHOSEN = settings(boot_b=200)


@pytest.fixture(scope="module")
def block() -> JudgedPredictions:
    sheet = full_sheet(lists=False)
    return block_of(sheet.queries, sheet.predictions[0], CHOSEN)


def test_the_curves_go_from_corner_to_corner_inside_their_band(
    block: JudgedPredictions,
) -> None:
    found = separation(block, PostBootstrap(block.queries, CHOSEN))
    assert found is not None
    assert (found.fpr[0], found.tpr[0]) == (0.0, 0.0)
    assert (found.fpr[-1], found.tpr[-1]) == (1.0, 1.0)
    assert found.prevalence == pytest.approx(1379 / 14_770)
    assert found.precision[-1] == pytest.approx(found.prevalence)
    band = found.roc_band
    lo = np.array([-1.0 if end is None else end for end in band.lo])
    hi = np.array([-1.0 if end is None else end for end in band.hi])
    own = np.interp(band.x, found.fpr, found.tpr)
    # the first place is the start, where a draw's curve may already have gone up
    assert (lo[1:] - 0.005 <= own[1:]).all()
    assert (own[1:] <= hi[1:] + 0.005).all()
    assert (hi - lo).max() > 0.01
    screening = next(o for o in found.operating if o.name.startswith("screening"))
    assert screening.tpr == pytest.approx(0.9883973894126178)


def test_bins_and_counts_add_up_to_the_queries(block: JudgedPredictions) -> None:
    counts = [1940, 1943, 1910, 2106, 2099, 2126, 2105, 172, 188, 181]
    assert [each.count for each in bins(block)] == counts
    by_state = k_by_state(block)
    assert by_state["NEG"] == {0: 1350}
    assert sum(sum(own.values()) for own in by_state.values()) == 14_770
    assert set(by_state["POS"]) == {1, 2, 3, 4, 5, 6}
    folds = states_by_fold(block)
    assert sum(own["UNCERTAIN"] for own in folds.values()) == 12_431
    points = risk(block)
    assert points is not None
    assert points.coverage[-1] == 1.0
    assert points.risk[-1] == pytest.approx((3843 + 428) / 14_770)


def test_there_is_nothing_to_draw_without_probabilities() -> None:
    sheet = small_sheet([("p", "A.1"), ("p", "A.2")], y=[1, 0])
    block = block_of(sheet.queries, sheet.predictions[0], CHOSEN)
    assert separation(block, PostBootstrap(sheet.queries, CHOSEN)) is None
    assert bins(block) == ()
    assert risk(block) is None
    assert k_by_state(block) == {}
    assert states_by_fold(block) == {}
