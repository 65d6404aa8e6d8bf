"""Computes every metric of a model from numbers, after rows are matched with the truth.

The values of texts are read before: the outcomes of rows, the reading of their units,
numbers and quotes, and the similarity of names. Papers and names of properties only
serve as keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.kit.baselines import TrivialBaseline
from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.measures import measured
from jobs.kit.metrics import Resamples, ratio
from jobs.property_extraction import rates, row_metrics
from jobs.property_extraction.name_metrics import (
    MISMATCHES,
    NAMES,
    MismatchCounts,
    PredictedNames,
    encompassment,
)
from jobs.property_extraction.rates import FailedPapers, GroupCounts, RateBasis
from jobs.property_extraction.row_metrics import GroundedRows, RowReading
from jobs.property_extraction.settings import PropertySettings
from runner.evaluation import KEYS_STAY, STAYS
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFrame:
    """The numbers from which the metrics of one model are computed.

    Rows, names and mismatches are those of the first replicate.
    """

    rules: str = field(metadata=STAYS)  #: of scoring, for definitions
    counts: Sequence[GroupCounts]  #: by replicate, as for the next two
    failed: Sequence[FailedPapers]
    grounded_counts: Sequence[GroupCounts]
    """Only of grounded rows; empty if no papers are named."""
    names: PredictedNames
    alias_note: str = field(metadata=STAYS)
    rows: Sequence[RowReading]
    grounded: GroundedRows
    mismatches: MismatchCounts

    def metrics(self, papers: Sequence[str], draws: Resamples) -> Iterator[Metric]:
        """Return all metrics of the model.

        Args:
            papers: papers on which any model is scored, ascending.
            draws: of these papers.
        """
        note = rates.few_papers(len(papers))
        return with_intervals(self._measurements(papers, draws), draws, note)

    def _measurements(
        self, papers: Sequence[str], draws: Resamples
    ) -> Iterator[Measurement]:
        basis = RateBasis(
            counts=self.counts, papers=papers, draws=draws, rules=self.rules
        )
        yield from rates.micro(basis)
        yield from rates.macro(basis)
        yield from rates.by_paper(basis)
        yield from rates.failed_as_empty(basis, self.failed)
        yield from measured(NAMES, self.names)
        yield from encompassment(self.counts[0], self.alias_note)
        yield from measured(row_metrics.ROWS, self.rows)
        yield from measured(row_metrics.GROUNDING, self.grounded)
        k = f"{self.mismatches.k}"
        yield from measured(MISMATCHES, self.mismatches, path="mismatch.", over=k)
        if self.grounded_counts:
            alone = f"{self.rules}, grounded rows alone"
            grounded_basis = replace(basis, counts=self.grounded_counts, rules=alone)
            yield from rates.micro(grounded_basis, "grounded.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequentValue:
    """The most frequent property of the truth with its most frequent value."""

    answer: str  #: in words
    papers: int  #: with this value
    truth: int  #: rows of the truth


KEY = "most_frequent"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyFrame:
    """The numbers from which all metrics are computed."""

    settings: PropertySettings
    papers: Sequence[str]  #: papers on which any model is scored, ascending
    models: Mapping[str, ModelFrame] = field(metadata=KEYS_STAY)
    frequent: FrequentValue | None  #: None: the truth has no row

    @property
    def draws(self) -> Resamples:
        """Resamples of the papers."""
        return Resamples(
            self.papers,
            self.settings.boot_b,
            self.settings.boot_seed,
            level=self.settings.level,
            cluster="paper",
            form=self.settings.interval,
        )

    def baselines(self) -> Iterator[TrivialBaseline]:
        """Yield the baselines that predict the most frequent value in every paper."""
        if self.frequent is None:
            return
        tp, truth, stated = self.frequent.papers, self.frequent.truth, len(self.papers)
        for word, value in (
            ("precision", ratio(tp, stated)),
            ("recall", ratio(tp, truth)),
            ("f1", ratio(2 * tp, stated + truth)),
        ):
            yield TrivialBaseline(
                of=word,
                key=KEY,
                name="one value in every paper",
                answer=f"{self.frequent.answer} in every paper",
                value=value,
                n=stated,
                formula="the most frequent property of the truth with its most "
                "frequent value, one row a paper, texts equal",
            )
