"""Renders a difference for people at a terminal, and for programs as JSON."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from jobs.kit.differences.difference import (
    Cause,
    CauseShare,
    ChangedMetric,
    DifferenceStage,
    ItemShare,
    ScoringDifference,
    VerdictChange,
)
from jobs.kit.text_format import fixed, plural
from runner.errors import UsageError
from runner.scorecard import Booking
from store.document import (
    Block,
    Fact,
    Numbers,
    TableBlock,
    Words,
    answer_words,
    as_text,
    wide_table,
)
from store.nearest import did_you_mean


def selected_metrics(
    difference: ScoringDifference, paths: Sequence[str]
) -> tuple[ChangedMetric, ...]:
    """The changed metrics that *paths* name, `*` for any characters; all by default.

    Raises:
        UsageError: one of them names no metric, not even one that stayed.
    """
    every = {*difference.unchanged, *(metric.path for metric in difference.changed)}
    for path in paths:
        if not fnmatch.filter(every, path):
            hint = did_you_mean(
                path, sorted(every), "siftlog score RUN --json lists them.", limit=2
            )
            raise UsageError(f"There is no metric {path}; {hint}")
    return tuple(
        metric
        for metric in difference.changed
        if not paths or _is_selected(metric, paths)
    )


def _is_selected(metric: ChangedMetric, paths: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(metric.path, path) for path in paths)


def text(difference: ScoringDifference, paths: Sequence[str], top: int) -> str:
    """Causes, then the metrics of each model by cause, then items and verdicts.

    Args:
        difference: what to tell.
        paths: of the metrics to list, with their items; where there are none, those to
            look at first, with the items of the headline.
        top: how many items and verdicts of each part are listed.
    """
    lines: list[Block] = [
        (
            f"{difference.job}  run {difference.run}  scoring {difference.before} -> "
            f"{difference.after}"
        ),
        *(f"note: {note}" for note in difference.notes),
        *_causes(difference.stages),
    ]
    first = {difference.headline, *difference.headlines}
    metrics = [
        metric
        for metric in selected_metrics(difference, paths)
        if paths or metric.path in first
    ]
    for model in dict.fromkeys(metric.model for metric in metrics):
        model_metrics = [metric for metric in metrics if metric.model == model]
        lines += ["", model, _metrics(model_metrics)]
        judged = [
            metric for metric in model_metrics if metric.path == difference.headline
        ] or model_metrics[:1]
        for metric in model_metrics if paths else judged:
            lines += _items(metric, top)
    lines += _verdicts(difference.stages, top)
    for stage in difference.stages:
        for model, booking in stage.bookings.items():
            lines += _booked(model, booking)
    is_complete = len(metrics) == len(difference.changed)
    lines += [
        "",
        _fact(
            "metrics",
            extent(difference)
            + ("" if is_complete else "; --metric '*' lists them all"),
        ),
        _fact(
            "method",
            "causes were changed one at a time, in the order listed; the parts add up "
            "to each change exactly: --json gives them as fractions",
        ),
        *(_fact("result", sentence) for sentence in conclusions(difference)),
    ]
    return as_text(lines)


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text)


def conclusions(difference: ScoringDifference) -> Iterator[str]:
    """Say in a sentence a model what became of the headline, or that nothing did."""
    if not difference.changed:
        yield "no metric differs"
        return
    headlines = [
        metric for metric in difference.changed if metric.path == difference.headline
    ]
    for metric in headlines:
        moving = (part.causes for part in metric.parts if part.change)
        causes = dict.fromkeys(map(labels, moving))
        by = f", by {' and '.join(causes)}" if causes else ""
        yield (
            f"{metric.path} of {metric.model}: {number(metric.before)} -> "
            f"{number(metric.after)} ({signed(metric.change)}){by}"
        )
    if not headlines and difference.headline:
        yield f"{difference.headline} stayed; other metrics changed"


def extent(difference: ScoringDifference) -> str:
    """Return how many metrics a difference is about."""
    divided = [metric for metric in difference.changed if metric.change is not None]
    return (
        f"{plural(len(divided), 'metric')} changed, "
        f"{len(difference.changed) - len(divided):,} have a value on one side alone, "
        f"{len(difference.unchanged):,} stayed"
    )


def _causes(stages: Sequence[DifferenceStage]) -> Iterator[Fact]:
    if not stages:
        yield _fact("cause", "none")
    for stage in stages:
        cause_text = ", ".join(
            f"{cause.label} {cause.before} -> {cause.after}"
            if cause.before or cause.after
            else cause.label
            for cause in stage.causes
        )
        n = sum(map(len, stage.verdicts.values()))
        moved = f"{plural(stage.metrics, 'metric')}, {plural(n, 'verdict')}"
        effect = moved if stage.metrics or n else "without effect"
        yield _fact("cause", f"{cause_text}: {effect}")


def _metrics(changed: Sequence[ChangedMetric]) -> TableBlock:
    """A row a metric; one with several causes has a further row for each."""
    rows: list[tuple[str, ...]] = []
    for metric in changed:
        parts = [part for part in metric.parts if part.change is None or part.change]
        whole = signed(metric.change)
        before, after = number(metric.before), number(metric.after)
        if len(parts) == 1:
            rows.append((metric.path, before, after, whole, _names(parts[0])))
            continue
        rows.append((metric.path, before, after, whole, ""))
        rows += [("", "", "", signed(part.change), _names(part)) for part in parts]
    columns = (
        Words("metric"),
        Numbers("before"),
        Numbers("after"),
        Numbers("change"),
        Words("by"),
    )
    return TableBlock(columns, rows, is_wide=True)


def _names(part: CauseShare) -> str:
    return " and ".join(cause.name or cause.kind for cause in part.causes)


def labels(causes: Sequence[Cause]) -> str:
    """The causes of a part."""
    return " and ".join(cause.label for cause in causes)


def _items(metric: ChangedMetric, top: int) -> Iterator[Block]:
    for part in metric.parts:
        if not part.items:
            continue
        yield (
            f"  {metric.path} by item, {labels(part.causes)}: {signed(part.change)} by "
            f"{plural(len(part.items), 'item')}"
        )
        rows = [
            (signed(item.share), number(item.before), number(item.after), item.item)
            for item in part.items[:top]
        ]
        rest = part.items[top:]
        if rest:
            more = f"{len(rest):,} more: --top, or --json"
            rows.append((signed(_sum(rest)), "", "", more))
        columns = (
            Numbers("change"),
            Numbers("before"),
            Numbers("after"),
            Words("item"),
        )
        yield TableBlock(columns, rows, indent=4, is_wide=True)


def _sum(items: Sequence[ItemShare]) -> Fraction | None:
    shares = [item.share for item in items if item.share is not None]
    return sum(shares, Fraction()) if shares else None


def _verdicts(stages: Sequence[DifferenceStage], top: int) -> Iterator[str]:
    for stage in stages:
        for model, causes, changes in stage.by_cause():
            yield ""
            yield f"verdicts of {model}, {labels(causes)}: {verdict_tally(changes)}"
            for change in judged_first(changes)[:top]:
                yield f"  {change.key}: {' -> '.join(sides(change))}"
            if changes[top:]:
                yield f"  {len(changes) - top:,} more: --top, or --json"


def verdict_tally(changes: Sequence[VerdictChange]) -> str:
    """Return how many verdicts changed, by direction."""
    gained = sum(change.right > 0 for change in changes)
    ceased = sum(change.right < 0 for change in changes)
    return f"{len(changes):,} changed, {gained:,} became right, {ceased:,} ceased to be"


def judged_first(changes: Sequence[VerdictChange]) -> list[VerdictChange]:
    """Those that came to be right or ceased to be before the others."""
    return sorted(changes, key=lambda change: not change.right)


def sides(change: VerdictChange) -> tuple[str, str]:
    """Return the values read and their judgements, before and after.

    Where the same was read, what was expected; of long texts, what differs.
    """
    present_sides = [side for side in (change.before, change.after) if side is not None]
    has_same_value = len({side.value for side in present_sides}) == 1
    texts = [
        f"expected {side.expected or 'nothing: no truth'}"
        if has_same_value and present_sides[0].expected != present_sides[-1].expected
        else side.value or f"[{side.rule}]"
        for side in present_sides
    ]
    character_pairs = enumerate(zip(texts[0], texts[-1], strict=False))
    shared = next((index for index, (was, now) in character_pairs if was != now), 0)
    marked = {
        id(side): f"{answer_words(_cut(text, shared))} ({_MARKS[side.correct]})"
        for side, text in zip(present_sides, texts, strict=True)
    }
    before, after = (
        marked.get(id(side), "not judged") for side in (change.before, change.after)
    )
    return before, after


_MARKS: Mapping[bool | None, str] = {True: "right", False: "wrong", None: "-"}

_MAX_VALUE_CHARS = 48
"""Characters of what was read from a reply; --json has all of it."""


def _cut(value: str, shared: int) -> str:
    """As much of a text as fits, from where it differs if that is far."""
    if len(value) <= _MAX_VALUE_CHARS:
        return value
    begin = max(0, shared - _MAX_VALUE_CHARS // 4)
    text = value[begin : begin + _MAX_VALUE_CHARS]
    end = "…" if begin + _MAX_VALUE_CHARS < len(value) else ""
    return f"{'…' if begin else ''}{text}{end}"


def _booked(model: str, booking: Booking) -> Iterator[Block]:
    yield ""
    yield (
        f"{booking.metric} of {model} by {booking.table.caption}: {booking.change:+d}"
    )
    rows = [tuple(map(str, row)) for row in booking.table.rows]
    yield wide_table(booking.table.columns, rows, indent=2)


def number(value: float | None) -> str:
    """A metric's value."""
    return fixed(value, ".4g")


def signed(value: Fraction | None) -> str:
    """A change."""
    return fixed(None if value is None else float(value), "+.4g")


def as_json(difference: ScoringDifference, paths: Sequence[str] = ()) -> dict[str, Any]:
    """Everything; `exact` are fractions, whose sums have no rounding."""
    return {
        "run": difference.run,
        "job": difference.job,
        "before": {"scoring": difference.before, "digest": difference.digests[0]},
        "after": {"scoring": difference.after, "digest": difference.digests[1]},
        "headline": difference.headline,
        "causes": [_stage_json(stage) for stage in difference.stages],
        "metrics": [
            _changed_json(metric) for metric in selected_metrics(difference, paths)
        ],
        "unchanged": len(difference.unchanged),
        "notes": list(difference.notes),
    }


def _stage_json(stage: DifferenceStage) -> dict[str, Any]:
    return {
        "causes": [asdict(cause) for cause in stage.causes],
        "metrics": stage.metrics,
        "verdicts": {
            model: [_verdict_json(change) for change in changes]
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


def _verdict_json(change: VerdictChange) -> dict[str, Any]:
    return {
        "task": change.task,
        "key": change.key,
        **{
            name: side
            and {
                "value": side.value,
                "expected": side.expected,
                "correct": side.correct,
                "rule": side.rule,
            }
            for name, side in (("before", change.before), ("after", change.after))
        },
    }


def _changed_json(metric: ChangedMetric) -> dict[str, Any]:
    return {
        "model": metric.model,
        "path": metric.path,
        "before": metric.before,
        "after": metric.after,
        **_exact("change", metric.change),
        "parts": [
            {
                "causes": [cause.label for cause in part.causes],
                "before": part.before,
                "after": part.after,
                **_exact("change", part.change),
                "items": [
                    {**asdict(item), **_exact("share", item.share)}
                    for item in part.items
                ],
                "rounding": None if part.rounding is None else str(part.rounding),
            }
            for part in metric.parts
        ],
    }


def _exact(name: str, value: Fraction | None) -> dict[str, Any]:
    """A fraction as the nearest number, and as it is."""
    if value is None:
        return {name: None, "exact": None}
    return {name: float(value), "exact": str(value)}
