"""Reads imported files: predictions, ranked lists, gamma sweeps, TREC files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from jobs.evidence_retrieval.import_columns import (
    GOLD,
    LIST_SUFFIX,
    SCORES,
    UIDS,
)
from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    GAMMA_PREFIX,
    PROB_PREFIX,
    RAW,
    STATED,
    ImportedPrediction,
    Query,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQuery:
    """The contents of one file about one query."""

    location: str  #: the file and the line, for errors
    post: str
    criterion: str
    truth: QueryTruth = field(default_factory=QueryTruth)
    predictions: Mapping[str, ImportedPrediction] = field(
        default_factory=dict
    )  #: by model

    @property
    def query(self) -> Query:
        """Post and criterion."""
        return self.post, self.criterion

    def error(self, sentence: str) -> DatasetError:
        """Return an error with *sentence* about this location."""
        return DatasetError(f"{self.location}: {sentence}.")


def sentence_owners(settings: EvidenceSettings) -> Mapping[str, str] | None:
    """Return the post of each sentence in `--sentences`; None without the option.

    Raises:
        DatasetError: the file is invalid.
    """
    if settings.sentences is None:
        return None
    # `load` reports the findings about that file
    _, pools = read_posts(settings, InputFindings())
    return {uid: post for uid, (post, _) in pools.locations.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """A file to import, and the data that its rows are checked against."""

    file: ImportFile
    settings: EvidenceSettings
    owners: Mapping[str, str] | None  #: posts by sentence; None: the sentence id has it
    findings: InputFindings

    @property
    def name(self) -> str:
        """Name of the file, for errors and findings."""
        return self.file.path.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the file by the names used here."""
        names = csv_columns(self.file.path)
        return tuple(self.file.renamed.get(name, name) for name in names)

    def rows(self, model: type[Row], further: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a table; *further* are columns with names of the file."""
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
        """Return the sentence ids of a column; each must belong to the row's post."""
        if (foreign := self.foreign(row.post_id, uids)) is not None:
            raise row.error(f"{name} holds {foreign}")
        return uids

    def ranked(
        self, row: QueryColumns, name: str, uids: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return a ranking: sentence ids without duplicates."""
        self.sentences(row, name, uids)
        if len(set(uids)) < len(uids):
            double = next(uid for uid in uids if uids.count(uid) > 1)
            raise row.error(f"{name} lists {double} twice (keep its first place)")
        return uids

    def foreign(self, post: str, uids: Iterable[str]) -> str | None:
        """Describe the first of *uids* that is not in *post*, with a remedy."""
        if self.owners is None:
            uid = next((uid for uid in uids if owner_by_prefix(uid) != post), None)
            cure = (
                f"no sentence of {post} by its id (it should be {post}_<n>; else name "
                "the sentences with --sentences)"
            )
        else:
            uid = next((uid for uid in uids if self.owners.get(uid) != post), None)
            cure = f"no sentence of {post} in --sentences (correct the id)"
        return None if uid is None else f"{uid!r}, {cure}"


def _without_slash(criterion: str) -> str:
    if "/" in criterion:
        raise ValueError(
            f"{criterion!r} contains '/', which separates post and "
            "criterion in a query's key (rename the criterion)"
        )
    return criterion


class QueryColumns(RowModel):
    """Columns that name a query."""

    post_id: Filled
    criterion_id: Annotated[Filled, AfterValidator(_without_slash)]

    @property
    def part(self) -> ImportedQuery:
        """The query, without any data."""
        return ImportedQuery(
            location=self.location, post=self.post_id, criterion=self.criterion_id
        )


Row = TypeVar("Row", bound=QueryColumns)


class PredictionRow(QueryColumns, extra="allow"):
    """Prediction of a query; columns of probabilities have other names."""

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
    # columns of siftlog's files that an import does not need
    model: InputCell = None
    config: InputCell = None
    n_gold: InputCell = None
    status: InputCell = None
    __pydantic_extra__: dict[str, Probability]

    @property
    def stated(self) -> dict[str, float]:
        """Results that the row states; most files have no such column."""
        if self.model_fields_set.isdisjoint(STATED):
            return {}
        cells = ((name, getattr(self, name)) for name in STATED)
        return {name: cell for name, cell in cells if cell is not None}


def read_predictions(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the prediction of each query, for the file's model and any others.

    A query without a label is unjudged, one without a probability is unscored.
    """
    columns = source.columns
    model_columns, further = _probability_columns(source, columns)
    for row in source.rows(PredictionRow, (*model_columns, *further.values())):
        neg, pos = row.tau_neg, row.tau_pos
        if neg is not None and pos is not None and neg > pos:
            raise row.error(
                f"tau_neg {neg} is above tau_pos {pos} (were the two exchanged?)"
            )
        probs = row.__pydantic_extra__
        predictions = {
            source.file.model: ImportedPrediction(
                probs={name: probs[name] for name in model_columns if name in probs},
                state=row.state,
                tau_neg=neg,
                tau_pos=pos,
                k=row.selected_k,
                stated=row.stated,
            )
        }
        for name, column in further.items():
            if column in probs:
                other = ImportedPrediction(probs={column: probs[column]})
                earlier = predictions.get(name)  # may also be the file's model
                predictions[name] = merge_answers(earlier, other) if earlier else other
        truth = _truth(source, row, names_gold=GOLD in columns)
        yield replace(row.part, truth=truth, predictions=predictions)


def _probability_columns(
    source: EvidenceFile, columns: Sequence[str]
) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return the columns of the file's model, and the column of each further model."""
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
    return model_columns, further


def _truth(source: EvidenceFile, row: PredictionRow, *, names_gold: bool) -> QueryTruth:
    gold = tuple(dict.fromkeys(source.sentences(row, GOLD, row.gold_sent_uids)))
    y = row.has_evidence_gold
    is_known = names_gold and (bool(gold) or y is not None)
    return QueryTruth(
        gold=gold if is_known else None, y=y, fold=row.fold_id, pool=row.n_candidates
    )


class ListRow(QueryColumns, extra="allow"):
    """Ranked lists of a query; a blank `gold_ids` means that there is no evidence."""

    gold_ids: Texts
    judged: Label | None = None
    __pydantic_extra__: dict[str, Texts]


def read_lists(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the lists of each query."""
    columns = [name for name in source.columns if name.endswith(LIST_SUFFIX)]
    for row in source.rows(ListRow, columns):
        gold = source.sentences(row, "gold_ids", row.gold_ids)
        cells = row.__pydantic_extra__
        lists = {
            name.removesuffix(LIST_SUFFIX): source.ranked(
                row, name, cells.get(name, ())
            )
            for name in columns
        }
        is_judged = row.judged != 0
        yield replace(
            row.part,
            truth=QueryTruth(gold=tuple(dict.fromkeys(gold)) if is_judged else None),
            predictions={source.file.model: ImportedPrediction(lists=lists)},
        )


LIST = "ranking"
"""Name of the list: such a file does not name the step that produced it."""


class RankingRow(QueryColumns):
    """Ranked list of a query."""

    sent_uids: Texts
    scores: Numbers = ()


def read_rankings(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the list of each query; only the highest score is used."""
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
    """K of a query by gamma."""

    __pydantic_extra__: dict[str, Count]


def read_gamma_sweep(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the K of each query by gamma."""
    sweep = [name for name in source.columns if _COLUMN.fullmatch(name)]
    for row in source.rows(SweepRow, sweep):
        ks = row.__pydantic_extra__
        stated = {name: float(ks[name]) for name in sweep if name in ks}
        prediction = ImportedPrediction(stated=stated)
        yield replace(row.part, predictions={source.file.model: prediction})


QRELS_COLUMNS = ("qid", "iteration", "docid", "relevance")
RUN_COLUMNS = ("qid", "q0", "docid", "place", "similarity", "tag")


def trec_columns(path: Path) -> tuple[str, ...]:
    """Return the column names of a TREC file; () for any other file."""
    try:
        with path.open(encoding="utf-8") as file:
            n = next((len(line.split()) for line in file if line.strip()), 0)
    except (OSError, UnicodeDecodeError):
        return ()
    return next(
        (names for names in (QRELS_COLUMNS, RUN_COLUMNS) if len(names) == n), ()
    )


def read_trec_qrels(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the gold of each judged query: the items with a grade above 0."""
    try:
        judged = read_qrels(source.file.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    for qid, grades in judged.items():
        part = _part(source, qid, list(grades))
        gold = tuple(item for item, grade in grades.items() if grade > 0)
        predictions = {source.file.model: ImportedPrediction()}
        yield replace(part, truth=QueryTruth(gold=gold), predictions=predictions)


def read_trec_run(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """Yield the list of each query of a run."""
    try:
        run = read_run(source.file.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    if run.contradicting:
        source.findings.add(
            "ranks_contradict_scores",
            "warn",
            source.name,
            "The rank column contradicts the scores, which trec_eval uses.",
            example=run.first_contradicting or "",
            n=run.contradicting,
        )
    for qid, items in run.ranked.items():
        part = _part(source, qid, items)
        prediction = ImportedPrediction(lists={LIST: tuple(items)})
        yield replace(part, predictions={source.file.model: prediction})


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
    if (foreign := source.foreign(post, items)) is not None:
        raise part.error(f"holds {foreign}")
    return part


def _unreadable(source: EvidenceFile, error: OSError | ValueError) -> DatasetError:
    if isinstance(error, ValueError):
        return DatasetError(f"{error} Correct the file.")
    reason = error.strerror or type(error).__name__
    return DatasetError(
        f"{source.file.path}: {reason} (check the path and its permissions)."
    )
