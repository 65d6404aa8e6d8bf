"""Compares each agent's conclusions with those of the authors, and measures them.

Verdicts do not affect whether a review passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from jobs.kit.measurements import MeasuredValue, count, wilson_share, with_intervals
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics import auroc, mean
from jobs.kit.metrics.columns import as_value
from jobs.review_benchmark.conclusion_similarity import (
    DEFINITIONS,
    NULL_QUANTILE,
    SimilarityThreshold,
    ThresholdSource,
    conclusion_similarity,
    threshold_from_labels,
    threshold_from_mismatched,
    truth_similarity,
)
from jobs.review_benchmark.data import Agreement, Review
from jobs.review_benchmark.effects import (
    NO_EFFECT,
    EffectComparison,
    EffectOutcome,
    StatedEffect,
    combine_comparisons,
    compare_effects,
    stated_effect,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview, ReviewPredictions
from jobs.review_benchmark.settings import ReviewBenchmarkSettings, VerdictKind
from runner.evaluation import STAYS
from runner.scorecard import Metric

PairSimilarities = Mapping[tuple[str, str], float]
"""Similarities by two reviews."""

_AGREES: Mapping[EffectOutcome, bool | None] = {
    "passed": True,
    "failed": False,
    "not judged": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionMatch:
    """An agent's conclusion about a review and the authors' conclusion."""

    text: str = ""  #: of the first replicate that has one
    similarity: float | None = None  #: mean over replicates; None: not compared
    directions: tuple[Agreement, ...] = field(default=(), metadata=STAYS)
    """A judge's directions, by replicate."""
    rationale: str = ""  #: the first one of a judge
    failure: str = ""  #: why it was not compared
    agent: StatedEffect = (
        NO_EFFECT  #: as the conclusion states it; of the first replicate
    )
    truth: StatedEffect = NO_EFFECT  #: as the authors state it
    effect: EffectComparison | None = (
        None  #: of the two, over replicates; None: no text
    )

    @property
    def is_opposite(self) -> bool:
        """Whether a judge calls it opposite, for at least half of the replicates."""
        return self._is_mostly("opposite")

    @property
    def judged(self) -> bool | None:
        """Whether a judge finds the same direction; None if it cannot tell."""
        if self.is_opposite:
            return False
        if self._is_mostly("same"):
            return True
        return False if self._is_mostly("different") else None

    def _is_mostly(self, direction: Agreement) -> bool:
        return 2 * self.directions.count(direction) >= max(len(self.directions), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionVerdicts:
    """The comparison of an agent's conclusions with those of the authors."""

    model: str = field(metadata=STAYS)
    kind: VerdictKind = field(metadata=STAYS)
    matches: Mapping[str, ConclusionMatch]  #: by review, ascending
    mismatched: PairSimilarities
    """By the review of the agent's conclusion, and that of the authors'."""
    threshold: SimilarityThreshold | None = None
    similar_reviews: PairSimilarities
    """Reviews whose authors' conclusions count as the same; under a judge, which does
    not compare these, pairs whose agent's and authors' conclusions do."""
    level: float = 0.95  #: of intervals

    @property
    def without_texts(self) -> ConclusionVerdicts:
        """The verdicts with numbers only, from which metrics are computed."""
        return replace(
            self,
            matches={
                review: ConclusionMatch(
                    similarity=match.similarity,
                    directions=match.directions,
                    effect=match.effect,
                )
                for review, match in self.matches.items()
            },
        )

    @property
    def compared(self) -> Mapping[str, float]:
        """Known similarities, by review."""
        return {
            review: match.similarity
            for review, match in self.matches.items()
            if match.similarity is not None
        }

    def is_similar(self, review: str) -> bool | None:
        """Return whether the similarity reaches the threshold; None without either."""
        similarity = self.matches[review].similarity
        if self.threshold is None or similarity is None:
            return None
        return self.threshold.admits(similarity)

    def passes(self, review: str) -> bool | None:
        """Return whether a conclusion is that of the authors; None: not judged.

        Similarity alone never passes: a judge must call the direction the same.
        Otherwise the stated effects must agree, since words and vectors hardly separate
        a conclusion from its opposite; under `tfidf` and `embedding` the two must be
        alike as well.
        """
        match = self.matches[review]
        is_similar = self.is_similar(review)
        if self.kind == "judge":
            return match.judged if is_similar else is_similar
        agrees = None if match.effect is None else _AGREES[match.effect.outcome]
        if self.kind == "direction":
            return agrees
        if is_similar is None:
            return None
        if not is_similar or agrees is False:
            return False
        return agrees

    @property
    def judged(self) -> Mapping[str, bool]:
        """Reviews whose conclusion passes or fails."""
        outcomes = {review: self.passes(review) for review in self.matches}
        return {
            review: passed for review, passed in outcomes.items() if passed is not None
        }

    @property
    def passed(self) -> int:
        """Number of conclusions that pass."""
        return [*self.judged.values()].count(True)

    @property
    def auroc(self) -> float | None:
        """AUROC of similarity, for matched against mismatched pairs."""
        matched, mismatched = self.compared.values(), self.mismatched.values()
        labels = [1] * len(matched) + [0] * len(mismatched)
        return auroc(labels, [*matched, *mismatched]) if labels else None


def judge_conclusions(
    dataset: ReviewDataset, predictions: ReviewPredictions
) -> tuple[ConclusionVerdicts, ...]:
    """Return the verdicts of each agent; none if not requested, or no conclusions.

    Labels of all agents together draw one threshold. Without them each agent has a
    separate one, from its mismatched pairs: an agent whose conclusions hardly differ is
    similar to everything.
    """
    has_conclusions = any(
        conclusion.text
        for rebuilt_review in predictions.rebuilt
        for conclusion in rebuilt_review.conclusions
    )
    is_requested = dataset.settings.verdict is not None or not predictions.imported
    if dataset.verdict == "off" or not (has_conclusions or is_requested):
        return ()
    truths = [review for review in predictions.reviews if review.conclusion]
    concluded = [
        _compared(dataset, model, predictions.of(model), truths, predictions)
        for model in predictions.models
    ]
    among = _truth_pairs(dataset.verdict, truths, predictions)
    stated = dataset.settings.verdict_threshold
    shared = (
        _labelled(dataset, concluded)
        if stated is None
        else SimilarityThreshold(value=stated, source="setting", n=0)
    )
    return tuple(
        _with_threshold(
            verdicts, shared or _from_pairs(verdicts, concluded, among), among
        )
        for verdicts in concluded
    )


def _from_pairs(
    verdicts: ConclusionVerdicts,
    every: Sequence[ConclusionVerdicts],
    among: PairSimilarities | None,
) -> SimilarityThreshold | None:
    """Return the threshold of mismatched pairs.

    An agent with too few of them also uses those of the other agents, and pairs of
    authors' conclusions. None if nothing is compared.
    """
    if not verdicts.compared:
        return None
    others = [
        similarity
        for other in every
        if other is not verdicts
        for similarity in other.mismatched.values()
    ]
    between = () if among is None else among.values()
    return threshold_from_mismatched(
        [*verdicts.mismatched.values()], verdicts.kind, borrowed=[*others, *between]
    )


def _compared(
    dataset: ReviewDataset,
    model: str,
    rebuilt: Sequence[RebuiltReview],
    truths: Sequence[Review],
    predictions: ReviewPredictions,
) -> ConclusionVerdicts:
    """Return the similarities of an agent's conclusions, without a threshold yet."""
    conclusions = [
        (rebuilt_review.review, concluded)
        for rebuilt_review in rebuilt
        for concluded in rebuilt_review.conclusions
        if concluded.text
    ]
    kind = dataset.verdict
    matrix = conclusion_similarity(
        kind, [conclusion for _, conclusion in conclusions], truths, predictions
    )
    values: dict[tuple[str, str], list[float | None]] = {}
    for (review, _), row in zip(conclusions, matrix, strict=True):
        for truth, similarity in zip(truths, row, strict=True):
            values.setdefault((review, truth.id), []).append(as_value(similarity))
    means = {pair: mean(similarities) for pair, similarities in values.items()}
    truth_effects = {
        truth.id: stated_effect(truth.conclusion, truth.direction, truth.certainty)
        for truth in truths
    }
    return ConclusionVerdicts(
        model=model,
        kind=kind,
        matches={
            rebuilt_review.review: _match(
                rebuilt_review,
                means.get((rebuilt_review.review, rebuilt_review.review)),
                truth_effects.get(rebuilt_review.review),
                dataset,
            )
            for rebuilt_review in rebuilt
        },
        mismatched={
            pair: similarity
            for pair, similarity in means.items()
            if pair[0] != pair[1] and similarity is not None
        },
        similar_reviews={},
        level=dataset.settings.level,
    )


def _match(
    rebuilt_review: RebuiltReview,
    similarity: float | None,
    truth: StatedEffect | None,
    dataset: ReviewDataset,
) -> ConclusionMatch:
    """Compare a review's conclusion with the authors', whose effect is *truth*."""
    within = dataset.settings.certainty_within
    failures = (
        conclusion.failure
        for conclusion in rebuilt_review.conclusions
        if conclusion.failure
    )
    failure = next(failures, "not_compared")
    if truth is None:
        failure = "no_truth_conclusion"
    agent = [
        stated_effect(conclusion.text, conclusion.direction, conclusion.certainty)
        for conclusion in rebuilt_review.conclusions
        if conclusion.text
    ]
    effects = (
        []
        if truth is None
        else [compare_effects(effect, truth, within) for effect in agent]
    )
    judged = [
        conclusion.judged[rebuilt_review.review]
        for conclusion in rebuilt_review.conclusions
        if rebuilt_review.review in conclusion.judged
    ]
    return ConclusionMatch(
        text=rebuilt_review.concluded.text,
        similarity=similarity,
        directions=tuple(judgement.direction for judgement in judged),
        rationale=next(
            (judgement.rationale for judgement in judged if judgement.rationale), ""
        ),
        failure=failure if similarity is None else "",
        agent=agent[0] if agent else NO_EFFECT,
        truth=truth or NO_EFFECT,
        effect=combine_comparisons(effects) if effects else None,
    )


def _labelled(
    dataset: ReviewDataset, concluded: Sequence[ConclusionVerdicts]
) -> SimilarityThreshold | None:
    """Return the threshold that labels draw, over all agents with conclusions."""
    compared = {verdicts.model: verdicts.compared for verdicts in concluded}
    pairs = [
        (compared[label.model][label.review], label.similar)
        for label in dataset.labels
        if label.review in compared.get(label.model, {})
    ]
    return threshold_from_labels(
        [similarity for similarity, _ in pairs], [similar for _, similar in pairs]
    )


def _with_threshold(
    verdicts: ConclusionVerdicts,
    threshold: SimilarityThreshold | None,
    among: PairSimilarities | None,
) -> ConclusionVerdicts:
    """Apply a threshold; one of 0 makes no reviews alike."""
    pairs = verdicts.mismatched if among is None else among
    similar_reviews = {
        pair: similarity
        for pair, similarity in pairs.items()
        if threshold and threshold.value > 0 and threshold.admits(similarity)
    }
    return replace(verdicts, threshold=threshold, similar_reviews=similar_reviews)


def _truth_pairs(
    kind: VerdictKind, truths: Sequence[Review], predictions: ReviewPredictions
) -> PairSimilarities | None:
    """Return the similarity of every two reviews' authors; None under a judge."""
    if kind == "judge":
        return None
    matrix = truth_similarity(kind, truths, predictions).tolist()
    return {
        (truths[first].id, truths[second].id): matrix[first][second]
        for first, second in combinations(range(len(truths)), 2)
    }


_PASSED: Mapping[VerdictKind, str] = {
    "direction": "stated direction of effect as the authors', certainty within "
    "{within} level(s)",
    "tfidf": "similarity above the threshold, and direction and certainty as under "
    "direction",
    "embedding": "similarity above the threshold, and direction and certainty as under "
    "direction",
    "judge": "similarity above the threshold, and the judge calls the direction same",
}
"""Condition of a verdict, by the way in which conclusions are compared."""


_SOURCES: Mapping[ThresholdSource, str] = {
    "labels": "youden@1(highest J over labels; ties to the higher threshold)",
    "mismatched pairs": f"quantile@1({NULL_QUANTILE:g} of mismatched pairs, linear)",
    "borrowed pairs": f"quantile@1({NULL_QUANTILE:g} of mismatched pairs, linear; with "
    "those of other agents and of the authors among themselves)",
    "fixed": "fixed@1(a value of siftlog's; too few mismatched pairs)",
    "setting": "setting@1(verdict_threshold)",
}

VERDICTS: Mapping[str, ValueMeasure[ConclusionVerdicts]] = {
    "verdict.similarity": ValueMeasure(
        "Similarity of conclusions",
        "Similarity of the agent's conclusions to the authors' own, as a mean over "
        "reviews",
        "higher",
        of=lambda v: MeasuredValue(
            value=mean(v.compared.values()), n=len(v.matches), n_defined=len(v.compared)
        ),
        definition="mean over reviews of {similarity}",
    ),
    "verdict.null": ValueMeasure(
        "Similarity of mismatched conclusions",
        "Similarity of conclusions of different reviews, as a mean over pairs",
        of=lambda v: count(mean(v.mismatched.values()), len(v.mismatched)),
        definition="mean over mismatched pairs of {similarity}",
    ),
    "verdict.auroc": ValueMeasure(
        "AUROC of similarity",
        "How often a conclusion is more similar to that of its own review than of "
        "another; chance is 0.5",
        "higher",
        of=lambda v: count(v.auroc, len(v.compared) + len(v.mismatched)),
        definition="auroc@1(matched against mismatched pairs)",
    ),
    "verdict.threshold": ValueMeasure(
        "Similarity threshold",
        "Similarity from which a conclusion can pass",
        of=lambda v: (
            count(None, len(v.mismatched))
            if v.threshold is None
            else count(v.threshold.value, v.threshold.n)
        ),
        definition="{threshold}",
    ),
    "verdict.above": ValueMeasure(
        "Conclusions above the threshold",
        "Conclusions that are alike by similarity, whatever they state",
        of=lambda v: count(
            None
            if v.threshold is None
            else sum(map(v.threshold.admits, v.compared.values())),
            len(v.compared),
        ),
        definition="count@1(conclusions whose similarity the threshold admits)",
    ),
    "verdict.label_accuracy": ValueMeasure(
        "Accuracy against labels",
        "Share of labelled conclusions that the threshold of the other labels "
        "decides rightly",
        "higher",
        of=lambda v: (
            {"": count(v.threshold.accuracy, v.threshold.n)}
            if v.threshold is not None and v.threshold.source == "labels"
            else {}
        ),
        definition="accuracy@1(leave-one-out; the threshold of the other labels)",
    ),
    "verdict.judged": ValueMeasure(
        "Conclusions judged",
        "Conclusions that pass or fail; others are not judged",
        of=lambda v: count(len(v.judged), len(v.matches)),
        definition="count@1(conclusions that pass or fail; the others are not judged)",
    ),
    "verdict.passed": ValueMeasure(
        "Conclusions passed",
        "Conclusions that count as the authors' own",
        "higher",
        of=lambda v: count(v.passed if v.judged else None, len(v.judged)),
        definition="passed@2({condition})",
    ),
    "verdict.passed_rate": ValueMeasure(
        "Share of conclusions passed",
        "Share of the compared conclusions that count as the authors' own",
        "higher",
        of=lambda v: wilson_share(v.passed, len(v.judged), v.level),
        definition="passed_rate@2(passed / judged; Wilson, level={level})",
    ),
    "verdict.opposite": ValueMeasure(
        "Opposite conclusions",
        "Reviews whose conclusion has the opposite direction",
        "lower",
        of=lambda v: (
            {
                "": count(
                    sum(match.is_opposite for match in v.matches.values()),
                    len(v.compared),
                )
            }
            if v.kind == "judge"
            else {}
        ),
        definition="count@1(reviews whose direction the judge calls opposite)",
    ),
    "verdict.alike": ValueMeasure(
        "Mismatched conclusions above the threshold",
        "Pairs of conclusions of different reviews that the threshold admits",
        "lower",
        of=lambda v: count(
            None if v.threshold is None else len(v.similar_reviews), len(v.matches)
        ),
        definition="count@1(pairs of other reviews that a threshold above 0 admits)",
    ),
}


def verdict_metrics(
    verdicts: ConclusionVerdicts, settings: ReviewBenchmarkSettings
) -> Iterator[Metric]:
    """Return the metrics of one agent's verdicts."""
    threshold = verdicts.threshold
    source = "mismatched pairs" if threshold is None else threshold.source
    condition = _PASSED[verdicts.kind].format(within=settings.certainty_within)
    parameters = {
        "similarity": DEFINITIONS[verdicts.kind],
        "threshold": _SOURCES[source],
        "condition": condition,
        "level": str(verdicts.level),
    }
    return with_intervals(measured(VERDICTS, verdicts, parameters=parameters))
