"""What one view comes to in one stratum: counts, pooled rates, means over reviews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.metrics import Resamples
from jobs.metrics.columns import Bools
from jobs.screening.measuring.averaged import averaged, rates_by_review
from jobs.screening.measuring.counting import Counts, counts
from jobs.screening.measuring.pooled import pooled
from jobs.screening.measuring.probabilities import probabilities
from jobs.screening.measuring.ranking import Values, measured
from jobs.screening.measuring.view import View
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """What one view comes to in one stratum."""

    name: str
    counts: Counts
    by_review: Values  #: rates and ranking measures, a value a review
    metrics: tuple[Metric, ...]

    @property
    def by_path(self) -> Mapping[str, Metric]:
        """Its metrics, by path without the stratum."""
        return {each.path.removeprefix(f"{self.name}."): each for each in self.metrics}


def stratum(view: View, name: str, rows: Bools, draws: Resamples) -> Stratum:
    """Measure a view in a stratum."""
    found = counts(view, rows)
    by_review = {**rates_by_review(found), **measured(view, rows)}
    return Stratum(
        name=name,
        counts=found,
        by_review=by_review,
        metrics=(
            *_counted(name, found),
            *pooled(view, name, found, draws),
            *probabilities(view, name, rows, draws),
            *averaged(view, name, found, by_review, draws),
        ),
    )


def _counted(name: str, found: Counts) -> Iterator[Metric]:
    total = int(found.records.sum())
    tp, fp, tn, fn = found.decided.pooled()
    numbers = {
        "n": total,
        "positives": int(found.positives.sum()),
        "reviews": int((found.records > 0).sum()),
        "decided": int(found.decided.n.sum()),
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        **{f"outcome.{word}": number for word, number in found.outcomes.items()},
        "imputed": found.imputed,
    }
    for word, number in numbers.items():
        yield Metric(
            path=f"{name}.micro.{word}",
            value=number,
            n=total,
            subset=name,
            definition=f"count@1({word})",
        )
