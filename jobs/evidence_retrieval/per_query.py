"""Writes the files with a line per query or post, as streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np

from jobs.evidence_retrieval.documents import EvidenceFolders, step_files
from jobs.evidence_retrieval.import_columns import JUDGED
from jobs.evidence_retrieval.metrics.breakdowns import PostDecisions, chosen_decision
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.results import EvidenceResults
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
)
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.ranking import qrels_lines, run_lines
from jobs.kit.metrics.selective import POS, STATES, UNCERTAIN, States
from jobs.kit.tables import (
    Columns,
    TableOf,
    count,
    groups,
    number,
    per_key,
    text,
)
from runner.scorecard import Artifact, Detail, StreamedLine, StreamedRow, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PerQuery:
    """Measured columns of the per-query rows."""

    block: JudgedPredictions
    state: States
    recall: Floats
    precision: Floats
    mrr: Floats


def per_query(block: JudgedPredictions) -> PerQuery:
    """Return the measured columns; the ranking ones are undefined on negatives."""
    n = len(block.queries)
    state: States = np.full(n, UNKNOWN, dtype=np.int8)
    if block.prediction.state is not None:
        state[:] = block.prediction.state
    if block.stated is not None:
        state[block.stated.rows] = block.stated.state
    chosen, final = block.chosen, block.final
    computed: dict[str, tuple[Ints, Floats]] = {}
    if chosen is not None:
        rows = chosen.evidence_rows
        computed["evidence_recall_at_k"] = rows, chosen.recall
        computed["evidence_precision_at_k"] = rows, chosen.precision
    if final is not None:
        computed["mrr"] = final.rows, final.values["mrr"]
    # a measure without a query uses the value in the file, if any
    measured = {
        **block.stated_values,
        **{name: values for name, values in computed.items() if len(values[0])},
    }

    def column(name: str) -> Floats:
        values = np.full(n, np.nan)
        if name in measured:
            rows, of_rows = measured[name]
            values[rows] = of_rows
        return values

    return PerQuery(
        block=block,
        state=state,
        recall=column("evidence_recall_at_k"),
        precision=column("evidence_precision_at_k"),
        mrr=column("mrr"),
    )


class QueryCells(NamedTuple):
    """One query as plain values; None for missing ones."""

    i: int  #: its index among all queries
    fold: str | None
    post: str
    criterion: str
    prob_raw: float | None
    prob: float | None
    y: int | None
    state: int | None
    tau_neg: float | None
    tau_pos: float | None
    pool: int | None
    k: int | None
    recall: float | None
    precision: float | None
    mrr: float | None
    gold: tuple[str, ...] | None
    model: str
    config: str
    status: str

    def correct(self, *evident: int) -> int | None:
        """Return 1 if being in one of these states agrees with the label, else 0."""
        if self.y is None or self.state is None:
            return None
        return int((self.state in evident) == (self.y == 1))


PER_QUERY = TableOf[QueryCells](
    name="per_query",
    columns=(
        text("fold_id", lambda row: row.fold),
        text("post_id", lambda row: row.post),
        text("criterion_id", lambda row: row.criterion),
        number("p4_prob_raw", lambda row: row.prob_raw),
        number("p4_prob_calibrated", lambda row: row.prob),
        count("has_evidence_gold", lambda row: row.y),
        text("state", lambda row: None if row.state is None else STATES[row.state]),
        number("tau_neg", lambda row: row.tau_neg),
        number("tau_pos", lambda row: row.tau_pos),
        count("n_candidates", lambda row: row.pool),
        count("selected_k", lambda row: row.k),
        number("evidence_recall_at_k", lambda row: row.recall),
        number("evidence_precision_at_k", lambda row: row.precision),
        number("mrr", lambda row: row.mrr),
        count("screening_correct", lambda row: row.correct(UNCERTAIN, POS)),
        count("alert_correct", lambda row: row.correct(POS)),
        text("gold_sent_uids", lambda row: _joined(row.gold)),
        text("model", lambda row: row.model),
        text("config", lambda row: row.config),
        count("n_gold", lambda row: None if row.gold is None else len(row.gold)),
        text("status", lambda row: row.status),
    ),
    caption="One row a query.",
)
"""Columns of the prediction format, then further ones."""


_ROWS_AT_ONCE = 1024
"""Number of queries whose values are in memory as Python objects."""


def query_rows(block: JudgedPredictions) -> Iterator[QueryCells]:
    """Yield a row per query, in the order of the input."""
    measured = per_query(block)
    size = len(block.queries)
    for start in range(0, size, _ROWS_AT_ONCE):
        yield from _some_rows(measured, range(size)[start : start + _ROWS_AT_ONCE])


def _some_rows(measured: PerQuery, rows: range) -> Iterator[QueryCells]:
    """Yield the rows of a range of queries, reading by column, which is faster."""
    queries, prediction = measured.block.queries, measured.block.prediction
    at = slice(rows.start, rows.stop)
    truth = _ints(queries.y, rows)
    folds = (
        None if fold is None else queries.folds[fold]
        for fold in _ints(queries.fold, rows)
    )
    statuses = (
        UNJUDGED if y is None and status == SCORED else status
        for y, status in zip(truth, prediction.status[at], strict=True)
    )
    return map(
        QueryCells,
        rows,
        folds,
        map(queries.posts.__getitem__, queries.post[at].tolist()),
        map(queries.criteria.__getitem__, queries.criterion[at].tolist()),
        _floats(prediction.prob_raw, rows),
        _floats(prediction.prob, rows),
        truth,
        _ints(measured.state, rows),
        _floats(prediction.tau_neg, rows),
        _floats(prediction.tau_pos, rows),
        _ints(queries.pool, rows),
        _ints(prediction.k, rows),
        _floats(measured.recall, rows),
        _floats(measured.precision, rows),
        _floats(measured.mrr, rows),
        repeat(None) if queries.gold is None else queries.gold[at],
        repeat(prediction.model),
        repeat(prediction.config),
        statuses,
    )


def _joined(uids: Sequence[str] | None) -> str | None:
    return None if uids is None else SEPARATOR.join(uids)


def _floats(column: Floats | None, rows: range) -> Iterable[float | None]:
    """Return a range of a column; None for NaN, or if there is no column."""
    if column is None:
        return repeat(None)
    values = column[rows.start : rows.stop].tolist()
    # only NaN differs from itself
    return [None if x != x else x for x in values]  # noqa: PLR0124


def _ints(column: Ints | States | None, rows: range) -> list[int | None]:
    if column is None:
        return [None] * len(rows)
    values = column[rows.start : rows.stop].tolist()
    return [None if x == UNKNOWN else x for x in values]


SEPARATOR = "|"
"""Separator of ids in a cell, and of post and criterion in a TREC query id."""


@dataclass(frozen=True)
class PerQueryFiles:
    """The long files of a scoring: declared first, then written line by line."""

    results: EvidenceResults

    @cached_property
    def _folders(self) -> EvidenceFolders:
        return EvidenceFolders(tuple(self.results.models))

    @cached_property
    def _tables(self) -> dict[str, str]:
        """The per-post table of each model that has one."""
        return {
            model: self._folders.path(model, "per_post_multilabel")
            for model, model_results in self.results.models.items()
            if self._has_posts(model_results.block)
        }

    @staticmethod
    def _has_posts(block: JudgedPredictions) -> bool:
        """Return whether there are decisions about posts, and a judged query."""
        return bool(block.judged.any()) and chosen_decision(block) is not None

    def tables(self) -> Iterator[Table]:
        """Yield the files that are tables."""
        for model, model_results in self.results.models.items():
            for name in self._folders.all(model, PER_QUERY.name):
                yield PER_QUERY.table(name=name)
            if model_results.block.prediction.lists:
                lists = _lists_table(model_results.block)
                yield lists.table(name=self._folders.path(model, lists.name))
            if model in self._tables:
                posts = _post_table(model_results.block)
                yield posts.table(name=self._tables[model])

    def artifacts(self) -> Iterator[Artifact]:
        """Yield the files that are not tables."""
        if self.results.scoring_input.queries.gold is not None:
            yield Artifact(name="qrels.txt")
        for model, model_results in self.results.models.items():
            names = (
                *_rankings(model_results.block).values(),
                *_runs(model_results.block).values(),
            )
            for name in names:
                yield Artifact(name=self._folders.path(model, name))

    def __iter__(self) -> Iterator[Detail]:
        yield from self._qrels()
        for model, model_results in self.results.models.items():
            names = self._folders.all(model, "per_query")
            for row in query_rows(model_results.block):
                cells = PER_QUERY.cells(row)
                yield from (StreamedRow(table=name, cells=cells) for name in names)
            if model_results.block.prediction.lists:
                yield from self._lists(model, model_results.block)
            decided = chosen_decision(model_results.block)
            if decided is not None and model in self._tables:
                yield from _post_table(model_results.block).details(
                    _post_rows(model_results.block, decided), name=self._tables[model]
                )

    def _qrels(self) -> Iterator[StreamedLine]:
        queries = self.results.scoring_input.queries
        if queries.gold is None:
            return
        for i in np.flatnonzero(queries.y == 1).tolist():
            judged = {_qid(*_ids(self.results, i)): dict.fromkeys(queries.gold[i], 1.0)}
            for line in qrels_lines(judged, escape_ids=True):
                yield StreamedLine(artifact="qrels.txt", text=line)

    def _lists(self, model: str, block: JudgedPredictions) -> Iterator[Detail]:
        """Yield every list in three forms: JSONL, all lists in a row, and TREC."""
        lists = _lists_table(block)
        path = self._folders.path
        jsonl, runs = (
            {step: path(model, name) for step, name in names.items()}
            for names in (_rankings(block), _runs(block))
        )
        for i in range(len(block.queries)):
            post, criterion = _ids(self.results, i)
            for step, ranked in block.prediction.lists.items():
                uids = ranked[i]
                fields = {
                    "post_id": post,
                    "criterion_id": criterion,
                    "sent_uids": list(uids),
                }
                line = json.dumps(fields, ensure_ascii=False) + "\n"
                yield StreamedLine(artifact=jsonl[step], text=line)
                ranking = {_qid(post, criterion): uids}
                trec = "".join(run_lines(ranking, step, escape_ids=True))
                yield StreamedLine(artifact=runs[step], text=trec)
            yield from lists.details([i], name=path(model, lists.name))


def _lists_table(block: JudgedPredictions) -> TableOf[int]:
    """Return the table of the lists of each query, by index."""
    queries, lists = block.queries, block.prediction.lists
    gold = queries.gold
    return TableOf(
        name="per_query_lists",
        columns=(
            text("post_id", lambda i: queries.posts[queries.post[i]]),
            text("criterion_id", lambda i: queries.criteria[queries.criterion[i]]),
            text(
                "gold_ids", lambda i: None if gold is None else SEPARATOR.join(gold[i])
            ),
            per_key("{}_topk", lists, lambda i, step: SEPARATOR.join(lists[step][i])),
            # without it, a blank in gold_ids would mean that there is no evidence
            count(JUDGED, lambda i: int(queries.y[i] != UNKNOWN)),
        ),
    )


def _rankings(block: JudgedPredictions) -> dict[str, str]:
    """Return the file of each list; that of the final one is `rankings.jsonl`."""
    names = step_files("rankings.{}.jsonl", tuple(block.prediction.lists))
    if block.prediction.final in names:
        names[block.prediction.final] = "rankings.jsonl"
    return names


def _runs(block: JudgedPredictions) -> dict[str, str]:
    return step_files("run.{}.txt", tuple(block.prediction.lists))


def _ids(results: EvidenceResults, i: int) -> tuple[str, str]:
    queries = results.scoring_input.queries
    return queries.posts[queries.post[i]], queries.criteria[queries.criterion[i]]


def _qid(post: str, criterion: str) -> str:
    return f"{post}{SEPARATOR}{criterion}"


class _PostCriterion(NamedTuple):
    """Decision and label of one criterion of a post."""

    predicted: bool
    true: bool
    state: int


class _PostRow(NamedTuple):
    """A complete post."""

    post: str
    fold: str | None
    criteria: Mapping[str, _PostCriterion]

    @property
    def right(self) -> int:
        return sum(c.predicted == c.true for c in self.criteria.values())


CRITERION: tuple[Columns[_PostCriterion], ...] = (
    count("pred", lambda one: int(one.predicted)),
    count("gold", lambda one: int(one.true)),
    text("state", lambda one: None if one.state == UNKNOWN else STATES[one.state]),
)


def _post_table(block: JudgedPredictions) -> TableOf[_PostRow]:
    return TableOf(
        name="per_post_multilabel",
        columns=(
            text("fold_id", lambda row: row.fold),
            text("post_id", lambda row: row.post),
            groups(
                CRITERION,
                block.queries.criteria,
                lambda row, criterion: row.criteria[criterion],
                "{}_",
            ),
            count("exact_match", lambda row: int(row.right == len(row.criteria))),
            number("hamming_score", lambda row: row.right / len(row.criteria)),
            count(
                "n_criteria_with_evidence_gold",
                lambda row: sum(one.true for one in row.criteria.values()),
            ),
            count(
                "n_criteria_with_evidence_pred",
                lambda row: sum(one.predicted for one in row.criteria.values()),
            ),
        ),
    )


def _post_rows(block: JudgedPredictions, decided: PostDecisions) -> Iterator[_PostRow]:
    queries = block.queries
    shape = (len(queries.posts), len(queries.criteria))
    states = np.full(shape, UNKNOWN, dtype=np.int64)
    if block.stated is not None:
        at = block.stated.rows
        states[queries.post[at], queries.criterion[at]] = block.stated.state
    folds = np.full(len(queries.posts), UNKNOWN, dtype=np.int64)
    folds[queries.post] = queries.fold
    for post, predicted, true in zip(
        decided.posts.tolist(), decided.predicted, decided.truth, strict=True
    ):
        fold = int(folds[post])
        cells = zip(
            predicted.tolist(), true.tolist(), states[post].tolist(), strict=True
        )
        yield _PostRow(
            post=queries.posts[post],
            fold=queries.folds[fold] if fold != UNKNOWN else None,
            criteria={
                criterion: _PostCriterion(*of_criterion)
                for criterion, of_criterion in zip(queries.criteria, cells, strict=True)
            },
        )
