"""Quality beside cost and latency: which sides another one dominates.

A side is dominated by one that is at least as good, as cheap and as fast, and better in
one of these, by what both are known for. Quality is that of the items which all sides
have. That another's quality is higher is a point estimate, so the verdict of the
comparison of the two is given with it.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from jobs.comparison.difference import Level, level
from jobs.comparison.expense import NOTHING_KNOWN, Expense
from jobs.comparison.matching import Drawing, Match, Side, all_compared
from jobs.comparison.pairing import Incomparable, Paired, pair
from jobs.comparison.verdict import OPPOSITE, Verdict
from runner.scorecard import ItemValues


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """That another side is at least as good in all, and better in one."""

    by: Side
    quality: Verdict  #: of that side against this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One side with all that it is judged by."""

    side: Side
    quality: Level
    expense: Expense
    dominated: tuple[Dominance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """All sides of a comparison by quality, cost and latency."""

    path: str  #: the metric that quality is
    unit: str  #: what dollars are for
    cluster: str
    lower_is_better: bool
    n: int  #: items that all sides have a value for
    places: tuple[Place, ...]

    @property
    def is_known(self) -> bool:
        """Whether there is a cost or a latency at all."""
        return any(place.expense != NOTHING_KNOWN for place in self.places)


def judged_by(made: Sequence[Match], headline: str) -> str | None:
    """The metric that quality is: the job's headline if it was compared, or the first.

    None where nothing was.
    """
    paths = [each.path for match in made for each in match.compared]
    return headline if headline in paths else next(iter(paths), None)


def front(
    made: Sequence[Match],
    path: str,
    spent: Mapping[tuple[str, str], Expense],
    unit: str,
    drawing: Drawing,
) -> Front | None:
    """All sides of *made* that have the metric *path*; None where they define it apart.

    Args:
        made: every match of the comparison.
        path: the metric that quality is.
        spent: by key of the side.
        unit: what its dollars are for.
        drawing: how intervals are drawn.
    """
    both = (side for match in made for side in (match.a, match.b))
    sides = [
        side
        for side in {side.key: side for side in both}.values()
        if path in side.comparable
    ]
    values = _shared([side.comparable[path]() for side in sides])
    try:
        alone = [pair(values[0], own) for own in values]
    except Incomparable:
        return None
    draw = drawing.maker()
    places = [
        Place(
            side=side,
            quality=level(paired, draw(paired.drawn)),
            expense=spent.get(side.key, NOTHING_KNOWN),
        )
        for side, paired in zip(sides, alone, strict=True)
    ]
    lower_is_better = values[0].lower_is_better

    said = _verdicts(made, sides, path, drawing)

    def dominated(own: int) -> tuple[Dominance, ...]:
        return tuple(
            Dominance(
                by=sides[other],
                quality=said.get((sides[own].key, sides[other].key), "undecided"),
            )
            for other in range(len(places))
            if dominates(places[other], places[own], lower_is_better=lower_is_better)
        )

    return Front(
        path=path,
        unit=unit,
        cluster=values[0].cluster,
        lower_is_better=lower_is_better,
        n=_defined(alone),
        places=tuple(
            replace(place, dominated=dominated(at)) for at, place in enumerate(places)
        ),
    )


_Key: TypeAlias = tuple[str, str]


def _verdicts(
    made: Sequence[Match], sides: Sequence[Side], path: str, drawing: Drawing
) -> dict[tuple[_Key, _Key], Verdict]:
    """The word on the second side against the first, for every two sides.

    Two sides that were compared keep the comparison's word, so that one pair and
    metric has one verdict. Others, such as different models of two runs, are compared
    here.
    """
    found: dict[tuple[_Key, _Key], Verdict] = {}
    asked = [(a, b) for a in sides for b in sides if a.key < b.key]
    known = {frozenset((match.a.key, match.b.key)) for match in made}
    rest = [(a, b) for a, b in asked if frozenset((a.key, b.key)) not in known]
    more = all_compared(rest, (glob.escape(path),), drawing)
    for match in (*made, *more):
        for each in match.compared:
            if each.path == path:
                found[match.a.key, match.b.key] = each.verdict
                found[match.b.key, match.a.key] = OPPOSITE[each.verdict]
    return found


def dominates(one: Place, other: Place, *, lower_is_better: bool) -> bool:
    """Whether *one* is nowhere behind *other*, and somewhere ahead of it.

    Sides without a cost or a latency that both are known for are not set against each
    other: quality alone is what the comparison itself is about.
    """
    mine, theirs = one.quality.value, other.quality.value
    if mine is None or theirs is None:
        return False
    expenses = [
        known
        for known in (
            (one.expense.usd, other.expense.usd),
            (one.expense.seconds, other.expense.seconds),
        )
        if None not in known
    ]
    gains = [
        mine - theirs if not lower_is_better else theirs - mine,
        *(b - a for a, b in expenses if a is not None and b is not None),
    ]
    return bool(expenses) and min(gains) >= 0 and max(gains) > 0


def _defined(alone: Sequence[Paired]) -> int:
    return min((paired.overlap.n for paired in alone), default=0)


def _shared(values: Sequence[ItemValues]) -> list[ItemValues]:
    """The same metric on the items that all sides have.

    An item without a value on one side has none on any; its document is still drawn.
    """
    places = [{item: at for at, item in enumerate(own.items)} for own in values]
    common = sorted(set.intersection(*(set(place) for place in places)))
    rows = [[place[item] for item in common] for place in places]
    defined = [
        all(_has_value(own, row[n]) for own, row in zip(values, rows, strict=True))
        for n in range(len(common))
    ]
    return [
        replace(
            own,
            items=common,
            clusters=[own.clusters[at] for at in row],
            first=[
                own.first[at] if has else None
                for at, has in zip(row, defined, strict=True)
            ],
            second=None if own.second is None else [own.second[at] for at in row],
        )
        for own, row in zip(values, rows, strict=True)
    ]


def _has_value(own: ItemValues, at: int) -> bool:
    second = 1.0 if own.second is None else own.second[at]
    return own.first[at] is not None and second is not None
