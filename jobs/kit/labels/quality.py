"""Estimates how good models are from the labels of a draw: `siftlog estimate-quality`.

The labels of one draw count, weighted by its recorded probabilities. Labels beside it
were chosen by somebody, so they say nothing of the rest. What a model should have said
about an item without a label is predicted by the other models, or by one that is named
as the judge; that may be as biased as it likes, see `metrics.prediction_powered`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.kit.labels.draw_events import recorded_draw
from jobs.kit.labels.draws import majority
from jobs.kit.metrics.label_estimates import (
    LabelledPopulation,
    RateEstimate,
    estimate_rate,
    labels_needed,
)
from jobs.kit.metrics.prediction_powered import LEAST_LABELS
from runner.labelling import LabelField, ModelLabel
from store.labels.events import ItemDrawn
from store.labels.fold import ItemField, LabelSet

_BINARY: Final = ("prevalence", "precision", "recall", "specificity", "f1")
"""Metrics of a field with two deciding values; the first one is the positive one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityEstimate:
    """A metric of a model on one field."""

    metric: str
    estimate: RateEstimate
    needed: int | None  #: more labels that reach the width asked for; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuality:
    """What labels say of a model."""

    model: str
    items: int  #: with a reply of the model that has a value
    labels: int  #: of them, with a gold value in the draw
    estimates: Sequence[QualityEstimate]  #: empty: too few labels


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldQuality:
    """What labels say of all models on one field."""

    field: str
    positive: str  #: value that precision and recall are about; "": there is none
    design: str  #: of the draw; "": no draw, labels are taken as drawn at random
    labels: int  #: gold values that count
    outside: int  #: gold values of items that the draw did not choose
    models: Sequence[ModelQuality]


def field_quality(
    field: LabelField,
    labels: LabelSet,
    texts: Mapping[str, str],
    replies: Mapping[ItemField, Sequence[ModelLabel]],
    *,
    judge: str = "",
    level: float = 0.95,
    width: float | None = None,
) -> FieldQuality:
    """Estimate the metrics of all models on a field.

    Args:
        field: what was labelled.
        labels: of a folder.
        texts: hashes of present texts by item, which decide what is gold.
        replies: of models, by item and field.
        judge: model whose replies predict the labels; "": all other models.
        level: of the intervals.
        width: of an interval that more labels shall reach; None: do not plan.
    """
    deciding = [choice.value for choice in field.choices if choice.is_gold]
    gold = {
        about.item: value.value
        for about, value in labels.gold(texts).items()
        if about.field == field.name
        and value.value is not None
        and (field.is_open or value.value in deciding)
    }
    draw = _draw_of(labels, field.name, gold)
    chances = {event.item: event.probability for event in draw}
    counted = {
        item: value for item, value in gold.items() if item in chances or not draw
    }
    replied = _replied(replies, field.name)
    is_binary = len(deciding) == len(("yes", "no")) and not field.is_open
    positive = deciding[0] if is_binary else ""
    return FieldQuality(
        field=field.name,
        positive=positive,
        design=draw[0].design if draw else "",
        labels=len(counted),
        outside=len(gold) - len(counted),
        models=[
            _model_quality(
                _Predicted(model=model, replied=replied, judge=judge),
                counted,
                chances,
                positive=positive,
                level=level,
                width=width,
            )
            for model in replied
        ],
    )


def _draw_of(
    labels: LabelSet, field: str, gold: Mapping[str, str | None]
) -> list[ItemDrawn]:
    """The draw with the most labelled items, the first of equals."""
    best: list[ItemDrawn] = []
    most = 0
    for first in labels.draws:
        if first.event.position != 1 or first.event.field not in {"", field}:
            continue
        events = [draw.event for draw in recorded_draw(labels, first.event)]
        labelled = sum(event.item in gold for event in events)
        if labelled > most:
            best, most = events, labelled
    return best


def _replied(
    replies: Mapping[ItemField, Sequence[ModelLabel]], field: str
) -> dict[str, dict[str, _Reply]]:
    """What each model replied, by model and item."""
    by_model: dict[str, dict[str, list[ModelLabel]]] = {}
    for about, of_item in replies.items():
        if about.field == field:
            for reply in of_item:
                by_model.setdefault(reply.model, {}).setdefault(about.item, []).append(
                    reply
                )
    return {
        model: {
            item: _Reply(value=value, replicates=of_model)
            for item, of_model in items.items()
            if (value := majority(of_model))
        }
        for model, items in sorted(by_model.items())
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """The replicates of a model about an item."""

    value: str  #: the most frequent one
    replicates: Sequence[ModelLabel]

    def chance(self, value: str) -> float:
        """The mean probability of a value, as stated, else 1 or 0."""
        stated = [
            (reply.value == value)
            if reply.probability is None
            else reply.probability
            if reply.value == value
            else 1 - reply.probability
            for reply in self.replicates
            if reply.value is not None
        ]
        return math.fsum(stated) / len(stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Predicted:
    """A model's replies, and who predicts what they should have been."""

    model: str
    replied: Mapping[str, Mapping[str, _Reply]]
    judge: str

    @property
    def items(self) -> list[str]:
        return sorted(self.replied[self.model])

    def value(self, item: str) -> str:
        """What the model said."""
        return self.replied[self.model][item].value

    def chance(self, item: str, value: str) -> float:
        """How probable others find a value; the model itself where nobody replied."""
        judges = [self.judge] if self.judge else self.replied
        others = [
            self.replied[judge][item].chance(value)
            for judge in judges
            if item in self.replied[judge] and judge != self.model
        ]
        if not others:
            return self.replied[self.model][item].chance(value)
        return math.fsum(others) / len(others)


def _model_quality(
    predicted: _Predicted,
    gold: Mapping[str, str | None],
    chances: Mapping[str, float],
    *,
    positive: str,
    level: float,
    width: float | None,
) -> ModelQuality:
    items = predicted.items
    labelled = [i for i, item in enumerate(items) if item in gold]
    labels = [items[i] for i in labelled]
    drawn = [chances[item] for item in labels] if chances else None
    estimates = []
    if len(labels) >= LEAST_LABELS:
        # accuracy is the prevalence of right replies
        right = LabelledPopulation(
            verdicts=[1.0] * len(items),
            predictions=[
                predicted.chance(item, predicted.value(item)) for item in items
            ],
            labelled=labelled,
            truth=[float(gold[item] == predicted.value(item)) for item in labels],
            chances=drawn,
        )
        rates = {"accuracy": estimate_rate("prevalence", right, level)}
        if positive:
            decided = LabelledPopulation(
                verdicts=[float(predicted.value(item) == positive) for item in items],
                predictions=[predicted.chance(item, positive) for item in items],
                labelled=labelled,
                truth=[float(gold[item] == positive) for item in labels],
                chances=drawn,
            )
            rates |= {name: estimate_rate(name, decided, level) for name in _BINARY}
        estimates = [
            QualityEstimate(
                metric=name,
                estimate=rate,
                needed=None if width is None else labels_needed(rate, width),
            )
            for name, rate in rates.items()
        ]
    return ModelQuality(
        model=predicted.model,
        items=len(items),
        labels=len(labels),
        estimates=estimates,
    )
