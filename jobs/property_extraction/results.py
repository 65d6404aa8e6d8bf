"""Measures a run: the rows, counts and metrics of every model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.measures import measured
from jobs.kit.metrics import Resamples
from jobs.property_extraction import rates, row_metrics
from jobs.property_extraction.aliases.alias_set import AliasSet, Renaming
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.name_metrics import (
    MISMATCHES,
    NAMES,
    Mismatches,
    encompassment,
    find_mismatches,
    predicted_names,
)
from jobs.property_extraction.predictions import (
    ReplicatePredictions,
    RunPredictions,
    consensus,
)
from jobs.property_extraction.rates import GroupCounts, RateBasis
from jobs.property_extraction.row_metrics import RowGrounding, row_groundings
from jobs.property_extraction.row_outcomes import RowOutcomes, row_outcomes
from jobs.property_extraction.settings import Grounding
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind, ValueComparison
from runner.scorecard import Metric

RULES = ("units", "numbers", "categorical", "matching", "paper_set", "abstentions")
"""Settings that the definition of every count names."""

OTHERS = (
    *("cluster_keys", "unparsed_composition", "group_by", "dedupe", "min_grounding"),
    *("name_match", "clash", "crossfit", "consensus"),
)
"""Settings that change counts as well, and hardly ever do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredReplicate:
    """One replicate of a model, or the consensus of several, scored."""

    row_outcomes: RowOutcomes
    counts: GroupCounts
    compared: Mapping[int, ValueComparison]  #: by prediction: with its partner or name
    groundings: Sequence[RowGrounding]  #: by prediction
    aliases: AliasSet  #: that acted: the given ones, and drafts that were cross-fitted
    mismatches: Mismatches | None = None  #: before those drafts; None: there were none

    @property
    def replicate(self) -> int:
        """Its number; 0: a consensus."""
        return self.row_outcomes.predicted.replicate


@dataclass(frozen=True, kw_only=True)
class ScoredModel:
    """One model: each replicate by itself, and what they come to."""

    model: str
    replicates: Sequence[ScoredReplicate]
    mismatches: Mismatches  #: of it
    unrenamed: RowOutcomes  #: of it, as if no alias acted
    metrics: tuple[Metric, ...]

    @property
    def first(self) -> ScoredReplicate:
        """The replicate that tables of one number a row are about."""
        return self.replicates[0]

    @cached_property
    def by_path(self) -> Mapping[str, Metric]:
        """The metrics by their paths."""
        return {metric.path: metric for metric in self.metrics}

    def metric(self, path: str) -> Metric:
        """A metric by its path; raise `KeyError` where there is none."""
        return self.by_path[path]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyResults:
    """All that was measured."""

    dataset: PropertyDataset
    predictions: RunPredictions
    comparer: Comparer
    columns: Mapping[str, ScoredModel]  #: by model, in the run's order
    papers: Sequence[str]  #: that any model is scored on, ascending
    draws: Resamples  #: of these papers


def measure_run(
    dataset: PropertyDataset, predictions: RunPredictions
) -> PropertyResults:
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
            scoring.replicate(predicted)
            for predicted in _columns(predictions, model, settings.consensus)
        ]
        for model in predictions.models
    }
    papers = sorted(
        {
            refno
            for replicates in scored.values()
            for replicate in replicates
            for refno in replicate.row_outcomes.papers
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
    return PropertyResults(
        dataset=dataset,
        predictions=predictions,
        comparer=scoring.comparer,
        columns={
            model: scoring.column(model, replicates, papers, draws)
            for model, replicates in scored.items()
        },
        papers=papers,
        draws=draws,
    )


def _columns(
    predictions: RunPredictions, model: str, least: int
) -> Sequence[ReplicatePredictions]:
    """A model's replicates, or the one that they agree on."""
    replicates = predictions.of(model)
    return (consensus(replicates, least),) if least else replicates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    """The rules by which every replicate is scored."""

    dataset: PropertyDataset
    comparer: Comparer

    def replicate(self, predicted: ReplicatePredictions) -> ScoredReplicate:
        groundings = row_groundings(self.dataset, predicted, self.comparer)
        least = self.dataset.settings.min_grounding
        aliases, mismatches = self.dataset.aliases, None
        outcomes = self._row_outcomes(predicted, groundings, least, aliases)
        if self.dataset.settings.crossfit:
            mismatches = self._mismatches(outcomes)
            aliases = mismatches.crossfitted(outcomes.dataset)
            outcomes = self._row_outcomes(predicted, groundings, least, aliases)
        return ScoredReplicate(
            row_outcomes=outcomes,
            counts=GroupCounts.of(outcomes),
            compared=dict(row_metrics.compared_rows(outcomes, self.comparer)),
            groundings=groundings,
            aliases=aliases,
            mismatches=mismatches,
        )

    def _mismatches(self, outcomes: RowOutcomes) -> Mismatches:
        return find_mismatches(outcomes, self.comparer, self.dataset.canonical)

    def _row_outcomes(
        self,
        predicted: ReplicatePredictions,
        groundings: Sequence[RowGrounding],
        least: Grounding,
        aliases: AliasSet,
    ) -> RowOutcomes:
        levels = row_metrics.LEAST[least]
        return row_outcomes(
            self.dataset,
            predicted,
            self.comparer,
            Renaming.of(
                aliases,
                self.dataset.settings.name_match,
                canonical=self.dataset.canonical,
            ),
            lambda index: groundings[index].quote.level in levels,
        )

    def column(
        self,
        model: str,
        replicates: Sequence[ScoredReplicate],
        papers: Sequence[str],
        draws: Resamples,
    ) -> ScoredModel:
        first = replicates[0]
        mismatches = first.mismatches or self._mismatches(first.row_outcomes)
        unrenamed = first.row_outcomes
        if first.aliases.accepted:
            least = self.dataset.settings.min_grounding
            unrenamed = self._row_outcomes(
                unrenamed.predicted, first.groundings, least, AliasSet()
            )
        rules = self._rules(first.aliases)
        basis = RateBasis(
            counts=[replicate.counts for replicate in replicates],
            papers=papers,
            draws=draws,
            rules=rules,
        )

        def measurements() -> Iterator[Measurement]:
            yield from rates.micro(basis)
            yield from rates.macro(basis)
            yield from rates.by_paper(basis)
            yield from rates.failed_as_empty(
                basis, [replicate.row_outcomes for replicate in replicates]
            )
            outcomes = first.row_outcomes
            yield from measured(NAMES, predicted_names(outcomes))
            yield from encompassment(first.counts, first.aliases)
            stated = row_metrics.StatedRows(
                outcomes=outcomes, comparer=self.comparer, comparisons=first.compared
            )
            yield from measured(row_metrics.ROWS, stated)
            grounded = row_metrics.GroundedRows.of(outcomes, first.groundings)
            yield from measured(row_metrics.GROUNDING, grounded)
            k = f"{mismatches.k}"
            yield from measured(MISMATCHES, mismatches, path="mismatch.", over=k)
            if len(self.dataset.papers):
                counts = [
                    GroupCounts.of(
                        self._row_outcomes(
                            replicate.row_outcomes.predicted,
                            replicate.groundings,
                            "grounded",
                            replicate.aliases,
                        )
                    )
                    for replicate in replicates
                ]
                alone = f"{rules}, grounded rows alone"
                grounded_basis = replace(basis, counts=counts, rules=alone)
                yield from rates.micro(grounded_basis, "grounded.")

        return ScoredModel(
            model=model,
            replicates=replicates,
            mismatches=mismatches,
            metrics=tuple(
                with_intervals(measurements(), draws, rates.few_papers(len(papers)))
            ),
            unrenamed=unrenamed,
        )

    def _rules(self, aliases: AliasSet) -> str:
        """The rules of scoring, as definitions name them.

        Those that most scorings share are named only where they are others: numbers
        are compared between runs only if their definitions are equal.
        """
        settings = self.dataset.settings
        shared = type(settings).model_fields
        setting_names = [*RULES]
        setting_names += [
            name for name in OTHERS if getattr(settings, name) != shared[name].default
        ]
        rules = [f"{name}={getattr(settings, name)}" for name in setting_names]
        if self.comparer.left_out(ComparisonKind.PYMATGEN):
            rules.append("compositions left out")
        return ", ".join([*rules, f"aliases={aliases.id}"])
