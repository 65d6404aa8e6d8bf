"""All figures of a scoring, made when a report is drawn.

The curves are of the first model that has them: one gate a picture, so that bands and
operating points can be told apart. What is a number a model stands side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.evidence_retrieval.figures import gate, reading, standing
from jobs.evidence_retrieval.measuring.results import Results
from runner.figure import Figure


@dataclass(frozen=True)
class Gallery:
    """The figures of a scoring; those whose input is missing are left out."""

    results: Results

    def __iter__(self) -> Iterator[Figure]:
        results = self.results
        for model, own in results.models.items():
            curves = gate.figures(model, own.block, results.draws)
            shown = [*curves, *reading.figures(model, own)]
            if shown:
                yield from shown
                break
        yield from standing.figures(results)
