"""Reads imported files: predictions, ranked lists, gamma sweeps, TREC files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

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
from jobs.kit.inputs.column_map import ColumnMap
from jobs.kit.inputs.files import csv_columns, read_csv, read_jsonl
from jobs.kit.inputs.rows import InputFindings, InputRow
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
    """A file to import."""

    path: Path
    settings: EvidenceSettings
    owners: SentenceOwners
    findings: InputFindings
    model: str  #: whose predictions or rankings a file without names holds
    columns: ColumnMap = field(default_factory=dict)  #: fields by renamed columns

    @property
    def names(self) -> tuple[str, ...]:
        """The file's columns by the names used here."""
        return tuple(self.columns.get(name, name) for name in csv_columns(self.path))

    def query(self, row: InputRow) -> tuple[str, str]:
        """The post and criterion that a row speaks of."""
        post, criterion = row.text("post_id"), row.text("criterion_id")
        if "/" in criterion:
            raise row.error(
                f"criterion_id {criterion!r} holds '/', which stands between post and "
                "criterion in the name of a query (rename the criterion)"
            )
        return post, criterion

    def sentences(self, row: InputRow, name: str, post: str) -> tuple[str, ...]:
        """A cell of sentence ids, each of which must belong to the row's post."""
        uids = row.texts(name)
        foreign = self.owners.foreign(post, uids)
        if foreign is not None:
            raise row.error(f"{name} holds {self.describe_foreign(foreign, post)}")
        return uids

    def ranked(self, row: InputRow, name: str, post: str) -> tuple[str, ...]:
        """A ranking: sentence ids, none of them twice."""
        uids = self.sentences(row, name, post)
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

    def parts(
        self, rows: Iterable[InputRow]
    ) -> Iterator[tuple[InputRow, ImportedQuery]]:
        """Each row with the query that it speaks of."""
        for row in rows:
            post, criterion = self.query(row)
            location = f"{row.file} line {row.line}"
            yield row, ImportedQuery(location=location, post=post, criterion=criterion)


LABEL = "has_evidence_gold"

GOLD = "gold_sent_uids"

OPTIONAL = (
    "fold_id",
    "state",
    "tau_neg",
    "tau_pos",
    "n_candidates",
    "selected_k",
    *STATED,
    GOLD,
)

DERIVED = ("model", "config", "n_gold", "status")
"""What siftlog's own files hold besides and an import does not need."""

Value = TypeVar("Value")


def is_predictions(columns: Sequence[str]) -> bool:
    """Whether a header is that of predictions."""
    return {*QUERY, LABEL} <= set(columns)


def read_predictions(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The prediction of each query, for the file's model and any further ones.

    A query without a label is unjudged, one without a probability unscored.
    """
    columns = source.names
    layout = _Layout.of(source, columns)
    rows = read_csv(
        source.path,
        (*QUERY, LABEL),
        (*OPTIONAL, *DERIVED, *layout.model_columns, *layout.further.values()),
        findings=source.findings,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        probs = {
            name: {column: row.probability(column)}
            for name, column in layout.further.items()
            if row.has(column)
        }
        yield replace(
            part,
            truth=_truth(source, row, part.post, names_gold=GOLD in columns),
            predictions=_by_model(
                source.model, _prediction(row, layout.model_columns), probs
            ),
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
                f"{source.path.name} line 1: no column {chosen} among "
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
                f"{source.path.name} line 1: no probability among "
                f"{', '.join(columns)} ({CALIBRATED}, {RAW} or {PROB_PREFIX}<name> is "
                "expected; name another column with --prob)."
            )
        return cls(model_columns=model_columns, further=further)


def _truth(
    source: EvidenceFile, row: InputRow, post: str, *, names_gold: bool
) -> QueryTruth:
    gold = tuple(dict.fromkeys(source.sentences(row, GOLD, post)))
    y = _optional(row, LABEL, row.label)
    is_known = names_gold and (bool(gold) or y is not None)
    return QueryTruth(
        gold=gold if is_known else None,
        y=y,
        fold=_optional(row, "fold_id", row.text),
        pool=_optional(row, "n_candidates", row.count),
    )


def _prediction(row: InputRow, model_columns: Sequence[str]) -> ImportedPrediction:
    tau_neg = _optional(row, "tau_neg", row.number)
    tau_pos = _optional(row, "tau_pos", row.number)
    if tau_neg is not None and tau_pos is not None and tau_neg > tau_pos:
        raise row.error(
            f"tau_neg {tau_neg} lies above tau_pos {tau_pos} (were the two exchanged?)"
        )
    return ImportedPrediction(
        probs={name: row.probability(name) for name in model_columns if row.has(name)},
        state=_optional(row, "state", lambda name: row.one_of(name, STATES)),
        tau_neg=tau_neg,
        tau_pos=tau_pos,
        k=_optional(row, "selected_k", row.count),
        stated={name: row.number(name) for name in STATED if row.has(name)},
    )


def _optional(row: InputRow, name: str, read: Callable[[str], Value]) -> Value | None:
    return read(name) if row.has(name) else None


JUDGED = "judged"
"""0 where nobody judged the query, so that a blank `gold_ids` says nothing."""

LIST_SUFFIX = "_topk"
"""Of the columns that hold a ranking; what stands before it is the list's name."""


def is_lists(columns: Sequence[str]) -> bool:
    """Whether a header is that of ranked lists."""
    return {*QUERY, "gold_ids"} <= set(columns) and bool(_names(columns))


def read_lists(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The lists of each query; a blank `gold_ids` says that there is no evidence."""
    names = _names(source.names)
    rows = read_csv(
        source.path,
        (*QUERY, "gold_ids"),
        [*(name + LIST_SUFFIX for name in names), JUDGED],
        findings=source.findings,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        is_judged = not row.has(JUDGED) or row.label(JUDGED) == 1
        gold = source.sentences(row, "gold_ids", part.post)
        lists = {
            name: source.ranked(row, name + LIST_SUFFIX, part.post) for name in names
        }
        yield replace(
            part,
            truth=QueryTruth(gold=tuple(dict.fromkeys(gold)) if is_judged else None),
            predictions={source.model: ImportedPrediction(lists=lists)},
        )


def _names(columns: Sequence[str]) -> list[str]:
    return [
        name.removesuffix(LIST_SUFFIX) for name in columns if name.endswith(LIST_SUFFIX)
    ]


LIST = "ranking"
"""What the list is called: such a file does not name the step that made it."""

UIDS, SCORES = "sent_uids", "scores"


def is_rankings(columns: Sequence[str]) -> bool:
    """Whether the keys of an object are those of a ranked list."""
    return {*QUERY, UIDS} <= set(columns)


def read_rankings(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The list of each query; scores are looked at only for the best of them."""
    rows = read_jsonl(
        source.path,
        (*QUERY, UIDS),
        (SCORES,),
        findings=source.findings,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        uids = source.ranked(row, UIDS, part.post)
        scores = row.numbers(SCORES)
        if scores and len(scores) != len(uids):
            raise row.error(
                f"{len(scores)} {SCORES} for {len(uids)} {UIDS} (give one each, or "
                "none)"
            )
        if any(below > above for above, below in pairwise(scores)):
            source.findings.add(
                "scores_contradict_order",
                "warn",
                source.path.name,
                "Scores rise along lists that are said to be best first; the order "
                "given was kept.",
                example=f"line {row.line}",
            )
        prediction = ImportedPrediction(
            lists={LIST: uids}, score=max(scores, default=None)
        )
        yield replace(part, predictions={source.model: prediction})


_COLUMN = re.compile(re.escape(GAMMA_PREFIX) + r"[0-9]+(\.[0-9]+)?")


def is_gamma_sweep(columns: Sequence[str]) -> bool:
    """Whether a header is that of a gamma sweep."""
    return set(QUERY) <= set(columns) and bool(_sweep(columns))


def read_gamma_sweep(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The K of each query by gamma."""
    sweep = _sweep(source.names)
    rows = read_csv(
        source.path,
        QUERY,
        sweep,
        findings=source.findings,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        stated = {name: float(row.count(name)) for name in sweep if row.has(name)}
        yield replace(
            part, predictions={source.model: ImportedPrediction(stated=stated)}
        )


def _sweep(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if _COLUMN.fullmatch(name)]


QRELS_FIELDS, RUN_FIELDS = 4, 6


def trec_fields(path: Path) -> int:
    """How many words stand in the first line that has any; 0: there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            return next((len(line.split()) for line in file if line.strip()), 0)
    except (OSError, UnicodeDecodeError):
        return 0


def read_trec_qrels(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The gold of each judged query: the items with a grade above 0."""
    try:
        judged = read_qrels(source.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    for qid, grades in judged.items():
        part = _part(source, qid, list(grades))
        gold = tuple(item for item, grade in grades.items() if grade > 0)
        yield replace(
            part,
            truth=QueryTruth(gold=gold),
            predictions={source.model: ImportedPrediction()},
        )


def read_trec_run(source: EvidenceFile) -> Iterator[ImportedQuery]:
    """The list of each query of a run."""
    try:
        run = read_run(source.path, escape_ids=source.settings.escape_ids)
    except (OSError, ValueError) as error:
        raise _unreadable(source, error) from error
    if run.contradicting:
        source.findings.add(
            "ranks_contradict_scores",
            "warn",
            source.path.name,
            "The rank column says another order than the scores, which trec_eval goes "
            "by.",
            example=run.first_contradicting or "",
            n=run.contradicting,
        )
    for qid, items in run.ranked.items():
        part = _part(source, qid, items)
        yield replace(
            part,
            predictions={source.model: ImportedPrediction(lists={LIST: tuple(items)})},
        )


def _part(source: EvidenceFile, qid: str, items: Sequence[str]) -> ImportedQuery:
    separator = source.settings.qid_sep
    post, matched, criterion = qid.rpartition(separator)
    part = ImportedQuery(
        location=f"{source.path.name}, query {qid}", post=post, criterion=criterion
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
        f"{source.path}: {reason} (check the path and its permissions)."
    )
