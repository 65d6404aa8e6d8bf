"""What each model took for each thing that a job counts its cost by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.report.grid import Column, grid
from jobs.report.markup import Element
from jobs.report.wording import UNDEFINED, number


def costs(course: Mapping[str, Any]) -> Iterator[Element]:
    """A row a model and unit; none where nothing was asked for here.

    Args:
        course: what `operations.json` says; folders of earlier versions do not say it.
    """
    rows = [
        (
            model,
            unit,
            number(per["n"]),
            _tokens(per["tokens_in"]),
            _tokens(per["tokens_out"]),
            number(per["cost_usd"]),
        )
        for model, taken in course.get("models", {}).items()
        for unit, per in taken["per"].items()
    ]
    if rows:
        yield grid(
            "What each model took for what it did: all its stages, replicates and "
            "calls in vain are in it. n/a: there is none, or a price is unknown.",
            [
                Column(name="model"),
                Column(name="for each"),
                Column(name="how many", numeric=True),
                Column(name="tokens in", numeric=True),
                Column(name="tokens out", numeric=True),
                Column(name="US dollars", numeric=True),
            ],
            rows,
        )


def _tokens(amount: float | None) -> str:
    return UNDEFINED if amount is None else f"{amount:,.1f}"
