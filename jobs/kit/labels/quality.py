"""Estimates how good models are from the labels of a draw: `siftlog estimate-quality`.

The labels of one draw count, weighted by its recorded probabilities. Labels beside it
were chosen by somebody, so they say nothing of the rest. What a model should have said
about an item without a label is predicted by the verdicts of a scoring on its replies,
else by the other models, or by one that is named as the judge; that may be as biased as
it likes, see `metrics.prediction_powered`.

A predictor must treat items with and without a label alike. Verdicts of a scoring
against labels do not, so they never count, and those of a scoring that judged some of a
model's items only do not count for that model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from jobs.kit.labels.any_time import AnyTimeInterval, LabelledDraw
from jobs.kit.labels.draw_events import recorded_draw
from jobs.kit.labels.draws import draw_items, majority
from jobs.kit.metrics.label_estimates import (
    LabelledPopulation,
    RateEstimate,
    estimate_rate,
    labels_needed,
)
from jobs.kit.metrics.prediction_powered import LEAST_LABELS
from runner.labelling import LabelField, ModelLabel
from store.labels.events import ItemDrawn
from store.labels.fold import ItemField, LabelSet, TextHashes

Predictor: TypeAlias = Literal["judge", "verdicts", "models", "itself"]
"""A named model, recorded verdicts, all other models, or nobody: the model's word."""

LEAST_OF_STRATUM: Final = 20
"""Labels of a stratum that is estimated by itself; smaller ones are one together."""

_BINARY: Final = ("prevalence", "precision", "recall", "specificity", "f1")
"""Metrics of a field with two deciding values; the first one is the positive one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityEstimate:
    """A metric of a model on one field."""

    metric: str
    estimate: RateEstimate
    needed: int | None  #: more labels that reach the width asked for; None: unknown
    any_time: AnyTimeInterval | None
    """From labels alone, valid at all looks together. None: the labels are not of a
    random draw, or the metric is no mean over items that are known before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuality:
    """Estimates of a model's quality from labels."""

    model: str
    items: int  #: with a reply of the model that has a value
    labels: int  #: of them, with a gold value in the draw
    predictor: Predictor  #: what says of all items whether the model is right
    estimates: Sequence[QualityEstimate]  #: empty: too few labels


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldQuality:
    """Estimates of all models' quality on one field."""

    field: str
    positive: str  #: value that precision and recall are about; "": there is none
    design: str  #: of the draw; "": no draw, labels are taken as drawn at random
    labels: int  #: gold values that count
    outside: int  #: gold values of items that the draw did not choose
    strata: Sequence[str]  #: that the estimates know; empty: one for all items
    models: Sequence[ModelQuality]


def field_quality(
    field: LabelField,
    labels: LabelSet,
    texts: TextHashes,
    replies: Mapping[ItemField, Sequence[ModelLabel]],
    *,
    verdicts: Mapping[int, float] | None = None,
    is_about_replies: bool = False,
    population: str = "",
    judge: str = "",
    level: float = 0.95,
    width: float | None = None,
) -> FieldQuality:
    """Estimate the metrics of all models on a field.

    Args:
        field: what was labelled.
        labels: of a folder.
        texts: of the present texts and replies, which decide what is gold.
        replies: of models, by item and field.
        verdicts: share of a scoring's verdicts that are right, by task; None: none.
        is_about_replies: whether a label says that a reply is right or wrong, so that
            the first choice is what each reply claims to be.
        population: `population_hash` of the run's items.
        judge: model whose replies predict the labels; "": verdicts or other models.
        level: of the intervals.
        width: target width of an interval; None: do not plan more labels.
    """
    deciding = [choice.value for choice in field.choices if choice.is_gold]
    labelled = {
        about.item: value.value
        for about, value in labels.gold(texts).items()
        if about.field == field.name
    }
    gold = {
        item: value
        for item, value in labelled.items()
        if value is not None and (field.is_open or value in deciding)
    }
    draw = _draw_of(labels, field.name, gold)
    chances = {event.item: event.probability for event in draw}
    counted = {
        item: value for item, value in gold.items() if item in chances or not draw
    }
    of_field = {
        about.item: of_item
        for about, of_item in replies.items()
        if about.field == field.name
    }
    if is_about_replies:
        of_field = {
            item: [replace(reply, value=deciding[0]) for reply in of_item]
            for item, of_item in of_field.items()
        }
    replied = _replied(of_field)
    is_binary = len(deciding) == len(("yes", "no")) and not field.is_open
    positive = deciding[0] if is_binary and not is_about_replies else ""
    strata = _strata(draw, of_field, counted)
    return FieldQuality(
        field=field.name,
        positive=positive,
        design=draw[0].design if draw else "",
        labels=len(counted),
        outside=len(gold) - len(counted),
        strata=sorted({*strata.values()}),
        models=[
            _model_quality(
                _Predicted(
                    model=model,
                    replied=replied,
                    judge=judge,
                    verdicts=_judged(replied[model], verdicts or {}),
                ),
                counted,
                chances,
                strata,
                LabelledDraw.of(draw, labelled, population),
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


def _strata(
    draw: Sequence[ItemDrawn],
    replies: Mapping[str, Sequence[ModelLabel]],
    counted: Mapping[str, object],
) -> Mapping[str, str]:
    """The stratum of each item with a reply; empty where the draw has none.

    A draw records those of its own items. Of the others they follow from the replies in
    the same way; nothing is estimated by strata if replies have changed since.
    """
    recorded = {event.item: event.stratum for event in draw if event.stratum}
    if not recorded:
        return {}
    strata = {
        item.key: item.stratum
        for item in draw_items(replies, replies, "stratified", {})
    }
    if any(strata.get(item, name) != name for item, name in recorded.items()):
        return {}
    sizes = Counter(strata[item] for item in counted if item in strata)
    large = {name for name, n in sizes.items() if n >= LEAST_OF_STRATUM}
    if sum(n for name, n in sizes.items() if name not in large) < LEAST_OF_STRATUM:
        # what is left joins the smallest that is large enough
        joined = min(large, key=lambda name: (sizes[name], name), default="")
    else:
        joined = "others"
    named = {item: name if name in large else joined for item, name in strata.items()}
    return named if len({*named.values()}) > 1 else {}


def _replied(
    replies: Mapping[str, Sequence[ModelLabel]],
) -> dict[str, dict[str, _Reply]]:
    """Return the replies by model and item."""
    by_model: dict[str, dict[str, list[ModelLabel]]] = {}
    for item, of_item in replies.items():
        for reply in of_item:
            by_model.setdefault(reply.model, {}).setdefault(item, []).append(reply)
    return {
        model: {
            item: _Reply(value=value, replicates=of_model)
            for item, of_model in items.items()
            if (value := majority(of_model))
        }
        for model, items in sorted(by_model.items())
    }


def _judged(
    replies: Mapping[str, _Reply], verdicts: Mapping[int, float]
) -> Mapping[str, float] | None:
    """Return each item's correctness by recorded verdicts; None unless complete."""
    judged = {}
    for item, reply in replies.items():
        shares = [
            verdicts.get(one.task or 0)
            for one in reply.replicates
            if one.value == reply.value
        ]
        known = [share for share in shares if share is not None]
        if not known:
            return None
        judged[item] = math.fsum(known) / len(known)
    return judged


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
    verdicts: Mapping[str, float] | None  #: on the model's values, by item

    @property
    def predictor(self) -> Predictor:
        """Source that `chance` uses."""
        if self.judge and self.judge != self.model:
            return "judge"
        if self.verdicts is not None:
            return "verdicts"
        return "models" if len(self.replied) > 1 else "itself"

    @property
    def items(self) -> list[str]:
        return sorted(self.replied[self.model])

    def value(self, item: str) -> str:
        """Return the model's value."""
        return self.replied[self.model][item].value

    def chance(self, item: str, value: str) -> float:
        """Return a value's probability by the others; by the model itself without any.

        Verdicts say whether the model's value is right, and so which of two is.
        """
        if self.predictor == "verdicts" and self.verdicts is not None:
            right = self.verdicts[item]
            return right if value == self.value(item) else 1 - right
        judges = [self.judge] if self.predictor == "judge" else self.replied
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
    strata: Mapping[str, str],
    draw: LabelledDraw | None,
    *,
    positive: str,
    level: float,
    width: float | None,
) -> ModelQuality:
    items = predicted.items
    labelled = [i for i, item in enumerate(items) if item in gold]
    labels = [items[i] for i in labelled]
    drawn = [chances[item] for item in labels] if chances else None
    names = _enough([strata[item] for item in items] if strata else [], labelled)
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
            strata=names,
        )
        rates = {"accuracy": estimate_rate("prevalence", right, level)}
        if positive:
            decided = LabelledPopulation(
                verdicts=[float(predicted.value(item) == positive) for item in items],
                predictions=[predicted.chance(item, positive) for item in items],
                labelled=labelled,
                truth=[float(gold[item] == positive) for item in labels],
                chances=drawn,
                strata=names,
            )
            rates |= {name: estimate_rate(name, decided, level) for name in _BINARY}
        estimates = [
            QualityEstimate(
                metric=name,
                estimate=rate,
                needed=None if width is None else labels_needed(rate, width),
                any_time=None
                if draw is None
                else _any_time(
                    name, draw, predicted, gold, positive=positive, level=level
                ),
            )
            for name, rate in rates.items()
        ]
    return ModelQuality(
        model=predicted.model,
        items=len(items),
        labels=len(labels),
        predictor=predicted.predictor,
        estimates=estimates,
    )


def _any_time(
    metric: str,
    draw: LabelledDraw,
    predicted: _Predicted,
    gold: Mapping[str, str | None],
    *,
    positive: str,
    level: float,
) -> AnyTimeInterval | None:
    """Return the interval of a mean over items that the model's replies determine."""
    items = set(predicted.items)

    def is_right(item: str) -> float | None:
        return float(gold[item] == predicted.value(item)) if item in gold else None

    def is_positive(item: str) -> float | None:
        return float(gold[item] == positive) if item in gold else None

    match metric:
        case "accuracy":
            return draw.rate(items, is_right, level)
        case "prevalence":
            return draw.rate(items, is_positive, level)
        case "precision":
            chosen = {item for item in items if predicted.value(item) == positive}
            return draw.rate(chosen, is_positive, level)
        case _:
            return None


def _enough(strata: Sequence[str], labelled: Sequence[int]) -> Sequence[str] | None:
    """The strata of a model's items; None where one has too few labels for it."""
    counts = Counter(strata[i] for i in labelled) if strata else Counter()
    if any(counts[name] < LEAST_LABELS for name in strata):
        return None
    return strata or None
