"""What `compare` gets of a model gives the same differences as the run's own table."""

from __future__ import annotations

import pytest

from jobs.comparison.difference import gap
from jobs.comparison.pairing import label_agreement, pair_items
from jobs.evidence_retrieval.metrics.results import measure_models
from jobs.evidence_retrieval.score import comparable, labels
from jobs.metrics.intervals import Resamples
from tests.jobs.evidence_retrieval.sheets import MODEL, full_sheet, settings


def test_a_pair_of_models_has_the_known_difference() -> None:
    results = measure_models(full_sheet(second=True, lists=False), settings(boot_b=0))
    first, second = (comparable(own) for own in results.models.values())
    both = pair_items(second["auroc"](), first["auroc"]())
    found = gap(both, Resamples(both.resampled_clusters, cluster="post"))
    ends = (0.06776053859306257, 0.10398216096216743)
    assert found.value == pytest.approx(0.08615971059323613, abs=1e-12)
    assert (found.interval.lo, found.interval.hi) == pytest.approx(ends, rel=1e-11)


def test_decisions_of_two_models_agree_as_the_table_of_the_run_says() -> None:
    results = measure_models(full_sheet(second=True, lists=False), settings(boot_b=0))
    one, other = (labels(own) for own in results.models.values())
    found = label_agreement(one, other)
    assert found is not None
    assert found.n == 14_770
    (note,) = [gap.note for gap in results.gaps if "kappa of the decisions" in gap.note]
    assert note.endswith(f"kappa of the decisions {found.agreement.kappa:.12g}")


def test_every_maker_gives_what_its_metric_is_made_of() -> None:
    own = measure_models(full_sheet(), settings(boot_b=0)).models[MODEL]
    made = comparable(own)
    assert list(made) == [
        "auroc",
        "auprc",
        "recall@10",
        "ndcg@10",
        "mrr",
        "map@10",
        "hit@10",
        "brier",
        "evidence_recall@K",
        "evidence_precision@K",
        "screening_sensitivity",
        "alert_precision",
        "alert_recall",
    ]
    for path, make in made.items():
        values = make()
        assert len(values.items) == len(values.clusters) == 14_770
        expected = own.by_path()[path].value
        if values.kind == "mean":
            defined = [value for value in values.first if value is not None]
            assert sum(defined) / len(defined) == pytest.approx(expected)
        elif values.kind == "ratio":
            above = sum(value or 0 for value in values.first)
            below = sum(value or 0 for value in values.second or ())
            assert above / below == pytest.approx(expected)
        assert "bootstrap" not in values.definition
