"""tests.runner.test_telemetry"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.semconv._incubating.attributes import (
    gen_ai_attributes,
    openai_attributes,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes
from opentelemetry.semconv.schemas import Schemas

from runner.clients.wire import OPENAI_EMBEDDINGS, RERANK
from runner.clients.wire_openai import OPENAI_CHAT
from runner.telemetry import (
    DURATION,
    DURATION_BOUNDS,
    OPERATIONS,
    PROVIDERS,
    SCHEMA_URL,
    TOKEN_BOUNDS,
    TOKEN_USAGE,
    Attribute,
    MetricHistograms,
    RequestParameters,
    SpanIdentity,
    TraceSpan,
    Tracing,
    parties,
    request_parameters,
)
from store.database import open_reader
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    Entry,
    RunFinished,
)
from store.read.tasks import attempts
from store.scoring import task_families
from tests.store.logs import COURSE, written
from tests.store.samples import (
    RUN_STARTED,
    answered,
    completed,
    courses,
    plan_first,
    started,
)
from tests.store.samples import reply as answer

KNOWN = {
    value
    for module in (
        gen_ai_attributes,
        openai_attributes,
        error_attributes,
        http_attributes,
    )
    for name, value in vars(module).items()
    if name.isupper()
} | {"service.name", "service.version", "service.instance.id"}


@pytest.mark.parametrize("name", Attribute)
def test_every_name_is_of_the_conventions_or_says_that_it_is_ours(
    name: Attribute,
) -> None:
    assert name in KNOWN or name.startswith("siftlog.")


def test_the_instruments_and_the_schema_are_those_of_the_conventions() -> None:
    assert TOKEN_USAGE == gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE
    assert DURATION == gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION
    assert SCHEMA_URL in {schema.value for schema in Schemas}
    assert TOKEN_BOUNDS[:4] == (1, 4, 16, 64)
    assert TOKEN_BOUNDS[-1] == 67_108_864
    assert DURATION_BOUNDS[:4] == (0.01, 0.02, 0.04, 0.08)
    assert DURATION_BOUNDS[-1] == 81.92


def test_providers_and_operations_have_the_values_that_must_be_used() -> None:
    values = gen_ai_attributes.GenAiProviderNameValues
    assert {*PROVIDERS.values()} == {value.value for value in values} - {"gcp.gen_ai"}
    known = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
    assert {*OPERATIONS.values()} - known == {"rerank"}


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


NAMES = st.lists(st.text(max_size=3), max_size=4)
LATER = (
    [Entry(event=started(1), payload=json.dumps({"max_tokens": 9}).encode())],
    [AttemptsAbandoned(attempts=[(1, 1)])],
    [started(1, 2), answer(1, b"one", 2, tokens_cached=5), completed(1, 2)],
)


def _read(path: Path) -> tuple[list[TraceSpan], Tracing]:
    with open_reader(path) as reader:
        tracing = Tracing(reader)
        return [*tracing], tracing


def _named(spans: list[TraceSpan]) -> list[tuple[object, ...]]:
    return [
        (span.name, span.attributes.get(Attribute.TASK), span.error, span.kind)
        for span in spans
    ]


def test_attempts_stand_below_their_tasks_and_follow_ups_below_the_first(
    tmp_path: Path,
) -> None:
    spans, tracing = _read(written(tmp_path / "log.db", *COURSE))
    chat, task = ("chat m-large", "client"), ("task ask", "internal")
    assert _named(spans) == [
        (chat[0], 1, None, chat[1]),
        (task[0], 1, None, task[1]),
        (chat[0], 2, "Overloaded", chat[1]),
        (chat[0], 2, "Overloaded", chat[1]),
        (task[0], 2, "Overloaded", task[1]),
        ("chat m-small", 3, None, chat[1]),
        ("chat m-small", 3, None, chat[1]),
        (task[0], 3, None, task[1]),
    ]
    by_context = {span.context: span for span in spans}
    for span in spans:
        if span.kind == "client":
            assert span.parent is not None
            parent = by_context[span.parent]
            assert parent.attributes[Attribute.TASK] == span.attributes[Attribute.TASK]
            assert parent.start_us <= span.start_us <= span.end_us <= parent.end_us
        else:
            assert span.parent is None
            assert span.link is not None
    assert len({span.context.trace for span in spans}) == 3
    assert not tracing.is_ended, "task 5 is running"


def test_an_item_is_one_trace_and_the_run_another_that_it_is_linked_to(
    tmp_path: Path,
) -> None:
    rest = (
        [answer(5, b"judged", cost_usd=0.5), completed(5)],
        [RunFinished(completed=3, failed=1, skipped=1)],
    )
    spans, tracing = _read(written(tmp_path / "log.db", *COURSE, *rest))
    run = spans[-1]
    first = next(span for span in spans if span.name == "task ask")
    follow_up = next(span for span in spans if span.name == "task judge")
    assert tracing.is_ended
    assert run.name == "run sample-job"
    assert run.attributes[Attribute.COMPLETED] == 3
    assert run.start_us < first.start_us <= follow_up.end_us < run.end_us
    assert follow_up.context.trace == first.context.trace != run.context.trace
    assert (follow_up.parent, follow_up.link) == (first.context, None)
    assert (first.parent, first.link) == (None, run.context)


def test_an_attempt_of_a_killed_process_is_an_error_and_is_not_measured(
    tmp_path: Path,
) -> None:
    units = ([RUN_STARTED], [plan_first(1)], *LATER)
    spans, tracing = _read(written(tmp_path / "log.db", *units))
    lost, kept, task = spans
    assert (lost.error, lost.start_us) == ("unknown", lost.end_us)
    assert lost.attributes[Attribute.MAX_TOKENS] == 9
    assert kept.attributes[Attribute.TOKENS_CACHED] == 5
    assert kept.parent == lost.parent == task.context
    (duration,) = tracing.measured.seconds
    assert (duration.count, duration.sum) == (1, 0.101)
    assert {
        each.attributes[Attribute.TOKEN_TYPE]: each.sum
        for each in tracing.measured.tokens
    } == {
        "input": 50,
        "output": 7,
    }


def test_what_is_in_flight_is_left_out_until_it_has_ended(tmp_path: Path) -> None:
    units = ([RUN_STARTED], [plan_first(1)], LATER[0])
    spans, tracing = _read(written(tmp_path / "log.db", *units))
    assert spans == []
    assert tracing.measured.spans == 0
    assert not [*tracing.measured.seconds]
    assert tracing.through_seq == 3


def test_the_response_caches_answers_take_neither_tokens_nor_time(
    tmp_path: Path,
) -> None:
    unit = [Entry(event=answered(1, cached=True), payload=b"one"), completed(1)]
    spans, tracing = _read(
        written(tmp_path / "log.db", [RUN_STARTED], [plan_first(1)], unit)
    )
    assert spans[0].attributes[Attribute.CACHED] is True
    assert spans[0].start_us == spans[0].end_us, "it came without a request"
    assert not [*tracing.measured.tokens, *tracing.measured.seconds]


@settings(deadline=None, max_examples=25)
@given(entries=courses(), data=st.data())
def test_whenever_a_run_is_exported_a_call_that_has_ended_is_the_same_span(
    entries: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(2, len(entries)))
    with TemporaryDirectory() as folder:
        before, _ = _read(written(Path(folder) / "before.db", entries[:cut]))
        path = written(Path(folder) / "log.db", entries)
        spans, tracing = _read(path)
        assert _read(path)[0] == spans
        with open_reader(path) as reader:
            ended = Counter(
                row.task
                for row in task_families(reader)
                for each in attempts(reader, row.task)
                if each.outcome is not None
            )
    contexts = {span.context for span in spans}
    assert len(contexts) == len(spans) == tracing.measured.spans
    assert all(span.start_us <= span.end_us for span in spans)
    assert max((s.end_us for s in spans), default=0) == tracing.measured.until_us
    sent = [span for span in spans if Attribute.ATTEMPT in span.attributes]
    assert (
        Counter(s.attributes[Attribute.TASK] for s in sent if s.error != "unknown")
        == ended
    )
    # a made-up course may answer an attempt that was answered or given up before
    outcomes = Counter(
        (entry.event.task, entry.event.attempt)
        for entry in entries
        if isinstance(entry.event, AttemptAnswered | AttemptFailed)
    )
    later = {span.context: span for span in spans}
    for span in before:
        attempt = span.attributes.get(Attribute.ATTEMPT)
        once = outcomes[span.attributes.get(Attribute.TASK), attempt] == 1
        if attempt is not None and once and span.error != "unknown":
            assert later[span.context] == span


@settings(max_examples=40)
@given(NAMES, NAMES)
def test_two_names_have_two_ids(one: list[str], other: list[str]) -> None:
    a, b = SpanIdentity.of((), tuple(one)), SpanIdentity.of((), tuple(other))
    assert (a == b) == (one == other)
    assert 0 < a.span < 2**64
    assert 0 < a.trace < 2**128


@pytest.mark.parametrize(
    ("model", "provider", "shown"),
    [
        ("openai/gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("gemini/gemini-2.5-pro", "gcp.gemini", "gemini-2.5-pro"),
        ("mistral/large", "mistral_ai", "large"),
        ("meta-llama/Llama-3", "openai", "meta-llama/Llama-3"),
        ("llama", "openai", "llama"),
        ("openai", "openai", "openai"),
        ("baseline/lexical", "siftlog", "baseline/lexical"),
        ("recorded:x.jsonl", "siftlog", "recorded:x.jsonl"),
    ],
)
def test_a_models_name_says_who_serves_it(
    model: str, provider: str, shown: str
) -> None:
    told = parties(RequestParameters(kind="embed"), model)
    assert told[Attribute.PROVIDER] == provider
    assert told[Attribute.REQUEST_MODEL] == shown
    assert told[Attribute.OPERATION] == "embeddings"


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (OPENAI_CHAT, "chat"),
        (OPENAI_EMBEDDINGS, "embed"),
        (RERANK, "rerank"),
        ("", "chat"),
    ],
)
def test_without_a_request_the_form_of_the_reply_says_what_was_asked(
    form: str, kind: str
) -> None:
    assert request_parameters(None, form).kind == kind
