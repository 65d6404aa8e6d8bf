"""Reads a run's log as OpenTelemetry spans and histograms, by the GenAI conventions."""

from __future__ import annotations

import enum
import hashlib
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from runner.clients.client import is_offline
from runner.clients.wire import OPENAI_EMBEDDINGS, RERANK
from runner.clients.wire_openai import OPENAI_CHAT
from runner.errors import UsageError
from store.events import AttemptAnswered, AttemptFailed, RunStarted
from store.read.status import run_started, status
from store.read.tasks import AttemptRow, attempts, event_times
from store.scoring import task_families
from store.served_by import SERVED_UNKNOWN
from store.tables import payload, visible_seq
from store.task import TaskRow, TaskState

VERSION: Final = "1.41.1"
"""Version of the OpenTelemetry semantic conventions."""

SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"
"""Sent along, so that a collector can translate older names to newer ones."""


class Attribute(enum.StrEnum):
    """Attribute names; those starting with `siftlog` are not in the conventions."""

    SERVICE = "service.name"
    INSTANCE = "service.instance.id"
    SERVICE_VERSION = "service.version"
    ERROR = "error.type"
    HTTP_STATUS = "http.response.status_code"
    OPERATION = "gen_ai.operation.name"
    PROVIDER = "gen_ai.provider.name"
    REQUEST_MODEL = "gen_ai.request.model"
    MAX_TOKENS = "gen_ai.request.max_tokens"
    TEMPERATURE = "gen_ai.request.temperature"
    DIMENSIONS = "gen_ai.embeddings.dimension.count"
    OUTPUT_TYPE = "gen_ai.output.type"
    FINISH_REASONS = "gen_ai.response.finish_reasons"
    RESPONSE_MODEL = "gen_ai.response.model"
    RESPONSE_ID = "gen_ai.response.id"
    RESPONSE_TIER = "openai.response.service_tier"
    FINGERPRINT = "openai.response.system_fingerprint"
    TOKENS_IN = "gen_ai.usage.input_tokens"
    TOKENS_OUT = "gen_ai.usage.output_tokens"
    TOKENS_CACHED = "gen_ai.usage.cache_read.input_tokens"
    TOKENS_CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
    TOKENS_REASONING = "gen_ai.usage.reasoning.output_tokens"
    TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - a kind of token, no secret
    RUN = "siftlog.run.id"
    JOB = "siftlog.job"
    JOB_VERSION = "siftlog.job.version"
    IMPORTED = "siftlog.run.imported"
    COMPLETED = "siftlog.run.tasks.completed"
    FAILED = "siftlog.run.tasks.failed"
    SKIPPED = "siftlog.run.tasks.skipped"
    STAGE = "siftlog.task.stage"
    KEY = "siftlog.task.key"
    MODEL = "siftlog.task.model"
    REPLICATE = "siftlog.task.replicate"
    TASK = "siftlog.task.number"
    STATE = "siftlog.task.state"
    REASON = "siftlog.task.reason"
    ATTEMPT = "siftlog.attempt.number"
    CACHED = "siftlog.attempt.cached"
    REASKED = "siftlog.attempt.reasked"
    SERVED_BY = "siftlog.attempt.served.provider"
    REGION = "siftlog.attempt.served.region"
    CHARGED = "siftlog.attempt.charged_usd"
    COST = "siftlog.cost_usd"


TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - likewise
TOKEN_UNIT: Final = "{token}"  # noqa: S105 - likewise
TOKEN_BOUNDS: Final = tuple(4.0**power for power in range(14))
"""Bounds of the histogram of tokens from the conventions: 1 to 4^13."""

DURATION: Final = "gen_ai.client.operation.duration"
DURATION_UNIT: Final = "s"
DURATION_BOUNDS: Final = tuple(0.01 * 2**power for power in range(14))
"""Bounds of the histogram of seconds from the conventions: 0.01 to 81.92."""

OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "chat",
    "embed": "embeddings",
    "rerank": "rerank",  # not in the conventions, which allow other names
}
"""Names of operations by kind of request."""

PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Names of providers by litellm's prefix of a model's name."""

OFFLINE: Final = "siftlog"
"""Provider of answers without an endpoint: baselines and recordings."""

COMPATIBLE: Final = "openai"
"""Provider of any other endpoint: the conventions name the API."""


Value: TypeAlias = str | bool | int | float | tuple[str, ...]
"""Type of an attribute."""

Attributes: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanIdentity:
    """Ids of a span and its trace."""

    trace: int  #: 128 bits
    span: int  #: 64 bits

    @classmethod
    def of(cls, trace: tuple[str, ...], span: tuple[str, ...]) -> SpanIdentity:
        """Return the ids of the span with these names in a trace with those."""
        return cls(trace=_id(16, trace), span=_id(8, (*trace, *span)))


def _id(size: int, names: tuple[str, ...]) -> int:
    """Hash names to a number of *size* bytes other than 0, which is invalid."""
    # prefixed with lengths: ("ab", "c") differs from ("a", "bc")
    prefixed = "".join(f"{len(name)}:{name}" for name in names)
    digest = hashlib.sha256(prefixed.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:size]) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """An operation with start and end."""

    name: str
    context: SpanIdentity
    parent: SpanIdentity | None = None
    link: SpanIdentity | None = None  #: related span in another trace
    kind: Literal["internal", "client"] = "internal"
    start_us: int
    end_us: int
    attributes: Attributes
    error: str | None = None  #: class of its final error


@dataclass(slots=True, kw_only=True)
class MetricHistogram:
    """Counted values with one set of attributes."""

    attributes: Attributes
    buckets: list[int]  #: bucket i counts values up to bound i and above bound i - 1
    count: int = 0
    sum: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def add(self, bucket: int, value: float) -> None:
        """Count a value in its bucket."""
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value) if self.count else value
        self.buckets[bucket] += 1
        self.count += 1
        self.sum += value


class MetricHistograms:
    """Histograms of one instrument, one per set of attributes."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """Start without values.

        Args:
            bounds: upper bounds of the buckets, ascending; one more bucket has none.
        """
        self.bounds = bounds
        self._histograms: dict[tuple[tuple[str, Value], ...], MetricHistogram] = {}

    def add(self, value: float, attributes: Attributes) -> None:
        """Count a value."""
        key = tuple(sorted(attributes.items()))
        if key not in self._histograms:
            self._histograms[key] = MetricHistogram(
                attributes=dict(attributes), buckets=[0] * (len(self.bounds) + 1)
            )
        self._histograms[key].add(bisect_left(self.bounds, value), value)

    def __len__(self) -> int:
        """Number of sets of attributes."""
        return len(self._histograms)

    def __iter__(self) -> Iterator[MetricHistogram]:
        """Yield the histograms in the order of their attributes."""
        return (self._histograms[key] for key in sorted(self._histograms))


class RequestParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a stored request; see `runner.clients.wire_shared`."""

    kind: str = "chat"
    max_tokens: int | None = None
    temperature: float | None = None
    dimensions: int | None = None
    schema: dict[str, str] | None = None


_DECODER: Final = msgspec.json.Decoder(RequestParameters)

_KINDS: Final = {OPENAI_CHAT: "chat", OPENAI_EMBEDDINGS: "embed", RERANK: "rerank"}


def request_parameters(skeleton: bytes | None, form: str) -> RequestParameters:
    """Return the parameters of a stored request; only the kind if imported.

    Imported answers have no stored request; the kind follows from the form.
    """
    if skeleton is None:
        return RequestParameters(kind=_KINDS.get(form, "chat"))
    return _DECODER.decode(skeleton)


def parties(request: RequestParameters, model: str) -> Attributes:
    """Return operation, provider and model: the attributes of metrics."""
    beginning, _, name = model.partition("/")
    if is_offline(model):
        provider, model_name = OFFLINE, model
    elif beginning in PROVIDERS and name:
        provider, model_name = PROVIDERS[beginning], name
    else:
        provider, model_name = COMPATIBLE, model
    return {
        Attribute.OPERATION: OPERATIONS.get(request.kind, request.kind),
        Attribute.PROVIDER: provider,
        Attribute.REQUEST_MODEL: model_name,
    }


def parameters(request: RequestParameters) -> Attributes:
    """Return the request's parameters as attributes, without any text."""
    attributes: dict[str, Value | None] = {
        Attribute.MAX_TOKENS: request.max_tokens,
        Attribute.TEMPERATURE: request.temperature,
        Attribute.DIMENSIONS: request.dimensions,
        Attribute.OUTPUT_TYPE: None if request.schema is None else "json",
    }
    return {name: value for name, value in attributes.items() if value is not None}


PAGE: Final = 500
"""Tasks whose ends are read together."""

FINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.SKIPPED})

ENDED: Final = frozenset({"run_finished", "run_cancelled"})
"""Kinds of events after which a run continues only on the user's request."""

UNKNOWN: Final = "unknown"
"""Error of an attempt with an unknown outcome: its process was killed."""


@dataclass(slots=True, kw_only=True)
class TraceMeasurements:
    """Figures counted while reading; complete after the last span."""

    tokens: MetricHistograms = field(
        default_factory=lambda: MetricHistograms(TOKEN_BOUNDS)
    )
    seconds: MetricHistograms = field(
        default_factory=lambda: MetricHistograms(DURATION_BOUNDS)
    )
    spans: int = 0
    until_us: int = 0  #: end of the last span


class Tracing:
    """One run's log, read as spans."""

    def __init__(
        self,
        reader: sqlite3.Connection,
        progress: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Read the state of the run; later events are ignored.

        Args:
            reader: a reader of the log.
            progress: receives progress messages.
        """
        self._progress = progress
        self._reader = reader
        self._state = status(reader)
        #: the last event to read: not before that of the state
        self.through_seq = visible_seq(reader)
        self.first: RunStarted = run_started(reader)
        self.start_us = event_times(reader, [1])[1]
        # an id may be reused after a folder was moved away
        self._run = ("siftlog", self.first.run_id, str(self._state.created_us))
        self.measured = TraceMeasurements()

    @property
    def is_ended(self) -> bool:
        """Whether all tasks have ended, so that the run has a span."""
        return not self._state.tasks.open and self._state.signs.phase in ENDED

    def __iter__(self) -> Iterator[TraceSpan]:
        """Yield all ended spans: tasks in order, then the run."""
        rows = task_families(self._reader, self.through_seq)
        root: TaskRow | None = None
        done = 0
        while page := list(islice(rows, PAGE)):
            ends = event_times(self._reader, {row.updated_seq for row in page})
            for row in page:
                # a family starts with its root task
                root = row if root is None or row.root == row.task else root
                if row.attempts:
                    yield from self._counted(self._of_task(row, root, ends))
            done += len(page)
            self._progress(f"{done:,} of {self._state.tasks.planned:,} tasks")
        yield from self._counted(self._of_run())

    def _counted(self, spans: Iterator[TraceSpan]) -> Iterator[TraceSpan]:
        for span in spans:
            self.measured.spans += 1
            self.measured.until_us = max(self.measured.until_us, span.end_us)
            yield span

    def _of_run(self) -> Iterator[TraceSpan]:
        state = self._state
        if not self.is_ended:
            return
        attributes: dict[str, Value | None] = {
            Attribute.JOB: self.first.job,
            Attribute.JOB_VERSION: self.first.job_version,
            Attribute.IMPORTED: self.first.imported,
            Attribute.COMPLETED: state.tasks.completed,
            Attribute.FAILED: state.tasks.failed,
            Attribute.SKIPPED: state.tasks.skipped,
            Attribute.COST: state.cost_usd,
        }
        yield TraceSpan(
            name=f"run {self.first.job}",
            context=self._run_context(),
            start_us=self.start_us,
            end_us=max(self.start_us, state.signs.phase_us),
            attributes=_without_none(attributes),
        )

    def _run_context(self) -> SpanIdentity:
        return SpanIdentity.of(self._run, ("run",))

    def _context(self, root: TaskRow, row: TaskRow, *more: str) -> SpanIdentity:
        """Return a task's ids, in the trace of its first-stage task."""
        return SpanIdentity.of((*self._run, *_identity(root)), (*_identity(row), *more))

    def _of_task(
        self, row: TaskRow, root: TaskRow, ends: dict[int, int]
    ) -> Iterator[TraceSpan]:
        task_context = self._context(root, row)
        spans: list[TraceSpan] = []
        for attempt_row in self._attempts(row):
            context = self._context(root, row, str(attempt_row.attempt))
            if (
                span := self._of_attempt(row, task_context, context, attempt_row)
            ) is not None:
                spans.append(span)
                yield span
        if row.state not in FINAL or not spans:
            return
        is_root = row.task == root.task
        attributes: dict[str, Value | None] = {
            **_task_attributes(row),
            Attribute.STATE: row.state.name.lower(),
            Attribute.REASON: row.reason,
            Attribute.COST: row.cost_usd,
        }
        yield TraceSpan(
            name=f"task {row.stage}",
            context=task_context,
            parent=None if is_root else self._context(root, root),
            link=self._run_context() if is_root else None,
            start_us=spans[0].start_us,
            end_us=max(spans[-1].end_us, ends[row.updated_seq]),
            attributes=_without_none(attributes),
            error=row.error if row.state is TaskState.FAILED else None,
        )

    def _attempts(self, row: TaskRow) -> Iterator[AttemptRow]:
        """Yield a task's attempts that ended, or never will."""
        for attempt_row in attempts(self._reader, row.task):
            # later attempts started after the row was read
            is_abandoned = attempt_row.attempt < row.attempts or (
                attempt_row.attempt == row.attempts
                and row.state is not TaskState.RUNNING
            )
            if attempt_row.outcome is not None or is_abandoned:
                yield attempt_row

    def _of_attempt(
        self,
        row: TaskRow,
        task: SpanIdentity,
        context: SpanIdentity,
        attempt_row: AttemptRow,
    ) -> TraceSpan | None:
        if (end_us := attempt_row.ended_us or attempt_row.started_us) is None:
            return None
        outcome = attempt_row.outcome
        stored = attempt_row.started_seq and payload(
            self._reader, attempt_row.started_seq
        )
        form = outcome.form if isinstance(outcome, AttemptAnswered) else ""
        request = request_parameters(stored or None, form)
        common_attributes = parties(request, row.model)
        error = _error(outcome)
        self._measure(outcome, common_attributes, error)
        return TraceSpan(
            name=(
                f"{common_attributes[Attribute.OPERATION]} "
                f"{common_attributes[Attribute.REQUEST_MODEL]}"
            ),
            context=context,
            parent=task,
            kind="internal"
            if common_attributes[Attribute.PROVIDER] == OFFLINE
            else "client",
            start_us=end_us
            if attempt_row.started_us is None
            else attempt_row.started_us,
            end_us=end_us,
            attributes={
                **common_attributes,
                **parameters(request),
                **_task_attributes(row),
                Attribute.ATTEMPT: attempt_row.attempt,
                **_outcome_attributes(outcome),
            },
            error=error,
        )

    def _measure(
        self,
        outcome: AttemptAnswered | AttemptFailed | None,
        common_attributes: Attributes,
        error: str | None,
    ) -> None:
        """Count a sent attempt; answers from the response cache used nothing."""
        if outcome is None or (isinstance(outcome, AttemptAnswered) and outcome.cached):
            return
        if outcome.latency_ms is not None:
            ended = (
                common_attributes
                if error is None
                else {**common_attributes, Attribute.ERROR: error}
            )
            self.measured.seconds.add(outcome.latency_ms / 1000, ended)
        if isinstance(outcome, AttemptAnswered):
            counts = {"input": outcome.tokens_in, "output": outcome.tokens_out}
            for kind, tokens in counts.items():
                if tokens is not None:
                    self.measured.tokens.add(
                        tokens, {**common_attributes, Attribute.TOKEN_TYPE: kind}
                    )


def _identity(row: TaskRow) -> tuple[str, ...]:
    return row.stage, row.key, row.model, str(row.replicate)


def _task_attributes(row: TaskRow) -> Attributes:
    return {
        Attribute.TASK: row.task,
        Attribute.STAGE: row.stage,
        Attribute.KEY: row.key,
        Attribute.MODEL: row.model,
        Attribute.REPLICATE: row.replicate,
    }


def _error(outcome: AttemptAnswered | AttemptFailed | None) -> str | None:
    if outcome is None:
        return UNKNOWN
    return outcome.error if isinstance(outcome, AttemptFailed) else None


def _outcome_attributes(
    outcome: AttemptAnswered | AttemptFailed | None,
) -> Attributes:
    attributes: dict[str, Value | None] = {}
    match outcome:
        case AttemptAnswered():
            served = outcome.served or SERVED_UNKNOWN
            attributes = {
                Attribute.RESPONSE_MODEL: served.model,
                Attribute.RESPONSE_ID: served.request_id,
                Attribute.RESPONSE_TIER: served.tier,
                Attribute.FINGERPRINT: served.fingerprint,
                Attribute.SERVED_BY: served.provider,
                Attribute.REGION: served.region,
                Attribute.FINISH_REASONS: (outcome.finish_reason,),
                Attribute.TOKENS_IN: outcome.tokens_in,
                Attribute.TOKENS_OUT: outcome.tokens_out,
                Attribute.TOKENS_CACHED: outcome.tokens_cached,
                Attribute.TOKENS_CACHE_WRITE: outcome.tokens_cache_write,
                Attribute.TOKENS_REASONING: outcome.tokens_reasoning or None,
                Attribute.COST: outcome.cost_usd,
                Attribute.CHARGED: outcome.charged_usd,
                Attribute.CACHED: outcome.cached,
                Attribute.REASKED: outcome.reask,
            }
        case AttemptFailed():
            attributes = {Attribute.HTTP_STATUS: outcome.status}
        case None:
            pass
    return _without_none(attributes)


def _without_none(attributes: dict[str, Value | None]) -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}


def base_of(typed: str) -> str:
    """Return the base address of a collector.

    Raises:
        UsageError: it is invalid, or contains a password.
    """
    try:
        parts = urlsplit(typed)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_whole = is_whole and parts.port != 0 and not parts.query
    except ValueError:
        raise _no_address(typed) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "--otlp takes no password: give it in OTEL_EXPORTER_OTLP_HEADERS, such as "
            "'authorization=Basic%20...'."
        )
    if not is_whole:
        raise _no_address(typed)
    return typed.rstrip("/").removesuffix("/v1/traces")


def _no_address(typed: str) -> UsageError:
    return UsageError(
        f"--otlp {typed!r} is not the address of a collector, such as "
        "http://127.0.0.1:4318."
    )
