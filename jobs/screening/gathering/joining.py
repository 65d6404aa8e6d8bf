"""Several columns of decisions as one: replicates of a model, models as an ensemble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from jobs.metrics.columns import Floats, Ints, quotient
from jobs.screening.decisions import (
    EXCLUDE,
    INCLUDE,
    MISSING,
    READABLE,
    UNCLEAR,
    Decisions,
)

Rule = Literal["any", "majority", "all"]


def of_replicates(model: str, replicates: Sequence[Decisions]) -> Decisions:
    """A model's replicates joined: majority of what was read, a tie is unclear."""
    if len(replicates) == 1:
        (only,) = replicates
        return replace(only, model=model, replicate=None)
    outcome = _majority(_outcomes(replicates))
    return _joined(model, replicates, outcome)


def of_models(rule: Rule, models: Sequence[Decisions]) -> Decisions:
    """An ensemble: the majority, and who includes if `any` model does, or only `all`.

    Its p_include is the mean of the models', whatever the rule.
    """
    outcomes = _outcomes(models)
    outcome = _majority(outcomes)
    includes = outcomes == INCLUDE
    if rule == "any":
        outcome[includes.any(axis=0)] = INCLUDE
    elif rule == "all":
        is_torn = includes.any(axis=0) & ~includes.all(axis=0)
        excluded = (outcomes == EXCLUDE).any(axis=0)
        outcome[is_torn] = np.where(excluded, EXCLUDE, UNCLEAR)[is_torn]
    return _joined(f"ensemble/{rule}", models, outcome)


def _outcomes(columns: Sequence[Decisions]) -> Ints:
    return np.stack([own.outcome for own in columns])


def _majority(outcomes: Ints) -> Ints:
    """The most frequent readable outcome; a tie is unclear, none what is nearest."""
    votes = np.stack([(outcomes == own).sum(axis=0) for own in READABLE])
    most = votes.max(axis=0)
    is_tie = (votes == most).sum(axis=0) > 1
    found: Ints = np.asarray(READABLE, dtype=np.int64)[votes.argmax(axis=0)]
    found[is_tie] = UNCLEAR
    # outcomes without a decision stand in the order of how near they came to one
    return np.where(most > 0, found, outcomes.min(axis=0, initial=MISSING))


def _joined(model: str, columns: Sequence[Decisions], outcome: Ints) -> Decisions:
    first = columns[0]
    stage, ended = (
        np.stack([getattr(own, name) for own in columns]).max(axis=0)
        for name in ("stage", "ended")
    )
    counts: Counter[str] = Counter()
    skip: Counter[str] = Counter()
    for own in columns:
        counts.update(own.counts)
        skip.update(own.skip)
    codes, reasons = _reasons(columns, outcome)
    return Decisions(
        model=model,
        outcome=outcome,
        p=_mean([own.p for own in columns]),
        stage=stage,
        ended=ended,
        latest=outcome,
        stages=first.stages,
        reason_code=codes,
        reason=reasons,
        replies=sum(own.replies for own in columns),
        skip=dict(skip),
        counts=dict(counts),
    )


def _mean(columns: Sequence[Floats]) -> Floats:
    """The mean of the defined probabilities; NaN where there is none."""
    table = np.stack(columns)
    total = np.where(np.isnan(table), 0.0, table).sum(axis=0)
    return quotient(total, (~np.isnan(table)).sum(axis=0))


def _reasons(
    columns: Sequence[Decisions], outcome: Ints
) -> tuple[Sequence[str], Sequence[str]]:
    """Of each record the reason of the first column that says what all come to."""
    codes, reasons = [], []
    outcomes = _outcomes(columns)
    agrees = (outcomes == outcome).argmax(axis=0)
    for row, at in enumerate(agrees.tolist()):
        own = columns[at]
        codes.append(own.reason_code[row] if own.reason_code else "")
        reasons.append(own.reason[row] if own.reason else "")
    return codes, reasons
