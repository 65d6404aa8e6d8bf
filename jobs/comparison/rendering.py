"""A comparison for people, for programs and for spreadsheets.

What a terminal shows fits 80 columns: a metric takes two lines, its name with the
verdict and its numbers below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from jobs.comparison.difference import Compared
from jobs.comparison.matching import Drawing, Match, Side
from jobs.comparison.pairing import ItemGap
from runner.scorecard import Cell

WIDTH = 80
UNDEFINED = "n/a"

_WIDTHS = (7, 7, 7, 18, 8, 7, 14)


def text(made: Sequence[Match], drawing: Drawing) -> str:
    """All matches, and how their numbers came about."""
    lines: list[str] = []
    for match in made:
        lines += (*_match(match, drawing.level), "")
    lines += _method(made, drawing)
    return "\n".join(lines)


def items_text(path: str, match: Match, gaps: Sequence[ItemGap]) -> str:
    """The items of one metric on which the sides differ most."""
    lines = [
        "",
        _one_line(f"{path}: {match.a.model} (A), {match.b.model} (B)"),
        _cells("A", "B", "B - A", "item"),
    ]
    lines += (
        _cells(_number(gap.a), _number(gap.b), _signed(gap.b - gap.a), gap.item)
        for gap in gaps
    )
    return "\n".join(lines if gaps else [*lines[:2], "  no item differs"])


def as_json(
    made: Sequence[Match], drawing: Drawing, listed: Sequence[Sequence[ItemGap]]
) -> dict[str, Any]:
    """All matches, each with the items *listed* for it, if there are any."""
    pairs = [_match_json(match) for match in made]
    for pair, gaps in zip(pairs, listed, strict=False):
        pair["items"] = [asdict(gap) for gap in gaps]
    return {**asdict(drawing), "family": family(made), "pairs": pairs}


def _match_json(match: Match) -> dict[str, Any]:
    return {
        "a": _side_json(match.a),
        "b": _side_json(match.b),
        "metrics": {each.path: _metric(each) for each in match.compared},
        "not_compared": {each.path: each.why for each in match.refused},
        "only_a": list(match.only_a),
        "only_b": list(match.only_b),
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {"run": side.run, "model": side.model, "seq": side.seq}


def _metric(each: Compared) -> dict[str, Any]:
    gap, own, beside = each.gap, each.p_values.own, each.p_values.beside
    return {
        "a": gap.a,
        "b": gap.b,
        "difference": gap.value,
        "lo": gap.interval.lo,
        "hi": gap.interval.hi,
        "b_used": gap.interval.b_used,
        "flagged": gap.interval.flagged,
        "verdict": gap.verdict,
        "lower_is_better": each.lower_is_better,
        "few": each.is_from_few,
        "test": None if own is None else {**asdict(own), "p_holm": each.p_holm},
        "beside": None if beside is None else asdict(beside),
        **asdict(each.overlap),
        "standing": None if each.standing is None else asdict(each.standing),
        "cluster": each.cluster,
        "definition": each.definition,
    }


COLUMNS = (
    *("run_a", "model_a", "run_b", "model_b", "metric", "a", "b", "difference"),
    *("lo", "hi", "verdict", "test", "p", "p_holm", "beside", "beside_p"),
    *("n", "clusters", "only_a", "only_b", "undefined", "wins", "ties", "losses"),
    *("cluster", "definition"),
)
"""Of the file that `--csv` writes."""


def rows(made: Sequence[Match]) -> Iterator[tuple[Cell, ...]]:
    """One row a metric and match, below `COLUMNS`."""
    yield COLUMNS
    for match in made:
        for each in match.compared:
            yield _row(match, each)


def _row(match: Match, each: Compared) -> tuple[Cell, ...]:
    gap, overlap, standing = each.gap, each.overlap, each.standing
    own, beside = each.p_values.own, each.p_values.beside
    return (
        *(match.a.run, match.a.model, match.b.run, match.b.model, each.path),
        *(gap.a, gap.b, gap.value, gap.interval.lo, gap.interval.hi, gap.verdict),
        *((own.name, own.p) if own else (None, None)),
        each.p_holm,
        *((beside.name, beside.p) if beside else (None, None)),
        *(overlap.n, overlap.clusters),
        *(overlap.only_a, overlap.only_b, overlap.undefined),
        *(
            (standing.wins, standing.ties, standing.losses)
            if standing
            else (None, None, None)
        ),
        *(each.cluster, each.definition),
    )


def _match(match: Match, level: float) -> Iterator[str]:
    for name, side in (("A", match.a), ("B", match.b)):
        yield _one_line(f"{name}  {side.run}  {side.model}")
    yield ""
    interval = f"{100 * level:.4g}% interval"
    yield _cells("A", "B", "B - A", interval, "p (Holm)", "n", "win/tie/loss")
    shared = [each for each in match.compared if each.overlap.n]
    for each in shared:
        verdict = _verdict(each)
        yield f"{_one_line(each.path):<{WIDTH - len(verdict) - 2}}  {verdict}"
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
    yield from _flagged(shared)


def _verdict(each: Compared) -> str:
    """Which side is higher; whether that is worse, and how few clusters say so."""
    verdict = each.gap.verdict
    if verdict not in {"A higher", "B higher"}:
        return verdict
    notes = ["lower is better"] if each.lower_is_better else []
    if each.is_from_few:
        notes.append(f"{each.overlap.clusters} {each.cluster}s only")
    return f"{verdict} ({'; '.join(notes)})" if notes else verdict


def _numbers(each: Compared) -> tuple[str, ...]:
    gap, standing = each.gap, each.standing
    lo, hi = gap.interval.lo, gap.interval.hi
    ends = "" if lo is None or hi is None else f"[{_signed(lo)}, {_signed(hi)}]"
    return (
        _number(gap.a),
        _number(gap.b),
        _signed(gap.value),
        ends or UNDEFINED,
        UNDEFINED if each.p_holm is None else f"{each.p_holm:.2g}",
        str(each.overlap.n),
        f"{standing.wins}/{standing.ties}/{standing.losses}" if standing else "",
    )


def _cells(*cells: str) -> str:
    """Cells to the right of their columns; the last as long as it is."""
    *padded, last = cells
    widths = _WIDTHS[: len(padded)]
    aligned = (f"{cell:>{width}}" for cell, width in zip(padded, widths, strict=True))
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
    yield (
        f"Common items only. Intervals at {drawing.level:.10g}: percentile bootstrap "
        f"by {clusters}, B={drawing.b}, seed={drawing.seed}, both sides drawn alike."
    )
    if names:
        yield f"p: {', '.join(names)}; Holm over {family(made)}."


def family(made: Sequence[Match]) -> str:
    """What Holm's correction is over."""
    owns = [each.p_values.own for match in made for each in match.compared]
    tests = len(owns) - owns.count(None)
    return (
        f"the {tests} {'test' if tests == 1 else 'tests'} of this comparison "
        f"({len(made)} {'pair' if len(made) == 1 else 'pairs'} of models)"
    )


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:+.3f}"


def _one_line(words: str) -> str:
    """Names come from outside: none of them may begin a line of its own."""
    return words.replace("\n", "\N{SYMBOL FOR LINE FEED}")
