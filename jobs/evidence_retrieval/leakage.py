"""Checks for ways in which the gold of a test post could reach its prediction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset, Post
from jobs.evidence_retrieval.predictions.classifier import CRITERION, Split
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows
from jobs.evidence_retrieval.predictions.gate import (
    GateSpec,
    Nested,
    rows_of,
    thresholds,
)
from jobs.evidence_retrieval.queries import UNKNOWN, LeakCheck, Predictions, Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.lexical import tokens
from jobs.kit.metrics.columns import Bools, Floats, Ints
from runner.scorecard import Finding

_GOLD_WORDS = re.compile(r"gold|groundtruth|has_evidence|label")

FEWEST_WORDS = 4
"""Minimum words of a gold sentence searched in prompts: "I agree" is too common."""

FEWEST_OF_A_CLASS = 2
"""Minimum rows of each class before a perfectly separating feature is suspicious."""


def leak_check(
    name: str, findings: Iterable[Finding], *, not_checked: str = ""
) -> LeakCheck:
    """Return a check with its findings, which are not computed if it is impossible."""
    leaks = () if not_checked else tuple(findings)
    return LeakCheck(name=name, findings=leaks, not_checked=not_checked)


def shared_posts(where: str, splits: Sequence[Split]) -> Iterator[Finding]:
    """Yield posts in two parts of one split, or tested in two folds."""
    tested: dict[str, str] = {}
    for split in splits:
        parts = {"test": split.test, "tune": split.tune, "fit": split.fit}
        for first, second in combinations(parts, 2):
            both = sorted({*parts[first]} & {*parts[second]})
            if both:
                yield leak(
                    "post_overlap",
                    f"{where}, fold {split.fold}",
                    f"{len(both)} posts are both in {first} and in {second}.",
                    n=len(both),
                    example=both[0],
                )
        for post in split.test:
            if tested.setdefault(post, split.fold) != split.fold:
                yield leak(
                    "post_in_two_folds",
                    f"{where}, fold {split.fold}",
                    f"Post {post} is tested in fold {tested[post]} already.",
                    example=post,
                )


def foreign_candidates(
    posts: Iterable[Post], queries: Queries, predictions: Iterable[Predictions]
) -> Iterator[Finding]:
    """Yield rankings with sentences of other posts."""
    pools = {
        post.id: frozenset(sentence.uid for sentence in post.sentences)
        for post in posts
    }
    query_pools = [pools[queries.posts[post]] for post in queries.post.tolist()]
    checked = set()
    for prediction in predictions:
        for name, lists in prediction.lists.items():
            if id(lists) in checked:
                continue
            checked.add(id(lists))
            foreign = [
                (i, uid)
                for i, (uids, pool) in enumerate(zip(lists, query_pools, strict=True))
                for uid in uids
                if uid not in pool
            ]
            if foreign:
                i, uid = foreign[0]
                yield leak(
                    "foreign_candidate",
                    f"{prediction.model}, {prediction.config}, {name}",
                    f"{len(foreign)} candidates belong to another post than the query.",
                    n=len(foreign),
                    example=f"{queries.key(i)}: {uid}",
                )


def duplicate_texts(
    posts: Iterable[Post], fold_of: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield posts with the same text in different folds: the gate saw its test data."""
    first: dict[tuple[str, ...], str] = {}
    pairs = []
    for post in posts:
        words = tuple(
            word for sentence in post.sentences for word in tokens(sentence.text)
        )
        if not words or post.id not in fold_of:
            continue
        other = first.setdefault(words, post.id)
        if fold_of[other] != fold_of[post.id]:
            pairs.append(f"{other} and {post.id}")
    if pairs:
        yield Finding(
            code="duplicate_text",
            severity="warn",
            where="folds",
            message=f"{len(pairs)} pairs of posts have the same words and are in "
            f"different folds: {'; '.join(pairs)}.",
            n=len(pairs),
            example=pairs[0],
        )


def gold_in_instructions(
    dataset: EvidenceDataset, instructions: Iterable[str]
) -> Iterator[Finding]:
    """Yield gold sentences in the instructions of prompts."""
    if dataset.gold is None:
        return
    instruction_words = [f" {' '.join(tokens(text))} " for text in instructions]
    gold_uids = {uid for uids in dataset.gold.evidence.values() for uid in uids}
    for post in dataset.posts:
        for sentence in post.sentences:
            words = tokens(sentence.text)
            if sentence.uid not in gold_uids or len(words) < FEWEST_WORDS:
                continue
            phrase = f" {' '.join(words)} "
            if any(phrase in text for text in instruction_words):
                yield leak(
                    "gold_in_prompt",
                    "prompts",
                    f"The gold sentence {sentence.uid} occurs in the prompt's "
                    "instructions.",
                    example=sentence.uid,
                )


def gold_features(where: str, rows: FeatureRows, y: Ints) -> Iterator[Finding]:
    """Yield features that equal the gold by name, or by value (correlation 1 or -1)."""
    judged = y != UNKNOWN
    truth = y[judged] == 1
    enough = min(truth.sum(), (~truth).sum()) >= FEWEST_OF_A_CLASS
    for name, column in zip(rows.names, rows.values[judged].T, strict=True):
        if name.startswith(CRITERION):
            continue  # derived from the criteria alone
        if _GOLD_WORDS.search(name):
            yield leak("gold_feature", where, f"The feature {name} is named like gold.")
        elif enough and _splits_as(column, truth):
            yield leak(
                "gold_feature",
                where,
                f"The feature {name} says of every query what its gold says.",
                n=len(truth),
            )


def thresholds_from_test(
    where: str, spec: GateSpec, rows: FeatureRows, y: Ints, nested_fit: Nested
) -> Iterator[Finding]:
    """Yield thresholds that are optimal for the test posts, not the tuning ones."""
    for fold_result in nested_fit.folds:
        if fold_result.gate is None:
            continue
        test = rows_of(rows, fold_result.split.test) & (y != UNKNOWN)
        best = thresholds(y[test] == 1, nested_fit.probability[test], spec.settings)
        due = thresholds(fold_result.tune_y, fold_result.tune_p, spec.settings)
        used = fold_result.gate.thresholds
        for name in ("tau_neg", "tau_pos"):
            value = getattr(used, name)
            if value == getattr(best, name) and value != getattr(due, name):
                yield leak(
                    "threshold_from_test",
                    f"{where}, fold {fold_result.split.fold}",
                    f"{name} {value:g} is the best one of the test posts, and on the "
                    f"tuning posts it would be {getattr(due, name):g}.",
                )


def stated_thresholds(
    queries: Queries, prediction: Predictions, settings: EvidenceSettings
) -> Iterator[Finding]:
    """Yield the same for imported predictions, whose tuning posts are unknown.

    One fold's threshold can be optimal for its rows by chance, so all must be, and even
    then it is a warning. A threshold without effect (0, infinite) is ignored.
    """
    if (
        prediction.prob is None
        or prediction.tau_neg is None
        or prediction.tau_pos is None
    ):
        return
    folds = dict(_judged_folds(queries, prediction.prob))
    best = {
        fold: thresholds(queries.y[rows] == 1, prediction.prob[rows], settings)
        for fold, rows in folds.items()
    }
    taus = {"tau_neg": prediction.tau_neg, "tau_pos": prediction.tau_pos}
    for name, column in taus.items():
        used = {fold: float(column[rows][0]) for fold, rows in folds.items()}
        telling = {fold: tau for fold, tau in used.items() if 0 < tau < np.inf}
        if telling and all(tau == getattr(best[f], name) for f, tau in telling.items()):
            fold, tau = next(iter(telling.items()))
            yield Finding(
                code="threshold_from_test",
                severity="warn",
                where=prediction.model,
                message=f"{name} is the best one of the tested rows in every fold, "
                "as if it had been chosen on them.",
                n=len(telling),
                example=f"fold {fold}: {tau:g}",
            )


def _judged_folds(queries: Queries, p: Floats) -> Iterator[tuple[str, Bools]]:
    judged = (queries.y != UNKNOWN) & ~np.isnan(p)
    for index, fold in enumerate(queries.folds):
        rows = judged & (queries.fold == index)
        if rows.any():
            yield fold, rows


def _splits_as(column: Floats, truth: Bools) -> bool:
    inside, outside = np.unique(column[truth]), np.unique(column[~truth])
    return len(inside) == len(outside) == 1 and bool(inside[0] != outside[0])


def leak(
    code: str, where: str, message: str, *, n: int = 1, example: str = ""
) -> Finding:
    """Return a finding about gold that reached a prediction."""
    return Finding(
        code=code, severity="error", where=where, message=message, n=n, example=example
    )


NOT_IN_FILES = "the files do not say"


def imported_leak_checks(
    dataset: EvidenceDataset, queries: Queries, predictions: Sequence[Predictions]
) -> tuple[LeakCheck, ...]:
    """Return the possible leak checks, and the reason why others are impossible."""
    fold_of = {
        queries.posts[post]: queries.folds[fold]
        for post, fold in zip(queries.post.tolist(), queries.fold.tolist(), strict=True)
        if fold != UNKNOWN
    }
    post_ids = {post.id for post in dataset.posts}
    has_all_pools = post_ids.issuperset(queries.posts)
    has_lists = any(prediction.lists for prediction in predictions)
    return (
        leak_check(
            "duplicate post texts across folds",
            duplicate_texts(dataset.posts, fold_of),
            not_checked=_first(
                "" if post_ids else "the texts need --posts or --sentences",
                "" if fold_of else "there are no folds",
            ),
        ),
        leak_check(
            "candidates of another post",
            foreign_candidates(dataset.posts, queries, predictions),
            not_checked=_first(
                "" if has_lists else "there are no rankings",
                "" if has_all_pools else "the pools need --posts or --sentences",
            ),
        ),
        leak_check(
            "thresholds chosen on test posts",
            chain.from_iterable(
                stated_thresholds(queries, prediction, dataset.settings)
                for prediction in predictions
            ),
            not_checked=_first(*_no_thresholds(queries, predictions)),
        ),
        *(
            leak_check(name, (), not_checked=NOT_IN_FILES)
            for name in (
                "gold sentences in the instructions of prompts",
                "posts shared by the test, tuning and fitting parts",
                "features that are the gold",
                "predictions under scrambled, removed and shuffled gold",
            )
        ),
    )


def _no_thresholds(
    queries: Queries, predictions: Sequence[Predictions]
) -> Iterator[str]:
    """Yield reasons why thresholds cannot be compared with the optimal ones."""
    if not queries.folds:
        yield "there are no folds"
    if (queries.y == UNKNOWN).all():
        yield "there is no gold"
    if all(prediction.prob is None for prediction in predictions):
        yield "there are no probabilities"
    if not any(
        column is not None and ((column > 0) & (column < np.inf)).any()
        for prediction in predictions
        for column in (prediction.tau_neg, prediction.tau_pos)
    ):
        yield "no threshold is above 0 and finite"


def _first(*reasons: str) -> str:
    return next(filter(None, reasons), "")
