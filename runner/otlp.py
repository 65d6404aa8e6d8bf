"""Sends the spans and histograms of a run to a collector, by OTLP over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from runner.errors import RunnerError
from runner.telemetry import (
    DURATION,
    DURATION_UNIT,
    SCHEMA_URL,
    TOKEN_UNIT,
    TOKEN_USAGE,
    Attribute,
    Attributes,
    MetricHistograms,
    SpanIdentity,
    TraceSpan,
    Tracing,
    Value,
)
from store.events import RunStarted

NS_PER_US: Final = 1_000

_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}


class Translation:
    """Converts spans and metrics of one run to the SDK's classes."""

    def __init__(self, first: RunStarted) -> None:
        """Create the resource that all data belong to.

        Args:
            first: the start event of the run.
        """
        # merged with OTEL_RESOURCE_ATTRIBUTES, such as a deployment's name
        self._resource = Resource.create(
            {
                Attribute.SERVICE.value: "siftlog",
                # Prometheus uses it to distinguish the series of runs
                Attribute.INSTANCE.value: first.run_id,
                Attribute.SERVICE_VERSION.value: first.siftlog_version,
                Attribute.RUN.value: first.run_id,
            },
            SCHEMA_URL,
        )
        self._scope = InstrumentationScope("siftlog", first.siftlog_version, SCHEMA_URL)

    def span(self, span: TraceSpan) -> ReadableSpan:
        """Convert a span."""
        return ReadableSpan(
            name=span.name,
            context=_context(span.context),
            parent=None if span.parent is None else _context(span.parent),
            resource=self._resource,
            attributes=_plain_attributes(span.attributes, span.error),
            links=() if span.link is None else (Link(_context(span.link)),),
            kind=_KINDS[span.kind],
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=span.start_us * NS_PER_US,
            end_time=span.end_us * NS_PER_US,
            instrumentation_scope=self._scope,
        )

    def metrics(self, read: Tracing) -> MetricsData | None:
        """Return the metrics of a run whose spans were read; None: there are none.

        Sums since the start of the run, as of its last span: a repetition sends the
        same.
        """
        metrics = [
            Metric(
                name=name,
                description=description,
                unit=unit,
                data=Histogram(
                    data_points=[*_points(histograms, read)],
                    aggregation_temporality=AggregationTemporality.CUMULATIVE,
                ),
            )
            for name, description, unit, histograms in (
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
            if histograms
        ]
        if not metrics:
            return None
        scoped = ScopeMetrics(scope=self._scope, metrics=metrics, schema_url=SCHEMA_URL)
        of_run = ResourceMetrics(
            resource=self._resource, scope_metrics=[scoped], schema_url=SCHEMA_URL
        )
        return MetricsData(resource_metrics=[of_run])


def _context(context: SpanIdentity) -> SpanContext:
    return SpanContext(
        trace_id=context.trace,
        span_id=context.span,
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _plain_attributes(attributes: Attributes, error: str | None) -> dict[str, Value]:
    """Return attributes with plain names: the SDK warns of others."""
    plain = {str(name): value for name, value in attributes.items()}
    return plain if error is None else {**plain, str(Attribute.ERROR): error}


def _points(histograms: MetricHistograms, read: Tracing) -> list[HistogramDataPoint]:
    return [
        HistogramDataPoint(
            attributes=_plain_attributes(histogram.attributes, None),
            start_time_unix_nano=read.start_us * NS_PER_US,
            time_unix_nano=max(read.start_us, read.measured.until_us) * NS_PER_US,
            count=histogram.count,
            sum=histogram.sum,
            bucket_counts=histogram.buckets,
            explicit_bounds=histograms.bounds,
            min=histogram.least,
            max=histogram.most,
        )
        for histogram in histograms
    ]


BATCH: Final = 500
"""Spans per request: some 250 kB."""

_OK: Final = range(200, 300)
_EXCERPT_CHARS: Final = 200

UNTAKEN: Final = frozenset({404, 405, 501})
"""Statuses of a collector that does not support a signal, but maybe others: Jaeger
accepts traces only, Prometheus metrics only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Result of sending a run to a collector."""

    refused: int  #: spans rejected by the collector
    untaken: tuple[str, ...]  #: unsupported signals: "traces" or "metrics"


@dataclass(slots=True)
class _Line:
    """A connection that records the last response: the exporter only logs it."""

    session: requests.Session = field(default_factory=requests.Session)
    status: int | None = None  #: of the last response; None: there was none
    text: str = ""
    content: bytes = b""

    def __post_init__(self) -> None:
        self.session.hooks["response"].append(self._record_status)

    def _record_status(self, response: Any, **_: object) -> None:  # noqa: ANN401 - has no types
        self.status = response.status_code
        self.text = response.reason or ""
        self.content = response.content


def send(tracing: Tracing, base: str) -> SendResult:
    """Send all spans of a run, and the histograms of its attempts.

    Args:
        tracing: the run; it is read here, and has the totals afterwards.
        base: the address of a collector.

    Raises:
        RunnerError: the collector is unreachable, or refuses the data.
    """
    translation = Translation(tracing.first)
    line = _Line()
    refused = 0
    takes: dict[str, bool] = {}
    with _silenced():
        to_traces = OTLPSpanExporter(f"{base}/v1/traces", session=line.session)
        spans = map(translation.span, tracing)
        while batch := list(islice(spans, BATCH)):
            # the rest is read too: histograms need all attempts
            if takes.get("traces", True):
                line.status = None
                is_sent = to_traces.export(batch) is SpanExportResult.SUCCESS
                takes["traces"] = _is_taken(line, base, is_sent)
                refused += _refused(line.content)
        if measured := translation.metrics(tracing):
            to_metrics = OTLPMetricExporter(f"{base}/v1/metrics", session=line.session)
            line.status = None
            is_sent = to_metrics.export(measured) is MetricExportResult.SUCCESS
            takes["metrics"] = _is_taken(line, base, is_sent)
    untaken = tuple(signal for signal, is_taken in takes.items() if not is_taken)
    if untaken and len(untaken) == len(takes):
        raise _refusal(line, base)
    return SendResult(refused=refused, untaken=untaken)


def _is_taken(line: _Line, base: str, is_sent: bool) -> bool:
    """Return whether a collector supports the signal just sent.

    Raises:
        RunnerError: it is unreachable, or refused the data.
    """
    if line.status is None:
        raise RunnerError(
            f"Nothing listens at {base}: start a collector that takes "
            "OTLP over HTTP there, or check the address, and export "
            "again; nothing is duplicated."
        )
    if line.status in UNTAKEN:
        return False
    # the exporter treats a redirect as success
    if not is_sent or line.status not in _OK:
        raise _refusal(line, base)
    return True


def _refusal(line: _Line, base: str) -> RunnerError:
    return RunnerError(
        f"The collector at {base} answers {line.status} "
        f"{line.text[:_EXCERPT_CHARS]}: see its own log, check the "
        "address and OTEL_EXPORTER_OTLP_HEADERS, and export again; "
        "nothing is duplicated."
    )


def _refused(content: bytes) -> int:
    """Return the number of spans that a collector rejected."""
    answer = ExportTraceServiceResponse()
    try:
        answer.ParseFromString(content)
    except DecodeError:
        return 0  # some respond with text, or nothing
    return answer.partial_success.rejected_spans


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress logs of the exporter: errors are raised here instead."""
    logger = logging.getLogger("opentelemetry.exporter")
    handler, before = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(handler)
