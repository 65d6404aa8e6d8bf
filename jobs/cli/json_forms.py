"""Types of the JSON objects of commands that need jobs, and their table `FORMS`.

`runner.cli.json_forms` has those of all other commands, and the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

from jobs.cli.json_labels import (
    AdjudicationJson,
    LabelImportJson,
    LabelJson,
    LabellingJson,
    LabelQualityJson,
    LabelsJson,
    ManuscriptJson,
    MethodsJson,
    PeopleAgreementJson,
    ScreeningJson,
    ScreeningSimulationJson,
)
from jobs.kit.comparison.difference import PValue
from jobs.kit.comparison.models import ComparisonOptions
from jobs.kit.comparison.pairing import ItemGap, OutcomeCounts
from jobs.kit.differences.difference import Cause
from jobs.kit.run_matrix import MatrixRow
from runner.cli.json_forms import JsonForm
from runner.cli.json_runs import IntervalJson


class SideJson(TypedDict):
    """A model in a scoring of a run."""

    run: str
    scoring: int | None  #: null: scored for this comparison
    model: str
    seq: int  #: the last event that was read


class DominatingSideJson(SideJson):
    """A side with the same quality at lower cost, and how its quality compares."""

    quality: str


class FrontPointJson(SideJson):
    """Quality and costs of a side; null: unknown."""

    quality: float | None
    lo: float | None
    hi: float | None
    usd: float | None  #: per unit
    seconds: float | None  #: median latency of a call
    dominated_by: list[DominatingSideJson]


class FrontJson(TypedDict):
    """Quality of all sides against cost and latency."""

    metric: str
    lower_is_better: bool
    n: int  #: units
    unit: str
    cluster: str
    sides: list[FrontPointJson]


class CorrectedPValueJson(TypedDict):
    """A p-value, also corrected over its family."""

    name: str  #: of the test
    p: float
    p_holm: float | None


class AgreementJson(TypedDict):
    """Agreement of two models."""

    percent: float | None
    kappa: float | None
    ac1: float | None


class LabelAgreementJson(AgreementJson):
    """Agreement of the labels of two models."""

    what: str
    n: int


class ComparedMetricJson(TypedDict):
    """A metric of two sides; the difference is B minus A."""

    name: str
    a: float | None
    b: float | None
    difference: float | None
    lo: float | None
    hi: float | None
    b_used: int  #: bootstrap replicates with a value
    flagged: bool  #: the interval is unstable
    verdict: str  #: about B
    lower_is_better: bool
    few: bool  #: too few clusters for a verdict
    test: CorrectedPValueJson | None
    beside: PValue | None  #: a test that assumes independent items
    family: str
    n: int  #: items with a value on both sides
    clusters: int
    only_a: int
    only_b: int
    undefined: int  #: common items without a value on a side
    agreement: AgreementJson | None
    standing: OutcomeCounts | None
    cluster: str
    definition: str


class PairJson(TypedDict):
    """Two sides with their metrics by path."""

    a: SideJson
    b: SideJson
    metrics: dict[str, ComparedMetricJson]
    not_compared: dict[str, str]  #: reason by path
    only_a: list[str]  #: paths of metrics
    only_b: list[str]
    labels: LabelAgreementJson | None
    items: NotRequired[list[ItemGap]]  #: with `--items`


class ComparisonJson(TypedDict):
    """A comparison of models, runs or scorings."""

    job: str
    notes: list[str]
    family: str  #: tests that are corrected together
    pairs: list[PairJson]
    front: FrontJson | None


class RunningSideJson(TypedDict):
    """A model of a run that may still be in progress."""

    run: str
    model: str
    seq: int


class InterimPairJson(TypedDict):
    """Two sides so far; the difference is B minus A."""

    a: RunningSideJson
    b: RunningSideJson
    standing: str  #: verdict about B
    n: int  #: clusters
    cluster: str
    difference: float | None
    lo: float | None
    hi: float | None


class InterimComparisonJson(TypedDict):
    """A comparison that stays valid however often it is repeated."""

    metric: str
    margin: float
    alpha: float
    alpha_each: float  #: of one pair
    notes: list[str]
    comparisons: list[InterimPairJson]


class ScoringRefJson(TypedDict):
    """A recorded scoring."""

    scoring: int
    digest: str


class VerdictSideJson(TypedDict):
    """A verdict of one scoring."""

    value: str
    expected: str
    correct: bool | None
    rule: str


class VerdictChangeJson(TypedDict):
    """A verdict that changed; null: only one side has it."""

    task: int
    key: str
    before: VerdictSideJson | None
    after: VerdictSideJson | None


class BookingJson(TypedDict):
    """A change of a metric, split by the units that the job counts."""

    metric: str
    change: float | None
    rows: list[dict[str, Any]]


class CauseStageJson(TypedDict):
    """Causes that were changed together, and their effect."""

    causes: list[Cause]
    metrics: int  #: that changed
    verdicts: dict[str, list[VerdictChangeJson]]  #: by model
    booked: dict[str, BookingJson]  #: by model


class ItemShareJson(TypedDict):
    """The share of an item in a change."""

    item: str
    cluster: str
    before: float | None
    after: float | None
    share: float | None
    exact: str | None  #: the share as a fraction


class CauseShareJson(TypedDict):
    """The part of a change that is due to some causes."""

    causes: list[str]
    before: float | None
    after: float | None
    change: float | None
    exact: str | None  #: the change as a fraction
    items: list[ItemShareJson]
    rounding: str | None  #: the rest, as a fraction


class ChangedMetricJson(TypedDict):
    """A metric that changed."""

    model: str
    path: str
    before: float | None
    after: float | None
    change: float | None
    exact: str | None  #: the change as a fraction
    parts: list[CauseShareJson]


class DifferenceJson(TypedDict):
    """Causes of the difference between two scorings of a run."""

    run: str
    job: str
    before: ScoringRefJson
    after: ScoringRefJson
    headline: str | None  #: path of the headline metric
    causes: list[CauseStageJson]
    metrics: list[ChangedMetricJson]
    unchanged: int  #: metrics
    notes: list[str]


class HistoryRunJson(TypedDict):
    """A run and model in a history."""

    run: str
    date: str
    model: str
    items: int
    passed: int
    macro: float | None
    micro: float | None
    verdicts_passed: int | None
    verdicts: int | None
    cost_usd: float | None
    delta: float | None
    delta_to: str | None  #: the run before
    unfinished: bool
    database_changed: bool


class PartChangeJson(TypedDict):
    """A part of an item that was lost or gained."""

    item: str
    part: str
    score_before: float | None
    score: float | None
    lost_at: str | None


class HistoryComparisonJson(TypedDict):
    """The newest run compared with the one of `--against`."""

    run: str
    model: str
    against: str
    against_model: str
    items: list[str]
    macro: float | None
    macro_before: float | None
    delta: float | None
    spread: float | None
    failed: list[str]  #: items that passed before
    lost: list[PartChangeJson]
    gained: list[PartChangeJson]
    alerts: list[str]


class HistoryJson(TypedDict):
    """Scores of the runs of a job."""

    job: str
    measure: str
    runs: list[HistoryRunJson]
    left_out: int  #: runs that share no item with the newest
    compared: list[HistoryComparisonJson]


class RecipeJson(TypedDict):
    """A recipe that was written."""

    file: str
    items: str | None  #: papers of `--from`


class ReportJson(TypedDict):
    """The report of a scoring."""

    run: str
    scoring: int
    report: str  #: path
    drawn: bool  #: it was built by this command


class MatrixPreviewRunJson(TypedDict):
    """A run that run-all would start."""

    run: str
    job: str
    model: str
    settings: dict[str, Any]
    what: str
    items: int
    calls: IntervalJson
    cost_usd: IntervalJson | None


class MatrixPreviewJson(TypedDict):
    """The plan of run-all."""

    group: str
    dry_run: Literal[True]
    budget_usd: float | None
    cost_usd: IntervalJson | None
    runs: list[MatrixPreviewRunJson]


class MatrixJson(TypedDict):
    """All runs of a file, after they have ended; also in comparison.json."""

    event: Literal["compared"]
    group: str
    runs: list[MatrixRow]


class DriftReplyJson(TypedDict):
    """A reply."""

    event: int
    ts_us: int
    task: int


class ServedSpanJson(TypedDict):
    """Replies of a model that reported one value."""

    model: str  #: as requested
    field: Literal["model", "fingerprint", "provider", "region", "tier"]
    value: str
    replies: int
    first: DriftReplyJson
    last: DriftReplyJson


class ShareJson(TypedDict):
    """A share of replies."""

    n: int
    share: float | None


class SnapshotChangeJson(TypedDict):
    """A change in what served a model."""

    field: Literal["model", "fingerprint"]
    before: str
    after: str


class DriftModelJson(TypedDict):
    """Whether a model's verdicts changed."""

    model: str
    verdicts: int
    is_detected: bool  #: whether the e-value ever reached 1 / alpha
    e_value: float  #: the largest at any look
    detected_at: int | None  #: verdicts when it first reached 1 / alpha
    call: int | None  #: first call after the most likely change, from 0
    at: DriftReplyJson | None  #: its reply
    weight: float  #: share of the evidence for this call
    before: ShareJson
    after: ShareJson
    snapshot: SnapshotChangeJson | None  #: reported at that call


class DriftJson(TypedDict):
    """Models that served a run, and changes of their verdicts."""

    run: str
    tested: Literal["right", "parsed"]
    alpha: float
    served: list[ServedSpanJson]
    models: list[DriftModelJson]


FORMS: Final[Mapping[str, JsonForm]] = {
    "siftlog.comparison/4": JsonForm(("compare",), (ComparisonJson, ComparisonOptions)),
    "siftlog.interim-comparison/1": JsonForm(("compare",), (InterimComparisonJson,)),
    "siftlog.difference/1": JsonForm(("diff",), (DifferenceJson,)),
    "siftlog.drift/1": JsonForm(("drift",), (DriftJson,)),
    "siftlog.history/1": JsonForm(("history",), (HistoryJson,)),
    "siftlog.labelling/1": JsonForm(("label",), (LabellingJson,)),
    "siftlog.labels/1": JsonForm(("labels list",), (LabelsJson,)),
    "siftlog.label/1": JsonForm(("labels export",), (LabelJson,)),
    "siftlog.label-import/1": JsonForm(("labels import",), (LabelImportJson,)),
    "siftlog.label-agreement/1": JsonForm(
        ("labels agreement",), (PeopleAgreementJson,)
    ),
    "siftlog.label-quality/2": JsonForm(("estimate-quality",), (LabelQualityJson,)),
    "siftlog.adjudication/1": JsonForm(("labels adjudicate",), (AdjudicationJson,)),
    "siftlog.screening/1": JsonForm(("screen",), (ScreeningJson,)),
    "siftlog.screening-simulation/1": JsonForm(("screen",), (ScreeningSimulationJson,)),
    "siftlog.recipe/1": JsonForm(("new",), (RecipeJson,)),
    "siftlog.report/1": JsonForm(("report",), (ReportJson,)),
    "siftlog.manuscript/1": JsonForm(("check",), (ManuscriptJson,)),
    "siftlog.methods/1": JsonForm(("methods",), (MethodsJson,)),
    "siftlog.matrix-preview/1": JsonForm(("run-all",), (MatrixPreviewJson,)),
    "siftlog.matrix/1": JsonForm(("run-all",), (MatrixJson,)),
}
"""Every JSON form of the commands in `jobs.cli`, by its name and version."""
