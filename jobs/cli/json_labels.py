"""Types of the JSON objects of commands about labels, screening and manuscripts."""

from __future__ import annotations

from typing import Literal, TypedDict

from jobs.kit.methods.check import FaultKind


class LabelCountJson(TypedDict):
    """Current labels of one author with one value."""

    author: str
    field: str  #: empty: the item itself
    value: str
    blind: bool | None  #: whether no reply was visible; null: unknown
    labels: int


class DisputedJson(TypedDict):
    """A field of an item on which people disagree."""

    item: str
    field: str
    values: dict[str, str]  #: by author


class LabelsJson(TypedDict):
    """The labels of a run, or of a folder of label logs."""

    folder: str
    run: str | None
    labels: int  #: that count
    items: int
    gold: int  #: fields with a gold value
    adjudicated: int  #: of them
    withdrawn: int
    stale: int  #: labels of a text that has changed since
    drawn: int  #: items drawn by a design
    unknown_events: int  #: of a later siftlog
    counts: list[LabelCountJson]
    disputed: list[DisputedJson]


class LabelJson(TypedDict):
    """A label that counts."""

    item: str
    field: str  #: empty: the item itself
    value: str
    author: str
    reason: str
    seconds: float | None
    blind: str  #: `yes`, `no`, or empty: unknown
    gold: str  #: gold value of the field; empty: disputed, or stale
    adjudicated: str  #: whether an adjudication set it: `yes`, `no`, or empty
    visible: str  #: what the author could see, separated by blanks
    recorded: str
    id: str
    run: str
    task: int | None
    text_sha256: str
    draw: str  #: id of the draw that chose the item
    probability: float | None  #: of that draw
    source: str  #: file that it was imported from


class LabelImportJson(TypedDict):
    """Labels that were read from a file."""

    folder: str
    run: str | None
    file: str
    recorded: int
    repeated: int  #: rows that were recorded before
    authors: list[str]


class CoefficientJson(TypedDict):
    """A coefficient of agreement; null: undefined."""

    value: float | None
    lo: float | None
    hi: float | None
    undefined: int  #: replicates of the bootstrap without a value


class RaterAgreementJson(TypedDict):
    """Agreement of raters."""

    items: int  #: with two ratings or more
    ratings: int
    percent: CoefficientJson
    cohen: CoefficientJson | None  #: null unless there are two raters
    fleiss: CoefficientJson
    krippendorff: CoefficientJson
    gwet: CoefficientJson


class PairAgreementJson(RaterAgreementJson):
    """Agreement of two raters."""

    a: str
    b: str


class LatentClassesJson(TypedDict):
    """Estimates without gold labels, by Dawid and Skene."""

    prevalence: dict[str, float]  #: by category
    accuracy: dict[str, float]  #: by rater
    iterations: int
    converged: bool


class FieldAgreementJson(TypedDict):
    """Agreement on a field."""

    field: str
    raters: list[str]  #: people, then models
    people: int  #: of the raters
    categories: list[str]
    all_people: RaterAgreementJson
    pairs: list[PairAgreementJson]
    latent: LatentClassesJson | None  #: null: fewer than three raters


class PeopleAgreementJson(TypedDict):
    """Agreement of people, and models, on labels."""

    folder: str
    run: str | None
    level: float
    blind_only: bool
    fields: list[FieldAgreementJson]


class RateJson(TypedDict):
    """A rate with its interval; null if undefined."""

    value: float | None
    lo: float | None
    hi: float | None


class AnyTimeJson(TypedDict):
    """The ends of an interval that holds at all looks together."""

    lo: float
    hi: float
    labels: int  #: first ones of the draw that it rests on


class EstimatedMetricJson(RateJson):
    """A metric by labels and the replies of other models."""

    metric: str
    labels_alone: RateJson
    naive: RateJson  #: with the other models as the truth
    any_time: AnyTimeJson | None  #: by labels alone; null: undefined
    weights: dict[str, float]  #: of predictions, by stratum; 0: labels alone
    effective_labels: float | None  #: random labels alone of the same precision
    effective_residuals: float | None  #: what the variance rests on; null: undefined
    conservative: bool  #: few of them: the interval covers about its level or more
    labels_until_nominal: int  #: more labels that end this, about; 0: it is nominal
    labels_needed: int | None  #: more labels, for the width; null: not requested


class ModelQualityJson(TypedDict):
    """Quality of a model, estimated from labels."""

    model: str
    items: int  #: with a reply that has a value
    labels: int
    predicted_by: Literal["judge", "verdicts", "models", "itself"]
    metrics: list[EstimatedMetricJson]  #: empty: too few labels


class FieldQualityJson(TypedDict):
    """Quality of the models on a field, estimated from labels."""

    field: str
    positive: str | None  #: value that precision and recall are about
    design: str | None  #: of the draw; null: labels count as a random sample
    labels: int  #: gold values used
    outside: int  #: gold values of items that were not drawn
    strata: list[str]  #: used by the estimates; empty: one for all items
    models: list[ModelQualityJson]


class LabelQualityJson(TypedDict):
    """Quality of models, estimated from labels."""

    run: str
    folder: str
    level: float
    width: float | None
    judge: str | None
    scoring: int | None  #: its verdicts may predict the labels
    fields: list[FieldQualityJson]


class AdjudicationJson(TypedDict):
    """A final value that was recorded."""

    folder: str
    run: str | None
    id: str
    item: str
    field: str
    value: str
    author: str
    considered: list[str]  #: ids of the labels at that time


class LabellingJson(TypedDict):
    """A session that has ended."""

    run: str
    folder: str
    author: str
    answered: int  #: in this session
    done: int
    total: int


class MethodsValueJson(TypedDict):
    """A value that a manuscript can quote."""

    name: str
    value: int | float | str | None  #: null: undefined or unknown
    text: str  #: the value, rounded
    unit: str  #: empty: none
    rounding: str  #: the rule
    n: int | None  #: denominator; null: not a share
    model: str | None  #: null: of the whole run


class MethodsJson(TypedDict):
    """The methods text of a run."""

    run: str
    scoring: int | None  #: null: the run was not scored
    seq: int  #: the last event that was read
    format: Literal["markdown", "latex", "docx"]
    text: str | None  #: null: for a DOCX file
    file: str | None
    supplement: str | None  #: file of the prompts
    values: list[MethodsValueJson]


class ManuscriptFaultJson(TypedDict):
    """A value in a manuscript that differs from the log."""

    kind: FaultKind
    line: int  #: from 1; in DOCX: number of the paragraph
    column: int  #: from 1
    name: str
    written: str
    expected: str  #: empty: unknown
    detail: str
    sentence: str


class ManuscriptJson(TypedDict):
    """The check of a manuscript."""

    file: str
    run: str
    scoring: int | None  #: null: the run was not scored
    sound: bool
    checked: int
    other_runs: int  #: values of other runs, which were not checked
    redacted: int  #: values that a redacted bundle lacks, likewise
    not_checked: int  #: numbers without a mark in sentences that name a metric
    faults: list[ManuscriptFaultJson]


class ScreeningJson(TypedDict):
    """The state of a screening after a session."""

    run: str
    folder: str  #: of the label logs
    answered: int  #: in this session
    records: int
    labelled: int
    relevant: int
    relevant_at_most: int  #: upper bound on the relevant records of the library
    recall_at_least: float
    target: float
    alpha: float
    draws: int
    draws_counted: int  #: in the bound
    stop: bool
    forecast: str
    certificate: str | None  #: written by this session


class CurvePointJson(TypedDict):
    """The state after some records of a simulated screening."""

    read: int
    bound: float  #: lower bound on recall
    recall: float  #: true


class SimulatedRuleJson(TypedDict):
    """The simulated screenings of one stop rule."""

    name: str
    stops: int
    below_target: float  #: share of stops with a true recall below the target
    recall: float  #: mean
    least_recall: float
    read: float  #: mean share of the library
    saved: float


class ScreeningSimulationJson(TypedDict):
    """Simulated screenings of a labelled library."""

    records: int
    relevant: int
    target: float
    alpha: float
    order: str
    seeds: int
    rules: list[SimulatedRuleJson]
    curve: list[CurvePointJson]  #: of the first seed
    files: list[str]  #: figures
