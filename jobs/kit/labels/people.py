"""Measures how far people, and models, agree on labels: `siftlog labels agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.kit.labels.draws import majority
from jobs.kit.metrics.raters import (
    LatentClasses,
    RaterAgreement,
    Ratings,
    dawid_skene,
    rater_agreement,
)
from runner.labelling import ModelLabel
from store.labels.fold import ItemField, LabelSet

_FEWEST = 3
"""Raters whose errors can be told apart without a truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTable:
    """Labels of one field as ratings."""

    items: tuple[str, ...]
    raters: tuple[str, ...]  #: people by name, then models
    people: int  #: of the raters
    categories: tuple[str, ...]  #: values that occur
    ratings: Ratings  #: items by raters


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAgreement:
    """The agreement on one field."""

    field: str
    table: RatingTable
    people: RaterAgreement
    pairs: Mapping[tuple[str, str], RaterAgreement]  #: by two raters
    latent: LatentClasses | None  #: None: fewer than three raters


def rating_table(
    labels: LabelSet,
    field: str,
    *,
    replies: Mapping[ItemField, Sequence[ModelLabel]],
    is_blind_only: bool = False,
) -> RatingTable:
    """The ratings of the items that anybody has labelled.

    Args:
        labels: of a folder.
        field: name of the field.
        replies: of models, which become raters by their most frequent value; empty:
            none.
        is_blind_only: whether labels count only if they were given blind.
    """
    values = _labelled(labels, field, is_blind_only=is_blind_only)
    people = sorted({rater for by_rater in values.values() for rater in by_rater})
    models: dict[str, None] = {}
    for item in values:
        by_model = _decided(replies.get(ItemField(item, field), ()))
        values[item] |= by_model
        models |= dict.fromkeys(by_model)
    raters = (*people, *models)
    categories = sorted({v for by_rater in values.values() for v in by_rater.values()})
    index = {value: k for k, value in enumerate(categories)}
    items = sorted(values)
    ratings = np.full((len(items), len(raters)), -1, dtype=np.int64)
    for i, item in enumerate(items):
        for r, rater in enumerate(raters):
            if rater in values[item]:
                ratings[i, r] = index[values[item][rater]]
    return RatingTable(
        items=tuple(items),
        raters=raters,
        people=len(people),
        categories=tuple(categories),
        ratings=ratings,
    )


def _labelled(
    labels: LabelSet, field: str, *, is_blind_only: bool
) -> dict[str, dict[str, str]]:
    """Values by person, by item."""
    values: dict[str, dict[str, str]] = {}
    for about, of_field in labels.by_field.items():
        by_rater = {
            label.event.author: label.event.value
            for label in of_field
            if label.event.is_blind or not is_blind_only
        }
        if about.field == field and by_rater:
            values[about.item] = by_rater
    return values


def _decided(replies: Sequence[ModelLabel]) -> dict[str, str]:
    """The most frequent value of each model, by the name of its rater."""
    by_model: dict[str, list[ModelLabel]] = {}
    for reply in replies:
        by_model.setdefault(f"model {reply.model}", []).append(reply)
    decided = {model: majority(of_model) for model, of_model in by_model.items()}
    return {model: value for model, value in decided.items() if value}


def field_agreement(
    field: str, table: RatingTable, *, level: float, replicates: int
) -> FieldAgreement:
    """Measure agreement on a field: of all people, of each pair, and latent classes.

    Args:
        field: its name.
        table: its ratings.
        level: of the intervals.
        replicates: of the bootstrap.
    """
    q = max(1, len(table.categories))

    def of(columns: Sequence[int]) -> RaterAgreement:
        return rater_agreement(
            table.ratings[:, list(columns)], q, level=level, replicates=replicates
        )

    n = len(table.raters)
    return FieldAgreement(
        field=field,
        table=table,
        people=of(range(table.people)),
        pairs={
            (table.raters[a], table.raters[b]): of((a, b))
            for a in range(n)
            for b in range(a + 1, n)
        },
        latent=dawid_skene(table.ratings, q) if n >= _FEWEST else None,
    )
