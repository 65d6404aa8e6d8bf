"""A comparison as a terminal shows it.

It fits 80 columns: a metric takes two lines, its name with the verdict and its numbers
below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jobs.comparison.difference import Compared
from jobs.comparison.front import Front, Place
from jobs.comparison.matching import Drawing, Match, Side, family
from jobs.comparison.pairing import ItemGap
from jobs.counted import counted
from jobs.metrics import Agreement, Interval

WIDTH = 80
UNDEFINED = "n/a"
FITTED = "adjusted"
STANDING = "won/lost/tied, n"
"""Heads the counts of items on which B is better, worse and equal, and of all."""

_WIDTHS = (6, 6, 7, 18, 7, 8)
_FRONT_WIDTHS = (7, 18, 14, 9)


def text(made: Sequence[Match], front: Front | None, drawing: Drawing) -> str:
    """All matches, what their sides cost, and how the numbers came about."""
    lines: list[str] = []
    for match in made:
        lines += (*_match(match, drawing.level), "")
    if front is not None and front.is_known:
        lines += (*_front(front, drawing.level), "")
    lines += _method(made, drawing)
    return "\n".join(lines)


def items_text(path: str, match: Match, gaps: Sequence[ItemGap]) -> str:
    """The items of one metric on which the sides differ most."""
    lines = [
        "",
        _one_line(f"{path}: {_name(match.a)} (A), {_name(match.b)} (B)"),
        _cells("A", "B", "B - A", "item"),
    ]
    lines += (
        _cells(_number(gap.a), _number(gap.b), _signed(gap.b - gap.a), gap.item)
        for gap in gaps
    )
    return "\n".join(lines if gaps else [*lines[:2], "  no item differs"])


def _match(match: Match, level: float) -> Iterator[str]:
    for name, side in (("A", match.a), ("B", match.b)):
        yield _one_line(f"{name}  {_name(side)}")
    yield ""
    interval = f"{100 * level:.4g}% interval"
    yield _cells("A", "B", "B - A", interval, "p", "p (Holm)", STANDING)
    shared = [each for each in match.compared if each.overlap.n]
    for each in shared:
        yield from _headed(_one_line(match.a.name(each.path)), _verdict(each))
        yield _cells(*_numbers(each))
    if apart := [each.path for each in match.compared if not each.overlap.n]:
        yield _one_line(f"no item in common: {', '.join(apart)}")
    yield from _unpaired(match.compared)
    for refused in match.refused:
        yield _one_line(f"not compared: {refused.path}: {refused.why}")
    for name, paths in (("A", match.only_a), ("B", match.only_b)):
        if paths:
            yield _one_line(f"only {name} has: {', '.join(paths)}")
    yield from _beside(shared)
    yield from _agreed(shared)
    if match.alike is not None:
        yield _one_line(
            f"agreement of the {match.alike.what}s on {match.alike.n} items, kappa and "
            f"AC1: {_agreement(match.alike.agreement)}"
        )
    yield from _flagged(shared)


def _headed(name: str, verdict: str) -> Iterator[str]:
    """The verdict at the right of a metric's name, or below it where that is long."""
    room = WIDTH - len(verdict) - 2
    if len(name) > room:
        name, _, key = name.partition("  ")
        if key:
            yield name
            name = f"  {key}"
    yield f"{name:<{room}}  {verdict}"


def _name(side: Side) -> str:
    return "  ".join(side.key)


def _verdict(each: Compared) -> str:
    """The word on B; how many clusters are too few, and whether lower is better."""
    match each.verdict:
        case "too few":
            return f"too few ({counted(each.overlap.clusters, each.cluster)})"
        case "undecided":
            return "undecided"
        case word:
            return f"B {word}{' (lower is better)' if each.lower_is_better else ''}"


def _numbers(each: Compared) -> tuple[str, ...]:
    gap, won, own = each.gap, each.standing, each.p_values.own
    outcomes = f"{won.wins}/{won.losses}/{won.ties}" if won else "-"
    return (
        _number(gap.a),
        _number(gap.b),
        _signed(gap.value),
        _ends(gap.interval, _signed),
        UNDEFINED if own is None else f"{own.p:.2g}",
        UNDEFINED if each.p_holm is None else f"{each.p_holm:.2g}",
        f"{outcomes}, {each.overlap.n}",
    )


def _cells(*cells: str, widths: Sequence[int] = _WIDTHS) -> str:
    """Cells to the right of their columns; the last as long as it is."""
    *padded, last = cells
    own = widths[: len(padded)]
    aligned = (f"{cell:>{width}}" for cell, width in zip(padded, own, strict=True))
    return "  ".join((*aligned, _one_line(last))).rstrip()


def _unpaired(compared: Sequence[Compared]) -> Iterator[str]:
    """What is left out, told once for all metrics that leave out the same."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for each in compared:
        left_out = (each.overlap.only_a, each.overlap.only_b, each.overlap.undefined)
        groups.setdefault(left_out, []).append(each.path)
    if groups.keys() <= {(0, 0, 0)}:
        return
    yield "items left out: only in A / only in B / in both without a value"
    for counts, paths in groups.items():
        who = "every metric" if len(groups) == 1 else ", ".join(paths)
        yield _one_line(f"  {'/'.join(map(str, counts))}  {who}")


def _beside(compared: Sequence[Compared]) -> Iterator[str]:
    """Tests that would hold if items did not hang together in clusters."""
    by_name: dict[str, list[str]] = {}
    for each in compared:
        if beside := each.p_values.beside:
            told = f"{each.path} {beside.p:.2g}"
            by_name.setdefault(beside.name, []).append(told)
    for name, tests in by_name.items():
        yield _one_line(f"{name}'s p, if items were independent: {', '.join(tests)}")


def _agreed(compared: Sequence[Compared]) -> Iterator[str]:
    """How often both are right or both wrong, and how far that is beyond chance."""
    told = [
        f"{each.path} {_agreement(found)}"
        for each in compared
        if (found := each.agreement)
    ]
    if told:
        yield _one_line(
            f"agreement in being right, its kappa and AC1: {', '.join(told)}"
        )


def _agreement(found: Agreement) -> str:
    return " ".join(map(_number, (found.percent, found.kappa, found.ac)))


def _front(front: Front, level: float) -> Iterator[str]:
    lower = " (lower is better)" if front.lower_is_better else ""
    yield _one_line(
        f"{front.path}{lower} of the {front.n} items that all sides have, cost, latency"
    )
    interval = f"{100 * level:.4g}% interval"
    heads = ("quality", interval, f"USD/{front.unit}", "median s", "side")
    yield _cells(*heads, widths=_FRONT_WIDTHS)
    for place in front.places:
        cells = (
            _number(place.quality.value),
            _ends(place.quality.interval, _number),
            _significant(place.expense.usd),
            _significant(place.expense.seconds),
        )
        yield _cells(*cells, _name(place.side), widths=_FRONT_WIDTHS)
        yield from _dominated(place)


def _dominated(place: Place) -> Iterator[str]:
    """By whom; a higher quality is no more than the interval says."""
    for each in place.dominated:
        yield _one_line(
            f"         dominated by {_name(each.by)} (quality {each.quality})"
        )


def _flagged(compared: Sequence[Compared]) -> Iterator[str]:
    for each in compared:
        if each.gap.interval.flagged:
            lost = each.gap.interval.b - each.gap.interval.b_used
            yield _one_line(
                f"interval of {each.path}: undefined in {lost} of "
                f"{each.gap.interval.b} replicates"
            )


def _method(made: Sequence[Match], drawing: Drawing) -> Iterator[str]:
    compared = [each for match in made for each in match.compared]
    clusters = ", ".join(sorted({each.cluster for each in compared})) or "cluster"
    names = sorted({each.p_values.own.name for each in compared if each.p_values.own})
    adjusted = ", adjusted where that is too narrow" if drawing.form == FITTED else ""
    yield (
        f"Common items only. Intervals at {drawing.level:.10g}: percentile bootstrap "
        f"by {clusters}, B={drawing.b}, seed={drawing.seed}{adjusted}."
    )
    if names:
        yield f"p: {', '.join(names)}."
        yield _one_line(f"p (Holm): over {family(made)}.")
    yield f"{drawing.rule.sentence(clusters.partition(',')[0])}."


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:+.3f}"


def _significant(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3g}"


def _ends(interval: Interval, shown: Callable[[float], str]) -> str:
    lo, hi = interval.lo, interval.hi
    return UNDEFINED if lo is None or hi is None else f"[{shown(lo)}, {shown(hi)}]"


def _one_line(words: str) -> str:
    """Names come from outside: none of them may begin a line of its own."""
    return words.replace("\n", "\N{SYMBOL FOR LINE FEED}")
