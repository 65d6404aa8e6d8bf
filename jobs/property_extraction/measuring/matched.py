"""Gives every row its fate: renames, leaves out, and pairs paper by paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.property_extraction.aliases.renaming import Renaming
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.gathering.predicted import Predicted, State
from jobs.property_extraction.matching.paper import Named, pairs_of_paper
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.settings import Settings
from jobs.property_extraction.values.abstention import is_abstention
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import Edge
from jobs.property_extraction.values.folding import folded

RowRule: TypeAlias = Callable[[int], bool]
"""Whether a prediction, by its place, is well enough grounded."""


def fates_of(
    dataset: Dataset,
    predicted: Predicted,
    comparer: Comparer,
    renaming: Renaming,
    is_grounded: RowRule,
) -> Fates:
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
        fate = Fate.FP
        if each.refno not in papers:
            fate = Fate.OUTSIDE
        elif comparer.left_out(rubric.kind(renamed[place].name)):
            fate = Fate.LEFT_OUT
        elif settings.abstentions == "leave_out" and is_abstention(each.value):
            fate = Fate.ABSTAINED
        elif not is_grounded(place):
            fate = Fate.UNGROUNDED
        elif settings.dedupe == "exact":
            key = identity(each)
            fate = Fate.REPEATED if key in seen else Fate.FP
            seen.add(key)
        fates.append(fate)
    truth_fates = [
        Fate.OUTSIDE
        if row.refno not in papers
        else Fate.LEFT_OUT
        if comparer.left_out(rubric.kind(row.name))
        else Fate.FN
        for row in dataset.truth
    ]
    partners, truth_partners = [-1] * len(predictions), [-1] * len(dataset.truth)
    named = [
        Named(each, own.targets) for each, own in zip(predictions, renamed, strict=True)
    ]
    offered = _by_paper(predictions, fates)
    for place, partner in _pairs(dataset, named, offered, truth_fates, comparer):
        partners[place], truth_partners[partner] = partner, place
        fates[place] = truth_fates[partner] = Fate.TP
    return Fates(
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


def material_key(settings: Settings) -> Callable[[str], str]:
    """What two materials must share to be compared: their folded text, or nothing."""
    if settings.group_by == "property":
        return lambda _: ""
    return lambda text: folded(text).replace(" ", "")


def _scored(dataset: Dataset, predicted: Predicted) -> frozenset[str]:
    """Papers that count: of truth or predictions or of both, and not failed."""
    curated = dataset.truth_by_paper.keys()
    stated = {each.refno for each in predicted.predictions}
    stated |= {
        refno
        for refno, outcome in predicted.outcomes.items()
        if outcome.state is State.SCORED
    }
    outside = {
        refno
        for refno, outcome in predicted.outcomes.items()
        if outcome.state is not State.SCORED
    }
    common = dataset.settings.paper_set == "common"
    papers = stated & curated if common else stated | curated
    return frozenset(papers - outside)


def _by_paper(
    predictions: Sequence[Prediction], fates: Sequence[Fate]
) -> Mapping[str, Sequence[int]]:
    """Places of the predictions that count."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(predictions):
        if fates[place] is Fate.FP:
            found.setdefault(each.refno, []).append(place)
    return found


def _pairs(
    dataset: Dataset,
    named: Sequence[Named],
    offered: Mapping[str, Sequence[int]],
    truth_fates: Sequence[Fate],
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
        wanted = [place for place in own if truth_fates[place] is Fate.FN]
        for left, right in pairs_of_paper(
            [named[place] for place in places],
            [dataset.truth[place] for place in wanted],
            edges_of,
            method=dataset.settings.matching,
            material=material,
        ):
            yield places[left], wanted[right]
