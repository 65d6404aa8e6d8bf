"""Sheets to score: the full-size arithmetic set, recorded lists, small ones by hand."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, overload

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNKNOWN,
    Predictions,
    Queries,
    ScoringInput,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.selective import assign
from tests.jobs.kit.metrics.set_a import CRITERIA, POSTS, SetA, set_a

MODEL = "test/model"


@dataclass(frozen=True)
class Made(Sequence[tuple[str, ...]]):
    """A column of lists that are made as they are asked for."""

    size: int
    make: Callable[[int], Sequence[str]]

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, i: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[tuple[str, ...]]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[each] for each in range(self.size)[i]]
        if i >= self.size:
            raise IndexError(i)
        return tuple(self.make(i))


def settings(**values: Any) -> EvidenceSettings:
    return EvidenceSettings.model_validate(values)


def dataset(**values: Any) -> EvidenceDataset:
    return EvidenceDataset(settings=settings(**values))


def full_sheet(
    times: float = 1, *, lists: bool = True, second: bool = False
) -> ScoringInput:
    """Set A under the headline, with its second model if asked for."""
    a = set_a(times)
    n = len(a.index)
    queries = Queries(
        posts=tuple(dict.fromkeys(a.post)),
        criteria=tuple(f"A.{c + 1}" for c in range(CRITERIA)),
        post=a.index // CRITERIA,
        criterion=a.index % CRITERIA,
        pool=a.pool,
        folds=tuple("01234"),
        fold=a.fold,
        y=a.y.astype(np.int64),
        gold=_column_of(a, "gold") if lists else None,
    )
    predictions = [_of_a(a, lists=lists)]
    if second:
        predictions.append(
            Predictions(
                model=f"{MODEL}-2", config="full", status=[SCORED] * n, prob=a.p2
            )
        )
    return ScoringInput(
        queries=queries,
        predictions=tuple(predictions),
        headline="full",
        models=tuple(each.model for each in predictions),
    )


def _column_of(a: SetA, name: str) -> Sequence[tuple[str, ...]]:
    """The lists of a set; those of set A itself, which most tests read, are kept."""
    if len(a.index) == CRITERIA * POSTS:
        return _column_of_set_a(name)
    return Made(len(a.index), getattr(a, name))


@cache
def _column_of_set_a(name: str) -> Sequence[tuple[str, ...]]:
    make = getattr(set_a(), name)
    return tuple(tuple(make(i)) for i in range(CRITERIA * POSTS))


def _of_a(a: SetA, *, lists: bool) -> Predictions:
    n = len(a.index)
    tau_pos = np.full(n, 0.68)
    state = assign(a.p, a.tau_neg, tau_pos)
    k = np.choose(state, (np.zeros_like(a.index), 5 + a.index % 8, 3 + a.index % 4))
    return Predictions(
        model=MODEL,
        config="full",
        status=[SCORED] * n,
        prob_raw=a.p,
        prob=a.p,
        tau_neg=a.tau_neg,
        tau_pos=tau_pos,
        state=state,
        k=k,
        lists={"reranked": _column_of(a, "ranked")} if lists else {},
        final="reranked",
    )


def recorded_sheet(path: Path) -> ScoringInput:
    """Lists of a file of format E."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lists = {
        name.removesuffix("_topk"): [_ids(row[name]) for row in rows]
        for name in rows[0]
        if name.endswith("_topk")
    }
    return small_sheet(
        [(row["post_id"], row["criterion_id"]) for row in rows],
        y=[int(bool(row["gold_ids"])) for row in rows],
        gold=[_ids(row["gold_ids"]) for row in rows],
        lists=lists,
        final="reranked",
    )


def _ids(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


def small_sheet(
    keys: Sequence[tuple[str, str]],
    *,
    y: Sequence[int],
    gold: Sequence[tuple[str, ...]] | None = None,
    fold: Sequence[int] | None = None,
    **prediction: Any,
) -> ScoringInput:
    """A sheet of one model and configuration."""
    return sheet_of(keys, [prediction], y=y, gold=gold, fold=fold)


def sheet_of(
    keys: Sequence[tuple[str, str]],
    predictions: Sequence[Mapping[str, Any]],
    *,
    y: Sequence[int],
    gold: Sequence[tuple[str, ...]] | None = None,
    fold: Sequence[int] | None = None,
) -> ScoringInput:
    """A sheet of several predictions; arrays may be given as lists."""
    posts = tuple(dict.fromkeys(post for post, _ in keys))
    criteria = tuple(
        sorted({each for _, each in keys}, key=lambda c: int(c.rpartition(".")[2]))
    )
    folds = () if fold is None else tuple(str(k) for k in range(max(fold) + 1))
    made = tuple(_prediction(len(keys), each) for each in predictions)
    return ScoringInput(
        queries=Queries(
            posts=posts,
            criteria=criteria,
            post=np.array([posts.index(post) for post, _ in keys]),
            criterion=np.array([criteria.index(each) for _, each in keys]),
            pool=np.full(len(keys), UNKNOWN),
            folds=folds,
            fold=np.full(len(keys), UNKNOWN) if fold is None else np.array(fold),
            y=np.array(y),
            gold=gold,
        ),
        predictions=made,
        headline=made[0].config,
        models=tuple(dict.fromkeys(each.model for each in made)),
    )


def _prediction(n: int, values: Mapping[str, Any]) -> Predictions:
    return Predictions(
        **{
            "model": MODEL,
            "config": "given",
            "status": [SCORED] * n,
            **{name: _column(each) for name, each in values.items()},
        }
    )


def _column(value: Any) -> Any:
    is_column = isinstance(value, list) and not isinstance(value[0], str)
    return np.array(value) if is_column else value


def queries_of(sheet: ScoringInput) -> Iterator[str]:
    return (sheet.queries.key(i) for i in range(len(sheet.queries)))
