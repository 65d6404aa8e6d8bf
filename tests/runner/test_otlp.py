"""tests.runner.test_otlp"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from runner import otlp
from runner.errors import RunnerError, UsageError
from runner.otlp import SendResult, send
from runner.telemetry import Tracing, base_of
from store.database import open_reader
from store.events import RunFinished
from tests.runner.collector import Collector, attributes, collecting
from tests.store.logs import COURSE, written
from tests.store.samples import completed
from tests.store.samples import reply as answer

REST = (
    [answer(5, b"judged", cost_usd=0.5), completed(5)],
    [RunFinished(completed=3, failed=1, skipped=1)],
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sent") / "log.db", *COURSE, *REST)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")


def _send(log: Path, url: str) -> tuple[SendResult, Tracing]:
    with open_reader(log) as reader:
        tracing = Tracing(reader)
        return send(tracing, url), tracing


def test_a_collector_gets_every_span_and_every_point(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "BATCH", 3)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab")
    with collecting() as collector:
        sent, _ = _send(log, collector.url)
    with open_reader(log) as reader:
        expected = [*Tracing(reader)]
    assert sent == SendResult(refused=0, untaken=())
    assert len(collector.traces) == 4, "eleven spans by three"
    assert [span.name for span in collector.spans] == [span.name for span in expected]
    for span, own in zip(collector.spans, expected, strict=True):
        assert int.from_bytes(span.trace_id) == own.context.trace
        assert int.from_bytes(span.span_id) == own.context.span
        assert int.from_bytes(span.parent_span_id) == (
            own.parent.span if own.parent else 0
        )
        assert span.start_time_unix_nano == own.start_us * 1000
        assert span.end_time_unix_nano == own.end_us * 1000
        told = attributes(span)
        assert told.pop("error.type", None) == own.error
        assert told == {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in own.attributes.items()
        }
        assert (span.status.code == 2) is (own.error is not None)
        assert [int.from_bytes(link.span_id) for link in span.links] == (
            [own.link.span] if own.link else []
        )
    (resource,) = {
        tuple(sorted(attributes(each.resource).items()))
        for request in collector.traces
        for each in request.resource_spans
    }
    kept = {k: v for k, v in resource if not k.startswith("telemetry.sdk.")}
    assert kept == {
        "deployment.environment.name": "lab",
        "service.name": "siftlog",
        "service.instance.id": "r1",
        "service.version": "0.1.0",
        "siftlog.run.id": "r1",
    }
    points = collector.points
    assert {*points} == {
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
    }
    counted = {
        (
            attributes(point)["gen_ai.request.model"],
            attributes(point)["gen_ai.token.type"],
        ): (
            point.count,
            point.sum,
        )
        for point in points["gen_ai.client.token.usage"]
    }
    assert counted == {
        ("m-large", "input"): (2, 100),
        ("m-large", "output"): (2, 14),
        ("m-small", "input"): (2, 100),
        ("m-small", "output"): (2, 14),
    }
    failed = [
        point
        for point in points["gen_ai.client.operation.duration"]
        if attributes(point).get("error.type") == "Overloaded"
    ]
    assert [(point.count, point.sum) for point in failed] == [(2, 0.06)]


def test_a_run_that_is_sent_twice_is_the_same_twice(log: Path) -> None:
    with collecting() as collector:
        _send(log, collector.url)
        _send(log, collector.url)
    assert collector.traces[0] == collector.traces[1]
    assert collector.metrics[0] == collector.metrics[1]


def test_what_a_collector_did_not_keep_is_counted(log: Path) -> None:
    with collecting() as collector:
        collector.refuses = 2
        assert _send(log, collector.url)[0].refused == 2


def test_tokens_of_access_come_from_the_variable_that_opentelemetry_names(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with collecting() as collector:
        _send(log, collector.url)
    assert {each["authorization"] for each in collector.headers} == {"Bearer abc"}
    assert len(collector.spans) == 11


@pytest.mark.parametrize("taken", ["/v1/traces", "/v1/metrics"])
def test_a_collector_may_take_traces_or_metrics_alone(
    taken: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "BATCH", 3)
    with collecting() as collector:
        collector.takes = (taken,)
        sent, tracing = _send(log, collector.url)
    (untaken,) = sent.untaken
    assert {f"/v1/{untaken}", taken} == {"/v1/traces", "/v1/metrics"}
    assert len(collector.spans) == (11 if untaken == "metrics" else 0)
    assert bool(collector.points) is (untaken == "traces")
    assert tracing.measured.spans == 11
    assert len(collector.headers) == (5 if untaken == "metrics" else 2)


@pytest.mark.parametrize("status", [302, 401, 404, 500])
def test_a_collector_that_refuses_is_a_sentence(
    status: int, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with collecting() as collector:
        collector.status = status
        with pytest.raises(RunnerError, match=rf"{collector.url} answers {status}"):
            _send(log, collector.url)
    assert capsys.readouterr().err == "", "the exporter logs nothing beside"
    assert logging.getLogger("opentelemetry.exporter").propagate


def test_a_collector_that_is_not_there_is_a_sentence(log: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(
        RunnerError, match=rf"Nothing listens at http://127.0.0.1:{port}:"
    ):
        _send(log, f"http://127.0.0.1:{port}")


def test_a_run_without_an_attempt_sends_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", *COURSE[:2])
    with collecting() as collector:
        sent, tracing = _send(path, collector.url)
    assert (sent.untaken, tracing.measured.spans) == ((), 0)
    assert collector == Collector(url=collector.url)


@pytest.mark.parametrize(
    "typed",
    [
        "http://127.0.0.1:4318",
        "http://127.0.0.1:4318/",
        "http://127.0.0.1:4318/v1/traces",
    ],
)
def test_the_address_may_name_the_collector_or_its_traces(typed: str) -> None:
    assert base_of(typed) == "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    "typed",
    [
        "127.0.0.1:4318",
        "ftp://x",
        "http://",
        "http://x:no",
        "http://x:70000",
        "",
        "http://[",
    ],
)
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="not the address of a collector"):
        base_of(typed)


def test_a_password_is_not_taken_in_the_address() -> None:
    with pytest.raises(UsageError, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        base_of("http://me:secret@127.0.0.1:4318")
    assert "secret" not in str(refused.value)
