"""Conclusions of each agent beside those of the authors, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from jobs.metrics import auroc, mean
from jobs.metrics.columns import as_value
from jobs.review_benchmark.answered import Agreement
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.rebuilt import Rebuilt, Sheet
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import Settings, VerdictKind
from jobs.review_benchmark.verdicts.effects import (
    NOTHING,
    Comparison,
    Effect,
    Outcome,
    compared,
    stated,
    together,
)
from jobs.review_benchmark.verdicts.pairs import among_truths, likeness
from jobs.review_benchmark.verdicts.threshold import (
    Threshold,
    from_labels,
    from_mismatched,
)

Pairs = Mapping[tuple[str, str], float]
"""Similarities by two reviews."""

_AGREES: Mapping[Outcome, bool | None] = {
    "passed": True,
    "failed": False,
    "not judged": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An agent's conclusion of a review beside what its authors concluded."""

    text: str = ""  #: of the first replicate that has one
    similarity: float | None = None  #: mean over replicates; None: not compared
    directions: tuple[Agreement, ...] = ()  #: what a judge says, by replicate
    rationale: str = ""  #: of the judge, the first that there is
    failure: str = ""  #: why it was not compared
    agent: Effect = NOTHING  #: that the conclusion states; of the first replicate
    truth: Effect = NOTHING  #: that the authors state
    effect: Comparison | None = None  #: of the two, over replicates; None: no text

    @property
    def is_opposite(self) -> bool:
        """Whether a judge says so; of several replicates, for half of them at least."""
        return self._is_mostly("opposite")

    @property
    def judged(self) -> bool | None:
        """Whether a judge finds the same direction; None where it cannot tell."""
        if self.is_opposite:
            return False
        if self._is_mostly("same"):
            return True
        return False if self._is_mostly("different") else None

    def _is_mostly(self, direction: Agreement) -> bool:
        return 2 * self.directions.count(direction) >= max(len(self.directions), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """How an agent's conclusions compare with those of the authors."""

    model: str
    kind: VerdictKind
    matches: Mapping[str, Match]  #: by review, ascending
    mismatched: Pairs
    """Of the review that the agent concludes about, and that of the authors."""
    threshold: Threshold | None = None
    alike: Pairs
    """Reviews whose authors' own conclusions count as the same; under a judge, who is
    not asked about them, those of which the agent's and the authors' do."""

    @property
    def compared(self) -> Mapping[str, float]:
        """The similarities that there are, by review."""
        return {
            review: match.similarity
            for review, match in self.matches.items()
            if match.similarity is not None
        }

    def is_alike(self, review: str) -> bool | None:
        """Whether the similarity reaches the threshold; None without either."""
        similarity = self.matches[review].similarity
        if self.threshold is None or similarity is None:
            return None
        return self.threshold.admits(similarity)

    def passes(self, review: str) -> bool | None:
        """Whether a conclusion is that of the authors; None: not judged.

        No similarity passes by itself: a judge must call the direction the same.
        Otherwise the stated effects must agree, since words and vectors hardly tell a
        conclusion from its opposite; under `tfidf` and `embedding` the two must be
        alike as well.
        """
        match = self.matches[review]
        is_alike = self.is_alike(review)
        if self.kind == "judge":
            return match.judged if is_alike else is_alike
        agrees = None if match.effect is None else _AGREES[match.effect.outcome]
        if self.kind == "direction":
            return agrees
        if is_alike is None:
            return None
        if not is_alike or agrees is False:
            return False
        return agrees

    @property
    def judged(self) -> Mapping[str, bool]:
        """The reviews whose conclusion passes or fails."""
        found = {review: self.passes(review) for review in self.matches}
        return {review: each for review, each in found.items() if each is not None}

    @property
    def auroc(self) -> float | None:
        """How well similarity tells matched from mismatched pairs."""
        matched, mismatched = self.compared.values(), self.mismatched.values()
        labels = [1] * len(matched) + [0] * len(mismatched)
        return auroc(labels, [*matched, *mismatched]) if labels else None


def measured(dataset: Dataset, sheet: Sheet) -> tuple[Verdicts, ...]:
    """The verdicts of each agent; none where nobody asked, or nobody concludes.

    Labels of all agents together draw one threshold. Without them each agent has its
    own, from its own mismatched pairs: one that always says much the same is alike to
    everything.
    """
    said = any(own.text for each in sheet.rebuilt for own in each.conclusions)
    is_asked = dataset.settings.verdict is not None or not sheet.imported
    if dataset.verdict == "off" or not (said or is_asked):
        return ()
    truths = [review for review in sheet.reviews if review.conclusion]
    found = [
        _compared(
            dataset,
            model,
            [own for own in sheet.rebuilt if own.model == model],
            truths,
            sheet,
        )
        for model in sheet.models
    ]
    among = _among(dataset.verdict, truths, sheet)
    shared = _set(dataset.settings) or _labelled(dataset, found)
    return tuple(
        _drawn(own, shared or _from_pairs(own, found, among), among) for own in found
    )


def _set(settings: Settings) -> Threshold | None:
    """The threshold that the settings give."""
    value = settings.verdict_threshold
    return None if value is None else Threshold(value=value, source="setting", n=0)


def _from_pairs(
    own: Verdicts, every: Sequence[Verdicts], among: Pairs | None
) -> Threshold | None:
    """The threshold of mismatched pairs.

    An agent with too few borrows those of the other agents, and pairs of the authors'
    own conclusions. None where nothing is compared.
    """
    if not own.compared:
        return None
    others = [
        similarity
        for other in every
        if other is not own
        for similarity in other.mismatched.values()
    ]
    between = () if among is None else among.values()
    return from_mismatched(
        [*own.mismatched.values()], own.kind, borrowed=[*others, *between]
    )


def _compared(
    dataset: Dataset,
    model: str,
    rebuilt: Sequence[Rebuilt],
    truths: Sequence[Review],
    sheet: Sheet,
) -> Verdicts:
    """Similarities of an agent's conclusions, before there is a threshold."""
    said = [
        (own.review, concluded)
        for own in rebuilt
        for concluded in own.conclusions
        if concluded.text
    ]
    kind = dataset.verdict
    matrix = likeness(kind, [own for _, own in said], truths, sheet)
    values: dict[tuple[str, str], list[float | None]] = {}
    for (review, _), row in zip(said, matrix, strict=True):
        for truth, similarity in zip(truths, row, strict=True):
            values.setdefault((review, truth.id), []).append(as_value(similarity))
    means = {pair: mean(each) for pair, each in values.items()}
    known = {
        truth.id: stated(truth.conclusion, truth.direction, truth.certainty)
        for truth in truths
    }
    return Verdicts(
        model=model,
        kind=kind,
        matches={
            own.review: _match(
                own,
                means.get((own.review, own.review)),
                known.get(own.review),
                dataset,
            )
            for own in rebuilt
        },
        mismatched={
            pair: similarity
            for pair, similarity in means.items()
            if pair[0] != pair[1] and similarity is not None
        },
        alike={},
    )


def _match(
    own: Rebuilt, similarity: float | None, truth: Effect | None, dataset: Dataset
) -> Match:
    """A conclusion beside that of the authors, of whom *truth* is the effect."""
    within = dataset.settings.certainty_within
    failures = (each.failure for each in own.conclusions if each.failure)
    why = next(failures, "not_compared")
    if truth is None:
        why = "no_truth_conclusion"
    agent = [
        stated(each.text, each.direction, each.certainty)
        for each in own.conclusions
        if each.text
    ]
    effects = [] if truth is None else [compared(each, truth, within) for each in agent]
    judged = [
        each.judged[own.review] for each in own.conclusions if own.review in each.judged
    ]
    return Match(
        text=own.conclusion,
        similarity=similarity,
        directions=tuple(each.direction for each in judged),
        rationale=next((each.rationale for each in judged if each.rationale), ""),
        failure=why if similarity is None else "",
        agent=agent[0] if agent else NOTHING,
        truth=truth or NOTHING,
        effect=together(effects) if effects else None,
    )


def _labelled(dataset: Dataset, found: Sequence[Verdicts]) -> Threshold | None:
    """The threshold that labels draw, of all agents that have conclusions."""
    compared = {own.model: own.compared for own in found}
    pairs = [
        (compared[label.model][label.review], label.similar)
        for label in dataset.labels
        if label.review in compared.get(label.model, {})
    ]
    return from_labels([each for each, _ in pairs], [each for _, each in pairs])


def _drawn(own: Verdicts, threshold: Threshold | None, among: Pairs | None) -> Verdicts:
    """Verdicts by a threshold; a line at nothing in common calls no reviews alike."""
    pairs = own.mismatched if among is None else among
    alike = {
        pair: similarity
        for pair, similarity in pairs.items()
        if threshold and threshold.value > 0 and threshold.admits(similarity)
    }
    return replace(own, threshold=threshold, alike=alike)


def _among(kind: VerdictKind, truths: Sequence[Review], sheet: Sheet) -> Pairs | None:
    """How alike each two reviews are by themselves; None where a judge would say."""
    if kind == "judge":
        return None
    matrix = among_truths(kind, truths, sheet).tolist()
    return {
        (truths[first].id, truths[second].id): matrix[first][second]
        for first, second in combinations(range(len(truths)), 2)
    }
