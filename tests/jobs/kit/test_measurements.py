"""Measurements, and the metrics that they become with their intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    counts,
    mean_over,
    pooled,
    share,
    wilson_share,
    with_intervals,
    with_wilson,
)
from jobs.kit.measures import (
    ComputedMeasure,
    RateMeasure,
    ValueMeasure,
    measured,
)
from jobs.kit.metrics import Ratio, Resamples, Support, rate_columns, wilson
from jobs.kit.metrics.cluster_statistics import Derived
from runner.scorecard import Target
from tests.replacing import replace

KEYS = tuple(f"{number:03}" for number in range(300))
PERCENTILE = Resamples(KEYS, b=50, form="percentile", cluster="paper")


def measurement(value: MeasuredValue, **fields: str) -> Measurement:
    return Measurement(path="m", definition="m@1(x)", measured=value, **fields)  # type: ignore[arg-type]


def test_a_count_by_itself_is_out_of_itself() -> None:
    assert (count(3).n, count(3, 7).n, count(None).n) == (3, 7, 0)
    assert counts({"a": 1, "b": 2}, 5)["b"] == count(2, 5)


def test_a_share_of_nothing_is_undefined() -> None:
    assert (share(0, 0).value, share(1, 4).value) == (None, 0.25)


def test_wilson_ends_are_as_long_as_those_that_are_drawn_only_where_asked() -> None:
    ends = wilson(1, 3, 0.95)
    assert wilson_share(1, 3, 0.95).interval == ends
    rounded = wilson_share(1, 3, 0.95, is_rounded=True).interval
    assert rounded is not None
    assert rounded.lo == float(f"{ends.lo:.12g}") != ends.lo


def test_a_definition_names_replicates_seed_and_how_many_had_a_value() -> None:
    hits = [1.0] * 150 + [0.0] * 150
    value = pooled(Ratio(hits, [1.0] * 300))
    (metric,) = with_intervals([measurement(value)], PERCENTILE)
    assert metric.definition.startswith("m@1(x); interval by paper: percentile")
    assert "B=50" in metric.definition
    assert metric.definition.endswith("B_used=50")
    assert metric.note is None


def test_an_interval_of_few_replicates_is_flagged_after_the_other_notes() -> None:
    one = [1.0] + [0.0] * 299
    noted = measurement(pooled(Ratio(one, one)), note="of its own")
    (metric,) = with_intervals([noted], PERCENTILE, "few papers")
    own, few, dropped = (metric.note or "").split("; ")
    assert (own, few) == ("of its own", "few papers")
    assert dropped.startswith("undefined in ")


def test_what_is_not_drawn_keeps_its_definition_and_interval() -> None:
    plain = measurement(wilson_share(1, 3, 0.95))
    drawn = measurement(pooled(Ratio([1.0], [3.0])))
    of_wilson, undrawn = with_intervals([plain, drawn])
    assert (of_wilson.lo, of_wilson.definition) == (wilson(1, 3).lo, "m@1(x)")
    assert (undrawn.lo, undrawn.definition) == (None, "m@1(x)")


def test_metrics_keep_order_subset_and_target() -> None:
    target = Target(sense=">=", bound=0.5)
    paths = "first", "second", "third"
    listed = [
        replace(measurement(value, subset="all"), path=path, target=target)
        for path, value in zip(
            paths,
            (count(1), pooled(Ratio([1.0] * 300, [2.0] * 300)), share(1, 2)),
            strict=True,
        )
    ]
    metrics = list(with_intervals(listed, PERCENTILE))
    assert tuple(metric.path for metric in metrics) == paths
    assert {(metric.subset, metric.target) for metric in metrics} == {("all", target)}
    assert [metric.lo is None for metric in metrics] == [True, False, True]


def test_a_rate_has_a_twin_with_the_interval_of_independent_items() -> None:
    rate = replace(measurement(pooled(Ratio([1.0, 2.0], [4.0, 4.0])), note="a"))
    twin = with_wilson(rate, 0.9, "Wilson, level=0.9", "b")
    assert twin == Measurement(
        path="m~wilson",
        definition="m@1(x); Wilson, level=0.9",
        measured=wilson_share(3, 8, 0.9),
        note="a; b",
    )
    with pytest.raises(TypeError, match="m is no share of items"):
        with_wilson(measurement(count(1)), 0.9, "", "")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=300)
)
def test_a_pooled_rate_is_that_of_the_sums(terms: list[tuple[int, int]]) -> None:
    rate = Ratio.of(terms, lambda pair: pair)
    above, below = (sum(column) for column in zip(*terms, strict=True))
    value = pooled(rate)
    assert (value.value, value.n) == (above / below if below else None, below)
    by_cluster = [a / b if b else None for a, b in terms]
    assert rate.by_cluster() == by_cluster
    mean = mean_over(by_cluster)
    assert (mean.n, mean.n_defined) == (len(terms), sum(b > 0 for _, b in terms))


@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=2, max_size=20), st.data()
)
def test_a_formula_over_sums_is_that_of_what_was_drawn(
    cells: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    columns = np.array(cells, dtype=np.float64).T
    of = Derived(
        columns=[*columns],
        formula=lambda *sums: rate_columns(*sums)["mcc"],
        n=1,
        support=Support.of(columns[0]),
    )
    drawn = data.draw(
        st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells))
    )
    block = np.array([drawn, [1] * len(cells)], dtype=np.uint8)
    some, whole = of.statistic.value_of(block)
    sums = [
        sum(n * c for n, c in zip(drawn, column, strict=True)) for column in columns
    ]
    expected = rate_columns(*sums)["mcc"]
    assert np.array_equal(some, expected, equal_nan=True)
    assert of.value == (None if np.isnan(whole) else whole)


LISTS: Mapping[str, RateMeasure[list[int]] | ValueMeasure[list[int]]] = {
    "mean": RateMeasure(
        "Mean", "Mean of a list", of=lambda n: Ratio([sum(n)], [len(n)]), note="a note"
    ),
    "size.{part*}": ValueMeasure(
        "Size, {part}",
        "Size of a part",
        of=lambda n: counts({"a.b": 1, "c": 2}, len(n)),
    ),
    "absent": ValueMeasure("Absent", "Not to be measured", of=lambda _: {}),
    "limit": ValueMeasure(
        "Limit", "A limit", of=lambda _: count(1), definition="limit@2({over}; {limit})"
    ),
}


def test_a_group_is_measured_in_its_order_with_slots_filled() -> None:
    values = measured(
        LISTS,
        [1, 4],
        path="all.",
        over="{key}",
        subset="s",
        parameters={"limit": "7"},
    )
    assert [(m.path, m.definition, m.measured.value, m.note) for m in values] == [
        ("all.mean", "mean@1({key})", 2.5, "a note"),
        ("all.size.a.b", "count@1(size.a.b)", 1, ""),
        ("all.size.c", "count@1(size.c)", 2, ""),
        ("all.limit", "limit@2({key}; 7)", 1, ""),
    ]


def test_a_form_is_part_of_the_path_alone() -> None:
    measure = ComputedMeasure("F1", "Harmonic mean", definition="{key}@1({over})")
    value = measure.measurement("f1", count(1), path="a.", over="o", form="~median")
    assert (value.path, value.definition) == ("a.f1~median", "f1@1(o)")
