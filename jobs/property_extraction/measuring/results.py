"""A sheet, measured: every model's rows, counts and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics import Resamples
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.renaming import Renaming
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.consensus import consensus
from jobs.property_extraction.gathering.predicted import Predicted, Sheet
from jobs.property_extraction.measuring import (
    encompassing,
    grounded,
    rates,
    statuses,
)
from jobs.property_extraction.measuring.counts import Counts
from jobs.property_extraction.measuring.encompassing import Encompassment
from jobs.property_extraction.measuring.fate import Fates
from jobs.property_extraction.measuring.grounded import Standing, standings
from jobs.property_extraction.measuring.matched import fates_of
from jobs.property_extraction.measuring.mismatches import Mismatches, mismatches
from jobs.property_extraction.measuring.rates import Basis
from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.settings import Grounding
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import Compared
from runner.scorecard import Metric

RULES = ("units", "numbers", "categorical", "matching", "paper_set", "abstentions")
"""Settings that the definition of every count names."""

OTHERS = (
    *("cluster_keys", "unparsed_composition", "group_by", "dedupe", "min_grounding"),
    *("name_match", "clash", "crossfit", "consensus"),
)
"""Settings that change counts as well, and hardly ever do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One replicate of a model, or the consensus of several, scored."""

    fates: Fates
    counts: Counts
    compared: Mapping[int, Compared]  #: by prediction: with its partner or name
    standing: Sequence[Standing]  #: by prediction
    aliases: AliasSet  #: that acted: the given ones, and drafts that were cross-fitted
    found: Mismatches | None = None  #: before those drafts; None: there were none

    @property
    def replicate(self) -> int:
        """Its number; 0: a consensus."""
        return self.fates.predicted.replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One model: each replicate by itself, and what they come to."""

    model: str
    replicates: Sequence[Replicate]
    mismatches: Mismatches  #: of it
    unrenamed: Fates  #: of it, as if no alias acted
    metrics: tuple[Metric, ...]

    @property
    def first(self) -> Replicate:
        """The replicate that tables of one number a row are about."""
        return self.replicates[0]

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
    scoring = _Scoring(
        dataset=dataset,
        comparer=Comparer(
            settings,
            clusters=dataset.clusters,
            space_groups=dataset.space_groups,
            unit_table=dataset.unit_table,
        ),
    )
    scored = {
        model: [
            scoring.replicate(own) for own in _columns(sheet, model, settings.consensus)
        ]
        for model in sheet.models
    }
    papers = sorted(
        {
            refno
            for own in scored.values()
            for each in own
            for refno in each.fates.papers
        }
    )
    draws = Resamples(
        papers,
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="paper",
        form=settings.interval,
    )
    return Results(
        dataset=dataset,
        sheet=sheet,
        comparer=scoring.comparer,
        columns={
            model: scoring.column(model, own, papers, draws)
            for model, own in scored.items()
        },
        papers=papers,
        draws=draws,
    )


def _columns(sheet: Sheet, model: str, least: int) -> Sequence[Predicted]:
    """A model's replicates, or the one that they agree on."""
    own = sheet.of(model)
    return (consensus(own, least),) if least else own


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    """The rules by which every replicate is scored."""

    dataset: Dataset
    comparer: Comparer

    def replicate(self, predicted: Predicted) -> Replicate:
        standing = standings(self.dataset, predicted, self.comparer)
        least = self.dataset.settings.min_grounding
        aliases, found = self.dataset.aliases, None
        fates = self._fates(predicted, standing, least, aliases)
        if self.dataset.settings.crossfit:
            found = self._mismatches(fates)
            aliases = found.crossfitted(fates.dataset)
            fates = self._fates(predicted, standing, least, aliases)
        return Replicate(
            fates=fates,
            counts=Counts.of(fates),
            compared=dict(statuses.compared(fates, self.comparer)),
            standing=standing,
            aliases=aliases,
            found=found,
        )

    def _mismatches(self, fates: Fates) -> Mismatches:
        return mismatches(fates, self.comparer, self.dataset.canonical)

    def _fates(
        self,
        predicted: Predicted,
        standing: Sequence[Standing],
        least: Grounding,
        aliases: AliasSet,
    ) -> Fates:
        levels = grounded.LEAST[least]
        return fates_of(
            self.dataset,
            predicted,
            self.comparer,
            Renaming.of(
                aliases,
                self.dataset.settings.name_match,
                canonical=self.dataset.canonical,
            ),
            lambda place: standing[place].quote.level in levels,
        )

    def column(
        self,
        model: str,
        replicates: Sequence[Replicate],
        papers: Sequence[str],
        draws: Resamples,
    ) -> Column:
        first = replicates[0]
        found = first.found or self._mismatches(first.fates)
        rules = self._rules(first.aliases)
        basis = Basis(
            counts=[own.counts for own in replicates],
            papers=papers,
            draws=draws,
            rules=rules,
        )

        def metrics() -> Iterator[Metric]:
            yield from rates.micro(basis)
            yield from rates.macro(basis)
            yield from rates.by_paper(basis)
            yield from rates.failed_as_empty(basis, [own.fates for own in replicates])
            yield from encompassing.names(first.fates)
            yield from Encompassment.of(first.counts).metrics(first.aliases)
            yield from statuses.metrics(first.fates, self.comparer, first.compared)
            yield from grounded.metrics(first.fates, first.standing)
            yield from found.metrics(self.dataset.settings.k)
            if len(self.dataset.papers):
                counts = [
                    Counts.of(
                        self._fates(
                            own.fates.predicted, own.standing, "grounded", own.aliases
                        )
                    )
                    for own in replicates
                ]
                yield from rates.micro(
                    Basis(
                        counts=counts,
                        papers=papers,
                        draws=draws,
                        rules=f"{rules}, grounded rows alone",
                    ),
                    "grounded.",
                )

        return Column(
            model=model,
            replicates=replicates,
            mismatches=found,
            metrics=tuple(metrics()),
            unrenamed=self._unrenamed(first),
        )

    def _unrenamed(self, own: Replicate) -> Fates:
        if not own.aliases.accepted:
            return own.fates
        least = self.dataset.settings.min_grounding
        return self._fates(own.fates.predicted, own.standing, least, AliasSet())

    def _rules(self, aliases: AliasSet) -> str:
        """The rules of scoring, as definitions name them.

        Those that most scorings share are named only where they are others: numbers
        are compared between runs only if their definitions are equal.
        """
        own = self.dataset.settings
        shared = type(own).model_fields
        named = [*RULES]
        named += [name for name in OTHERS if getattr(own, name) != shared[name].default]
        told = [f"{name}={getattr(own, name)}" for name in named]
        if self.comparer.left_out(Kind.PYMATGEN):
            told.append("compositions left out")
        return ", ".join([*told, f"aliases={aliases.id}"])
