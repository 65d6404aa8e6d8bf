"""What tables show of a comparison: metrics in groups of two models, and items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tui.drawing.format import UNKNOWN, amount, count, money
from tui.drawing.tables.columns import Column
from tui.sources.comparing import (
    Comparison,
    Cost,
    ItemGap,
    Metric,
    Pair,
    PValue,
    Side,
    Standing,
)

PER = 1_000
"""Tasks that a cost is said of: one alone often costs a hundredth of a cent."""
COST = f"$ per {PER:,} tasks"
_LARGE = 99.995
"""Dollars from which on nobody asks for cents."""
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the tasks of both sides cost."""

    a: Cost
    b: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the comparison: two models, or one of their metrics, or their costs."""

    pair: Pair
    name: str  #: of the metric; of the pair: both models
    shown: Metric | Costs | None  #: None: it heads what follows

    @property
    def heading(self) -> str:
        """What stands on the whole line; empty where it has columns."""
        return self.name if self.shown is None else ""


def rows(comparison: Comparison) -> Iterator[Row]:
    """The lines, in the order of the command; the costs of each two models end them."""
    none = Cost(usd=None, tasks=0)
    for pair in comparison.compared.pairs:
        yield Row(pair=pair, name=_pair(pair), shown=None)
        for name, metric in pair.metrics.items():
            yield Row(pair=pair, name=name, shown=metric)
        costs = Costs(
            a=comparison.costs.get((pair.a.run, pair.a.model), none),
            b=comparison.costs.get((pair.b.run, pair.b.model), none),
        )
        yield Row(pair=pair, name=COST, shown=costs)


def rows_wanted(listed: Mapping[int, Row], part: str) -> dict[int, Row]:
    """The metrics whose names have *part*, below the two models they are of."""
    kept: dict[int, Row] = {}
    head: dict[int, Row] = {}
    for number, row in listed.items():
        if row.shown is None:
            head = {number: row}
        elif has(row.name, part):
            kept |= {**head, number: row}
            head = {}
    return kept


def items_wanted(listed: Mapping[int, ItemGap], part: str) -> dict[int, ItemGap]:
    """The items whose keys have *part*."""
    return {n: gap for n, gap in listed.items() if has(gap.item, part)}


def has(text: str, part: str) -> bool:
    """Whether what was typed is a part of *text*, in letters of either case."""
    return part.lower() in text.lower()


def _pair(pair: Pair) -> str:
    return f"A {_side(pair.a)}  ↔  B {_side(pair.b)}"


def _side(side: Side) -> str:
    return f"{side.run} {side.model}"


def number(value: float | None, *, is_signed: bool = False) -> str:
    """A metric's value, or a difference of two, in at most six characters.

    >>> number(0.91249), number(-0.35, is_signed=True), number(12_345.6), number(None)
    ('0.912', '−0.350', '12 k', '-')
    """
    if value is None:
        return UNKNOWN
    size = abs(value)
    # what is larger needs fewer places: the first digits are those that count
    places = sum(size < limit for limit in (9.9995, 99.995, 999.95))
    figure = f"{size:,.{places}f}" if size < _MANY - 0.5 else amount(size)
    if not figure.strip("0."):
        return figure  # what is rounded to nothing has no side
    if value < 0:
        return f"−{figure}"
    return f"+{figure}" if is_signed else figure


def _dollars(usd: float | None) -> str:
    """Dollars in at most seven characters; `?` where unknown."""
    return f"${usd:,.0f}" if usd is not None and usd >= _LARGE else money(usd)


def _some(n: int) -> str:
    """How many, from ten thousand on by the thousand."""
    return count(n) if n < _MANY else amount(n)


def _value(row: Row, *, is_b: bool) -> str:
    match row.shown:
        case Metric(a=a, b=b):
            return number(b if is_b else a)
        case Costs(a=before, b=after):
            return _dollars(per_thousand(after if is_b else before))
        case None:
            return ""


def per_thousand(cost: Cost) -> float | None:
    """Dollars for a thousand tasks; None: not known, or there is none yet."""
    return None if cost.usd is None or not cost.tasks else PER * cost.usd / cost.tasks


def _difference(row: Row) -> str:
    match row.shown:
        case Metric(difference=difference):
            return number(difference, is_signed=True)
        case Costs(a=a, b=b):
            before, after = per_thousand(a), per_thousand(b)
            if before is None or after is None:
                return money(None)
            sign = "−" if after < before else "+" if after > before else ""
            return f"{sign}{_dollars(abs(after - before))}"
        case None:
            return ""


def _interval(row: Row) -> str:
    match row.shown:
        case Metric(lo=float() as lo, hi=float() as hi):
            return f"{number(lo, is_signed=True)} … {number(hi, is_signed=True)}"
        case Metric():
            return UNKNOWN
        case _:
            return ""


_DECIDED = {"better", "worse"}
"""Verdicts that name a winner."""


def _verdict(row: Row) -> str:
    match row.shown:
        case Metric(n=0):
            return "no pairs"
        case Metric(verdict=verdict):
            return f"B {verdict}" if verdict in _DECIDED else verdict
        case _:
            return ""


def _verdict_tone(row: Row) -> str:
    """Only a verdict that names a winner stands out."""
    match row.shown:
        case Metric(verdict=verdict) if verdict in _DECIDED:
            return ""
        case _:
            return "dim"


def _standing(row: Row) -> str:
    match row.shown:
        case Metric(standing=Standing(wins=wins, losses=losses, ties=ties)):
            return "/".join(map(_some, (wins, losses, ties)))
        case Metric():
            return UNKNOWN
        case _:
            return ""


def _pairs(row: Row) -> str:
    return count(row.shown.n) if isinstance(row.shown, Metric) else ""


def _p(row: Row) -> str:
    match row.shown:
        case Metric(test=PValue(p_holm=p)):
            return f"{p:.2g}"
        case Metric():
            return UNKNOWN
        case _:
            return ""


def _figure(
    title: str, width: int, text: Callable[[Row], str], *, drops: int = 0
) -> Column[Row]:
    return Column(title=title, width=width, text=text, is_right=True, drops=drops)


METRIC_COLUMNS: tuple[Column[Row], ...] = (
    Column(title="metric", width=18, text=lambda row: row.name, grows=True),
    _figure("A", 7, lambda row: _value(row, is_b=False)),
    _figure("B", 7, lambda row: _value(row, is_b=True)),
    _figure("B - A", 8, _difference),
    _figure("interval", 15, _interval),
    Column(title="verdict", width=10, text=_verdict, tone=_verdict_tone),
    _figure("won/lost/tied", 16, _standing, drops=1),
    _figure("pairs", 7, _pairs, drops=2),
    _figure("p (Holm)", 8, _p, drops=3),
)


def about(row: Row) -> str:
    """What is worth knowing of a line beyond its columns."""
    match row.shown:
        case Metric() as metric:
            return " · ".join((row.name, *_about_metric(metric)))
        case Costs(a=a, b=b):
            tasks = f"{count(a.tasks)} tasks ended in A, {count(b.tasks)} in B"
            return f"{COST} · {tasks} · as the logs had it then"
        case None:
            return " · ".join(_about_pair(row.pair))


def _about_metric(metric: Metric) -> Iterator[str]:
    pairs = f"{count(metric.n)} pairs in {count(metric.clusters)} {metric.cluster}s"
    yield f"{pairs}, only A {count(metric.only_a)}, only B {count(metric.only_b)}"
    if metric.standing is not None:
        won = metric.standing
        yield f"won {count(won.wins)}, lost {count(won.losses)}, tied {count(won.ties)}"
    if metric.undefined:
        yield f"{count(metric.undefined)} without a value"
    if metric.few:
        yield f"{count(metric.clusters)} {metric.cluster}s are too few for a winner"
    elif metric.lo is None or metric.hi is None:
        yield "no interval, so neither is called better"
    if metric.test is None:
        yield "no test, so neither is called better"
    else:
        yield f"p {metric.test.p:.2g}: {metric.test.name}"
    yield metric.definition


def _about_pair(pair: Pair) -> Iterator[str]:
    yield f"{count(len(pair.metrics))} metrics"
    if not any(metric.n for metric in pair.metrics.values()):
        yield "nothing in common: no item has a value on both sides"
    for name, paths in (("A", pair.only_a), ("B", pair.only_b)):
        if paths:
            yield f"{count(len(paths))} that only {name} has"
    if pair.not_compared:
        yield f"{count(len(pair.not_compared))} that cannot be compared"
    yield "enter tells all"


def about_items(row: Row, n: int) -> str:
    """What a list of items is of.

    Args:
        row: the metric that they differ in.
        n: how many are listed.
    """
    return (
        f"{row.name} · {_pair(row.pair)} · {count(n)} items differ · enter: its tasks"
    )


ITEM_COLUMNS: tuple[Column[ItemGap], ...] = (
    Column(title="item", width=30, text=lambda gap: gap.item, grows=True),
    Column(title="A", width=8, text=lambda gap: number(gap.a), is_right=True),
    Column(title="B", width=8, text=lambda gap: number(gap.b), is_right=True),
    Column(
        title="B - A",
        width=8,
        text=lambda gap: number(gap.b - gap.a, is_signed=True),
        is_right=True,
    ),
)
