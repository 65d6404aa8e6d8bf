"""How good a run's estimate was, as an object for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.cli.figures import cost, number
from store.read.forecast import EstimateAccuracy, EstimatedFigure


def outlook_json(outlook: EstimateAccuracy) -> dict[str, Any]:
    """What `status --json` says of the estimate."""
    usd = outlook.cost_usd
    return {
        "done": round(outlook.done, 4),
        "calls": _prospect_json(outlook.calls, 0),
        "tokens_in": _prospect_json(outlook.tokens_in, 0),
        "tokens_out": _prospect_json(outlook.tokens_out, 0),
        "cost_usd": None if usd is None else _prospect_json(usd, 6),
    }


def outlook_lines(outlook: EstimateAccuracy) -> list[str]:
    """The estimate in dollars, or in calls and tokens where a price is unknown."""
    if outlook.cost_usd is not None:
        return [_prospect_text(outlook.cost_usd, outlook.done, cost)]
    return [
        f"{_prospect_text(prospect, outlook.done, number)} {what}"
        for what, prospect in (
            ("calls", outlook.calls),
            ("tokens in", outlook.tokens_in),
            ("tokens out", outlook.tokens_out),
        )
    ]


def _prospect_text(
    p: EstimatedFigure, done: float, show: Callable[[float], str]
) -> str:
    would = "" if p.comes_to is None else f": would come to {show(p.comes_to)}"
    return (
        f"{show(p.expected)} ({show(p.low)} to {show(p.high)}), so far "
        f"{show(p.so_far)} at {100 * done:.0f} %{would}"
    )


def _prospect_json(prospect: EstimatedFigure, digits: int) -> dict[str, float | None]:
    comes_to = prospect.comes_to
    return {
        "low": round(prospect.low, digits),
        "expected": round(prospect.expected, digits),
        "high": round(prospect.high, digits),
        "so_far": round(prospect.so_far, digits),
        "comes_to": None if comes_to is None else round(comes_to, digits),
    }
