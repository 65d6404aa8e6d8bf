"""What each model took for each thing that a job counts its cost by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.report.grid import Column, grid
from jobs.report.markup import Element
from jobs.report.wording import number

SHOWN = ("n", "tokens_in", "tokens_out", "cost_usd")


def costs(course: Mapping[str, Any]) -> Iterator[Element]:
    """A row a model and unit; none where nothing was asked for here.

    Args:
        course: what `operations.json` says; folders of earlier versions do not say it.
    """
    rows = [
        (
            model,
            unit,
            *(
                number(per[name])
                for name in ("n", "tokens_in", "tokens_out", "cost_usd")
            ),
        )
        for model, taken in course.get("models", {}).items()
        for unit, per in taken["per"].items()
    ]
    if rows:
        yield grid(
            "What one of them took, all stages, replicates and calls in vain included; "
            "n/a: there is none, or the price of an answer is unknown.",
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
