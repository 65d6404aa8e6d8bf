"""Renders a difference for people at a terminal, and for programs as JSON."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from jobs.differences.difference import (
    Cause,
    CauseShare,
    ChangedMetric,
    DifferenceStage,
    ItemShare,
    ScoringDifference,
    VerdictChange,
)
from jobs.text import fixed, plural
from runner.errors import UsageError
from runner.scorecard import Booking
from runner.typeset import in_columns


def named_metrics(
    made: ScoringDifference, paths: Sequence[str]
) -> tuple[ChangedMetric, ...]:
    """The changed metrics that *paths* name, `*` for any characters; all by default.

    Raises:
        UsageError: one of them names no metric, not even one that stayed.
    """
    every = {*made.unchanged, *(each.path for each in made.changed)}
    for path in paths:
        if not fnmatch.filter(every, path):
            near = difflib.get_close_matches(path, sorted(every), n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise UsageError(f"There is no metric {path}{hint}")
    return tuple(each for each in made.changed if not paths or _is_named(each, paths))


def _is_named(each: ChangedMetric, paths: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(each.path, path) for path in paths)


def text(made: ScoringDifference, paths: Sequence[str], top: int) -> str:
    """Causes, then the metrics of each model by cause, then items and verdicts.

    Args:
        made: what to tell.
        paths: of the metrics to list, with their items; where there are none, those to
            look at first, with the items of the headline.
        top: how many items and verdicts of each part are listed.
    """
    lines = [
        f"{made.job}  run {made.run}  scoring {made.before} -> {made.after}",
        *(f"note: {note}" for note in made.notes),
        *_causes(made.stages),
    ]
    first = {made.headline, *made.headlines}
    shown = [each for each in named_metrics(made, paths) if paths or each.path in first]
    for model in dict.fromkeys(each.model for each in shown):
        own = [each for each in shown if each.model == model]
        lines += ["", _one_line(model), *_metrics(own)]
        judged = [each for each in own if each.path == made.headline] or own[:1]
        for each in own if paths else judged:
            lines += _items(each, top)
    lines += _verdicts(made.stages, top)
    for stage in made.stages:
        for model, booking in stage.bookings.items():
            lines += _booked(model, booking)
    listed_all = len(shown) == len(made.changed)
    lines += [
        "",
        extent(made) + ("." if listed_all else "; --metric '*' lists them all."),
        "Causes were changed one at a time, in the order listed. The parts add up to",
        "each change exactly: --json gives them as fractions.",
    ]
    return "\n".join(lines)


def extent(made: ScoringDifference) -> str:
    """How many metrics a difference is about."""
    divided = [each for each in made.changed if each.change is not None]
    return (
        f"{plural(len(divided), 'metric')} changed, "
        f"{len(made.changed) - len(divided):,} have a value on one side alone, "
        f"{len(made.unchanged):,} stayed"
    )


def _causes(stages: Sequence[DifferenceStage]) -> Iterator[str]:
    yield "causes" if stages else "causes: none"
    for stage in stages:
        told = ", ".join(
            f"{cause.label} {cause.before} -> {cause.after}"
            if cause.before or cause.after
            else cause.label
            for cause in stage.causes
        )
        n = sum(map(len, stage.verdicts.values()))
        moved = f"{plural(stage.metrics, 'metric')}, {plural(n, 'verdict')}"
        effect = moved if stage.metrics or n else "without effect"
        yield _one_line(f"  {told}: {effect}")


def _metrics(changed: Sequence[ChangedMetric]) -> Iterator[str]:
    """A line a metric; further parts stand below the first."""
    width = max(len(each.path) for each in changed)
    yield f"  {'metric':<{width}}  {'before':>8}  {'after':>8}  {'change':>9}  by cause"
    for each in changed:
        head = (
            f"{each.path:<{width}}  {number(each.before):>8}  "
            f"{number(each.after):>8}  {signed(each.change):>9}"
        )
        for part in each.parts:
            if part.change is None or part.change:
                yield _one_line(f"  {head}  {_short(part)}")
                head = " " * len(head)


def _short(part: CauseShare) -> str:
    names = " and ".join(cause.name or cause.kind for cause in part.causes)
    return names if part.change is None else f"{signed(part.change):>9} {names}"


def labels(causes: Sequence[Cause]) -> str:
    """The causes of a part."""
    return " and ".join(cause.label for cause in causes)


def _items(each: ChangedMetric, top: int) -> Iterator[str]:
    for part in each.parts:
        if not part.items:
            continue
        yield _one_line(
            f"  {each.path}, {labels(part.causes)}: {signed(part.change)} by "
            f"{plural(len(part.items), 'item')}"
        )
        for item in part.items[:top]:
            yield _one_line(
                f"    {signed(item.share):>10}  {_moved(item)}  {item.item}"
            )
        rest = part.items[top:]
        if rest:
            yield f"    {signed(_sum(rest)):>10}  {len(rest):,} more: --top, or --json"


def _sum(items: Sequence[ItemShare]) -> Fraction | None:
    shares = [item.share for item in items if item.share is not None]
    return sum(shares, Fraction()) if shares else None


def _moved(item: ItemShare) -> str:
    """Before and after; an item that is on one side alone came or went."""
    if item.before is None:
        return f"came as {number(item.after)}"
    if item.after is None:
        return f"went as {number(item.before)}"
    return f"{number(item.before)} -> {number(item.after)}"


def _verdicts(stages: Sequence[DifferenceStage], top: int) -> Iterator[str]:
    for stage in stages:
        for model, causes, changes in stage.by_cause():
            yield ""
            yield _one_line(
                f"verdicts of {model}, {labels(causes)}: {verdict_tally(changes)}"
            )
            for each in judged_first(changes)[:top]:
                yield _one_line(f"  {each.key}: {' -> '.join(sides(each))}")
            if changes[top:]:
                yield f"  {len(changes) - top:,} more: --top, or --json"


def verdict_tally(changes: Sequence[VerdictChange]) -> str:
    """How many verdicts changed, and to which side."""
    came = sum(each.right > 0 for each in changes)
    ceased = sum(each.right < 0 for each in changes)
    return (
        f"{len(changes):,} changed, {came:,} came to be right, {ceased:,} ceased to be"
    )


def judged_first(changes: Sequence[VerdictChange]) -> list[VerdictChange]:
    """Those that came to be right or ceased to be before the others."""
    return sorted(changes, key=lambda each: not each.right)


def sides(each: VerdictChange) -> tuple[str, str]:
    """What was read and how it was judged, before and after.

    Where the same was read, what was expected; of long texts, what differs.
    """
    known = [side for side in (each.before, each.after) if side is not None]
    is_read_alike = len({side.value for side in known}) == 1
    told = [
        f"expected {side.expected}"
        if is_read_alike and known[0].expected != known[-1].expected
        else side.value or f"[{side.rule}]"
        for side in known
    ]
    letters = enumerate(zip(told[0], told[-1], strict=False))
    shared = next((place for place, (was, now) in letters if was != now), 0)
    marked = {
        id(side): f"{_cut(text, shared)} ({_MARKS[side.correct]})"
        for side, text in zip(known, told, strict=True)
    }
    before, after = (marked.get(id(side), "none") for side in (each.before, each.after))
    return before, after


_MARKS: Mapping[bool | None, str] = {True: "right", False: "wrong", None: "-"}

_SHOWN_CHARS = 48
"""Characters of what was read from a reply; --json has all of it."""


def _cut(told: str, shared: int) -> str:
    """As much of a text as fits, from where it differs if that is far."""
    if len(told) <= _SHOWN_CHARS:
        return told
    begin = max(0, shared - _SHOWN_CHARS // 4)
    text = told[begin : begin + _SHOWN_CHARS]
    end = "…" if begin + _SHOWN_CHARS < len(told) else ""
    return f"{'…' if begin else ''}{text}{end}"


def _booked(model: str, booking: Booking) -> Iterator[str]:
    yield ""
    yield _one_line(
        f"{booking.metric} of {model} by {booking.table.caption}: {booking.change:+d}"
    )
    rows = [tuple(map(str, row)) for row in booking.table.rows]
    for line in in_columns([booking.table.columns, *rows]):
        yield _one_line(f"  {line}")


def number(value: float | None) -> str:
    """A metric's value."""
    return fixed(value, ".4g")


def signed(value: Fraction | None) -> str:
    """A change."""
    return fixed(None if value is None else float(value), "+.4g")


def _one_line(words: str) -> str:
    """Names come from outside: none of them may begin a line of its own."""
    return words.replace("\n", "\N{SYMBOL FOR LINE FEED}")


def as_json(made: ScoringDifference, paths: Sequence[str] = ()) -> dict[str, Any]:
    """Everything; `exact` are fractions, whose sums have no rounding."""
    return {
        "run": made.run,
        "job": made.job,
        "before": {"scoring": made.before, "digest": made.digests[0]},
        "after": {"scoring": made.after, "digest": made.digests[1]},
        "headline": made.headline,
        "causes": [_stage_json(stage) for stage in made.stages],
        "metrics": [_changed_json(each) for each in named_metrics(made, paths)],
        "unchanged": len(made.unchanged),
        "notes": list(made.notes),
    }


def _stage_json(stage: DifferenceStage) -> dict[str, Any]:
    return {
        "causes": [_cause_json(cause) for cause in stage.causes],
        "metrics": stage.metrics,
        "verdicts": {
            model: [_verdict_json(each) for each in changes]
            for model, changes in stage.verdicts.items()
        },
        "booked": {
            model: {
                "metric": booking.metric,
                "change": booking.change,
                "rows": [
                    dict(zip(booking.table.columns, row, strict=True))
                    for row in booking.table.rows
                ],
            }
            for model, booking in stage.bookings.items()
        },
    }


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "name": cause.name,
        "before": cause.before,
        "after": cause.after,
    }


def _verdict_json(each: VerdictChange) -> dict[str, Any]:
    return {
        "task": each.task,
        "key": each.key,
        **{
            name: side
            and {
                "value": side.value,
                "expected": side.expected,
                "correct": side.correct,
                "rule": side.rule,
            }
            for name, side in (("before", each.before), ("after", each.after))
        },
    }


def _changed_json(each: ChangedMetric) -> dict[str, Any]:
    return {
        "model": each.model,
        "path": each.path,
        "before": each.before,
        "after": each.after,
        **_exact("change", each.change),
        "parts": [
            {
                "causes": [cause.label for cause in part.causes],
                "before": part.before,
                "after": part.after,
                **_exact("change", part.change),
                "items": [
                    {
                        "item": item.item,
                        "cluster": item.cluster,
                        "before": item.before,
                        "after": item.after,
                        **_exact("share", item.share),
                    }
                    for item in part.items
                ],
                "rounding": None if part.rounding is None else str(part.rounding),
            }
            for part in each.parts
        ],
    }


def _exact(name: str, value: Fraction | None) -> dict[str, Any]:
    """A fraction as the nearest number, and as it is."""
    if value is None:
        return {name: None, "exact": None}
    return {name: float(value), "exact": str(value)}
