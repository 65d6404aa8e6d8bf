"""`siftlog export --otlp` to Rotel, an OTLP receiver, which hands on what it read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.processes import siftlog
from tests.runner.collector import Collector, collecting
from tests.thirdparty.servers import free_port, require, served

require("rotel", "opentelemetry")


def test_what_rotel_received_is_what_was_sent(tmp_path: Path) -> None:
    import rotel  # noqa: PLC0415 - may be absent

    siftlog("run", "paper-investigation", "--run-id", "r", "--no-score", cwd=tmp_path)
    port, grpc = free_port(), free_port()
    with collecting() as behind, collecting() as direct:
        words = [
            *(Path(rotel.__file__).with_name("rotel-agent"), "start"),
            *("--otlp-http-endpoint", f"127.0.0.1:{port}"),
            *("--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"),
            *("--otlp-exporter-endpoint", behind.url),
            *("--otlp-exporter-protocol", "http"),
            *("--otlp-exporter-compression", "none"),
            *("--batch-timeout", "100ms"),
        ]
        with served(words, cwd=tmp_path, url=f"http://127.0.0.1:{port}") as agent:
            for url in (direct.url, agent.url):
                siftlog("export", "r", "--otlp", url, cwd=tmp_path)
            for _ in range(200):
                if len(behind.spans) == len(direct.spans) and _has_all(behind, direct):
                    break
                time.sleep(0.05)
    assert direct.spans
    assert _said(behind.spans) == _said(direct.spans)
    assert _said(_points(behind)) == _said(_points(direct))


def _has_all(one: Collector, other: Collector) -> bool:
    return len(_points(one)) == len(_points(other))


def _said(messages: Iterable[Any]) -> list[str]:
    return sorted(str(message) for message in messages)


def _points(collector: Collector) -> list[Any]:
    return [
        metric
        for request in collector.metrics
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
