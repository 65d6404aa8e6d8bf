"""Writes the files with a line per query or post, made while they are written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jobs.evidence_retrieval.documents import EvidenceFolders, step_files
from jobs.evidence_retrieval.import_formats import JUDGED
from jobs.evidence_retrieval.metrics.breakdowns import PostDecisions, chosen_decision
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.results import EvidenceResults
from jobs.evidence_retrieval.queries import SCORED, UNJUDGED, UNKNOWN
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.ranking import qrels_lines, run_lines
from jobs.kit.metrics.selective import NEG, POS, STATES, States
from runner.scorecard import Artifact, Cell, Detail, StreamedLine, StreamedRow, Table

PER_QUERY = (
    "fold_id",
    "post_id",
    "criterion_id",
    "p4_prob_raw",
    "p4_prob_calibrated",
    "has_evidence_gold",
    "state",
    "tau_neg",
    "tau_pos",
    "n_candidates",
    "selected_k",
    "evidence_recall_at_k",
    "evidence_precision_at_k",
    "mrr",
    "screening_correct",
    "alert_correct",
    "gold_sent_uids",
    "model",
    "config",
    "n_gold",
    "status",
)
"""Those of the prediction format, then what makes it complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerQuery:
    """What stands in a row beside the sheet's own columns."""

    block: JudgedPredictions
    state: States
    recall: Floats
    precision: Floats
    mrr: Floats


def per_query(block: JudgedPredictions) -> PerQuery:
    """The measured columns; the ranking ones are undefined on negatives."""
    n = len(block.queries)
    state: States = np.full(n, UNKNOWN, dtype=np.int8)
    if block.prediction.state is not None:
        state[:] = block.prediction.state
    if block.stated is not None:
        state[block.stated.rows] = block.stated.state
    chosen, final = block.chosen, block.final
    columns: dict[str, Floats] = {}
    for name, computed in (
        ("evidence_recall_at_k", chosen and (chosen.evidence_rows, chosen.recall)),
        (
            "evidence_precision_at_k",
            chosen and (chosen.evidence_rows, chosen.precision),
        ),
        ("mrr", final and (final.rows, final.values["mrr"])),
    ):
        column = np.full(n, np.nan)
        rows, values = computed or block.stated_values.get(name) or _empty_columns()
        if not len(rows):
            rows, values = block.stated_values.get(name) or _empty_columns()
        column[rows] = values
        columns[name] = column
    return PerQuery(
        block=block,
        state=state,
        recall=columns["evidence_recall_at_k"],
        precision=columns["evidence_precision_at_k"],
        mrr=columns["mrr"],
    )


def _empty_columns() -> tuple[Ints, Floats]:
    return np.empty(0, dtype=np.int64), np.empty(0)


def rows(columns: PerQuery) -> Iterator[tuple[Cell, ...]]:
    """The lines of the file, in the sheet's order."""
    block = columns.block
    queries, prediction = block.queries, block.prediction
    for i in range(len(queries)):
        y, state = int(queries.y[i]), int(columns.state[i])
        is_known = UNKNOWN not in {y, state}
        gold = queries.gold[i] if queries.gold is not None else None
        fold = int(queries.fold[i])
        status = prediction.status[i]
        yield (
            queries.folds[fold] if fold != UNKNOWN else None,
            queries.posts[queries.post[i]],
            queries.criteria[queries.criterion[i]],
            _float(prediction.prob_raw, i),
            _float(prediction.prob, i),
            None if y == UNKNOWN else y,
            None if state == UNKNOWN else STATES[state],
            _float(prediction.tau_neg, i),
            _float(prediction.tau_pos, i),
            _int(queries.pool, i),
            _int(prediction.k, i),
            _float(columns.recall, i),
            _float(columns.precision, i),
            _float(columns.mrr, i),
            int((state != NEG) == (y == 1)) if is_known else None,
            int((state == POS) == (y == 1)) if is_known else None,
            None if gold is None else "|".join(gold),
            prediction.model,
            prediction.config,
            None if gold is None else len(gold),
            UNJUDGED if y == UNKNOWN and status == SCORED else status,
        )


def _float(column: Floats | None, i: int) -> float | None:
    if column is None or math.isnan(column[i]):
        return None
    return float(column[i])


def _int(column: Ints | None, i: int) -> int | None:
    if column is None or column[i] == UNKNOWN:
        return None
    return int(column[i])


SEPARATOR = "|"
"""Between ids in one cell, and between post and criterion in a trec query id."""


@dataclass(frozen=True)
class PerQueryFiles:
    """The long files of a scoring: declared at once, filled line by line."""

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
            if chosen_decision(model_results.block) is not None
        }

    def tables(self) -> Iterator[Table]:
        """Those that are tables."""
        for model, model_results in self.results.models.items():
            for name in self._folders.all(model, "per_query"):
                yield Table(name=name, columns=PER_QUERY, caption="One row a query.")
            if model_results.block.prediction.lists:
                columns = ("post_id", "criterion_id", "gold_ids")
                topk = tuple(
                    f"{step}_topk" for step in model_results.block.prediction.lists
                )
                name = self._folders.path(model, "per_query_lists")
                yield Table(name=name, columns=(*columns, *topk, JUDGED))
            if model in self._tables:
                yield Table(
                    name=self._tables[model], columns=_post_columns(model_results.block)
                )

    def artifacts(self) -> Iterator[Artifact]:
        """Those that are no tables."""
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
            for cells in rows(per_query(model_results.block)):
                yield from (StreamedRow(table=name, cells=cells) for name in names)
            if model_results.block.prediction.lists:
                yield from self._lists(model, model_results.block)
            if (decided := chosen_decision(model_results.block)) is not None:
                for cells in _post_rows(model_results.block, decided):
                    yield StreamedRow(table=self._tables[model], cells=cells)

    def _qrels(self) -> Iterator[StreamedLine]:
        queries = self.results.scoring_input.queries
        if queries.gold is None:
            return
        for i in np.flatnonzero(queries.y == 1).tolist():
            judged = {_qid(*_ids(self.results, i)): dict.fromkeys(queries.gold[i], 1.0)}
            for line in qrels_lines(judged, escape_ids=True):
                yield StreamedLine(artifact="qrels.txt", text=line)

    def _lists(self, model: str, block: JudgedPredictions) -> Iterator[Detail]:
        """Every list in three forms: ours, with all lists in a row, and trec's."""
        queries, prediction = block.queries, block.prediction
        table = self._folders.path(model, "per_query_lists")
        path = self._folders.path
        jsonl, runs = (
            {step: path(model, name) for step, name in names.items()}
            for names in (_rankings(block), _runs(block))
        )
        for i in range(len(queries)):
            post, criterion = _ids(self.results, i)
            cells: list[Cell] = [post, criterion, None]
            if queries.gold is not None:
                cells[-1] = SEPARATOR.join(queries.gold[i])
            for step, ranked in prediction.lists.items():
                uids = ranked[i]
                cells.append(SEPARATOR.join(uids))
                fields = {
                    "post_id": post,
                    "criterion_id": criterion,
                    "sent_uids": list(uids),
                }
                text = json.dumps(fields, ensure_ascii=False) + "\n"
                yield StreamedLine(artifact=jsonl[step], text=text)
                ranking = {_qid(post, criterion): uids}
                text = "".join(run_lines(ranking, step, escape_ids=True))
                yield StreamedLine(artifact=runs[step], text=text)
            # without it, a blank in gold_ids would say that there is no evidence
            cells.append(int(queries.y[i] != UNKNOWN))
            yield StreamedRow(table=table, cells=tuple(cells))


def _rankings(block: JudgedPredictions) -> dict[str, str]:
    """The file of each list; that of the final one is called `rankings.jsonl`."""
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


def _post_columns(block: JudgedPredictions) -> tuple[str, ...]:
    return (
        "fold_id",
        "post_id",
        *(
            f"{criterion}_{part}"
            for criterion in block.queries.criteria
            for part in ("pred", "gold", "state")
        ),
        "exact_match",
        "hamming_score",
        "n_criteria_with_evidence_gold",
        "n_criteria_with_evidence_pred",
    )


def _post_rows(
    block: JudgedPredictions, decided: PostDecisions
) -> Iterator[tuple[Cell, ...]]:
    """Complete posts: what was decided about each criterion, and what is true."""
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
        cells: list[Cell] = []
        for pred, gold, state in zip(
            predicted.tolist(), true.tolist(), states[post].tolist(), strict=True
        ):
            cells += [int(pred), int(gold)]
            cells.append(None if state == UNKNOWN else STATES[state])
        right = predicted == true
        fold = int(folds[post])
        yield (
            queries.folds[fold] if fold != UNKNOWN else None,
            queries.posts[post],
            *cells,
            int(right.all()),
            int(right.sum()) / len(right),
            int(true.sum()),
            int(predicted.sum()),
        )
