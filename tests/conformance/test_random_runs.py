"""Runs drawn at random keep their budget, and show what they are billed."""

from __future__ import annotations

import os

import pytest

from tests.conformance.random_runs import carry_out, carry_out_all, draw

PROVE = "SIFTLOG_PROVE" in os.environ
WHOLE = 1_000
SHORT = (16, 17, 35, 53, 71, 3, 4, 10, 26, 44)
"""Every dialect whose limit of the output does not bound reasoning, and tiers."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SHORT)
def test_a_random_run_keeps_its_budget_and_shows_its_bill(seed: int) -> None:
    result = carry_out(seed)
    assert not result.broken, f"{result.replay}\n{result.broken}"


@pytest.mark.skipif(not PROVE, reason="SIFTLOG_PROVE is not set; make prove sets it")
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_random_runs_do() -> None:
    results = list(carry_out_all(range(WHOLE), processes=2))
    broken = [f"{each.replay}\n{each.broken}" for each in results if each.broken]
    assert not broken, "\n\n".join(broken)


def test_a_seed_draws_the_same_run() -> None:
    assert draw(7) == draw(7) != draw(8)
