"""What cannot be true of figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.figure import Figure, Panel, Rule
from runner.scorecard import Finding

HALF = 0.5


def check_figures(figures: Sequence[Figure], prevalence: float) -> Iterator[Finding]:
    """A curve of precision over recall has its chance line at the *prevalence*."""
    for figure in figures:
        for panel in figure.panels:
            if _is_precision_recall(panel) and _has_half(panel) and prevalence != HALF:
                yield Finding(
                    code="auprc_against_half",
                    severity="error",
                    where=f"figure {figure.name}",
                    message=(
                        "Precision over recall is drawn against 0.5; its chance level "
                        f"is the prevalence, {prevalence!r}."
                    ),
                )


def _is_precision_recall(panel: Panel) -> bool:
    return "recall" in panel.x.label.lower() and "precision" in panel.y.label.lower()


def _has_half(panel: Panel) -> bool:
    return any(
        isinstance(mark, Rule) and mark.way == "horizontal" and mark.at == HALF
        for mark in panel.marks
    )
