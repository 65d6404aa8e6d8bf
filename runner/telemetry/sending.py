"""A run's spans and histograms to a collector, by OTLP over HTTP.

A batch is sent at a time, and the next one is read when the last one has arrived: the
memory is flat, and nothing is dropped. Headers (a token, say), certificates,
compression and timeouts come from the variables that OpenTelemetry names for them, such
as `OTEL_EXPORTER_OTLP_HEADERS`, so that nothing secret is typed or kept.
"""

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
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.trace.export import SpanExportResult

from runner.errors import RunnerError
from runner.telemetry.tracing import Tracing
from runner.telemetry.translation import Translation

BATCH: Final = 500
"""Spans in a request: some 300 kB, of the 4 MB that a collector takes by default."""

_OK: Final = range(200, 300)
_SHOWN: Final = 200


@dataclass(slots=True)
class _Line:
    """A connection that remembers what was answered: the exporter only logs it."""

    session: requests.Session = field(default_factory=requests.Session)
    status: int | None = None  #: of the last answer; None: there was none
    text: str = ""
    content: bytes = b""

    def __post_init__(self) -> None:
        self.session.hooks["response"].append(self._hear)

    def _hear(self, response: Any, **_: object) -> None:  # noqa: ANN401 - has no types
        self.status = response.status_code
        self.text = response.reason or ""
        self.content = response.content


def send(tracing: Tracing, base: str) -> int:
    """Send all spans of a run, and the histograms of its attempts.

    Args:
        tracing: the run; it is read here, and knows afterwards what was sent.
        base: the address of a collector, from `runner.telemetry.address`.

    Returns:
        Spans that the collector said it did not keep.

    Raises:
        RunnerError: the collector is not there, or refuses what it is sent.
    """
    translation = Translation(tracing.first)
    line = _Line()
    refused = 0
    with _silenced():
        to_traces = OTLPSpanExporter(f"{base}/v1/traces", session=line.session)
        spans = map(translation.span, tracing)
        while batch := list(islice(spans, BATCH)):
            line.status = None
            _check(line, base, to_traces.export(batch) is SpanExportResult.SUCCESS)
            refused += _refused(line.content)
        if measured := translation.metrics(tracing):
            to_metrics = OTLPMetricExporter(f"{base}/v1/metrics", session=line.session)
            line.status = None
            result = to_metrics.export(measured)
            _check(line, base, result is MetricExportResult.SUCCESS)
    return refused


def _check(line: _Line, base: str, is_sent: bool) -> None:
    if line.status is None:
        raise RunnerError(
            f"Nobody answers at {base}: start a collector that takes OTLP over HTTP "
            "there, or check the address, and export again; nothing is doubled."
        )
    # the exporter takes a redirection for a success
    if not is_sent or line.status not in _OK:
        raise RunnerError(
            f"The collector at {base} answers {line.status} {line.text[:_SHOWN]}: see "
            "its own log, check the address and OTEL_EXPORTER_OTLP_HEADERS, and export "
            "again; nothing is doubled."
        )


def _refused(content: bytes) -> int:
    """Spans that a collector says it did not keep."""
    answer = ExportTraceServiceResponse()
    try:
        answer.ParseFromString(content)
    except DecodeError:
        return 0  # some answer with words, or nothing
    return answer.partial_success.rejected_spans


@contextmanager
def _silenced() -> Iterator[None]:
    """The exporter logs what becomes an error here, and its waiting between tries."""
    logger = logging.getLogger("opentelemetry.exporter")
    handler, before = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(handler)
