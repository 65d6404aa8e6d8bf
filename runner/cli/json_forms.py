"""Types of the objects that commands print with `--json`, one table: `FORMS`.

`docs/json.md` and the JSON Schemas in `docs/schemas` are made from it. Within a version
fields are only added; for anything else the number in the form's name rises. Programs
in Python may use the types. No command imports this module: it takes 10 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict

from runner.bundle.disclosure import DisclosureReport
from runner.bundle.redacted_verify import RedactionReport
from runner.cli.doctor import DoctorCheck
from runner.cli.json_runs import (
    AtJson,
    DetachedJson,
    DoneJson,
    EstimateJson,
    EventJson,
    ImportJson,
    LaunchJson,
    LimitsJson,
    RunJson,
    ScoreJson,
    ScoringJson,
    ShippedLogsJson,
    StatusJson,
    TaskDetailJson,
    TaskJson,
    WhatIfJson,
)
from runner.endpoint_report import DialectGuess, ProbedParameter
from runner.regress.report import StepTally
from store.control import CommandPreview
from store.verify import LogFault


class JsonForm(NamedTuple):
    """The form of a printed object: who prints it, and its fields."""

    commands: tuple[str, ...]
    records: tuple[type, ...]  #: their fields in turn; the first describes the object
    is_open: bool = False  #: True: it has further fields, which a job defines


class PreparedJson(TypedDict):
    """Data that a job checked or built; each subcommand has fields of its own."""


class RemovalJson(TypedDict):
    """A run that was deleted."""

    run: str
    removed: str  #: its folder
    files: int
    bytes: int


class ExplanationJson(TypedDict):
    """How items were judged, as text for people."""

    job: str
    run: str | None  #: null: items of a job's inputs
    items: list[str]
    text: str
    baselines: str | None  #: the run beside trivial baselines


class InputExplanationJson(TypedDict):
    """How an item gets into a data set; each job has fields of its own."""


class CommandResultJson(TypedDict):
    """A command that was sent to a run, with the answer."""

    run: str
    command: str  #: its id
    kind: str
    tasks: NotRequired[int]  #: tasks that a retry is about
    answer: str  #: `queued`, `accepted`, `applied` or `rejected`
    said: str | None  #: its effect, or why it was rejected


class CommandPreviewJson(TypedDict):
    """What a command would do: with `--dry-run`, or if a retry finds no task."""

    run: str
    kind: str
    dry_run: Literal[True]


class CommandJson(TypedDict):
    """A command in the list of commands sent to a run."""

    id: str
    kind: str
    author: str
    payload: dict[str, Any]
    host: str | None
    asked_us: int | None  #: Unix microseconds
    expected_state: str | None
    answer: str  #: `waiting`, `withdrawn`, `accepted`, `applied` or `rejected`
    accepted_us: int | None
    answered_us: int | None
    said: str | None  #: its effect, or why it was rejected


class BudgetJson(TypedDict):
    """The cost and budget of a run."""

    run: str


class ExportedFileJson(TypedDict):
    """A file of an export."""

    file: str
    rows: int
    bytes: int | None


class ExportJson(TypedDict):
    """Tables that were written."""

    run: str
    dry_run: bool
    seq: int  #: the last event that was read
    scoring: int | None
    files: list[ExportedFileJson]


class FolderExportFileJson(TypedDict):
    """A file that another program opens."""

    file: str
    bytes: int


class FolderExportJson(TypedDict):
    """A folder or a file that was written for another program."""

    run: str
    form: str
    out: str  #: the folder or file
    seq: int  #: the last event that was read
    scoring: int | None  #: None: the run has no scoring
    files: list[FolderExportFileJson]


class TraceExportJson(TypedDict):
    """Traces that were sent to a collector."""

    run: str
    dry_run: bool
    seq: int
    collector: str
    conventions: str  #: version of the semantic conventions
    spans: int
    refused: int  #: spans that the collector refused
    untaken: list[str]  #: signals that the collector does not take
    partial: bool  #: the run is unfinished


class SqlRowJson(TypedDict):
    """A row of a query's result."""

    row: dict[str, Any]  #: values by the names of the columns; bytes in hex


class BundleJson(TypedDict):
    """A bundle that was written."""

    run: str
    scoring: int
    file: str
    bytes: int
    sha256: str
    members: int
    events: int
    head: str  #: hash of the last commit
    digest: str  #: of the scoring
    partial: bool
    secret: str | None  #: path of the secret of a redacted bundle


class DisclosureFileJson(TypedDict):
    """A disclosure that was written."""

    run: str
    bundle: str  #: path of the redacted bundle
    file: str
    openings: int
    items: list[str]


class MergedLogJson(TypedDict):
    """The log of one shard."""

    log: str
    slices: str
    phase: str
    events: int


class MergeJson(TypedDict):
    """The merged logs of a split run."""

    run: str
    digest: str  #: of the merged events
    ended: bool
    missing: str
    unfinished: str
    repeated: int  #: answers that were paid for more than once
    logs: list[MergedLogJson]


class LabelLogJson(TypedDict):
    """The check of a label log of a run."""

    log: str  #: name of the file
    events: int | None  #: null: it cannot be read
    sound: bool
    problems: list[str]


class CertificateVerifyJson(TypedDict):
    """The check of a certificate; null: not reached."""

    certificate: str  #: path
    run: str | None
    number: int | None
    sound: bool
    recall_at_least: float | None  #: computed again
    target: float | None
    labelled: int | None
    records: int | None
    later_events: int | None  #: label events since; null: unknown
    problems: list[str]
    notes: list[str]


class VerifyJson(TypedDict):
    """The check of a run's log; a log that cannot be opened has fewer fields."""

    run: str
    sound: bool
    end: str  #: `proven`, `unproven` or `lost`
    faults: list[LogFault]
    acknowledged: NotRequired[int | None]  #: events; null: unproven
    lost_events: NotRequired[int]
    events: NotRequired[int]
    commits: NotRequired[int]
    blobs: NotRequired[int]
    unknown: NotRequired[int]  #: events of a later siftlog
    projections_compared: NotRequired[bool]
    labels: NotRequired[list[LabelLogJson]]
    certificates: NotRequired[list[CertificateVerifyJson]]


class RegressionJson(TypedDict):
    """What today's code changes in a recorded run."""

    run: str
    job: str  #: empty: it is not installed
    differs: bool
    causes: list[str]
    """`job`, `kit`, `metrics`, `engine`, `dependency`; `unknown`: the log is older;
    `log`: it is damaged; `unexplained`: the code is the same."""
    steps: dict[str, StepTally]  #: `plan`, `requests`, `parse`, `scores`, `scorecard`
    problem: str | None  #: why nothing was checked


class ReconciledCallJson(TypedDict):
    """A call of the run."""

    task: int
    attempt: int
    key: str
    model: str
    outcome: str  #: `answered`, `no usage`, `lost`, `failed` or `unknown`


class SettlementJson(TypedDict):
    """What a call cost whose cost the log does not know."""

    call: ReconciledCallJson
    row: int | None  #: of the file; null: it was not billed
    billed_usd: float


class BillDifferenceJson(TypedDict):
    """A part of the bill that differs from the log."""

    cause: str  #: docs/reconcile.md lists them; `unexplained` is the residual
    amount_usd: float  #: billed beyond what was expected; negative: less
    row: int | None  #: of the file; null: it has no line, or it is a sum
    detail: str
    call: ReconciledCallJson | None  #: null: the line belongs to none, or is a sum


class ReconciliationJson(TypedDict):
    """A run compared with what its provider billed."""

    run: str
    form: str  #: of the file
    calls: int  #: that the run sent
    lines: int
    outside: int  #: lines of other times than the run's
    differs: bool
    billed_usd: float
    """The sum of `logged_usd`, `settled_usd`, `residual_usd` and of all differences
    with a cause; every amount is exact to a pico-dollar."""
    logged_usd: float
    possible_usd: float  #: the most that the log expects beyond `logged_usd`
    settled_usd: float
    residual_usd: float
    settlements: list[SettlementJson]
    differences: list[BillDifferenceJson]
    notes: list[str]  #: limits of the comparison


class BundleVerifyJson(TypedDict):
    """The check of a bundle; null: it could not be read so far."""

    bundle: str
    run: str | None
    scoring: int | None
    sound: bool
    members: int | None
    events: int | None
    commits: int | None
    head: str | None
    digest: str | None
    partial: bool | None
    rebuilt: bool  #: scorecard.json came out the same again
    differs: list[str]
    faults: list[LogFault]
    redacted: RedactionReport | None  #: null: it has all texts, or was not reached
    disclosure: DisclosureReport | None


class CacheGroupJson(TypedDict):
    """Entries of the response cache of one model and endpoint."""

    model: str
    endpoint: str
    entries: int
    bytes: int
    oldest: str
    newest: str
    hits: int


class ForkedStageJson(TypedDict):
    """Tasks of a stage and model in a fork."""

    stage: str
    model: str
    adopted: int
    sent: int
    saved_usd: str  #: exact; what the adopted answers had cost
    spend_usd: str | None  #: exact for these replies; null: a price is unknown


class ForkedRequestJson(TypedDict):
    """A request that the parent run has no answer to."""

    stage: str
    key: str
    model: str
    replicate: int
    request_sha256: str
    certain: bool  #: no request of an earlier stage differs


class ForkJson(TypedDict):
    """What a fork adopts and asks, before its first call."""

    run: str
    parent: str
    adopted: int
    sent: int
    saved_usd: str  #: exact; what the adopted answers had cost
    spend_usd: str | None  #: a forecast; null: a price is unknown
    stages: list[ForkedStageJson]
    requests: list[ForkedRequestJson]


class AddedStageCostJson(TypedDict):
    """Requests of a stage and model, before the first call."""

    stage: str
    model: str
    requests: int
    spend_usd: str | None  #: a forecast; null: the price is unknown
    most_usd: str | None  #: worst case without retries; null: the price is unknown


class AddStageJson(TypedDict):
    """What a stage that is added to a run asks, before its first call."""

    run: str
    stage: str
    tasks: int  #: of the stage, offline ones included
    requests: int  #: to online models
    stages: list[AddedStageCostJson]


class CachePruneJson(TypedDict):
    """Entries that were removed from the response cache."""

    entries: int
    bytes: int
    left_entries: int
    left_bytes: int
    dry_run: bool


class PromptJson(TypedDict):
    """A text of a job's prompts."""

    prompt: str  #: block and part
    text: str
    placeholders: dict[str, str]  #: meaning by name
    needed: list[str]


class PromptMessageJson(TypedDict):
    """A message of a chat."""

    role: str
    content: str


class RequestJson(TypedDict):
    """A form of request of a run, with its first example."""

    stage: str
    requests: int
    task: int
    key: str
    model: str
    request_sha256: str | None  #: null: the replies were imported
    kind: str  #: `chat`, `embed` or `rerank`
    messages: list[PromptMessageJson]
    reply_schema: str | None  #: JSON Schema of the reply
    query: str | None
    texts: list[str]


class PricedModelJson(TypedDict):
    """Prices and client of a model; null: not in the price table."""

    model: str
    client: str
    usd_per_mtok_in: float | None
    usd_per_mtok_cached: float | None
    usd_per_mtok_out: float | None
    context_tokens: int | None


class ModelJson(PricedModelJson):
    """A model of the price table."""

    kind: str  #: of request: `chat`, `embed` or `rerank`


class RunModelJson(PricedModelJson):
    """A model of a run, with its limits and costs."""

    concurrency: int | None
    rpm: float | None
    tpm: float | None
    calls: int
    cost_usd: float | None


class JobJson(TypedDict):
    """An installed job."""

    job: str
    version: NotRequired[str]
    stages: NotRequired[list[str]]
    broken: NotRequired[str]  #: why it cannot be loaded; it has no other field then


class SettingJson(TypedDict):
    """A setting of a job."""

    setting: str
    default: Any
    allowed: list[Any]  #: empty: not a list of values
    description: str
    everyday: bool  #: one that people usually set
    profiles: dict[str, Any]  #: its value in profiles that set it


class ProbeJson(TypedDict):
    """What a probed endpoint accepts; null: unknown."""

    endpoint: str
    model: str
    api: str
    calls: int
    problem: str | None  #: why there is no answer
    dialect: DialectGuess
    parameters: list[ProbedParameter]
    reply_schema: str  #: support of JSON Schemas for replies
    schema_words: str
    usage_fields: list[str]
    reasoning: str  #: where reasoning tokens are counted
    rpm: float | None
    tpm: float | None
    limit_headers: dict[str, str]
    latencies_ms: list[int]
    served: list[list[str]]  #: fields and values in the replies about their origin
    tokens_in: int
    tokens_out: int
    uncounted: int  #: answered calls without usage
    cost_usd: float | None
    config: str  #: a block for a configuration file


RUNNING: Final = (
    "run",
    "resume",
    "fork",
    "add-stage",
    "import",
    "prepare",
    "run-all",
)
"""Commands that start runs."""

CONTROL: Final = ("pause", "drain", "cancel", "retry", "limits", "budget", "commands")
"""Commands that are sent to a run."""

FORMS: Final[Mapping[str, JsonForm]] = {
    "siftlog.launch/1": JsonForm(RUNNING, (LaunchJson,)),
    "siftlog.detached/1": JsonForm(("run", "resume"), (DetachedJson,)),
    "siftlog.done/1": JsonForm(RUNNING, (DoneJson,)),
    "siftlog.estimate/2": JsonForm(("estimate", "run"), (EstimateJson,)),
    "siftlog.what-if/2": JsonForm(("estimate",), (WhatIfJson,)),
    "siftlog.prepared/1": JsonForm(("prepare",), (PreparedJson,), is_open=True),
    "siftlog.score/1": JsonForm(("score",), (ScoreJson,)),
    "siftlog.scoring/1": JsonForm(("scores",), (ScoringJson,)),
    "siftlog.explanation/1": JsonForm(("explain",), (ExplanationJson,)),
    "siftlog.input-explanation/1": JsonForm(
        ("explain",), (InputExplanationJson,), is_open=True
    ),
    "siftlog.task-detail/1": JsonForm(("show",), (TaskDetailJson,)),
    "siftlog.run/2": JsonForm(("runs",), (RunJson,)),
    "siftlog.status/4": JsonForm(("status",), (StatusJson, AtJson)),
    "siftlog.shipped-logs/1": JsonForm(("status",), (ShippedLogsJson,)),
    "siftlog.task/1": JsonForm(("tasks",), (TaskJson,)),
    "siftlog.event/1": JsonForm(("events",), (EventJson,)),
    "siftlog.command-result/1": JsonForm((*CONTROL, "resume"), (CommandResultJson,)),
    "siftlog.command-preview/1": JsonForm(
        CONTROL, (CommandPreviewJson, CommandPreview)
    ),
    "siftlog.command/1": JsonForm(("commands",), (CommandJson,)),
    "siftlog.limits/1": JsonForm(("limits",), (LimitsJson,)),
    "siftlog.budget/1": JsonForm(("budget",), (BudgetJson, CommandPreview)),
    "siftlog.export/1": JsonForm(("export",), (ExportJson,)),
    "siftlog.folder-export/1": JsonForm(("export",), (FolderExportJson,)),
    "siftlog.trace-export/1": JsonForm(("export",), (TraceExportJson,)),
    "siftlog.sql-row/1": JsonForm(("sql",), (SqlRowJson,)),
    "siftlog.bundle/1": JsonForm(("bundle",), (BundleJson,)),
    "siftlog.disclosure-file/1": JsonForm(("disclose",), (DisclosureFileJson,)),
    "siftlog.merge/1": JsonForm(("merge",), (MergeJson,)),
    "siftlog.verify/1": JsonForm(("verify",), (VerifyJson,)),
    "siftlog.regression/1": JsonForm(("regress",), (RegressionJson,)),
    "siftlog.reconciliation/1": JsonForm(("reconcile",), (ReconciliationJson,)),
    "siftlog.certificate-verify/1": JsonForm(("verify",), (CertificateVerifyJson,)),
    "siftlog.bundle-verify/1": JsonForm(("verify",), (BundleVerifyJson,)),
    "siftlog.fork/1": JsonForm(("fork",), (ForkJson,)),
    "siftlog.add-stage/1": JsonForm(("add-stage",), (AddStageJson,)),
    "siftlog.import/1": JsonForm(("import",), (ImportJson,)),
    "siftlog.removal/1": JsonForm(("rm",), (RemovalJson,)),
    "siftlog.cache-group/1": JsonForm(("cache list",), (CacheGroupJson,)),
    "siftlog.cache-prune/1": JsonForm(("cache prune",), (CachePruneJson,)),
    "siftlog.prompt/1": JsonForm(("prompts",), (PromptJson,)),
    "siftlog.request/1": JsonForm(("prompts",), (RequestJson,)),
    "siftlog.model/1": JsonForm(("models",), (ModelJson,)),
    "siftlog.run-model/1": JsonForm(("models",), (RunModelJson,)),
    "siftlog.job/1": JsonForm(("jobs",), (JobJson,)),
    "siftlog.setting/1": JsonForm(("jobs",), (SettingJson,)),
    "siftlog.check/1": JsonForm(("doctor",), (DoctorCheck,)),
    "siftlog.probe/1": JsonForm(("doctor",), (ProbeJson,)),
}
"""Every form of the commands of this package, by its name and version."""
