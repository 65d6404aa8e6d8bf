"""Types of the JSON objects about runs: their status, tasks, events and scores.

`json_forms.FORMS` says which command prints which.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from runner.job import QuotedPassage
from runner.messages import ParseFailure
from runner.sent_requests import SentRequest
from store.events import ParameterRefused
from store.read.forecast import EstimatedFigure, ForecastInterval
from store.read.status import Pause


class TaskCountsJson(TypedDict):
    """Numbers of tasks."""

    planned: int  #: so far
    completed: int
    failed: int
    skipped: int
    open: int  #: queued, running or waiting
    running: int
    waiting: int  #: for a retry
    unparsed: int  #: of the completed ones


class AttemptCountsJson(TypedDict):
    """Numbers of attempts."""

    started: int
    answered: int
    cached: int  #: of these, from the response cache
    kept: int  #: of these, of tasks that a retry reopened
    failed: int
    unknown: int  #: without a recorded outcome


class StageForecastJson(TypedDict):
    """Forecast of one stage."""

    stage: str
    left: int  #: open tasks
    seconds: ForecastInterval | None


class ForecastJson(TypedDict):
    """Forecast of the rest of a live run; intervals hold the middle 90 %."""

    seconds: ForecastInterval | None  #: time left
    paused_tasks: int  #: that wait for a pause to end; the time is without them
    comes_to_usd: ForecastInterval | None  #: projected cost at the end
    #: until the budget stops the run; null: it lasts, or it is unknown
    budget_seconds: ForecastInterval | None
    stages: list[StageForecastJson]


class EstimateAccuracyJson(TypedDict):
    """The estimate made at the start, beside the course of the run."""

    done: float  #: share of the run, 0 to 1
    calls: EstimatedFigure
    tokens_in: EstimatedFigure
    tokens_out: EstimatedFigure
    cost_usd: EstimatedFigure | None  #: null: a price is unknown


class ShardsJson(TypedDict):
    """Logs of a split run."""

    logs: int
    ended: int
    missing: str  #: slices that no shard has started
    repeated: int  #: answers that were paid for more than once


class StageCountsJson(TypedDict):
    """Numbers of tasks of a stage and model."""

    stage: str
    model: str
    queued: int
    running: int
    waiting: int
    completed: int
    failed: int
    skipped: int


class ModelLimitsJson(TypedDict):
    """Limits in force, as last observed; null: no limit."""

    model: str
    concurrency: int | None  #: calls at a time, which refusals may lower
    ceiling: int | None  #: calls at a time that the user allows; null: not recorded
    rpm: float | None  #: requests per minute
    tpm: float | None  #: tokens per minute
    paused_until_us: int | None  #: requested by the endpoint, in Unix microseconds


class LimitsJson(ModelLimitsJson):
    """The limits of a model in a run."""

    run: str
    set_rpm: float | None  #: requests per minute that the user set; null: none
    set_tpm: float | None  #: tokens per minute that the user set; null: none


class BatchesJson(TypedDict):
    """Open batches of a provider's batch API."""

    open: int
    requests: int  #: in these batches
    oldest_age_s: float | None


class RepliesJson(TypedDict):
    """Replies and failed tasks of a model; a reply may count under several faults."""

    model: str
    replies: int  #: including those of the response cache
    truncated: int
    refused: int  #: by the model
    filtered: int  #: by the provider
    empty: int
    unparsed: int
    failed: int  #: tasks without a reply
    shares: dict[str, float]  #: of each fault that occurred, 0 to 1


class ServedJson(TypedDict):
    """Origins of a model's answers."""

    model: str
    by: str  #: field of the reply, such as `model`
    answers: dict[str, int]


class ProgressJson(TypedDict):
    """How far a run is."""

    done: int  #: tasks completed or failed
    remaining: ForecastInterval  #: tasks still expected, future follow-ups included
    share: float  #: done / (done + remaining), 0 to 1


class HeadlineJson(TypedDict):
    """The headline metric of the newest scoring."""

    metric: str  #: its path
    values: dict[str, float | None]  #: by model; null: undefined


class StatusJson(TypedDict):
    """The status of a run."""

    run: str
    state: str  #: one of the states in concepts.md
    tasks: TaskCountsJson
    attempts: AttemptCountsJson
    cost_usd: float | None  #: of recorded answers; null: a price is unknown
    possible_usd: float  #: may still be billed
    in_flight_usd: float  #: at most, for calls in flight
    budget_usd: float | None
    group: str | None  #: of run-all
    shards: ShardsJson | None  #: null: the run is not split
    heartbeat_age_s: float | None
    tasks_a_minute: float | None  #: null: the run is not live
    progress: ProgressJson
    left_s: ForecastInterval | None  #: time left; null: unknown, or the run is not live
    started: str  #: in UTC
    forecast: ForecastJson | None  #: null: the run is not live
    job: str
    job_version: str
    models: dict[str, list[str]]  #: by role
    replicates: int
    imported: bool
    planning_exhausted: bool  #: false: first-stage tasks are still planned
    stages: list[StageCountsJson]
    limits: list[ModelLimitsJson]
    refused: list[ParameterRefused]
    batches: BatchesJson
    pauses: list[Pause]
    errors: dict[str, int]  #: failed attempts by error class
    skips: dict[str, int]  #: skipped tasks by reason
    parse_failures: dict[str, int]  #: unparsed tasks by reason
    replies: list[RepliesJson]
    model_cost_usd: dict[str, float]
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    usage_unknown: int  #: answers without usage
    usage_doubtful: int  #: answers with inconsistent usage
    charged_usd: float | None  #: cost stated in replies; null: none states one
    charges_differ: int  #: answers whose stated cost is not the computed one
    served: list[ServedJson]
    estimate: EstimateAccuracyJson | None
    scorings: list[int]  #: numbers of recorded scorings
    last_seq: int  #: the last event
    why: str | None  #: why the run is not going on


class MomentJson(TypedDict):
    """An earlier moment of a run."""

    seq: int  #: its last event
    time: str


class AtJson(TypedDict):
    """With `--at`."""

    at: NotRequired[MomentJson]  #: with `--at` only


class RunJson(StatusJson):
    """A run in the list of runs: its status and headline metric."""

    headline: HeadlineJson | None  #: null: not scored


class ShippedLogJson(TypedDict):
    """The log of one shard, as it was shipped."""

    log: str
    slices: str
    events: int
    state: str
    host: str  #: that shipped it
    carried_age_s: float  #: since it was last shipped


class ShippedLogsJson(TypedDict):
    """The logs that shards of a run have shipped to a place."""

    run: str
    ended: bool
    missing: str  #: slices that no shard has started
    unfinished: str  #: slices that are unfinished in every log
    logs: list[ShippedLogJson]


class TaskJson(TypedDict):
    """A task of a run."""

    task: int
    stage: str
    key: str  #: of its item
    model: str
    replicate: int
    state: str
    attempts: int
    unknown: int  #: attempts without a recorded outcome
    error: str | None  #: class of its failure
    reason: str | None  #: why it was skipped or is unparsed
    latency_ms: float | None
    cost_usd: float | None  #: null: not completed, or the price is unknown


class EventJson(TypedDict):
    """An event of a run's log."""

    seq: int
    time: str
    event: str  #: its kind; the kinds are in file-formats.md
    payload_bytes: int | None
    facts: dict[str, Any]  #: its fields


class AttemptJson(TypedDict):
    """An attempt of a task; null: it does not apply, or is unknown."""

    attempt: int
    started: str | None
    ended: str | None
    latency_ms: float | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    cached: bool | None
    refused: str | None  #: why the reply was requested again
    unparsed: str | None
    fault: str | None
    error: str | None
    status: int | None  #: of HTTP
    message: str | None  #: of a failure
    retry_in_s: float | None


class TaskVerdictJson(TypedDict):
    """A verdict of a scoring about a task."""

    value: str
    expected: str
    correct: bool | None
    rule: str


class TaskDetailJson(TypedDict):
    """A task with its texts, verdicts and attempts."""

    task: int
    stage: str
    key: str
    model: str
    replicate: int
    root: int  #: first-stage task that it follows
    group: str | None
    state: str
    error: str | None
    reason: str | None
    request_sha256: str | None
    prompt: SentRequest | None
    reply: str | None
    reply_counts: bool | None  #: false: the last reply was refused
    finish_reason: str | None
    reasoning: str | None
    parsed: Any  #: the parsed reply, as the job defines it
    parse_failure: ParseFailure | None
    quotes: list[QuotedPassage]
    scoring: int | None  #: of the verdicts
    verdicts: list[TaskVerdictJson]
    attempts: list[AttemptJson]
    latency_ms: float | None
    cost_usd: float | None


class LaunchJson(TypedDict):
    """Printed when a run starts."""

    event: Literal["launch"]
    run: str
    shard: NotRequired[str]  #: of a split run, such as `0/4`


class DetachedJson(TypedDict):
    """Printed by the process that `--detach` left in the background."""

    event: Literal["detached"]
    run: str
    pid: int
    log: str  #: file with its output
    exit: int | None  #: exit code, if it has ended already


class DoneJson(TypedDict):
    """Printed when a run ends."""

    event: Literal["done"]
    run: str
    exit: int  #: the exit code
    tasks: TaskCountsJson
    attempts: AttemptCountsJson
    replies: list[RepliesJson]
    findings: list[str]
    cost_usd: float | None
    possible_usd: float
    in_flight_usd: float
    scoring: int | None  #: null: not scored


class IntervalJson(TypedDict):
    """An estimated figure."""

    low: float
    expected: float
    high: float


class UsageEstimateJson(TypedDict):
    """Estimated calls, tokens and cost."""

    calls: IntervalJson
    tokens_in: IntervalJson
    tokens_out: IntervalJson
    cost_usd: IntervalJson | None  #: null: a price is unknown


class ModelEstimateJson(UsageEstimateJson):
    """The estimate for one model."""

    hours: IntervalJson


class StageEstimateJson(UsageEstimateJson):
    """The estimate for one stage and model."""

    stage: str
    model: str


class BudgetVerdictJson(TypedDict):
    """Whether a budget is enough."""

    usd: float
    verdict: str


class FailingJson(TypedDict):
    """Tasks that would fail before they are sent."""

    tasks: int
    first: str | None


class EstimateJson(UsageEstimateJson):
    """The estimate of a run before it starts."""

    job: str
    items: int
    tried: int  #: items that were tried offline
    hours: IntervalJson
    models: dict[str, ModelEstimateJson]
    stages: list[StageEstimateJson]
    budget: BudgetVerdictJson | None
    failing: FailingJson
    assumes: list[str]


class ReplayedModelJson(TypedDict):
    """Calls of one model in a replay."""

    calls: int
    answered: int
    refused: int
    failed_tasks: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd: float | None


# a keyword of Python names a field
_FromJson = TypedDict("_FromJson", {"from": str})


class WhatIfJson(_FromJson):
    """A replay of a recorded run under other limits."""

    seconds: float
    hours: float
    cost_usd: float | None
    models: dict[str, ReplayedModelJson]
    most_in_flight: int
    tasks: int
    budget: BudgetVerdictJson | None
    stopped: str | None  #: why it would end early
    assumes: list[str]


class MetricJson(TypedDict):
    """A metric of a model."""

    name: str
    meaning: str
    direction: str  #: of better values: `higher`, `lower` or `neither`
    value: float | None  #: null: undefined
    n: int | None
    n_defined: int | None
    lo: float | None
    hi: float | None
    definition: str
    note: NotRequired[str]


class ModelMetricsJson(TypedDict):
    """Metrics of a model by path."""

    metrics: dict[str, MetricJson]


class ScoreJson(AtJson):
    """A scoring with all metrics."""

    run: str
    scoring: int | None  #: null: not recorded
    job: str
    headlines: list[str]  #: paths of the headline metrics
    seq: int  #: the last event that was read
    ended: int  #: tasks that were done by then
    models: dict[str, ModelMetricsJson]
    settings: dict[str, Any]
    missing: int  #: answers that these settings need and the run lacks
    stale: int  #: answers that these settings do not use
    failures: list[str]  #: of checks
    partial: bool  #: the run was unfinished
    digest: str  #: SHA-256 of scorecard.json
    artifacts: list[str]  #: names of files


class ScoringInputJson(TypedDict):
    """A file that a scoring read."""

    setting: str
    path: str
    sha256: str
    kept: bool  #: the log has a copy


class ScoringChangesJson(TypedDict):
    """Differences to the scoring before."""

    settings: dict[str, list[Any]]  #: value before and after
    inputs: list[str]  #: settings whose file is another one
    seq: int  #: events in between
    code: bool
    definitions: bool


class ScoringJson(TypedDict):
    """A recorded scoring in the list of scorings."""

    scoring: int
    recorded: str  #: when
    seq: int
    digest: str
    headline: str | None
    reached: dict[str, float | None]  #: the headline metric by model
    job_version: str
    code: str  #: SHA-256
    definitions: Any
    settings: dict[str, Any]
    inputs: list[ScoringInputJson]
    changed: ScoringChangesJson | None  #: null: the first scoring


class DroppedJson(TypedDict):
    """What an import does not keep."""

    what: str
    replies: int  #: that have it


class ImportJson(TypedDict):
    """What an import reads from its files, before it writes a run."""

    job: str
    models: list[str]
    replicates: int
    tasks: int
    failed: int  #: of the tasks, calls that failed in the other tool
    skipped: int  #: of the tasks, those that the other tool did not send
    missing: int  #: tasks of the job without a reply in another tool's files
    dropped: list[DroppedJson]
    notes: list[str]
    dry_run: bool
