"""Measures a run: the rows, counts and metrics of every model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jobs.kit.metrics import Resamples
from jobs.property_extraction import row_metrics
from jobs.property_extraction.aliases.alias_set import AliasSet, Renaming
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.frame import FrequentValue, ModelFrame, PropertyFrame
from jobs.property_extraction.name_metrics import (
    Mismatches,
    alias_note,
    find_mismatches,
    predicted_names,
)
from jobs.property_extraction.predictions import (
    ReplicatePredictions,
    RunPredictions,
    consensus,
)
from jobs.property_extraction.rates import FailedPapers, GroupCounts
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
"""Settings that also affect counts, but rarely differ from the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredReplicate:
    """One replicate of a model, or the consensus of several, scored."""

    row_outcomes: RowOutcomes
    counts: GroupCounts
    compared: Mapping[int, ValueComparison]  #: by prediction: with its partner or name
    groundings: Sequence[RowGrounding]  #: by prediction
    aliases: AliasSet  #: that acted: the given ones, and cross-fitted drafts
    mismatches: Mismatches | None = None  #: before those drafts; None: there were none

    @property
    def replicate(self) -> int:
        """Number of the replicate; 0: a consensus."""
        return self.row_outcomes.predicted.replicate


@dataclass(frozen=True, kw_only=True)
class ScoredModel:
    """One model: its replicates and metrics."""

    model: str
    replicates: Sequence[ScoredReplicate]
    mismatches: Mismatches  #: of the first replicate
    unrenamed: RowOutcomes  #: of the first replicate, as if no alias acted
    metrics: tuple[Metric, ...]

    @property
    def first(self) -> ScoredReplicate:
        """Replicate of the tables with one number per row."""
        return self.replicates[0]

    @cached_property
    def by_path(self) -> Mapping[str, Metric]:
        """Metrics by their paths."""
        return {metric.path: metric for metric in self.metrics}

    def metric(self, path: str) -> Metric:
        """Return a metric by its path; raise `KeyError` if there is none."""
        return self.by_path[path]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyResults:
    """All results of a run."""

    dataset: PropertyDataset
    predictions: RunPredictions
    comparer: Comparer
    columns: Mapping[str, ScoredModel]  #: by model, in the run's order
    frame: PropertyFrame  #: numbers from which the metrics are computed
    draws: Resamples  #: of the papers on which any model is scored

    @property
    def papers(self) -> Sequence[str]:
        """Papers on which any model is scored, ascending."""
        return self.frame.papers


def measure_run(
    dataset: PropertyDataset, predictions: RunPredictions
) -> PropertyResults:
    """Compute every metric of every model."""
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
    mismatches = {
        model: replicates[0].mismatches
        or scoring.mismatches(replicates[0].row_outcomes)
        for model, replicates in scored.items()
    }
    frame = PropertyFrame(
        settings=settings,
        papers=papers,
        models={
            model: scoring.frame(replicates, mismatches[model])
            for model, replicates in scored.items()
        },
        frequent=_most_frequent(dataset, papers),
    )
    draws = frame.draws
    return PropertyResults(
        dataset=dataset,
        predictions=predictions,
        comparer=scoring.comparer,
        columns={
            model: scoring.column(
                model,
                replicates,
                mismatches[model],
                tuple(frame.models[model].metrics(papers, draws)),
            )
            for model, replicates in scored.items()
        },
        frame=frame,
        draws=draws,
    )


def _most_frequent(
    dataset: PropertyDataset, papers: Sequence[str]
) -> FrequentValue | None:
    truth = [
        dataset.truth[index]
        for refno in papers
        for index in dataset.truth_by_paper.get(refno, ())
    ]
    if not truth:
        return None
    names = Counter(row.name for row in truth)
    name = min(names, key=lambda candidate: (-names[candidate], candidate))
    stated = {(row.refno, row.value, row.unit) for row in truth if row.name == name}
    values = Counter((value, unit) for _, value, unit in stated)
    best = min(values, key=lambda pair: (-values[pair], pair))
    return FrequentValue(
        answer=f"{name} = {' '.join(filter(None, best))}",
        papers=values[best],
        truth=len(truth),
    )


def _columns(
    predictions: RunPredictions, model: str, least: int
) -> Sequence[ReplicatePredictions]:
    """Return a model's replicates, or their consensus."""
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
            mismatches = self.mismatches(outcomes)
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

    def mismatches(self, outcomes: RowOutcomes) -> Mismatches:
        """Return the wrong and missed names of a replicate."""
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

    def frame(
        self, replicates: Sequence[ScoredReplicate], mismatches: Mismatches
    ) -> ModelFrame:
        """Return the numbers from which the metrics of a model are computed."""
        first = replicates[0]
        outcomes = first.row_outcomes
        return ModelFrame(
            rules=self._rules(first.aliases),
            counts=[replicate.counts for replicate in replicates],
            failed=[FailedPapers.of(one.row_outcomes) for one in replicates],
            grounded_counts=[
                GroupCounts.of(
                    self._row_outcomes(
                        replicate.row_outcomes.predicted,
                        replicate.groundings,
                        "grounded",
                        replicate.aliases,
                    )
                )
                for replicate in replicates
                if len(self.dataset.papers)
            ],
            names=predicted_names(outcomes),
            alias_note=alias_note(first.aliases),
            rows=[*row_metrics.row_readings(outcomes, self.comparer, first.compared)],
            grounded=row_metrics.GroundedRows.of(
                outcomes, first.groundings
            ).without_places,
            mismatches=mismatches.counts,
        )

    def column(
        self,
        model: str,
        replicates: Sequence[ScoredReplicate],
        mismatches: Mismatches,
        metrics: tuple[Metric, ...],
    ) -> ScoredModel:
        """Return one model, with its metrics."""
        first = replicates[0]
        unrenamed = first.row_outcomes
        if first.aliases.accepted:
            least = self.dataset.settings.min_grounding
            unrenamed = self._row_outcomes(
                unrenamed.predicted, first.groundings, least, AliasSet()
            )
        return ScoredModel(
            model=model,
            replicates=replicates,
            mismatches=mismatches,
            metrics=metrics,
            unrenamed=unrenamed,
        )

    def _rules(self, aliases: AliasSet) -> str:
        """Return the rules of scoring for definitions.

        Rules with a common default are named only if they differ from it: numbers of
        runs are compared only if their definitions are equal.
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
