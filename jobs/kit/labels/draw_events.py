"""Draws items of a run to label, as events that are recorded before they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jobs.kit.labels.draws import DESIGNS, DrawDesign, draw, draw_items
from runner.labelling import ModelLabel
from store.labels.events import ItemDrawn
from store.labels.fold import LabelSet, Statement, population_hash

if TYPE_CHECKING:
    from jobs.kit.labels.source import LabelSource


def recorded_draw(labels: LabelSet, event: ItemDrawn) -> list[Statement[ItemDrawn]]:
    """The earliest complete record of the draw that an event is of, in its order.

    Two people who draw by the same design, seed, size and population draw the same
    items, and so label the same.

    Args:
        labels: of the folder.
        event: any event of the draw.
    """
    same = [draw for draw in labels.draws if _identity(draw.event) == _identity(event)]
    if not same:
        return []
    first = same[0].event.author
    of_author = (draw for draw in same if draw.event.author == first)
    by_item = {draw.event.item: draw for draw in reversed([*of_author])}
    return sorted(by_item.values(), key=lambda draw: draw.event.position)


def _identity(event: ItemDrawn) -> tuple[object, ...]:
    return (
        *(event.design, event.seed, event.expected, event.field),
        *(event.population, event.population_sha256),
    )


def draw_events(
    source: LabelSource,
    labels: LabelSet,
    *,
    design: str,
    n: int,
    seed: int,
    author: str,
    field: str = "",
) -> list[ItemDrawn]:
    """Draw from all items of a run.

    Args:
        source: the run; its replies are read unless the design is `random`.
        labels: of the folder; `width` looks at their errors so far.
        design: one of `DESIGNS`.
        n: expected number of items.
        seed: of the draw.
        author: who draws.
        field: whose replies decide; "": the first field, or the item itself.

    Raises:
        UsageError: there is nothing to draw.
    """
    (chosen,) = (one for one in DESIGNS if one == design)
    score_field = field or source.fields[0].name
    replies: Mapping[str, Sequence[ModelLabel]] = {}
    if chosen != "random":
        replies = {
            about.item: of_field
            for about, of_field in source.replies.items()
            if about.field == score_field
        }
    gold = {
        about.item: value.value
        for about, value in labels.gold().items()
        if about.field == score_field and value.value is not None
    }
    population = draw_items(replies, source.items, chosen, gold)
    digest = population_hash(source.items)
    return [
        ItemDrawn(
            author=author,
            item=one.item.key,
            field=field,
            design=chosen,
            probability=one.probability,
            stratum=one.item.stratum if _has_strata(chosen) else "",
            seed=seed,
            position=one.position,
            expected=float(min(n, len(population))),
            population=len(population),
            population_sha256=digest,
            score=one.item.score if _has_scores(chosen) else None,
            run=source.run,
        )
        for one in draw(chosen, population, n, seed=seed)
    ]


def _has_strata(design: DrawDesign) -> bool:
    return design in {"stratified", "width"}


def _has_scores(design: DrawDesign) -> bool:
    return design in {"disagreement", "uncertainty"}
