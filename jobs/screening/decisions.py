"""Defines what is scored: the records, and the decisions of each model.

The project's runs and imported decisions both become a `ScreeningPredictions`, the only
input of scoring. Columns are arrays with one entry per record, in set order, so that a
million decisions stay small.

A `DecisionView` applies the settings. Unclear, unparsed and failed records count as
outside unless a setting says otherwise. Records rank by p_include; one without it ranks
by its decision, and one without a readable reply in the middle. A record that ended at
an earlier stage ranks below all that went on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import cast, get_args

import msgspec
import numpy as np

from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.screening.data import KINDS, UNLABELLED, RecordKind, ScreeningRecord
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.replies import AnswerColumns
from jobs.screening.settings import Outside, ScreeningSettings, StageName
from runner.evaluation import STAYS
from runner.scorecard import Finding

INCLUDE, EXCLUDE, UNCLEAR, UNPARSED, FAILED, SKIPPED, MISSING = range(7)
"""Outcomes of a record; only the first two are decisions."""

READABLE = (INCLUDE, EXCLUDE, UNCLEAR)
"""Outcomes that a reply can state."""

OUTCOMES = ("include", "exclude", "unclear", "unparsed", "failed", "skipped", "missing")
"""Their names; `missing`: no request was sent, or no reply has arrived yet."""


NOTED = "; "
"""Separator between remarks about a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The screened records and their labels; the same for every model."""

    reviews: tuple[str, ...]  #: distinct, ascending as text
    papers: tuple[str, ...]  #: (N,)
    review: Ints  #: (N,) index into reviews
    label: Ints  #: (N,) 1: included; `UNLABELLED`: not known
    kinds: tuple[RecordKind, ...] = field(metadata=STAYS)
    """Those that occur, in the order of `KINDS`."""
    kind: Ints  #: (N,) index into kinds
    reason_code: Sequence[str] = field(default=(), metadata=STAYS)
    """(N,) coded reason of true exclusions, or ""."""

    def __len__(self) -> int:
        return len(self.papers)

    @property
    def is_labelled(self) -> Bools:
        """(N,) whether the label of a record is known."""
        known: Bools = self.label != UNLABELLED
        return known

    def at(self, rows: Bools) -> Records:
        """Return some of the records; kinds and reviews keep their indices."""
        return replace(
            self,
            papers=tuple(compress(self.papers, rows)),
            review=self.review[rows],
            label=self.label[rows],
            kinds=tuple(kind for kind in self.kinds if kind != "unlabelled"),
            kind=self.kind[rows],
            reason_code=tuple(compress(self.reason_code, rows)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Decisions of a model, a replicate or an ensemble, by record."""

    model: str = field(metadata=STAYS)
    replicate: int | None = None  #: None: all replicates of the model, joined
    outcome: Ints  #: (N,) from the last stage with a readable reply
    p: Floats  #: (N,) p_include of that stage; NaN: none
    stage: Ints  #: (N,) index into stages, of the stage that decided; -1: none
    ended: Ints
    """(N,) stages that were passed; a record that ended early ranks below the
    others."""
    latest: Ints
    """(N,) outcome of the last stage that was due. If it is not a decision, the record
    stays in, and the stage before it decides."""
    stages: tuple[str, ...] = field(default=("abstract",), metadata=STAYS)
    reason_code: Sequence[str] = field(default=(), metadata=STAYS)  #: (N,)
    reason: Sequence[str] = ()  #: (N,)
    issues: Sequence[str] = ()
    """(N,) remarks about the replies of each record, joined by `NOTED`; joined
    replicates have none."""
    replies: int = 0  #: over all records and stages, readable or not
    skip: Mapping[str, int] = field(default_factory=dict, metadata=STAYS)
    """Records by reason."""
    counts: Mapping[str, int] = field(default_factory=dict, metadata=STAYS)
    """Issues in replies, by name: `bad_confidence`, `inconsistent`, ..."""

    def at(self, rows: Bools) -> Decisions:
        """Return the decisions about some records; reply counts stay those of all."""
        return replace(
            self,
            outcome=self.outcome[rows],
            p=self.p[rows],
            stage=self.stage[rows],
            ended=self.ended[rows],
            latest=self.latest[rows],
            reason_code=tuple(compress(self.reason_code, rows)),
            reason=tuple(compress(self.reason, rows)),
            issues=tuple(compress(self.issues, rows)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningPredictions:
    """The complete input of scoring."""

    records: Records
    decisions: tuple[Decisions, ...]  #: joined ones, by model; then ensembles
    replicates: tuple[Decisions, ...] = ()  #: single ones, by model and number
    models: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: stored answers that the current plan no longer needs

    @property
    def has_truth(self) -> bool:
        """Whether a label of any record is known."""
        return bool(self.records.is_labelled.any())

    @property
    def measured(self) -> ScreeningPredictions:
        """The part that metrics are computed from: records with a label.

        If there are no labels, it is all records, for the metrics that need none.
        `kinds` has `unlabelled` last, so that the indices of others stay.
        """
        rows = self.records.is_labelled
        if rows.all():
            return self
        if not rows.any():
            no_label = np.zeros(len(self.records), dtype=np.int64)
            return replace(self, records=replace(self.records, label=no_label))
        return replace(
            self,
            records=self.records.at(rows),
            decisions=tuple(decisions.at(rows) for decisions in self.decisions),
            replicates=tuple(decisions.at(rows) for decisions in self.replicates),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningFrame:
    """Input of the metrics."""

    settings: ScreeningSettings
    has_truth: bool  #: whether any record has a known label
    records: Records
    decisions: tuple[Decisions, ...]
    replicates: tuple[Decisions, ...]

    @classmethod
    def of(
        cls, settings: ScreeningSettings, predictions: ScreeningPredictions
    ) -> ScreeningFrame:
        """Return the frame of the records that have a label."""
        part = predictions.measured
        return cls(
            settings=settings,
            has_truth=predictions.has_truth,
            records=part.records,
            decisions=part.decisions,
            replicates=part.replicates,
        )

    @property
    def without_texts(self) -> ScreeningFrame:
        """Copy without reasons and remarks, which no metric reads."""
        decisions, replicates = (
            tuple(replace(column, reason=(), issues=()) for column in columns)
            for columns in (self.decisions, self.replicates)
        )
        return replace(self, decisions=decisions, replicates=replicates)


STAGES: tuple[StageName, ...] = get_args(StageName)
"""Stages that judge a record, in their order."""


class ImportedLabel(msgspec.Struct, frozen=True, omit_defaults=True):
    """Label in a row of an import; stored with its task."""

    label: int
    kind: str = "unspecified"


_DECODER = msgspec.json.Decoder(ImportedLabel)


def decode_label(context: str) -> ImportedLabel:
    """Decode the label stored with a task."""
    return _DECODER.decode(context)


def encode_label(truth: ImportedLabel) -> str:
    """Encode the label that is stored with a task."""
    return msgspec.json.encode(truth).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedRecords:
    """Records and stages that answers are gathered for."""

    records: Records
    index_by_key: dict[str, int]  #: of each record, by its key
    stages: tuple[str, ...]  #: that judged them, in their order


def screened_records(
    dataset: ScreeningDataset, answers: AnswerColumns
) -> ScreenedRecords:
    """Return the records and stages of a run, from its set or its import."""
    validation_set = dataset.validation_set
    if not answers.imported and validation_set is not None:
        return _records_table(validation_set.records, dataset.settings.stages)
    records: Sequence[ScreeningRecord]
    if validation_set is None:
        records = _in_set_order(
            _imported_record(key, decode_label(context))
            for key, context in zip(answers.keys, answers.contexts, strict=True)
            if context is not None
        )
    else:
        records = validation_set.records
    stages = tuple(stage for stage in STAGES if stage in answers.first_stages)
    return _records_table(records, stages)


def _imported_record(key: str, truth: ImportedLabel) -> ScreeningRecord:
    review, _, paper = key.partition(":")
    return ScreeningRecord(
        review=review,
        paper=paper,
        kind="included" if truth.label == 1 else cast("RecordKind", truth.kind),
    )


def _in_set_order(records: Iterable[ScreeningRecord]) -> list[ScreeningRecord]:
    return sorted(
        records,
        key=lambda record: (record.review, KINDS.index(record.kind), record.paper),
    )


def _records_table(
    rows: Sequence[ScreeningRecord], stages: tuple[str, ...]
) -> ScreenedRecords:
    reviews = tuple(sorted({record.review for record in rows}))
    kinds = tuple(kind for kind in KINDS if any(record.kind == kind for record in rows))
    at = {review: index for index, review in enumerate(reviews)}
    of_kind = {kind: index for index, kind in enumerate(kinds)}
    n = len(rows)
    return ScreenedRecords(
        records=Records(
            reviews=reviews,
            papers=tuple(record.paper for record in rows),
            review=np.fromiter((at[record.review] for record in rows), np.int64, n),
            label=np.fromiter((record.label for record in rows), np.int64, n),
            kinds=kinds,
            kind=np.fromiter((of_kind[record.kind] for record in rows), np.int64, n),
            reason_code=tuple(record.reason_code for record in rows),
        ),
        index_by_key={record.key: i for i, record in enumerate(rows)},
        stages=stages,
    )


CALLS = ("exclude", "include")
"""By label, and by the number of a decision."""

UNDECIDED = -1

IMPUTED: Mapping[int, float] = {INCLUDE: 1.0, EXCLUDE: 0.0}
"""Values that replace a missing p_include; 0.5 for all other outcomes."""

CALL_BY_OUTCOME: Ints = np.full(len(OUTCOMES), UNDECIDED, dtype=np.int64)
"""By outcome: 1 include, 0 exclude, -1 neither."""
CALL_BY_OUTCOME[[INCLUDE, EXCLUDE]] = 1, 0
CALL_BY_OUTCOME.flags.writeable = False

_READ_AS: Mapping[Outside, int] = {"outside": UNDECIDED, "include": 1, "exclude": 0}


@dataclass(frozen=True)
class DecisionView:
    """A column of decisions under the settings."""

    records: Records
    decisions: Decisions
    settings: ScreeningSettings
    text_rank: Ints
    """(N,) rank of each record's paper id among all, ascending as text."""

    @cached_property
    def outcome(self) -> Ints:
        """Outcomes, derived from p_include if a threshold is set."""
        decisions, tau = self.decisions, self.settings.threshold
        if tau is None:
            return decisions.outcome
        outcome = decisions.outcome.copy()
        has_p = ~np.isnan(decisions.p)
        outcome[has_p] = np.where(decisions.p[has_p] >= tau, INCLUDE, EXCLUDE)
        return outcome

    @cached_property
    def call(self) -> Ints:
        """1 include, 0 exclude, -1 undecided."""
        read_as = _READ_AS[self.settings.unclear]
        by_outcome = CALL_BY_OUTCOME.copy()
        by_outcome[[UNCLEAR, UNPARSED, FAILED]] = read_as
        call: Ints = by_outcome[self.outcome]
        return call

    @cached_property
    def imputed(self) -> Bools:
        """Whether a record ranks without a p_include, by record."""
        return np.isnan(self.decisions.p)

    @cached_property
    def score(self) -> Floats:
        """Rank score of each record within a stage."""
        stand_in = np.full(len(OUTCOMES), 0.5)
        for outcome, p in IMPUTED.items():
            stand_in[outcome] = p
        decisions = self.decisions
        return np.where(self.imputed, stand_in[decisions.outcome], decisions.p)

    @cached_property
    def height(self) -> Floats:
        """Rank score over all stages; equal values are ties."""
        # scores lie between 0 and 1, so that stages never overlap
        return 2.0 * self.decisions.ended + self.score

    @cached_property
    def order(self) -> Ints:
        """Rows by review, in screening order: the only sort of a scoring."""
        order: Ints = np.lexsort((self.text_rank, -self.height, self.records.review))
        return order


def text_rank(records: Records) -> Ints:
    """Return the rank of each paper id as text; unique within a review."""
    n = len(records)
    ranks: Ints = np.empty(n, dtype=np.int64)
    ranks[sorted(range(n), key=records.papers.__getitem__)] = np.arange(n)
    return ranks


ALL = "all"


def strata(records: Records) -> Mapping[str, Bools]:
    """Return the rows of each stratum; with one kind of negatives it equals `all`."""
    masks = {ALL: np.ones(len(records), dtype=np.bool_)}
    for index, kind in enumerate(records.kinds):
        if kind not in {"included", "unlabelled"}:
            masks[kind] = (records.label == 1) | (records.kind == index)
    return masks
