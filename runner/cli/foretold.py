"""When a run will have ended, as an object for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.cli.figures import cost, duration, number
from store.read.forecast import ForecastInterval
from store.read.live import LiveStatus


def forecast_json(present: LiveStatus) -> dict[str, Any] | None:
    """What `status --json` says of the end; None where it cannot be foretold.

    `seconds` is null while too few tasks have ended; `needs` says how many more it
    takes. The interval is the middle 90 %.
    """
    told = present.forecast
    if told is None:
        return None
    return {
        "seconds": _span_json(told.seconds, 1),
        "needs": told.needs,
        "comes_to_usd": _span_json(present.comes_to_usd, 6),
        "stages": [
            {
                "stage": stage.stage,
                "left": stage.left,
                "seconds": _span_json(stage.seconds, 1),
                "needs": stage.needs,
            }
            for stage in told.stages
        ],
    }


def forecast_lines(present: LiveStatus) -> list[str]:
    """How fast it goes, when it ends, and what it comes to."""
    lines = []
    if present.rate is not None:
        window = f"over the last {present.recent_minutes} min"
        lines.append(f"pace      {number(present.rate)} tasks a minute, {window}")
    told = present.forecast
    if told is None:
        return lines
    if told.seconds is not None:
        planned = "" if present.status.planning_exhausted else ", of what is planned"
        lines.append(f"ETA       {_span_text(told.seconds, duration)}{planned}")
    elif told.needs:
        lines.append(f"ETA       needs more ended tasks: {told.needs:,}")
    if present.comes_to_usd is not None and present.comes_to_usd.expected:
        lines.append(f"comes to  {_span_text(present.comes_to_usd, cost)}")
    return lines


def _span_json(
    span: ForecastInterval | None, digits: int
) -> dict[str, float | None] | None:
    if span is None:
        return None
    high = None if span.high is None else round(span.high, digits)
    return {
        "low": round(span.low, digits),
        "expected": round(span.expected, digits),
        "high": high,
    }


def _span_text(span: ForecastInterval, shown: Callable[[float], str]) -> str:
    high = "?" if span.high is None else shown(span.high)
    return f"{shown(span.expected)} ({shown(span.low)} to {high})"
