"""Defines the events of logs: frozen facts, named in the past tense.

Two rules for events. An event says what *happened*, never what should happen. It
carries every small fact that a fold needs (counts, durations, classes), so that no
projection ever opens a body; large bytes (a reply, a request's skeleton, a manifest)
are stored with the event as the `payload` of its `Entry`.

Sequence numbers, times and the writer are assigned by the log on commit; they are
fields of `RecordedEvent`, not of events. Field names are stored, so renaming one needs
a new version and an upcaster (`store/encoding.py`); a new field with a default does
not. Defaults are not stored, so an existing one never changes.

A batch is identified in the log by a key derived from its content; the provider
receives the key and returns its own id. All batch events are indexed, so the batches of
a log are found without scanning it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import msgspec

from store.code_fingerprint import CodeFingerprint
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.lineage import ForkedBody, ForkOrigin, StageAdded
from store.results import ComparisonDecided, Milestone, StoppingRule
from store.served_by import ServedBy
from store.slices import Shard

BatchOutcome: TypeAlias = Literal[
    "completed", "expired", "cancelled", "failed", "missing"
]
"""How a batch ended; missing: the provider never had it, so nothing of it was billed.
In every case each of its requests has its own outcome."""


class BatchItem(NamedTuple):
    """An attempt in a batch."""

    task: int
    attempt: int
    id: str  #: the provider's name for it in the results; does not identify the attempt


class EventBase(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all events, which are encoded without the fields that have their default.

    A struct is made, encoded and decoded in a fifth of a dataclass's time, and every
    call makes three of them.
    """


class BatchEventBase(EventBase, frozen=True, kw_only=True):
    """Fields of every batch event."""

    batch: str  #: its key


class BatchPrepared(BatchEventBase, frozen=True, kw_only=True):
    """A batch is about to be sent; durable before its first byte is sent.

    The payload lists its items as JSON.
    """

    VERSION: ClassVar[int] = 1

    model: str
    form: str  #: how the provider is spoken to, a name of `runner.batch.client.FORMS`
    requests: int


class BatchCreated(BatchEventBase, frozen=True, kw_only=True):
    """The provider confirmed the batch."""

    VERSION: ClassVar[int] = 1

    id: str  #: the provider's
    file: str | None = None  #: id of the uploaded file, if the provider has one
    #: found in the provider's list: the process that created it could not record it
    found: bool = False


class BatchPolled(BatchEventBase, frozen=True, kw_only=True):
    """The provider reported progress of an open batch."""

    VERSION: ClassVar[int] = 1

    status: str  #: in the provider's words
    done: int = 0  #: requests that it has answered
    failed: int = 0  #: requests that it could not answer


class BatchEnded(BatchEventBase, frozen=True, kw_only=True):
    """The batch is final; its results can be read."""

    VERSION: ClassVar[int] = 1

    outcome: str  #: a `BatchOutcome`
    requests: int
    done: int = 0
    failed: int = 0
    why: str | None = None  #: one sentence, where it did not complete


class BatchCancelled(BatchEventBase, frozen=True, kw_only=True):
    """Cancellation of the batch was requested; answered requests are billed."""

    VERSION: ClassVar[int] = 1

    by: str


BatchEvent: TypeAlias = (
    BatchPrepared | BatchCreated | BatchPolled | BatchEnded | BatchCancelled
)

_items: Final = msgspec.json.Decoder(list[BatchItem])


def batch_bytes(items: Sequence[BatchItem]) -> bytes:
    """The payload of `BatchPrepared`."""
    return msgspec.json.encode(items)


def batch_items(payload: bytes) -> list[BatchItem]:
    """The items in a payload; raises `msgspec.DecodeError` for any other bytes."""
    return _items.decode(payload)


class ParameterRefused(EventBase, frozen=True, kw_only=True):
    """An endpoint refuses a request parameter for a model.

    Decides what later requests of the run to that endpoint and model contain.
    """

    VERSION: ClassVar[int] = 1

    endpoint: str  #: its address, or the provider's name
    model: str
    name: str  #: field of the request, such as "temperature" or "response_format"
    words: str  #: the endpoint's message
    instead: str | None = None
    """Field or value sent from now on; None: the parameter is omitted. For an output
    limit that is ignored: the tokens that a call reserves instead."""
    how: str = "refused"
    """"refused": with an error status; "known to be refused": by the model's family,
    without a call; "ignored": accepted, but the replies do not follow it."""

    @property
    def sentence(self) -> str:
        """The fact for people."""
        if self.how == "ignored":
            return f"{self.model}: {self.name} has no effect: {self.words}"
        sent = "not sent" if self.instead is None else f"sent as {self.instead}"
        return f"{self.model}: {self.name} {self.how}, {sent} from now on: {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedUsage:
    """The estimate of a run before its first call, for each planned item.

    The figures are low, expected and high, for one first-stage spec with all its
    follow-ups, over all models and replicates.
    """

    tried: int  #: items that were answered offline
    first: list[str]  #: stages that the plan starts with
    calls: tuple[float, float, float]
    tokens_in: tuple[float, float, float]
    tokens_out: tuple[float, float, float]
    cost_usd: tuple[float, float, float] | None  #: None: a price was unknown
    follow_ups: list[float] = field(default_factory=list)
    """Follow-ups of each first-stage spec that is not skipped, in the order of the
    plan, the mean of those not tried; empty if fewer than half were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file or folder a run reads, pinned by content."""

    setting: str  #: the job setting that named it, such as "bench"
    path: str
    sha256: str  #: hex; of a folder: over the sorted names and hashes of its files
    kept: str = ""
    """Form in which the log keeps the input: "file", or "folder", whose part lists
    names and hashes of files that are parts too; empty: not kept."""


class RunStarted(EventBase, frozen=True, kw_only=True):
    """A run was created; the first event of a run's log."""

    VERSION: ClassVar[int] = 1

    run_id: str
    job: str
    job_version: str
    code_sha256: str  #: hash of the job's source files
    settings: str  #: JSON of every job setting, defaults included
    models: dict[str, list[str]]  #: role -> models, "subject" first
    replicates: int
    inputs: list[Input]
    siftlog_version: str
    imported: bool = False
    expected: ExpectedUsage | None = None  #: None: no paid call was planned
    budget_usd: float | None = None  #: cap of the whole run; None: no cap
    group: str | None = None  #: of runs that were started together, under one cap
    stopping: StoppingRule | None = None  #: None: it answers all that is planned
    shard: Shard | None = None  #: the part in this log; all else is of the whole run
    fork: ForkOrigin | None = None  #: None: the run does not continue another one
    code: CodeFingerprint | None = None  #: None: the log is older


class RunResumed(EventBase, frozen=True, kw_only=True):
    """A later process resumed the run."""

    VERSION: ClassVar[int] = 1

    code_sha256: str
    settings: str
    unknown: int  #: attempts of the earlier writer with unknown outcome
    budget_usd: float | None = None  #: cap of the whole run from here on
    lost: int = 0  #: acknowledged events that are missing, at least, as was accepted
    #: inputs that differ from those at the start
    changed: list[Input] = msgspec.field(default_factory=list)
    code: CodeFingerprint | None = None  #: None: the event is older


class RunPaused(EventBase, frozen=True, kw_only=True):
    """The run, a stage or a model was paused, or a pause was lifted."""

    VERSION: ClassVar[int] = 1

    by: str
    paused: bool  #: False: the pause was lifted
    stage: str | None = None  #: None: every stage
    model: str | None = None  #: None: every model


class RunDrained(EventBase, frozen=True, kw_only=True):
    """The process ended on purpose with open tasks; the run can be resumed."""

    VERSION: ClassVar[int] = 1

    by: str
    """Cause of the end: "operator", "budget", "endpoint", "held", "lease", "decision",
    "futility" or "job"."""
    why: str  #: one sentence for people
    open: int


class RunCancelled(EventBase, frozen=True, kw_only=True):
    """A person cancelled the run; its open tasks were skipped."""

    VERSION: ClassVar[int] = 1

    by: str


class RunFinished(EventBase, frozen=True, kw_only=True):
    """Every task is final and nothing is left to plan."""

    VERSION: ClassVar[int] = 1

    completed: int
    failed: int
    skipped: int


class TasksPlanned(EventBase, frozen=True, kw_only=True):
    """A block of tasks was planned; the payload is a `Manifest` as JSON."""

    VERSION: ClassVar[int] = 1

    first: int  #: number of the block's first task; the others follow densely
    count: int
    consumed: int  #: first-stage specs taken from the plan so far (0: a follow-up)
    exhausted: bool = False  #: the first stage has no more specs after this block
    places: list[int] | None = None  #: of a shard's: in the whole first stage, from 0


class TasksReopened(EventBase, frozen=True, kw_only=True):
    """`retry` put final tasks back into the queue."""

    VERSION: ClassVar[int] = 1

    tasks: list[int]
    by: str
    command: str | None = None  #: id of the request that this is a page of


class TaskSkipped(EventBase, frozen=True, kw_only=True):
    """A task is never sent; counted by its reason."""

    VERSION: ClassVar[int] = 1

    task: int
    reason: str


class TaskCompleted(EventBase, frozen=True, kw_only=True):
    """A task ended with a stored reply, which the job's parser could read or not."""

    VERSION: ClassVar[int] = 1

    task: int
    attempt: int
    unparsed: str | None = None  #: reason of the parse failure, None where it parsed
    fault: str | None = None  #: the parser's details, if it gave any
    adopted: bool = False  #: with an answer that another log of the run has


class TaskFailed(EventBase, frozen=True, kw_only=True):
    """No reply after all attempts."""

    VERSION: ClassVar[int] = 1

    task: int
    attempt: int
    error: str  #: class of the last failure, a name of `runner.errors`
    fault: str | None = None  #: exception and line in the job's code, where it raised


class AttemptStarted(EventBase, frozen=True, kw_only=True):
    """A request is about to be sent; durable before its first byte is sent.

    If the response cache has the answer, nothing is sent: this and the answer, marked
    `cached`, are recorded as one unit.

    The payload is the request's skeleton as JSON: parameters, and for each message the
    hashes of its parts, whose texts are the entry's blobs.
    """

    VERSION: ClassVar[int] = 1

    task: int
    attempt: int  #: counts from 1 in its task
    request_sha256: str
    worst_usd: float | None = None  #: maximum cost; None: no known price
    adopted: bool = False  #: of an answer that another log of the run has
    batched: bool = False  #: it is sent in a batch, whose own events hold the time


class AttemptAnswered(EventBase, frozen=True, kw_only=True):
    """A reply was received in full; the payload is its body, byte for byte."""

    VERSION: ClassVar[int] = 1

    task: int
    attempt: int
    form: str  #: wire form of the payload, a name of `runner.clients.wire`
    status: int  #: HTTP status; 200 for clients without HTTP
    latency_ms: float | None  #: None: made by another tool, not measured
    finish_reason: str  #: "stop", "length", "content_filter", ...
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None  #: part of tokens_in served from a prompt cache
    tokens_cache_write: int | None = None  #: part of tokens_in written to that cache
    cost_usd: float | None = None  #: None: the price is unknown, or the usage
    possible_usd: float | None = None  #: its worst case, if only the usage is unknown
    cached: bool = False  #: stored before (response cache, log): nothing was sent
    headers: dict[str, str] | None = None  #: only those that matter
    #: the content was refused for this reason and is requested again
    reask: str | None = None
    fault: str | None = None  #: the parser's details, if it gave any
    adopted: str | None = None  #: "<writer>:<seq>" of it in another log of the run
    tokens_reasoning: int | None = None  #: part of tokens_out that is not in the text
    #: part of tokens_cache_write that is cached for an hour
    tokens_cache_write_1h: int | None = None
    charged_usd: float | None = None  #: cost as reported in the reply
    usage_doubtful: bool = False  #: the reply's total is smaller than its parts
    served: ServedBy | None = None  #: None: not in the reply, or the log is older
    empty: bool = False  #: a chat's reply without any text
    kept: bool = False  #: the task's own earlier answer, reused after a `retry`
    forked: ForkedBody | None = None  #: adopted from the parent run, which has the body


class AttemptFailed(EventBase, frozen=True, kw_only=True):
    """An attempt ended without a usable reply; the payload is the response, if any."""

    VERSION: ClassVar[int] = 1

    task: int
    attempt: int
    error: str  #: a name of `runner.errors`
    latency_ms: float
    message: str
    status: int | None = None
    retry_after_s: float | None = None  #: delay requested by the endpoint
    retry_in_s: float | None = None  #: chosen delay; None: no further attempt
    possible_usd: float = 0.0  #: its worst case, if it may still be billed


class AttemptsAbandoned(EventBase, frozen=True, kw_only=True):
    """Attempts of an earlier process have no recorded outcome."""

    VERSION: ClassVar[int] = 1

    attempts: list[tuple[int, int]]  #: (task, attempt), ascending
    hold: bool = False  #: True: their tasks wait for a person instead of a new attempt
    possible_usd: float = 0.0  #: sum of their worst cases: they may be billed


class LimitObserved(EventBase, frozen=True, kw_only=True):
    """The limits in force for a model."""

    VERSION: ClassVar[int] = 1

    model: str
    concurrency: int
    in_flight: int
    rpm: float | None = None
    tpm: float | None = None
    paused_until_us: int | None = None
    ceiling: int | None = None  #: of concurrency, set by the user; None: not recorded


class CommandAccepted(EventBase, frozen=True, kw_only=True):
    """A control command was accepted."""

    VERSION: ClassVar[int] = 1

    command: str  #: id of the line in control.jsonl
    kind: str
    author: str
    payload: str  #: JSON


class CommandRejected(EventBase, frozen=True, kw_only=True):
    """A control command was rejected."""

    VERSION: ClassVar[int] = 1

    command: str
    kind: str
    author: str
    reason: str


class CommandApplied(EventBase, frozen=True, kw_only=True):
    """A control command took effect."""

    VERSION: ClassVar[int] = 1

    command: str
    effect: str


class ScoringRecorded(EventBase, frozen=True, kw_only=True):
    """The run's answers were scored; `scores/<number>/` can be rebuilt from here.

    The scorecard itself, and the inputs that are `kept`, are the entry's blobs.
    Scorings of older versions have neither, nor the headline fields.
    """

    VERSION: ClassVar[int] = 1

    number: int
    job_version: str
    code_sha256: str
    settings: str
    inputs: list[Input]
    seq: int  #: the log's last event that was read
    digest: str  #: SHA-256 of scorecard.json
    milestone: Milestone | None = None  #: None: the job has no history
    definitions: str = ""  #: SHA-256 over the definitions of all metrics
    headline: str = ""  #: path of the metric that it is judged by
    reached: dict[str, float | None] = msgspec.field(default_factory=dict)
    """The headline's value, by model; None: undefined."""
    code: CodeFingerprint | None = None  #: None: the event is older


LabelEvent: TypeAlias = (
    LabelsStarted
    | ItemDrawn
    | LabelRecorded
    | LabelWithdrawn
    | Adjudicated
    | ScreeningPlanned
    | ScreeningStopped
)
"""Events of label logs; no run's log has any."""

Event: TypeAlias = (
    RunStarted
    | RunResumed
    | RunPaused
    | RunDrained
    | RunCancelled
    | RunFinished
    | TasksPlanned
    | TasksReopened
    | TaskSkipped
    | TaskCompleted
    | TaskFailed
    | AttemptStarted
    | AttemptAnswered
    | AttemptFailed
    | AttemptsAbandoned
    | LimitObserved
    | ParameterRefused
    | CommandAccepted
    | CommandRejected
    | CommandApplied
    | ScoringRecorded
    | ComparisonDecided
    | StageAdded
    | BatchEvent
    | LabelEvent
)


_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
KINDS: dict[str, type[Event]] = {
    _WORDS.sub("_", event.__name__).lower(): event for event in Event.__args__
}
NAMES: dict[type[Event], str] = {event: kind for kind, event in KINDS.items()}


def kind_of(event_type: type[Event]) -> str:
    """The stored name of an event class: `AttemptStarted` is `attempt_started`."""
    return NAMES[event_type]


def fields_of(event: Event) -> dict[str, Any]:
    """Return every field of an event, defaults included, in plain values."""
    plain: dict[str, Any] = _plain(event)
    return plain


def _plain(value: object) -> Any:  # noqa: ANN401 - of any field
    match value:
        case msgspec.Struct():
            names = value.__struct_fields__
            return {name: _plain(getattr(value, name)) for name in names}
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {name: _plain(item) for name, item in asdict(value).items()}
        case _:
            return value


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """A message part, stored once by its content."""

    sha256: bytes  #: 32 bytes, of `data`
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event to append, with its payload and the parts it refers to."""

    event: Event
    payload: bytes | None = None
    blobs: tuple[Blob, ...] = ()
    is_elsewhere: bool = False  #: the payload stays in the log of the parent run


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent:
    """An event of a kind or version that this code does not know: kept but not read."""

    kind: str
    version: int
    facts: bytes  #: the stored JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """An event as stored in the log."""

    seq: int  #: dense from 1; commit order
    ts_us: int  #: strictly increasing in a file
    epoch: int  #: which opening of the log wrote it
    event: Event | UnknownEvent
    payload_bytes: int  #: length of the payload before compression; 0: none

    @property
    def kind(self) -> str:
        """The stored name of the event's kind."""
        event = self.event
        return event.kind if isinstance(event, UnknownEvent) else NAMES[type(event)]
