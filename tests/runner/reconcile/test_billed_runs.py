"""Runs against the endpoint's invoice: residual 0, all named, no false name."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.runner.reconcile.billed_runs import carry_out, carry_out_all
from tests.runner.reconcile.invoices import KINDS

PROVE = "SIFTLOG_PROVE" in os.environ
SHORT = (1, 3)
"""Batches (3), and single calls."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", SHORT)
def test_every_misbilling_of_a_run_is_named_and_nothing_else(seed: int) -> None:
    result = carry_out(seed)
    assert not result.broken, f"seed {seed}\n{result.broken}"


@pytest.mark.skipif(not PROVE, reason="SIFTLOG_PROVE is not set; make prove sets it")
@pytest.mark.timeout(3 * 3600)
def test_a_thousand_runs_with_eight_kinds_of_misbilling_leave_no_residual() -> None:
    results = list(carry_out_all(range(1_000), processes=2))
    broken = [f"seed {r.seed}\n{r.broken}" for r in results if r.broken]
    assert not broken, "\n\n".join(broken)
    injected = sum((Counter(result.kinds) for result in results), Counter[str]())
    assert set(injected) == set(KINDS)
