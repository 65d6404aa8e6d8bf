"""Makes the figures of a scoring one by one, when a report is drawn.

A figure must never cost the numbers: one whose code raises becomes a `FailedFigure`,
and the others follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from runner.job import sentence_of
from runner.scorecard import FailedFigure, Figure

Shown = TypeVar("Shown")
"""What a job draws figures from."""


def drawn(
    prepare: Callable[[], Shown],
    draws: Iterable[Callable[[Shown], Figure | Iterable[Figure] | None]],
) -> Iterator[Figure | FailedFigure]:
    """Yields figures in the order of the report.

    Args:
        prepare: makes what all figures are drawn from.
        draws: each makes one figure, several, or None where the input has nothing for
            it.
    """
    try:
        shown = prepare()
    except Exception as error:  # noqa: BLE001 - numbers outlive their pictures
        yield _failed("figures", prepare, error)
        return
    for draw in draws:
        try:
            made = draw(shown)
            figures = (made,) if isinstance(made, Figure) else tuple(made or ())
        except Exception as error:  # noqa: BLE001 - see above
            yield _failed(draw.__name__, draw, error)
        else:
            yield from figures


def _failed(name: str, code: Callable[..., object], error: Exception) -> FailedFigure:
    return FailedFigure(name=name, fault=sentence_of(error, code.__module__))
