"""The known answers of the full-size set, from the comparison that users are given."""

from __future__ import annotations

import pytest

from jobs.comparison.models import ComparisonOptions, compare_models
from jobs.metrics import delong_paired, mcnemar, round12
from runner.scorecard import ItemValues
from tests.jobs.comparison.item_columns import side
from tests.jobs.metrics.set_a import SetA, set_a


@pytest.fixture(scope="module")
def a() -> SetA:
    return set_a()


def of(
    a: SetA, kind: str, first: list[float], second: list[float] | None
) -> ItemValues:
    return ItemValues(
        kind=kind,
        items=[f"{post}/{i % 10 + 1}" for i, post in enumerate(a.post)],
        clusters=a.post,
        cluster="post",
        first=first,
        second=second,
        definition="of a test",
    )


def test_two_models_of_the_full_size_set(a: SetA) -> None:
    labels = a.y.astype(float).tolist()
    sides = [
        side(
            {
                "auroc": of(a, "auroc", labels, p.tolist()),
                "right": of(
                    a, "mean", ((p >= 0.5) == a.y).astype(float).tolist(), None
                ),
            }
        )
        for p in (a.p2, a.p)
    ]
    (match,) = compare_models([(sides[0], sides[1])], (), ComparisonOptions())
    area, right = match.compared
    assert area.gap.b == pytest.approx(0.8109338369709094, abs=1e-12)
    assert area.gap.a == pytest.approx(0.7247741263776732, abs=1e-12)
    assert (area.gap.interval.lo, area.gap.interval.hi) == pytest.approx(
        (0.06776053859306257, 0.10398216096216743), rel=1e-11
    )
    assert area.verdict == "better"
    assert area.p_values.primary is not None
    assert area.p_values.primary.name == "DeLong by post"
    assert area.p_values.primary.p == pytest.approx(1.3057749162e-20, rel=1e-9)
    assert area.p_values.independent is not None
    delong = delong_paired(a.y, a.p, a.p2)
    assert delong is not None
    assert delong.z == pytest.approx(9.22695099985778, rel=1e-12)
    assert area.p_values.independent.p == round12(delong.p)
    assert right.outcomes is not None
    assert (right.outcomes.wins, right.outcomes.losses) == (3919, 2671)
    assert right.p_values.independent is not None
    assert right.p_values.independent.p == round12(mcnemar(3919, 2671).p)
    assert right.p_values.independent.p == pytest.approx(
        1.459910768307661e-53, rel=1e-11
    )
    assert right.overlap.clusters == 1477
