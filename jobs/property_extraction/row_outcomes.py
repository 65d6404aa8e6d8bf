"""Decides what each row counts as: renames, leaves out, and pairs paper by paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

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
    """What a row counts as."""

    TP = "TP"
    FP = "FP"
    FN = "FN"
    ABSTAINED = "abstained"  #: the model says that there is no value
    LEFT_OUT = "left_out"  #: no rule is at hand for its property
    REPEATED = "repeated"  #: equal to an earlier one, where those count once
    UNGROUNDED = "ungrounded"  #: its quote stands less well in the paper than asked
    OUTSIDE = "outside"  #: its paper is not scored


COUNTED = (RowOutcome.TP, RowOutcome.FP, RowOutcome.FN)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcomes:
    """The rows of one replicate of a model, and those of the truth, in file order."""

    dataset: PropertyDataset
    predicted: ReplicatePredictions
    papers: tuple[str, ...]  #: that are scored, ascending
    renamed: Sequence[RenamedName]  #: by prediction
    fates: Sequence[RowOutcome]  #: by prediction
    partners: Sequence[int]  #: by prediction: the place of its truth row, or -1
    truth_fates: Sequence[RowOutcome]  #: by truth row
    truth_partners: Sequence[int]  #: by truth row: the place of its prediction, or -1
    names: Sequence[str] = field(init=False, repr=False, compare=False)
    """By prediction: the name that it is booked on, its partner's if it has one."""

    def __post_init__(self) -> None:
        names = [
            own.name if partner < 0 else self.truth[partner].name
            for own, partner in zip(self.renamed, self.partners, strict=True)
        ]
        object.__setattr__(self, "names", names)

    @property
    def predictions(self) -> Sequence[Prediction]:
        """All of them, whatever they count as."""
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
        """Places of predictions with those of their truth rows."""
        for place, partner in enumerate(self.partners):
            if partner >= 0:
                yield place, partner

    def tallies(self) -> Mapping[tuple[str, str], tuple[int, int, int]]:
        """TP, FP and FN by paper and name, ascending; groups without any left out."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, fate in enumerate(self.fates):
            if fate in COUNTED:
                key = (self.predictions[place].refno, self.names[place])
                found.setdefault(key, [0, 0, 0])[COUNTED.index(fate)] += 1
        for row, fate in zip(self.truth, self.truth_fates, strict=True):
            if fate is RowOutcome.FN:
                found.setdefault((row.refno, row.name), [0, 0, 0])[2] += 1
        return {key: (own[0], own[1], own[2]) for key, own in sorted(found.items())}


RowRule: TypeAlias = Callable[[int], bool]
"""Whether a prediction, by its place, is well enough grounded."""


def row_outcomes(
    dataset: PropertyDataset,
    predicted: ReplicatePredictions,
    comparer: Comparer,
    renaming: Renaming,
    is_grounded: RowRule,
) -> RowOutcomes:
    """What each row of one replicate counts as.

    Args:
        dataset: whose truth and settings hold.
        predicted: the rows.
        comparer: the rules of values.
        renaming: the aliases that act.
        is_grounded: whether a row's quote stands well enough in its paper.
    """
    settings, rubric = dataset.settings, dataset.rubric
    papers = _scored(dataset, predicted)
    predictions = predicted.predictions
    renamed = [renaming.renamed(each.refno, each.name) for each in predictions]
    fates = []
    seen: set[tuple[str, ...]] = set()
    for place, each in enumerate(predictions):
        fate = RowOutcome.FP
        if each.refno not in papers:
            fate = RowOutcome.OUTSIDE
        elif comparer.left_out(rubric.kind(renamed[place].name)):
            fate = RowOutcome.LEFT_OUT
        elif settings.abstentions == "leave_out" and is_abstention(each.value):
            fate = RowOutcome.ABSTAINED
        elif not is_grounded(place):
            fate = RowOutcome.UNGROUNDED
        elif settings.dedupe == "exact":
            key = identity(each)
            fate = RowOutcome.REPEATED if key in seen else RowOutcome.FP
            seen.add(key)
        fates.append(fate)
    truth_fates = [
        RowOutcome.OUTSIDE
        if row.refno not in papers
        else RowOutcome.LEFT_OUT
        if comparer.left_out(rubric.kind(row.name))
        else RowOutcome.FN
        for row in dataset.truth
    ]
    partners, truth_partners = [-1] * len(predictions), [-1] * len(dataset.truth)
    named = [
        NamedPrediction(each, own.targets)
        for each, own in zip(predictions, renamed, strict=True)
    ]
    offered = _by_paper(predictions, fates)
    for place, partner in _pairs(dataset, named, offered, truth_fates, comparer):
        partners[place], truth_partners[partner] = partner, place
        fates[place] = truth_fates[partner] = RowOutcome.TP
    return RowOutcomes(
        dataset=dataset,
        predicted=predicted,
        papers=tuple(sorted(papers)),
        renamed=renamed,
        fates=fates,
        partners=partners,
        truth_fates=truth_fates,
        truth_partners=truth_partners,
    )


def identity(row: Prediction) -> tuple[str, ...]:
    """All that two rows must share to be one said twice."""
    return (
        row.refno,
        row.name,
        row.value,
        row.unit,
        row.material,
        row.condition,
    )


def material_key(settings: PropertySettings) -> Callable[[str], str]:
    """What two materials must share to be compared: their folded text, or nothing."""
    if settings.group_by == "property":
        return lambda _: ""
    return lambda text: folded(text).replace(" ", "")


def _scored(
    dataset: PropertyDataset, predicted: ReplicatePredictions
) -> frozenset[str]:
    """Papers that count: of truth or predictions or of both, and not failed."""
    curated = dataset.truth_by_paper.keys()
    stated = {each.refno for each in predicted.predictions}
    stated |= {
        refno
        for refno, outcome in predicted.outcomes.items()
        if outcome.state is PaperState.SCORED
    }
    outside = {
        refno
        for refno, outcome in predicted.outcomes.items()
        if outcome.state is not PaperState.SCORED
    }
    common = dataset.settings.paper_set == "common"
    papers = stated & curated if common else stated | curated
    return frozenset(papers - outside)


def _by_paper(
    predictions: Sequence[Prediction], fates: Sequence[RowOutcome]
) -> Mapping[str, Sequence[int]]:
    """Places of the predictions that count."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(predictions):
        if fates[place] is RowOutcome.FP:
            found.setdefault(each.refno, []).append(place)
    return found


def _pairs(
    dataset: PropertyDataset,
    named: Sequence[NamedPrediction],
    offered: Mapping[str, Sequence[int]],
    truth_fates: Sequence[RowOutcome],
    comparer: Comparer,
) -> Iterator[tuple[int, int]]:
    """Places of predictions and truth rows that are paired, paper by paper."""

    def edges_of(
        name: str, stated: Sequence[Prediction], truths: Sequence[TruthRow]
    ) -> Iterable[Edge]:
        return comparer.edges(dataset.rubric.kind(name), name, stated, truths)

    material = material_key(dataset.settings)
    for refno, own in dataset.truth_by_paper.items():
        places = offered.get(refno, [])
        wanted = [place for place in own if truth_fates[place] is RowOutcome.FN]
        for left, right in pairs_of_paper(
            [named[place] for place in places],
            [dataset.truth[place] for place in wanted],
            edges_of,
            method=dataset.settings.matching,
            material=material,
        ):
            yield places[left], wanted[right]
