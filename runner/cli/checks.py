"""Checks of a scoring that were asked for: what fails them makes the exit code 6.

They come last: everything was printed and written before.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runner.errors import UsageError
from runner.scorecard import Scorecard


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that a metric may be."""

    path: str  #: empty: the job's headline metric
    least: float


def floors(texts: Sequence[str]) -> tuple[Floor, ...]:
    """What `--fail-under` says, each as `X` or `PATH=X`.

    Raises:
        UsageError: one of them has no number.
    """
    return tuple(map(_floor, texts))


def _floor(text: str) -> Floor:
    path, _, number = text.rpartition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not math.isfinite(least):
        raise UsageError(
            f"--fail-under {text}: write a number, or PATH=NUMBER for a metric."
        )
    return Floor(path=path, least=least)


def failed(
    card: Scorecard, *, strict: bool = False, under: Sequence[Floor] = ()
) -> tuple[str, ...]:
    """A sentence for each check that failed: the job's own, then those asked for."""
    return tuple(_failed(card, strict=strict, under=under))


def _failed(card: Scorecard, *, strict: bool, under: Sequence[Floor]) -> Iterator[str]:
    yield from card.failures
    wrong = [finding for finding in card.findings if finding.severity == "error"]
    if strict and wrong:
        yield f"{len(wrong)} findings are errors: {wrong[0].message}"
    for floor in under:
        yield from _below(card, floor)


def _below(card: Scorecard, floor: Floor) -> Iterator[str]:
    path = floor.path or card.headline
    if not path:
        yield "This scoring has no headline metric; write --fail-under PATH=NUMBER."
        return
    found = [
        (model, metric.value)
        for model, metrics in card.models.items()
        for metric in metrics
        if metric.path == path
    ]
    if not found:
        paths = {metric.path for metrics in card.models.values() for metric in metrics}
        near = difflib.get_close_matches(path, sorted(paths), n=2)
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "siftlog score RUN --json lists them."
        )
        yield f"There is no metric {path}; {hint}"
    for model, value in found:
        if value is None:
            yield f"{path} of {model} is undefined, where {floor.least:g} is the least."
        elif value < floor.least:
            yield f"{path} of {model} is {value!r}, below {floor.least:g}."
