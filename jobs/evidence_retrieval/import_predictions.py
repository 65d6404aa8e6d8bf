"""Converts the stored answers of an imported run to predictions, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    CONFIG,
    GAMMA_PREFIX,
    RAW,
    ImportedPrediction,
    Query,
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
from jobs.kit.metrics.selective import STATES
from runner.errors import DatasetError
from runner.job import Answers


def _model_predictions(
    model: str,
    imported: Sequence[ImportedPrediction | None],
    y: Ints,
    *,
    chosen: str | None,
    findings: InputFindings,
) -> Predictions:
    """Return one model's predictions, with the probability of the *chosen* column.

    Without a choice, the best available column is used.
    """
    predictions = [ImportedPrediction() if one is None else one for one in imported]
    columns = _names(one.probs for one in predictions)
    best = next((name for name in (chosen, CALIBRATED, RAW) if name in columns), None)
    if best == RAW and chosen is None:
        findings.add(
            "raw_probability",
            "info",
            model,
            f"There is no {CALIBRATED}; {RAW} is used as the probability.",
        )
    column = best or next(iter(columns), None)
    prob = (
        None
        if column is None
        else _floats(one.probs.get(column) for one in predictions)
    )
    unscored = [one is None for one in imported] if prob is None else np.isnan(prob)
    states = ints(
        None if one.state is None else STATES.index(one.state) for one in predictions
    )
    lists = _names(one.lists for one in predictions)
    stated = _names(one.stated for one in predictions)
    return Predictions(
        model=model,
        config=CONFIG,
        status=[
            UNJUDGED if truth == UNKNOWN else UNSCORED if is_unscored else SCORED
            for truth, is_unscored in zip(y, unscored, strict=True)
        ],
        prob_raw=_or_none(_floats(one.probs.get(RAW) for one in predictions)),
        prob=prob,
        score=_or_none(_floats(one.score for one in predictions)),
        tau_neg=_or_none(_floats(one.tau_neg for one in predictions)),
        tau_pos=_or_none(_floats(one.tau_pos for one in predictions)),
        state=states.astype(np.int8) if (states != UNKNOWN).any() else None,
        k=ks if ((ks := ints(one.k for one in predictions)) != UNKNOWN).any() else None,
        sweep={
            float(name.removeprefix(GAMMA_PREFIX)): ints(
                one.stated.get(name) for one in predictions
            )
            for name in sorted(stated, key=_gamma)
            if name.startswith(GAMMA_PREFIX)
        },
        lists={
            name: _filled_lists(
                f"{model} {name}",
                [one.lists.get(name) for one in predictions],
                y,
                findings,
            )
            for name in lists
        },
        final=lists[-1] if lists else "",
        stated_values={
            name: _floats(one.stated.get(name) for one in predictions)
            for name in stated
            if not name.startswith(GAMMA_PREFIX)
        },
    )


def _names(named: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return all names of any query, in order of first occurrence."""
    return tuple(dict.fromkeys(name for names in named for name in names))


def _filled_lists(
    where: str,
    lists: Iterable[tuple[str, ...] | None],
    y: Ints,
    findings: InputFindings,
) -> list[tuple[str, ...]]:
    """Return a list for each query, empty if there is none."""
    filled = []
    for uids, truth in zip(lists, y, strict=True):
        if uids is None and truth == 1:
            findings.add(
                "no_list",
                "warn",
                where,
                "Queries with evidence have no list; their evidence counts as "
                "never retrieved.",
            )
        filled.append(uids or ())
    return filled


def _floats(values: Iterable[float | None]) -> Floats:
    """Return a column of numbers, NaN if there is none."""
    return np.array([*values], dtype=np.float64)


def ints(values: Iterable[float | None]) -> Ints:
    """Return a column of whole numbers, UNKNOWN if there is none."""
    numbers = [UNKNOWN if value is None else int(value) for value in values]
    return np.array(numbers, dtype=np.int64)


def _gamma(name: str) -> float:
    """Return the gamma of a column, or 0 for other columns."""
    is_gamma = name.startswith(GAMMA_PREFIX)
    return float(name.removeprefix(GAMMA_PREFIX)) if is_gamma else 0.0


def _or_none(column: Floats) -> Floats | None:
    """Return the column, or None if it has no values."""
    return None if np.isnan(column).all() else column


def imported_scoring_input(dataset: EvidenceDataset, answers: Answers) -> ScoringInput:
    """Return the scoring input of an imported run.

    Raises:
        DatasetError: the run has no probability in the column that `--prob` names.
    """
    imported, joined = _imported_queries(dataset, answers)
    findings = InputFindings()
    if joined:
        findings.add(
            "answers_joined",
            "warn",
            "import",
            "A query has two answers of one model; both are read as one answer, and "
            "the first counts where they differ.",
            example=joined[0],
            n=len(joined),
        )
    _require_column(dataset.settings.prob, imported.values())
    queries = _queries(imported, dataset)
    predictions = tuple(
        _model_predictions(
            model,
            [query.predictions.get(model) for query in imported.values()],
            queries.y,
            chosen=dataset.settings.prob,
            findings=findings,
        )
        for model in answers.models
    )
    _compare_criteria(dataset, queries, findings)
    of_files = tuple(
        finding for query in imported.values() for finding in query.truth.noticed or ()
    )
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
class _QueryAnswers:
    """The contents of all files about a query."""

    truth: QueryTruth
    predictions: dict[str, ImportedPrediction] = field(default_factory=dict)
    """By model."""


def _imported_queries(
    dataset: EvidenceDataset, answers: Answers
) -> tuple[dict[Query, _QueryAnswers], list[str]]:
    """Return the imported data by query, and the tasks with an earlier answer.

    Queries are in file order of posts and then in display order of criteria. Earlier
    versions wrote probabilities and rankings as two answers.
    """
    imported: dict[Query, _QueryAnswers] = {}
    joined = []
    for (answer,) in answers.families():
        task = answer.task
        post, _, criterion = task.key.rpartition("/")
        if (post, criterion) not in imported:
            truth = decode_truth(task.context or "{}")
            imported[post, criterion] = _QueryAnswers(truth=truth)
        if answer.chat is None:
            continue
        prediction = read_prediction(dataset, task, answer.chat)
        if not isinstance(prediction, ImportedPrediction):
            continue
        by_model = imported[post, criterion].predictions
        if task.model in by_model:
            joined.append(f"{task.model}: {task.key}")
            prediction = merge_answers(by_model[task.model], prediction)
        by_model[task.model] = prediction
    posts = _ranks(post for post, _ in imported)
    criteria = _ranks(_criteria(imported, dataset))
    order = sorted(imported, key=lambda query: (posts[query[0]], criteria[query[1]]))
    return {query: imported[query] for query in order}, joined


def _ranks(names: Iterable[str]) -> dict[str, int]:
    """Return the index of each name among the distinct ones."""
    return {name: index for index, name in enumerate(dict.fromkeys(names))}


def _criteria(queries: Iterable[Query], dataset: EvidenceDataset) -> list[str]:
    """Return the criteria in file order, then any others in natural order."""
    names = natural_order(criterion for _, criterion in queries)
    file_criteria = [one.id for one in dataset.criteria if one.id in names]
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


def _require_column(prob: str | None, imported: Iterable[_QueryAnswers]) -> None:
    if prob is None:
        return
    columns = {
        column
        for query in imported
        for prediction in query.predictions.values()
        for column in prediction.probs
    }
    if prob not in columns:
        available = ", ".join(sorted(columns)) or "none"
        raise DatasetError(
            f"The import holds no probability column {prob} (it has: {available}; "
            "import the file again with --prob)."
        )


def _queries(
    imported: Mapping[Query, _QueryAnswers], dataset: EvidenceDataset
) -> Queries:
    posts = tuple(dict.fromkeys(post for post, _ in imported))
    criteria = tuple(_criteria(imported, dataset))
    pools = {post.id: len(post.sentences) for post in dataset.posts}
    truths = [
        _filled(dataset, pools, *names, query.truth)
        for names, query in imported.items()
    ]
    folds = natural_order(t.fold for t in truths if t.fold is not None)
    names_gold = any(truth.gold is not None for truth in truths)
    return Queries(
        posts=posts,
        criteria=criteria,
        post=_indices(posts, (post for post, _ in imported)),
        criterion=_indices(criteria, (criterion for _, criterion in imported)),
        pool=ints(truth.pool for truth in truths),
        folds=folds,
        fold=_indices(folds, (truth.fold for truth in truths)),
        y=ints(_label(truth) for truth in truths),
        gold=[truth.gold or () for truth in truths] if names_gold else None,
    )


def _label(truth: QueryTruth) -> int | None:
    """Return whether there is evidence, derived from gold ids if not stated."""
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
    """Complete the labels of a query from the run's inputs."""
    gold = dataset.gold
    if truth.gold is None and gold is not None and post in gold.posts:
        truth = replace(truth, gold=gold.evidence.get((post, criterion), ()))
    if truth.fold is None and dataset.folds is not None:
        truth = replace(truth, fold=dataset.folds.get(post))
    if truth.pool is None and post in pools:
        truth = replace(truth, pool=pools[post])
    return truth


def _indices(names: Sequence[str], values: Iterable[str | None]) -> Ints:
    indices = _ranks(names)
    return ints(None if value is None else indices[value] for value in values)
