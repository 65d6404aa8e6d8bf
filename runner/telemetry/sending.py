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
"""Spans in a request: some 250 kB."""

_OK: Final = range(200, 300)
_SHOWN: Final = 200

UNTAKEN: Final = frozenset({404, 405, 501})
"""Statuses of a collector that does not take what is sent, but may take the rest:
Jaeger takes traces only, Prometheus metrics only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a collector made of it."""

    refused: int  #: spans that it said it did not keep
    untaken: tuple[str, ...]  #: "traces" or "metrics", if it does not take these


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


def send(tracing: Tracing, base: str) -> Sent:
    """Send all spans of a run, and the histograms of its attempts.

    Args:
        tracing: the run; it is read here, and knows afterwards what there was to send.
        base: the address of a collector, from `runner.telemetry.address`.

    Raises:
        RunnerError: the collector is not there, or refuses what it is sent.
    """
    translation = Translation(tracing.first)
    line = _Line()
    refused = 0
    takes: dict[str, bool] = {}
    with _silenced():
        to_traces = OTLPSpanExporter(f"{base}/v1/traces", session=line.session)
        spans = map(translation.span, tracing)
        while batch := list(islice(spans, BATCH)):
            # the rest is read all the same: histograms are of all attempts
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
    return Sent(refused=refused, untaken=untaken)


def _is_taken(line: _Line, base: str, is_sent: bool) -> bool:
    """Whether a collector takes the kind of thing that it was just sent.

    Raises:
        RunnerError: it is not there, or takes it and refused it.
    """
    if line.status is None:
        raise RunnerError(
            f"Nobody answers at {base}: start a collector that takes OTLP over HTTP "
            "there, or check the address, and export again; nothing is doubled."
        )
    if line.status in UNTAKEN:
        return False
    # the exporter takes a redirection for a success
    if not is_sent or line.status not in _OK:
        raise _refusal(line, base)
    return True


def _refusal(line: _Line, base: str) -> RunnerError:
    return RunnerError(
        f"The collector at {base} answers {line.status} {line.text[:_SHOWN]}: see its "
        "own log, check the address and OTEL_EXPORTER_OTLP_HEADERS, and export again; "
        "nothing is doubled."
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
