"""Metrics record by record or review by review, for comparing models of other runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from jobs.metrics import without_interval
from jobs.metrics.columns import Bools
from jobs.screening.measuring.pairs import PAIRED
from jobs.screening.measuring.results import Column
from jobs.screening.measuring.view import UNDECIDED, View
from jobs.screening.validation_set import record_key
from runner.scorecard import Comparable, ItemValues, Labels

RANKING = ("wss95", "wss100", "atd", "ndcg", "loss", "auroc", "ap")
"""Means over reviews."""

LOSSES = frozenset({"atd", "loss"})
"""Those of them that are the better the lower they are."""

DECISIONS = ("exclude", "include")
"""By what a call is, 0 or 1."""


def comparable(column: Column) -> Comparable:
    """Makers of the values of a model's headline metrics, by path."""
    view = column.view
    label = view.records.label
    known = column.by_path()
    made: dict[str, Callable[[], ItemValues]] = {}
    for path, rows in (
        ("all.micro.sensitivity", label == 1),
        ("all.micro.specificity", label == 0),
        ("all.micro.accuracy", label >= 0),
        *_by_kind(view),
    ):
        made[path] = partial(_of_records, view, rows, path, _definition(column, path))
    for word in RANKING:
        path = f"all.macro.{word}"
        made[path] = partial(_of_reviews, column, word, _definition(column, path))
    return {path: make for path, make in made.items() if path in known}


def labels(column: Column) -> Labels:
    """What is decided of each record; nothing where it is undecided."""
    view, records = column.view, column.view.records
    reviews = [records.reviews[at] for at in records.review.tolist()]
    return Labels(
        what="decision",
        categories=DECISIONS,
        items=[
            record_key(review, paper)
            for review, paper in zip(reviews, records.papers, strict=True)
        ],
        said=[
            None if call == UNDECIDED else DECISIONS[call]
            for call in view.call.tolist()
        ],
    )


def _by_kind(view: View) -> list[tuple[str, Bools]]:
    records = view.records
    return [
        (f"{kind}.micro.specificity", records.kind == place)
        for place, kind in enumerate(records.kinds)
        if kind != "included"
    ]


def _definition(column: Column, path: str) -> str:
    return without_interval(column.by_path()[path].definition)


def _of_records(view: View, rows: Bools, path: str, definition: str) -> ItemValues:
    """Whether each record is decided rightly; undefined where it is undecided."""
    records = view.records
    places = np.flatnonzero(rows).tolist()
    call, label = view.call.tolist(), records.label.tolist()
    reviews = [records.reviews[at] for at in records.review[rows].tolist()]
    return ItemValues(
        kind="mean",
        items=[
            record_key(review, records.papers[at])
            for review, at in zip(reviews, places, strict=True)
        ],
        clusters=reviews,
        cluster="review",
        first=[
            None if call[at] == UNDECIDED else float(call[at] == label[at])
            for at in places
        ],
        definition=definition,
        family=path if path in PAIRED else "",
    )


def _of_reviews(column: Column, word: str, definition: str) -> ItemValues:
    reviews = column.view.records.reviews
    return ItemValues(
        kind="mean",
        items=reviews,
        clusters=reviews,
        cluster="review",
        first=column.strata["all"].by_review[word],
        definition=definition,
        lower_is_better=word in LOSSES,
    )
