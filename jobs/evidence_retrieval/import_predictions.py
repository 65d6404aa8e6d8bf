"""Turns the stored answers of an imported run into predictions, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    CONFIG,
    GAMMA_PREFIX,
    RAW,
    ImportedPrediction,
    QueryTruth,
    decode_truth,
    merge_answers,
    read_prediction,
)
from jobs.evidence_retrieval.inputs import natural_order
from jobs.evidence_retrieval.leakage import imported_leak_checks
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
    UNSCORED,
    Predictions,
    Queries,
    ScoringInput,
)
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import STATES, States
from runner.errors import DatasetError
from runner.job import Answers, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedColumns:
    """What one model says of each query; None: nothing."""

    model: str
    imported: Sequence[ImportedPrediction | None]
    y: Ints

    def predictions(self, chosen: str | None, findings: InputFindings) -> Predictions:
        """All of them, with the probability of the column that was *chosen*."""
        column = self._probability(chosen, findings)
        prob = None if column is None else self._probs(column)
        lists = self._names(lambda prediction: prediction.lists)
        stated = self._names(lambda prediction: prediction.stated)
        return Predictions(
            model=self.model,
            config=CONFIG,
            status=self._status(prob),
            prob_raw=_or_none(self._probs(RAW)),
            prob=prob,
            score=_or_none(self._floats(lambda prediction: prediction.score)),
            tau_neg=_or_none(self._floats(lambda prediction: prediction.tau_neg)),
            tau_pos=_or_none(self._floats(lambda prediction: prediction.tau_pos)),
            state=self._states(),
            k=self._ks(),
            sweep={
                float(name.removeprefix(GAMMA_PREFIX)): self._k_under(name)
                for name in sorted(stated, key=_gamma)
                if name.startswith(GAMMA_PREFIX)
            },
            lists={name: self._list(name, findings) for name in lists},
            final=lists[-1] if lists else "",
            stated_values={
                name: self._stated(name)
                for name in stated
                if not name.startswith(GAMMA_PREFIX)
            },
        )

    def _names(
        self, read: Callable[[ImportedPrediction], Iterable[str]]
    ) -> tuple[str, ...]:
        """All names that any query has, in order of first sight."""
        return tuple(
            dict.fromkeys(
                name
                for prediction in self.imported
                if prediction
                for name in read(prediction)
            )
        )

    def _probability(self, chosen: str | None, findings: InputFindings) -> str | None:
        """The column to go by: the one that was asked for, else the best there is."""
        columns = self._names(lambda prediction: prediction.probs)
        best = next((n for n in (chosen, CALIBRATED, RAW) if n in columns), None)
        if best == RAW and chosen is None:
            findings.add(
                "raw_probability",
                "info",
                self.model,
                f"There is no {CALIBRATED}; {RAW} is used as the probability.",
            )
        return best or next(iter(columns), None)

    def _status(self, prob: Floats | None) -> list[str]:
        """What became of each query."""
        unscored = (
            [prediction is None for prediction in self.imported]
            if prob is None
            else np.isnan(prob)
        )
        return [
            UNJUDGED if y == UNKNOWN else UNSCORED if is_unscored else SCORED
            for y, is_unscored in zip(self.y, unscored, strict=True)
        ]

    def _floats(self, read: Callable[[ImportedPrediction], float | None]) -> Floats:
        values = (
            None if prediction is None else read(prediction)
            for prediction in self.imported
        )
        return np.array([np.nan if x is None else x for x in values], dtype=np.float64)

    def _probs(self, column: str) -> Floats:
        return self._floats(lambda prediction: prediction.probs.get(column))

    def _stated(self, name: str) -> Floats:
        return self._floats(lambda prediction: prediction.stated.get(name))

    def _states(self) -> States | None:
        names = {name: index for index, name in enumerate(STATES)}
        states = [
            UNKNOWN
            if prediction is None or prediction.state is None
            else names[prediction.state]
            for prediction in self.imported
        ]
        return np.array(states, dtype=np.int8) if set(states) - {UNKNOWN} else None

    def _ks(self) -> Ints | None:
        ks = ints(
            None if prediction is None else prediction.k for prediction in self.imported
        )
        return ks if (ks != UNKNOWN).any() else None

    def _k_under(self, name: str) -> Ints:
        return ints(None if np.isnan(k) else k for k in self._stated(name))

    def _list(self, name: str, findings: InputFindings) -> list[tuple[str, ...]]:
        lists: list[tuple[str, ...]] = []
        for prediction, y in zip(self.imported, self.y, strict=True):
            uids = None if prediction is None else prediction.lists.get(name)
            if uids is None and y == 1:
                findings.add(
                    "no_list",
                    "warn",
                    f"{self.model} {name}",
                    "Queries with evidence have no list; their evidence counts as "
                    "never retrieved.",
                )
            lists.append(uids or ())
        return lists


def ints(values: Iterable[float | None]) -> Ints:
    """A column of whole numbers, UNKNOWN where there is none."""
    numbers = [UNKNOWN if value is None else int(value) for value in values]
    return np.array(numbers, dtype=np.int64)


def _gamma(name: str) -> float:
    """The gamma that a column is about; other columns come first."""
    is_gamma = name.startswith(GAMMA_PREFIX)
    return float(name.removeprefix(GAMMA_PREFIX)) if is_gamma else 0.0


def _or_none(column: Floats) -> Floats | None:
    """A column that says nothing anywhere is not there."""
    return None if np.isnan(column).all() else column


def imported_scoring_input(dataset: EvidenceDataset, answers: Answers) -> ScoringInput:
    """All that an imported run holds.

    Raises:
        DatasetError: the run has no probability in the column that `--prob` names.
    """
    imported = _ImportedQueries.of(dataset, answers).in_order(dataset)
    findings = InputFindings()
    if imported.joined:
        findings.add(
            "answers_joined",
            "warn",
            "import",
            "A query has two answers of one model; both are read as one answer, and "
            "the first counts where they differ.",
            example=imported.joined[0],
            n=len(imported.joined),
        )
    _require_column(dataset.settings.prob, imported)
    queries = _queries(imported, dataset)
    predictions = tuple(
        ImportedColumns(
            model=model, imported=imported.predictions[model], y=queries.y
        ).predictions(dataset.settings.prob, findings)
        for model in answers.models
    )
    _compare_criteria(dataset, queries, findings)
    of_files = tuple(finding for truth in imported.truths for finding in truth.noticed)
    per_post = np.bincount(queries.post, minlength=len(queries.posts))
    return ScoringInput(
        queries=queries,
        predictions=predictions,
        headline=CONFIG,
        leak_checks=imported_leak_checks(dataset, queries, predictions),
        models=answers.models,
        findings=(*of_files, *findings.findings()),
        sizes={
            "ragged_rows": sum(f.n for f in of_files if f.code == "ragged_rows"),
            "incomplete_posts": int((per_post < len(queries.criteria)).sum()),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportedQueries:
    """What files say, query by query."""

    queries: list[tuple[str, str]] = field(default_factory=list)
    truths: list[QueryTruth] = field(default_factory=list)
    predictions: dict[str, list[ImportedPrediction | None]] = field(
        default_factory=dict
    )  #: by model
    joined: list[str] = field(default_factory=list)  #: tasks with an earlier answer

    @classmethod
    def of(cls, dataset: EvidenceDataset, answers: Answers) -> _ImportedQueries:
        """In the order of the log."""
        imported = cls(predictions={model: [] for model in answers.models})
        indices: dict[str, int] = {}
        for (answer,) in answers.families():
            task = answer.task
            index = indices.setdefault(task.key, len(indices))
            if index == len(imported.queries):
                post, _, criterion = task.key.rpartition("/")
                imported.queries.append((post, criterion))
                imported.truths.append(decode_truth(task.context or "{}"))
                for column in imported.predictions.values():
                    column.append(None)
            if answer.chat is not None:
                read = read_prediction(dataset, task, answer.chat)
                imported._add(
                    task, index, read if isinstance(read, ImportedPrediction) else None
                )
        return imported

    def _add(
        self, task: Task, index: int, prediction: ImportedPrediction | None
    ) -> None:
        """Keep an answer; imports once wrote probabilities and rankings as two."""
        column = self.predictions[task.model]
        before = column[index]
        if before is None or prediction is None:
            column[index] = before or prediction
            return
        self.joined.append(f"{task.model}: {task.key}")
        column[index] = merge_answers(before, prediction)

    def in_order(self, dataset: EvidenceDataset) -> _ImportedQueries:
        """In file order of posts and then in display order of criteria."""
        posts = {post: i for i, (post, _) in reversed(list(enumerate(self.queries)))}
        criterion_ranks = {
            name: i for i, name in enumerate(_criteria(self.queries, dataset))
        }
        order = sorted(
            range(len(self.queries)),
            key=lambda i: (
                posts[self.queries[i][0]],
                criterion_ranks[self.queries[i][1]],
            ),
        )
        return _ImportedQueries(
            queries=[self.queries[i] for i in order],
            truths=[self.truths[i] for i in order],
            predictions={
                model: [column[i] for i in order]
                for model, column in self.predictions.items()
            },
            joined=self.joined,
        )


def _criteria(
    queries: Iterable[tuple[str, str]], dataset: EvidenceDataset
) -> list[str]:
    """Those of the criteria file in its order, then any other in natural order."""
    names = natural_order(criterion for _, criterion in queries)
    file_criteria = [
        criterion.id for criterion in dataset.criteria if criterion.id in names
    ]
    return [*file_criteria, *(name for name in names if name not in file_criteria)]


def _compare_criteria(
    dataset: EvidenceDataset, queries: Queries, findings: InputFindings
) -> None:
    file_criteria = {criterion.id for criterion in dataset.criteria}
    if file_criteria and (odd := natural_order(file_criteria ^ set(queries.criteria))):
        findings.add(
            "criteria_differ",
            "warn",
            "criteria",
            f"The file of criteria has {len(file_criteria)} and the "
            f"import {len(queries.criteria)}; some are in only one of "
            "the two.",
            example=odd[0],
            n=len(odd),
        )


def _require_column(prob: str | None, imported: _ImportedQueries) -> None:
    if prob is None:
        return
    columns = {
        column
        for predictions in imported.predictions.values()
        for prediction in predictions
        if prediction is not None
        for column in prediction.probs
    }
    if prob not in columns:
        available = ", ".join(sorted(columns)) or "none"
        raise DatasetError(
            f"The import holds no probability column {prob} (it has: {available}; "
            "import the file again with --prob)."
        )


def _queries(imported: _ImportedQueries, dataset: EvidenceDataset) -> Queries:
    posts = tuple(dict.fromkeys(post for post, _ in imported.queries))
    criteria = tuple(_criteria(imported.queries, dataset))
    pools = {post.id: len(post.sentences) for post in dataset.posts}
    truths = [
        _filled(dataset, pools, *query, truth)
        for query, truth in zip(imported.queries, imported.truths, strict=True)
    ]
    folds = natural_order(t.fold for t in truths if t.fold is not None)
    names_gold = any(truth.gold is not None for truth in truths)
    return Queries(
        posts=posts,
        criteria=criteria,
        post=_indices(posts, (post for post, _ in imported.queries)),
        criterion=_indices(criteria, (criterion for _, criterion in imported.queries)),
        pool=ints(truth.pool for truth in truths),
        folds=folds,
        fold=_indices(folds, (truth.fold for truth in truths)),
        y=ints(_label(truth) for truth in truths),
        gold=[truth.gold or () for truth in truths] if names_gold else None,
    )


def _label(truth: QueryTruth) -> int | None:
    """Whether there is evidence; gold ids say so where nothing else does."""
    if truth.y is None and truth.gold is not None:
        return int(bool(truth.gold))
    return truth.y


def _filled(
    dataset: EvidenceDataset,
    pools: Mapping[str, int],
    post: str,
    criterion: str,
    truth: QueryTruth,
) -> QueryTruth:
    """What is said of a query, completed from the run's own inputs."""
    gold = dataset.gold
    if truth.gold is None and gold is not None and post in gold.posts:
        truth = replace(truth, gold=gold.evidence.get((post, criterion), ()))
    if truth.fold is None and dataset.folds is not None:
        truth = replace(truth, fold=dataset.folds.get(post))
    if truth.pool is None and post in pools:
        truth = replace(truth, pool=pools[post])
    return truth


def _indices(names: Sequence[str], values: Iterable[str | None]) -> Ints:
    indices = {name: index for index, name in enumerate(names)}
    return ints(None if value is None else indices[value] for value in values)
