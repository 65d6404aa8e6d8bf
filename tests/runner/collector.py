"""A collector of our own on loopback: takes OTLP over HTTP, and decodes it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

FORM = "application/x-protobuf"


@dataclass
class Collector:
    """What arrived; and what it answers with, which a test may change."""

    url: str = ""
    traces: list[Any] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    takes: tuple[str, ...] = ("/v1/traces", "/v1/metrics")
    refuses: int = 0  #: spans of each request

    @property
    def spans(self) -> list[Any]:
        """All spans in the order of their arrival."""
        return [
            span
            for request in self.traces
            for of_resource in request.resource_spans
            for scoped in of_resource.scope_spans
            for span in scoped.spans
        ]

    @property
    def points(self) -> dict[str, list[Any]]:
        """The points of the histograms by name."""
        return {
            metric.name: [*metric.histogram.data_points]
            for request in self.metrics
            for of_resource in request.resource_metrics
            for scoped in of_resource.scope_metrics
            for metric in scoped.metrics
        }

    def status_of(self, path: str) -> int:
        """What a request to *path* is answered with."""
        return self.status if path in self.takes else 404

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """Keep a request; the body of the answer."""
        self.headers.append(headers)
        if self.status_of(path) != 200:
            return b""
        if path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse()
            answer.partial_success.rejected_spans = self.refuses
            return bytes(answer.SerializeToString())
        self.metrics.append(ExportMetricsServiceRequest.FromString(body))
        return b""


def attributes(holder: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a resource as plain values."""
    return {each.key: _plain(each.value) for each in holder.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens until it is left."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["content-type"] == FORM
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers["content-encoding"] == "gzip":
                body = gzip.decompress(body)
            given = {name.lower(): value for name, value in self.headers.items()}
            answer = collector.take(self.path, body, given)
            self.send_response(collector.status_of(self.path))
            self.send_header("content-type", FORM)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
