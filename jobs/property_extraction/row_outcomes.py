"""Assigns an outcome to each row: renames, leaves out, and pairs paper by paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from jobs.kit.grouping import grouped
from jobs.property_extraction.aliases.alias_set import RenamedName, Renaming
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.matching import NamedPrediction, pairs_of_paper
from jobs.property_extraction.predictions import PaperState, ReplicatePredictions
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import Edge
from jobs.property_extraction.values.numbers import folded, is_abstention


class RowOutcome(StrEnum):
    """The outcome of a row."""

    TP = "TP"
    FP = "FP"
    FN = "FN"
    ABSTAINED = "abstained"  #: the model states that there is no value
    LEFT_OUT = "left_out"  #: there is no rule for its property
    REPEATED = "repeated"  #: equal to an earlier one, if those count once
    UNGROUNDED = "ungrounded"  #: its quote has less than the required grounding
    OUTSIDE = "outside"  #: its paper is not scored


COUNTED = (RowOutcome.TP, RowOutcome.FP, RowOutcome.FN)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcomes:
    """The rows of one replicate of a model, and those of the truth, in file order."""

    dataset: PropertyDataset
    predicted: ReplicatePredictions
    papers: tuple[str, ...]  #: scored papers, ascending
    renamed: Sequence[RenamedName]  #: by prediction
    prediction_outcomes: Sequence[RowOutcome]  #: by prediction
    partners: Sequence[int]  #: by prediction: the index of its truth row, or -1
    truth_outcomes: Sequence[RowOutcome]  #: by truth row
    truth_partners: Sequence[int]  #: by truth row: the index of its prediction, or -1
    names: Sequence[str] = field(init=False, repr=False, compare=False)
    """By prediction: the name to which it is assigned, its partner's if it has one."""

    def __post_init__(self) -> None:
        names = [
            renamed_name.name if partner < 0 else self.truth[partner].name
            for renamed_name, partner in zip(self.renamed, self.partners, strict=True)
        ]
        object.__setattr__(self, "names", names)

    @property
    def predictions(self) -> Sequence[Prediction]:
        """All predictions, with any outcome."""
        return self.predicted.predictions

    @property
    def truth(self) -> Sequence[TruthRow]:
        """All curated rows."""
        return self.dataset.truth

    @property
    def failed(self) -> Sequence[str]:
        """Papers whose extraction failed, ascending."""
        return sorted(
            refno
            for refno, outcome in self.predicted.outcomes.items()
            if outcome.state is PaperState.FAILED
        )

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the indices of predictions with those of their truth rows."""
        for index, partner in enumerate(self.partners):
            if partner >= 0:
                yield index, partner

    def group_counts(self) -> Mapping[tuple[str, str], tuple[int, int, int]]:
        """Return TP, FP and FN by paper and name, ascending; without empty groups."""
        outcomes = grouped(
            (
                *(
                    ((row.refno, self.names[index]), self.prediction_outcomes[index])
                    for index, row in self.predicted_as(*COUNTED)
                ),
                *(
                    ((row.refno, row.name), RowOutcome.FN)
                    for _, row in self.truth_as(RowOutcome.FN)
                ),
            )
        )
        return {
            key: (
                group.count(RowOutcome.TP),
                group.count(RowOutcome.FP),
                group.count(RowOutcome.FN),
            )
            for key, group in sorted(outcomes.items())
        }

    def predicted_as(self, *outcomes: RowOutcome) -> Iterator[tuple[int, Prediction]]:
        """Yield the predictions with one of these outcomes, with their indices."""
        for index, outcome in enumerate(self.prediction_outcomes):
            if outcome in outcomes:
                yield index, self.predictions[index]

    def truth_as(self, *outcomes: RowOutcome) -> Iterator[tuple[int, TruthRow]]:
        """Yield the truth rows with one of these outcomes, with their indices."""
        for index, outcome in enumerate(self.truth_outcomes):
            if outcome in outcomes:
                yield index, self.truth[index]


RowRule: TypeAlias = Callable[[int], bool]
"""Returns whether a prediction, by its index, is sufficiently grounded."""


def row_outcomes(
    dataset: PropertyDataset,
    predicted: ReplicatePredictions,
    comparer: Comparer,
    renaming: Renaming,
    is_grounded: RowRule,
) -> RowOutcomes:
    """Return the outcome of each row of one replicate.

    Args:
        dataset: with truth and settings.
        predicted: the rows.
        comparer: the rules of values.
        renaming: the aliases that act.
        is_grounded: whether a row's quote is sufficiently grounded.
    """
    settings, rubric = dataset.settings, dataset.rubric
    papers = _scored(dataset, predicted)
    predictions = predicted.predictions
    renamed = [
        renaming.renamed(prediction.refno, prediction.name)
        for prediction in predictions
    ]
    prediction_outcomes = []
    seen: set[tuple[str, ...]] = set()
    for index, prediction in enumerate(predictions):
        outcome = RowOutcome.FP
        if prediction.refno not in papers:
            outcome = RowOutcome.OUTSIDE
        elif comparer.left_out(rubric.kind(renamed[index].name)):
            outcome = RowOutcome.LEFT_OUT
        elif settings.abstentions == "leave_out" and is_abstention(prediction.value):
            outcome = RowOutcome.ABSTAINED
        elif not is_grounded(index):
            outcome = RowOutcome.UNGROUNDED
        elif settings.dedupe == "exact":
            key = identity(prediction)
            outcome = RowOutcome.REPEATED if key in seen else RowOutcome.FP
            seen.add(key)
        prediction_outcomes.append(outcome)
    truth_outcomes = [
        RowOutcome.OUTSIDE
        if row.refno not in papers
        else RowOutcome.LEFT_OUT
        if comparer.left_out(rubric.kind(row.name))
        else RowOutcome.FN
        for row in dataset.truth
    ]
    partners, truth_partners = [-1] * len(predictions), [-1] * len(dataset.truth)
    named_predictions = [
        NamedPrediction(prediction, renamed_name.targets)
        for prediction, renamed_name in zip(predictions, renamed, strict=True)
    ]
    offered = grouped(
        (prediction.refno, index)
        for index, prediction in enumerate(predictions)
        if prediction_outcomes[index] is RowOutcome.FP
    )
    for index, partner in _pairs(
        dataset, named_predictions, offered, truth_outcomes, comparer
    ):
        partners[index], truth_partners[partner] = partner, index
        prediction_outcomes[index] = truth_outcomes[partner] = RowOutcome.TP
    return RowOutcomes(
        dataset=dataset,
        predicted=predicted,
        papers=tuple(sorted(papers)),
        renamed=renamed,
        prediction_outcomes=prediction_outcomes,
        partners=partners,
        truth_outcomes=truth_outcomes,
        truth_partners=truth_partners,
    )


def identity(row: Prediction) -> tuple[str, ...]:
    """Return the fields that equal rows share."""
    stated = (row.name, row.value, row.unit, row.material, row.condition)
    return (row.refno, *stated)


def material_key(settings: PropertySettings) -> Callable[[str], str]:
    """Return a function of the key that comparable materials share."""
    if settings.group_by == "property":
        return lambda _: ""
    return lambda text: folded(text).replace(" ", "")


def _scored(
    dataset: PropertyDataset, predicted: ReplicatePredictions
) -> frozenset[str]:
    """Return the papers that count, by `paper_set`, without failed ones."""
    curated = dataset.truth_by_paper.keys()
    stated = {prediction.refno for prediction in predicted.predictions}
    scored = {
        refno
        for refno, outcome in predicted.outcomes.items()
        if outcome.state is PaperState.SCORED
    }
    stated |= scored
    papers: AbstractSet[str]
    match dataset.settings.paper_set:
        case "truth":
            papers = dataset.truth_papers
        case "common":
            papers = stated & curated
        case _:
            papers = stated | curated
    return frozenset(papers - (predicted.outcomes.keys() - scored))


def _pairs(
    dataset: PropertyDataset,
    named_predictions: Sequence[NamedPrediction],
    offered: Mapping[str, Sequence[int]],
    truth_outcomes: Sequence[RowOutcome],
    comparer: Comparer,
) -> Iterator[tuple[int, int]]:
    """Yield the indices of paired predictions and truth rows, paper by paper."""

    def edges_of(
        name: str, stated: Sequence[Prediction], truths: Sequence[TruthRow]
    ) -> Iterable[Edge]:
        return comparer.edges(dataset.rubric.kind(name), name, stated, truths)

    material = material_key(dataset.settings)
    for refno, truth_indices in dataset.truth_by_paper.items():
        indices = offered.get(refno, [])
        unmatched = [
            index for index in truth_indices if truth_outcomes[index] is RowOutcome.FN
        ]
        for left, right in pairs_of_paper(
            [named_predictions[index] for index in indices],
            [dataset.truth[index] for index in unmatched],
            edges_of,
            method=dataset.settings.matching,
            material=material,
        ):
            yield indices[left], unmatched[right]
