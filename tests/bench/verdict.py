"""Rows of the table: a figure held against a bound, or only shown."""

from __future__ import annotations

from tests.bench.row import Row


def least(target: str, what: str, value: float, bound: float | None) -> Row:
    """A figure that should be at least *bound*."""
    if bound is None:
        return shown(what, value, target)
    goal = f">= {bound:g}"
    return Row(target=target, what=what, value=value, goal=goal, met=value >= bound)


def most(target: str, what: str, value: float, bound: float | None) -> Row:
    """A figure that should be at most *bound*."""
    if bound is None:
        return shown(what, value, target)
    goal = f"<= {bound:g}"
    return Row(target=target, what=what, value=value, goal=goal, met=value <= bound)


def shown(what: str, value: float, target: str = "") -> Row:
    """A figure without a bound, for orientation."""
    return Row(target=target, what=what, value=value, goal="", met=True)
