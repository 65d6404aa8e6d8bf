"""A sheet, measured: every model's rows, counts and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics import Resamples
from jobs.property_extraction.aliases.renaming import Renaming
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import Predicted, Sheet
from jobs.property_extraction.measuring import encompassing, rates, statuses
from jobs.property_extraction.measuring.counts import Counts
from jobs.property_extraction.measuring.encompassing import Encompassment
from jobs.property_extraction.measuring.fate import Fates
from jobs.property_extraction.measuring.matched import fates_of
from jobs.property_extraction.measuring.rates import Basis
from jobs.property_extraction.values.comparing import Comparer
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One model: each replicate by itself, and what they come to."""

    model: str
    fates: Sequence[Fates]  #: by replicate
    counts: Sequence[Counts]  #: by replicate
    encompassment: Encompassment  #: of the first replicate
    metrics: tuple[Metric, ...]

    def metric(self, path: str) -> Metric:
        """A metric by its path; raise `KeyError` where there is none."""
        found = {metric.path: metric for metric in self.metrics}
        return found[path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All that was measured."""

    dataset: Dataset
    sheet: Sheet
    comparer: Comparer
    columns: Mapping[str, Column]  #: by model, in the run's order
    papers: Sequence[str]  #: that any model is scored on, ascending
    draws: Resamples  #: of these papers


def measured(dataset: Dataset, sheet: Sheet) -> Results:
    """Every metric of every model."""
    settings = dataset.settings
    comparer = Comparer.of(dataset)
    renaming = Renaming.of(
        dataset.aliases,
        settings.name_match,
        canonical={*dataset.rubric.properties, *(row.name for row in dataset.truth)},
    )

    def rows(predicted: Predicted) -> Fates:
        return fates_of(dataset, predicted, comparer, renaming, lambda _, __: True)

    fates = {model: [rows(own) for own in sheet.of(model)] for model in sheet.models}
    papers = sorted(
        {refno for own in fates.values() for each in own for refno in each.papers}
    )
    draws = Resamples(
        papers,
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="paper",
    )
    return Results(
        dataset=dataset,
        sheet=sheet,
        comparer=comparer,
        columns={
            model: _column(model, own, papers, draws, comparer)
            for model, own in fates.items()
        },
        papers=papers,
        draws=draws,
    )


def _column(
    model: str,
    fates: Sequence[Fates],
    papers: Sequence[str],
    draws: Resamples,
    comparer: Comparer,
) -> Column:
    counts = [Counts.of(own) for own in fates]
    basis = Basis(
        counts=counts, papers=papers, draws=draws, rules=_rules(fates[0].dataset)
    )
    encompassment = Encompassment.of(counts[0])

    def metrics() -> Iterator[Metric]:
        yield from rates.micro(basis)
        yield from rates.macro(basis)
        yield from rates.papers(basis)
        yield from encompassing.names(fates[0])
        yield from encompassment.metrics()
        yield from statuses.metrics(fates[0], comparer)

    return Column(
        model=model,
        fates=fates,
        counts=counts,
        encompassment=encompassment,
        metrics=tuple(metrics()),
    )


def _rules(dataset: Dataset) -> str:
    """The rules of scoring, as definitions name them."""
    own = dataset.settings
    return (
        f"units={own.units}, numbers={own.numbers}, categorical={own.categorical}, "
        f"matching={own.matching}, paper_set={own.paper_set}, "
        f"abstentions={own.abstentions}, aliases={dataset.aliases.id}"
    )
