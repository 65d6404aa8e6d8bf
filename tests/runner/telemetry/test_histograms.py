from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

from runner.telemetry import DURATION_BOUNDS, Attribute, MetricHistograms

VALUES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.one_of(st.sampled_from(DURATION_BOUNDS), st.floats(0, 200)),
    ),
    min_size=1,
)


@given(values=VALUES)
def test_values_are_counted_as_the_sdk_counts_them(
    values: list[tuple[str, float]],
) -> None:
    ours = MetricHistograms(DURATION_BOUNDS)
    reader = InMemoryMetricReader()
    buckets = ExplicitBucketHistogramAggregation(DURATION_BOUNDS)
    view = View(instrument_name="x", aggregation=buckets)
    meters = MeterProvider([reader], views=[view], shutdown_on_exit=False)
    theirs = meters.get_meter("t").create_histogram("x")
    for model, value in values:
        ours.add(value, {Attribute.REQUEST_MODEL: model})
        theirs.record(value, {"gen_ai.request.model": model})
    data = reader.get_metrics_data()
    assert data is not None
    points = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    by_model = sorted(points, key=lambda point: str(point.attributes))
    assert [*ours].__len__() == len(ours) == len(by_model)
    for own, point in zip(ours, by_model, strict=True):
        assert {**own.attributes} == {**point.attributes}
        assert own.buckets == [*point.bucket_counts]
        assert (own.count, own.sum) == (point.count, point.sum)
        assert (own.least, own.most) == (point.min, point.max)
    meters.shutdown()
