"""Our spans and histograms as the SDK's, which its exporter knows how to write.

They are made directly: the SDK's own pipeline would draw ids and times of its own, and
drops spans where they come faster than they leave.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from runner.telemetry.conventions import (
    DURATION,
    DURATION_UNIT,
    SCHEMA_URL,
    TOKEN_UNIT,
    TOKEN_USAGE,
    Name,
)
from runner.telemetry.histogram import Histograms
from runner.telemetry.span import Attributes, Context, Span, Value
from runner.telemetry.tracing import Tracing
from store.events import RunStarted

NS_PER_US: Final = 1_000

_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}


class Translation:
    """Says the same things in the SDK's classes, for one run."""

    def __init__(self, first: RunStarted) -> None:
        """What everything that is sent belongs to.

        Args:
            first: how the run began.
        """
        # with what OTEL_RESOURCE_ATTRIBUTES adds, such as a deployment's name
        self._resource = Resource.create(
            {
                Name.SERVICE.value: "siftlog",
                # by it Prometheus tells the series of two runs apart
                Name.INSTANCE.value: first.run_id,
                Name.SERVICE_VERSION.value: first.siftlog_version,
                Name.RUN.value: first.run_id,
            },
            SCHEMA_URL,
        )
        self._scope = InstrumentationScope("siftlog", first.siftlog_version, SCHEMA_URL)

    def span(self, span: Span) -> ReadableSpan:
        """A span."""
        return ReadableSpan(
            name=span.name,
            context=_context(span.context),
            parent=None if span.parent is None else _context(span.parent),
            resource=self._resource,
            attributes=_named(span.attributes, span.error),
            links=() if span.link is None else (Link(_context(span.link)),),
            kind=_KINDS[span.kind],
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=span.start_us * NS_PER_US,
            end_time=span.end_us * NS_PER_US,
            instrumentation_scope=self._scope,
        )

    def metrics(self, read: Tracing) -> MetricsData | None:
        """What was counted of a run whose spans are through; None: nothing was.

        Sums since the run began, as of its last span: sent again, they say the same.
        """
        metrics = [
            Metric(
                name=name,
                description=description,
                unit=unit,
                data=Histogram(
                    data_points=[*_points(found, read)],
                    aggregation_temporality=AggregationTemporality.CUMULATIVE,
                ),
            )
            for name, description, unit, found in (
                (
                    TOKEN_USAGE,
                    "Number of input and output tokens used.",
                    TOKEN_UNIT,
                    read.measured.tokens,
                ),
                (
                    DURATION,
                    "GenAI operation duration.",
                    DURATION_UNIT,
                    read.measured.seconds,
                ),
            )
            if found
        ]
        if not metrics:
            return None
        scoped = ScopeMetrics(scope=self._scope, metrics=metrics, schema_url=SCHEMA_URL)
        of_run = ResourceMetrics(
            resource=self._resource, scope_metrics=[scoped], schema_url=SCHEMA_URL
        )
        return MetricsData(resource_metrics=[of_run])


def _context(context: Context) -> SpanContext:
    return SpanContext(
        trace_id=context.trace,
        span_id=context.span,
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _named(attributes: Attributes, error: str | None) -> dict[str, Value]:
    """Attributes by plain names: the SDK warns of any other."""
    named = {str(name): value for name, value in attributes.items()}
    return named if error is None else {**named, str(Name.ERROR): error}


def _points(histograms: Histograms, read: Tracing) -> list[HistogramDataPoint]:
    return [
        HistogramDataPoint(
            attributes=_named(each.attributes, None),
            start_time_unix_nano=read.start_us * NS_PER_US,
            time_unix_nano=max(read.start_us, read.measured.until_us) * NS_PER_US,
            count=each.count,
            sum=each.sum,
            bucket_counts=each.buckets,
            explicit_bounds=histograms.bounds,
            min=each.least,
            max=each.most,
        )
        for each in histograms
    ]
