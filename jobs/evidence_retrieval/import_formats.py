"""Reads imported files: predictions, ranked lists, gamma sweeps, TREC files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    GAMMA_PREFIX,
    PROB_PREFIX,
    RAW,
    STATED,
    ImportedPrediction,
    QueryTruth,
    merge_answers,
)
from jobs.evidence_retrieval.posts import owner_by_prefix, read_posts
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.importer import ImportFile
from jobs.kit.inputs.cells import (
    Count,
    Filled,
    InputCell,
    Label,
    Number,
    Numbers,
    Probability,
    Texts,
    one_of,
)
from jobs.kit.inputs.files import csv_columns, read_objects, read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.kit.metrics.ranking import read_qrels, read_run
from jobs.kit.metrics.selective import STATES
from runner.errors import DatasetError

QUERY = ("post_id", "criterion_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQuery:
    """What one file says of one query."""

    location: str  #: the file and the line, for errors
    post: str
    criterion: str
    truth: QueryTruth = field(default_factory=QueryTruth)
    predictions: Mapping[str, ImportedPrediction] = field(
        default_factory=dict
    )  #: by model

    @property
    def query(self) -> tuple[str, str]:
        """Which query it speaks of."""
        return self.post, self.criterion

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this place."""
        return DatasetError(f"{self.location}: {sentence}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceOwners:
    """Which post a sentence belongs to: as `--sentences` says, else by its id."""

    posts: Mapping[str, str] | None = None  #: by uid

    @classmethod
    def of(cls, settings: EvidenceSettings) -> SentenceOwners:
        """As the settings say; raise `DatasetError` where the sentences are off."""
        if settings.sentences is None:
            return cls()
        # what is noticed about that file is said by `load`
        _, pools = read_posts(settings, InputFindings())
        return cls(posts={uid: post for uid, (post, _) in pools.locations.items()})

    def foreign(self, post: str, uids: Iterable[str]) -> str | None:
        """The first of *uids* that is no sentence of *post*."""
        if self.posts is None:
            return next((uid for uid in uids if owner_by_prefix(uid) != post), None)
        return next((uid for uid in uids if self.posts.get(uid) != post), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """A file to import, and what its rows are checked against."""

    file: ImportFile
    settings: EvidenceSettings
    owners: SentenceOwners
    findings: InputFindings

    @property
    def name(self) -> str:
        """The file, for errors and findings."""
        return self.file.path.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The file's columns by the names used here."""
        names = csv_columns(self.file.path)
        return tuple(self.file.renamed.get(name, name) for name in names)

    def rows(self, model: type[Row], further: Sequence[str] = ()) -> Iterator[Row]:
        """The rows of a table; *further* are columns that files name themselves."""
        return read_table(
            self.file.path,
            model,
            findings=self.findings,
            further=further,
            allow_ragged=self.settings.allow_ragged,
            renamed=self.file.renamed,
        )

    def sentences(
        self, row: QueryColumns, name: str, uids: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The sentence ids of a column, each of which must belong to the row's post."""
        foreign = self.owners.foreign(row.post_id, uids)
        if foreign is not None:
            words = self.describe_foreign(foreign, row.post_id)
            raise row.error(f"{name} holds {words}")
        return uids

    def ranked(
        self, row: QueryColumns, name: str, uids: tuple[str, ...]
    ) -> tuple[str, ...]:
        """A ranking: sentence ids, none of them twice."""
        self.sentences(row, name, uids)
        if len(set(uids)) < len(uids):
            double = next(uid for uid in uids if uids.count(uid) > 1)
            raise row.error(f"{name} lists {double} twice (keep its first place)")
        return uids

    def describe_foreign(self, uid: str, post: str) -> str:
        """What is wrong with a sentence id, and what to do."""
        if self.owners.posts is None:
            return (
                f"{uid!r}, no sentence of {post} by its id (it should be {post}_<n>; "
                "else name the sentences with --sentences)"
            )
        return f"{uid!r}, no sentence of {post} in --sentences (correct the id)"


def _without_slash(criterion: str) -> str:
    if "/" in criterion:
        raise ValueError(
            f"{criterion!r} holds '/', which stands between post and criterion in the "
            "name of a query (rename the criterion)"
        )
    return criterion


class QueryColumns(RowModel):
    """The columns that name a query."""

    post_id: Filled
    criterion_id: Annotated[Filled, AfterValidator(_without_slash)]

    @property
    def part(self) -> ImportedQuery:
        """The query, of which nothing is known yet."""
        return ImportedQuery(
            location=self.location, post=self.post_id, criterion=self.criterion_id
        )


Row = TypeVar("Row", bound=QueryColumns)

LABEL = "has_evidence_gold"

GOLD = "gold_sent_uids"


class PredictionRow(QueryColumns, extra="allow"):
    """The prediction of a query; columns of probabilities have names of their own."""

    has_evidence_gold: Label | None
    fold_id: Filled | None = None
    state: Annotated[str, one_of(STATES)] | None = None
    tau_neg: Number | None = None
    tau_pos: Number | None = None
    n_candidates: Count | None = None
    selected_k: Count | None = None
    evidence_recall_at_k: Number | None = None
    evidence_precision_at_k: Number | None = None
    mrr: Number | None = None
    screening_correct: Number | None = None
    alert_correct: Number | None = None
    gold_sent_uids: Texts = ()
    # what siftlog's own files hold besides and an import does not need
    model: InputCell = None
    config: InputCell = None
    n_gold: InputCell = None
    status: InputCell = None
    __pydantic_extra__: dict[str, Probability]

    @property
    def stated(self) -> dict[str, float]:
        """The results that the row states; most files have no such column."""
        if self.model_fields_set.isdisjoint(STATED):
            return {}
        columns = {
            "evidence_recall_at_k": self.evidence_recall_at_k,
            "evidence_precision_at_k": self.evidence_precision_at_k,
            "mrr": self.mrr,
            "screening_correct": self.screening_correct,
            "alert_correct": self.alert_correct,
        }
        return {name: cell for name, cell in columns.items() if cell is not None}


def read_predictions(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The prediction of each query, for the file's model and any further ones.

    A query without a label is unjudged, one without a probability unscored.
    """
    columns = source.columns
    layout = _Layout.of(source, columns)
    further = (*layout.model_columns, *layout.further.values())
    for row in source.rows(PredictionRow, further):
        neg, pos = row.tau_neg, row.tau_pos
        if neg is not None and pos is not None and neg > pos:
            raise row.error(
                f"tau_neg {neg} lies above tau_pos {pos} (were the two exchanged?)"
            )
        probs = row.__pydantic_extra__
        further_probs = {
            name: {column: probs[column]}
            for name, column in layout.further.items()
            if column in probs
        }
        prediction = ImportedPrediction(
            probs={name: probs[name] for name in layout.model_columns if name in probs},
            state=row.state,
            tau_neg=neg,
            tau_pos=pos,
            k=row.selected_k,
            stated=row.stated,
        )
        yield replace(
            row.part,
            truth=_truth(source, row, names_gold=GOLD in columns),
            predictions=_by_model(source.file.model, prediction, further_probs),
        )


def _by_model(
    model: str,
    prediction: ImportedPrediction,
    further: Mapping[str, Mapping[str, float]],
) -> Mapping[str, ImportedPrediction]:
    """What the file's model and further ones say; a column may be the file's own."""
    predictions = {model: prediction}
    for name, probs in further.items():
        other = ImportedPrediction(probs=probs)
        predictions[name] = (
            merge_answers(predictions[name], other) if name in predictions else other
        )
    return predictions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Which columns hold whose probability."""

    model_columns: Sequence[str]  #: of the file's model
    further: Mapping[str, str]  #: by model

    @classmethod
    def of(cls, source: EvidenceFile, columns: Sequence[str]) -> _Layout:
        chosen = source.settings.prob
        if chosen is not None and chosen not in columns:
            raise DatasetError(
                f"{source.name} line 1: no column {chosen} among "
                f"{', '.join(columns)} (name one of them with --prob)."
            )
        model_columns = [name for name in columns if name in {CALIBRATED, RAW, chosen}]
        further = {
            name.removeprefix(PROB_PREFIX): name
            for name in columns
            if name.startswith(PROB_PREFIX) and name not in model_columns
        }
        if not model_columns and not further:
            raise DatasetError(
                f"{source.name} line 1: no probability among "
                f"{', '.join(columns)} ({CALIBRATED}, {RAW} or {PROB_PREFIX}<name> is "
                "expected; name another column with --prob)."
            )
        return cls(model_columns=model_columns, further=further)


def _truth(source: EvidenceFile, row: PredictionRow, *, names_gold: bool) -> QueryTruth:
    gold = tuple(dict.fromkeys(source.sentences(row, GOLD, row.gold_sent_uids)))
    y = row.has_evidence_gold
    is_known = names_gold and (bool(gold) or y is not None)
    return QueryTruth(
        gold=gold if is_known else None, y=y, fold=row.fold_id, pool=row.n_candidates
    )


JUDGED = "judged"
"""0 where nobody judged the query, so that a blank `gold_ids` says nothing."""

LIST_SUFFIX = "_topk"
"""Of the columns that hold a ranking; what stands before it is the list's name."""


class ListRow(QueryColumns, extra="allow"):
    """The ranked lists of a query; where `gold_ids` is blank there is no evidence."""

    gold_ids: Texts
    judged: Label | None = None
    __pydantic_extra__: dict[str, Texts]


def read_lists(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The lists of each query."""
    names = _names(source.columns)
    for row in source.rows(ListRow, [name + LIST_SUFFIX for name in names]):
        gold = source.sentences(row, "gold_ids", row.gold_ids)
        cells = row.__pydantic_extra__
        lists = {
            name: source.ranked(
                row, name + LIST_SUFFIX, cells.get(name + LIST_SUFFIX, ())
            )
            for name in names
        }
        is_judged = row.judged != 0
        yield replace(
            row.part,
            truth=QueryTruth(gold=tuple(dict.fromkeys(gold)) if is_judged else None),
            predictions={source.file.model: ImportedPrediction(lists=lists)},
        )


def _names(columns: Sequence[str]) -> list[str]:
    return [
        name.removesuffix(LIST_SUFFIX) for name in columns if name.endswith(LIST_SUFFIX)
    ]


LIST = "ranking"
"""What the list is called: such a file does not name the step that made it."""

UIDS, SCORES = "sent_uids", "scores"


class RankingRow(QueryColumns):
    """The ranked list of a query."""

    sent_uids: Texts
    scores: Numbers = ()


def read_rankings(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The list of each query; scores are looked at only for the best of them."""
    rows = read_objects(
        source.file.path,
        RankingRow,
        findings=source.findings,
        renamed=source.file.renamed,
    )
    for row in rows:
        uids, scores = source.ranked(row, UIDS, row.sent_uids), row.scores
        if scores and len(scores) != len(uids):
            raise row.error(
                f"{len(scores)} {SCORES} for {len(uids)} {UIDS} (give one each, or "
                "none)"
            )
        if any(below > above for above, below in pairwise(scores)):
            source.findings.add(
                "scores_contradict_order",
                "warn",
                source.name,
                "Scores rise along lists that are said to be best first; the order "
                "given was kept.",
                example=row.place,
            )
        prediction = ImportedPrediction(
            lists={LIST: uids}, score=max(scores, default=None)
        )
        yield replace(row.part, predictions={source.file.model: prediction})


_COLUMN = re.compile(re.escape(GAMMA_PREFIX) + r"[0-9]+(\.[0-9]+)?")


class SweepRow(QueryColumns, extra="allow"):
    """The K of a query by gamma."""

    __pydantic_extra__: dict[str, Count]


def read_gamma_sweep(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The K of each query by gamma."""
    sweep = _sweep(source.columns)
    for row in source.rows(SweepRow, sweep):
        ks = row.__pydantic_extra__
        stated = {name: float(ks[name]) for name in sweep if name in ks}
        prediction = ImportedPrediction(stated=stated)
        yield replace(row.part, predictions={source.file.model: prediction})


def _sweep(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if _COLUMN.fullmatch(name)]


QRELS_COLUMNS = ("qid", "iteration", "docid", "relevance")
RUN_COLUMNS = ("qid", "q0", "docid", "place", "similarity", "tag")


def trec_columns(path: Path) -> tuple[str, ...]:
    """Returns what the words of a TREC file are; () of any other file."""
    try:
        with path.open(encoding="utf-8") as file:
            n = next((len(line.split()) for line in file if line.strip()), 0)
    except (OSError, UnicodeDecodeError):
        return ()
    return next(
        (names for names in (QRELS_COLUMNS, RUN_COLUMNS) if len(names) == n), ()
    )


def read_trec_qrels(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The gold of each judged query: the items with a grade above 0."""
    try:
        judged = read_qrels(source.file.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    for qid, grades in judged.items():
        part = _part(source, qid, list(grades))
        gold = tuple(item for item, grade in grades.items() if grade > 0)
        yield replace(
            part,
            truth=QueryTruth(gold=gold),
            predictions={source.file.model: ImportedPrediction()},
        )


def read_trec_run(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The list of each query of a run."""
    try:
        run = read_run(source.file.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    if run.contradicting:
        source.findings.add(
            "ranks_contradict_scores",
            "warn",
            source.name,
            "The rank column says another order than the scores, which trec_eval goes "
            "by.",
            example=run.first_contradicting or "",
            n=run.contradicting,
        )
    for qid, items in run.ranked.items():
        part = _part(source, qid, items)
        yield replace(
            part,
            predictions={
                source.file.model: ImportedPrediction(lists={LIST: tuple(items)})
            },
        )


def _part(source: EvidenceFile, qid: str, items: Sequence[str]) -> ImportedQuery:
    separator = source.settings.qid_sep
    post, matched, criterion = qid.rpartition(separator)
    part = ImportedQuery(
        location=f"{source.name}, query {qid}", post=post, criterion=criterion
    )
    if not matched or not post or not criterion:
        raise part.error(
            f"its id does not name post and criterion with {separator!r} between them "
            "(give the separator with --qid-sep)"
        )
    foreign = source.owners.foreign(post, items)
    if foreign is not None:
        raise part.error(f"holds {source.describe_foreign(foreign, post)}")
    return part


def _unreadable(source: EvidenceFile, error: OSError | ValueError) -> DatasetError:
    if isinstance(error, ValueError):
        return DatasetError(f"{error} Correct the file.")
    reason = error.strerror or type(error).__name__
    return DatasetError(
        f"{source.file.path}: {reason} (check the path and its permissions)."
    )
