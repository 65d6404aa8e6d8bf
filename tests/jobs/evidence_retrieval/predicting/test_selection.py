"""How many sentences a configuration shows."""

from __future__ import annotations

import numpy as np

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.scoring_input import sweep_findings
from jobs.evidence_retrieval.predictions.stages import selection
from jobs.evidence_retrieval.queries import Predictions
from jobs.evidence_retrieval.settings import EvidenceSettings

LEVEL = [np.ones(11), np.ones(4), np.empty(0)]


def test_what_is_fixed_is_named_by_its_number() -> None:
    found = selection(Config(name="c", top=24), EvidenceSettings(), LEVEL, None)
    assert (found.rule, found.k.tolist()) == ("24", [24, 24, 24])
    found = selection(
        Config(name="c", dynamic_k="fixed:7"), EvidenceSettings(), LEVEL, None
    )
    assert (found.rule, found.k.tolist(), dict(found.sweep)) == ("7", [7, 7, 7], {})


def test_the_mass_rule_goes_by_state_and_by_that_of_uncertain_without_one() -> None:
    config = Config(name="c", dynamic_k="mass")
    scores = [np.ones(11)] * 4
    states = np.array([0, 1, 2, -1], dtype=np.int8)
    found = selection(config, EvidenceSettings(), scores, states)
    assert (found.rule, found.k.tolist()) == ("K", [0, 8, 7, 8])
    assert selection(config, EvidenceSettings(), LEVEL, None).k.tolist() == [8, 3, 0]


def test_a_sweep_replaces_gamma_and_keeps_the_bounds() -> None:
    config = Config(name="c", dynamic_k="mass")
    settings = EvidenceSettings(gammas=(0.95, 0.7), k_scale="raw")
    falling = [np.arange(20) * -0.25]
    found = selection(config, settings, falling, None)
    assert {gamma: k.tolist() for gamma, k in found.sweep.items()} == {
        0.7: [5],
        0.95: [12],
    }


def test_a_gamma_without_effect_is_said() -> None:
    def with_sweep(*ks: int) -> Predictions:
        sweep = {0.5 + i / 10: np.array([k]) for i, k in enumerate(ks)}
        return Predictions(model="m", config="c", status=["scored"], sweep=sweep)

    assert [each.code for each in sweep_findings(with_sweep(5, 5))] == [
        "gamma_without_effect"
    ]
    assert not [*sweep_findings(with_sweep(5, 6))]
    assert not [*sweep_findings(with_sweep(5))]
