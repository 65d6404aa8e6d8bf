"""Chooses items to label by a random design with a known probability for each item.

Every item of the population gets an inclusion probability in (0, 1], so that estimates
from the drawn items can be weighted by it. The sample is drawn by systematic sampling
with unequal probabilities in a random order (Madow, 1949; Hartley and Rao, 1962): its
size is the expected one, rounded up or down, and each item is in it with its
probability. All is a function of the seed, the items and their scores.

The population is always all items of a run, so each draw can be used by itself: an
item that was labelled before keeps its label and counts in the later draw too.

Designs:

- `random`: equal probabilities
- `stratified`: the same number from each stratum, such as the models' decisions
- `disagreement`: proportional to the share of models' replies that differ
- `uncertainty`: proportional to how near the models' probabilities are to 1/2
- `width`: as many from each stratum as makes the interval of a mean shortest per label
  (Neyman, 1934), by the spread of errors among the labels so far

A floor keeps every probability at 60 % of its fair share or more: an item that all
models agree on may be wrong too.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from runner.errors import UsageError
from runner.labelling import ModelLabel

DrawDesign: TypeAlias = Literal[
    "random", "stratified", "disagreement", "uncertainty", "width"
]
DESIGNS: Final[tuple[DrawDesign, ...]] = get_args(DrawDesign)

FLOOR: Final = 0.6
"""Least probability of an item, as a share of the equal one."""

_LEAST_LABELS: Final = 2
"""Labels of a stratum whose spread is estimated from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawItem:
    """An item of the population, with what designs look at."""

    key: str
    score: float = 0.0  #: of `disagreement` and `uncertainty`, from 0 to 1
    stratum: str = ""
    error: float | None = None
    """Difference of a person's label from the models', for `width`; None: no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItem:
    """An item that was drawn."""

    item: DrawItem
    probability: float  #: that the design includes it, in (0, 1]
    position: int  #: in the order of labelling, from 1


def probabilities(design: DrawDesign, items: Sequence[DrawItem], n: int) -> list[float]:
    """The inclusion probability of each item; they add up to n, or to all items.

    Args:
        design: how items are chosen.
        items: the population.
        n: expected size of the sample, from 1.
    """
    weights = [1.0] * len(items)
    match design:
        case "disagreement" | "uncertainty":
            weights = [item.score for item in items]
        case "stratified":
            sizes = Counter(item.stratum for item in items)
            weights = [1 / sizes[item.stratum] for item in items]
        case "width":
            spreads = spread_by_stratum(items)
            weights = [spreads[item.stratum] for item in items]
        case "random":
            pass
    return proportional(weights, n)


def proportional(weights: Sequence[float], n: int) -> list[float]:
    """Probabilities proportional to weights, with a floor, that add up to n.

    An item whose share is above 1 is certain, and the others share what is left.

    Args:
        weights: of the items, not negative; equal ones if all are 0.
        n: expected size of the sample.
    """
    size = len(weights)
    if n >= size:
        return [1.0] * size
    total = math.fsum(weights)
    mean = total / size
    if not mean:
        return [n / size] * size
    floored = [(1 - FLOOR) * weight / mean + FLOOR for weight in weights]
    shares = [0.0] * size
    open_items, left = set(range(size)), float(n)
    while open_items:
        scale = left / math.fsum(floored[i] for i in open_items)
        certain = {i for i in open_items if floored[i] * scale >= 1}
        if not certain:
            for i in open_items:
                shares[i] = floored[i] * scale
            break
        for i in certain:
            shares[i] = 1.0
        open_items -= certain
        left -= len(certain)
    return shares


def spread_by_stratum(items: Iterable[DrawItem]) -> dict[str, float]:
    """The spread of errors in each stratum, from its labels so far.

    Half an error is added on either side: a few labels without an error do not show
    that there is none. A stratum with too few labels gets the greatest spread, 1/2.
    """
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for item in items:
        errors[item.stratum] += [] if item.error is None else [item.error]
    spreads = {}
    for stratum, seen in errors.items():
        if len(seen) < _LEAST_LABELS:
            spreads[stratum] = 0.5
            continue
        padded = [*seen, 0.5, -0.5]
        mean = math.fsum(padded) / len(padded)
        variance = math.fsum((error - mean) ** 2 for error in padded) / len(padded)
        spreads[stratum] = math.sqrt(variance)
    return spreads


def draw(
    design: DrawDesign, items: Sequence[DrawItem], n: int, *, seed: int
) -> list[DrawnItem]:
    """Draw items in the order in which they should be labelled.

    Args:
        design: how items are chosen.
        items: the population; keys are unique.
        n: expected size of the sample.
        seed: of the draw; the same seed draws the same items, whatever their order.

    Raises:
        UsageError: there is nothing to draw.
    """
    if not items or n < 1:
        raise UsageError(
            f"{n} of {len(items)} items cannot be drawn: give --n 1 or more, and a run "
            "with items."
        )
    generator = random.Random(f"{design}/{seed}")  # noqa: S311 - reproducible, no secret
    population = sorted(items, key=lambda item: item.key)
    generator.shuffle(population)
    shares = probabilities(design, population, n)
    start = generator.random()
    chosen: list[tuple[DrawItem, float]] = []
    reached = 0.0
    for item, share in zip(population, shares, strict=True):
        before, reached = reached, reached + share
        # the points start, start + 1, ... that fall into this item's length
        if share >= 1 or math.ceil(before - start) < math.ceil(reached - start):
            chosen.append((item, share))
    generator.shuffle(chosen)
    return [
        DrawnItem(item=item, probability=share, position=position)
        for position, (item, share) in enumerate(chosen, 1)
    ]


def disagreement(replies: Sequence[ModelLabel]) -> float:
    """Share of replies that differ from the most frequent one, scaled to 0 to 1."""
    values = [reply.value for reply in replies if reply.value is not None]
    if len(values) < _LEAST_LABELS:
        return 0.0
    most = max(Counter(values).values())
    return (len(values) - most) / (len(values) - 1)


def uncertainty(replies: Sequence[ModelLabel]) -> float:
    """Nearness of the mean stated probability to 1/2, from 0 to 1.

    Without a stated probability, replicates stand in: their disagreement.
    """
    stated = [reply.probability for reply in replies if reply.probability is not None]
    if not stated:
        return disagreement(replies)
    return 1 - abs(2 * math.fsum(stated) / len(stated) - 1)


def majority(replies: Sequence[ModelLabel]) -> str:
    """The most frequent value of replies, the first at a tie; "": there is none."""
    values = Counter(reply.value for reply in replies if reply.value is not None)
    return values.most_common(1)[0][0] or "" if values else ""


def draw_items(
    replies: Mapping[str, Sequence[ModelLabel]],
    keys: Iterable[str],
    design: DrawDesign,
    labels: Mapping[str, str],
) -> list[DrawItem]:
    """The population of a draw.

    Args:
        replies: to the field that is labelled, by item.
        keys: items of the population.
        design: which decides what the score is.
        labels: gold values so far, by item, for `width`.
    """
    score = uncertainty if design == "uncertainty" else disagreement
    items = []
    for key in keys:
        of_item = replies.get(key, ())
        decided = majority(of_item)
        gold = labels.get(key)
        items.append(
            DrawItem(
                key=key,
                score=score(of_item),
                stratum=decided or "no reply",
                error=None if gold is None else float(gold != decided),
            )
        )
    return items
