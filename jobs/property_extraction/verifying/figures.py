"""What a reader sees of a verification: do names that look alike mean the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.figures import build_figures
from jobs.property_extraction.verifying.verification import SAID, Verification
from runner.scorecard import Axis, FailedFigure, Figure, Panel, Stack

BINS = 10
"""Of similarity, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Gallery:
    """The figures of a verification."""

    verification: Verification

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        return build_figures(lambda: Counter(_placed(self.verification)), (similarity,))


def similarity(counts: Mapping[tuple[bool | None, int], int]) -> Figure | None:
    """Pairs by verdict and bin of similarity."""
    if not counts:
        return None
    return Figure(
        name="similarity",
        title="Similarity of names, by verdict",
        caption="Pairs that were answered, by how alike their names are spelled "
        "and what most verdicts of all models say. Where matches and others lie "
        "over one another, spelling does not tell them apart.",
        panels=(
            Panel(
                x=Axis(
                    label="similarity from",
                    names=tuple(f"{at / BINS:.1f}" for at in range(BINS)),
                ),
                y=Axis(label="pairs", lo=0),
                marks=tuple(
                    Stack(
                        values=tuple(counts.get((said, at), 0) for at in range(BINS)),
                        label=label,
                        series=series,
                    )
                    for series, (said, label) in enumerate(SAID.items())
                ),
            ),
        ),
    )


def _placed(verification: Verification) -> Iterator[tuple[bool | None, int]]:
    """The verdict and the bin of each pair whose similarity is known."""
    for pair in verification.pairs:
        ruling = verification.rulings.get((pair.pred_name, pair.gt_name))
        if ruling is not None and pair.avg_sim is not None:
            yield ruling.is_match, min(int(pair.avg_sim * BINS), BINS - 1)
