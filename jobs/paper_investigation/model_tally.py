"""Counts the results of one model, its replicates and trivial baselines.

Accuracies and scores are linear in the correct answers, so only a weight for each
expected answer is stored; the most frequent answer is known only at the end.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b, sha256
from itertools import combinations
from typing import Generic, TypeAlias, TypeVar

from jobs.kit.baselines import TrivialBaseline as Trivial
from jobs.kit.measurements import MeasuredValue, Measurement, count, share
from jobs.kit.measures import ComputedMeasure, ValueMeasure, measured
from jobs.kit.metrics import mean, ratio, std
from jobs.paper_investigation.data import NOT_FOUND, PaperQuestion
from jobs.paper_investigation.grading import (
    GradedPaper,
    PaperScores,
)
from jobs.paper_investigation.judging import (
    AnswerJudgement,
    ScoringVariants,
    expected,
    study_text,
)
from jobs.paper_investigation.paper_scores import (
    QUESTION_ACC,
    SCORE,
    PaperAverage,
    headline,
    headline_variants,
    mean_of_values,
)
from jobs.paper_investigation.question_counts import (
    STUDY,
    TOTAL,
    Flips,
    QuestionBreakdown,
    ReplyCounts,
    StudyCounts,
)
from jobs.paper_investigation.records import Mode, QuestionItem
from jobs.paper_investigation.settings import PIPELINES, Pipeline
from jobs.paper_investigation.variant_counts import ExtractionCounts
from runner.evaluation import KEYS_STAY, STAYS

FREQUENT, ABSENT = "most_frequent", "not_found"
_ABSENT = study_text(NOT_FOUND, NOT_FOUND)

Chosen: TypeAlias = Mapping[str, str]
"""By pipeline: the answer that is always given."""


_Shares: TypeAlias = Counter[tuple[int, float]]
"""Number of answers by size of their group and recall of their paper."""


@dataclass(slots=True, kw_only=True)
class TrivialAnswers:
    """Expected answers of one model's questions, and their weights."""

    _answers: dict[str, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter), metadata=KEYS_STAY
    )
    """By pipeline."""
    _shares: dict[str, dict[str, _Shares]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter)),
        metadata=KEYS_STAY,
    )
    """By pipeline and answer: the number of questions by share and recall. Fractions
    are summed at the end, so that the order of papers does not change the result."""
    _with_questions: int = 0
    _scored: int = 0
    _absent: str = _ABSENT  #: the answer "not found"

    def add(self, paper: GradedPaper) -> None:
        """Add the questions of one paper in one replicate that have a reply."""
        for graded_answer in paper.answers:
            if graded_answer.judgement is not None:
                question = graded_answer.item.question
                self._answers[question.pipeline][_folded(question)] += 1
        if paper.skip is not None or paper.score is None:
            return
        self._scored += 1
        self._with_questions += bool(paper.accuracies)
        for variant in paper.accuracies:
            answered = [m for m in paper.links[variant] if m.judgement is not None]
            share = len(answered) * len(paper.accuracies), paper.recall or 0.0
            for graded_answer in answered:
                question = graded_answer.item.question
                self._shares[question.pipeline][_folded(question)][share] += 1

    def baselines(self) -> Iterator[Trivial]:
        """Yield baselines: always the most frequent answer; always "not found"."""
        frequent = {
            name: min(counts, key=lambda answer: (-counts[answer], answer))
            for name, counts in self._answers.items()
        }
        absent = {**frequent, STUDY: self._absent}
        yield from self._always(
            FREQUENT,
            "always the most frequent answer",
            frequent,
            "each pipeline's most frequent expected answer, given to all its questions",
            [pipe for pipe in PIPELINES if frequent.get(pipe) != self._absent],
        )
        if STUDY in self._answers:
            yield from self._always(
                ABSENT,
                "always not found",
                absent,
                "p-value and significance 'not found' in every study question, the "
                "most frequent letter elsewhere",
                [STUDY],
                is_whole=absent != frequent,
            )

    def _always(
        self,
        key: str,
        name: str,
        chosen: Chosen,
        how: str,
        pipelines: Sequence[str],
        *,
        is_whole: bool = True,
    ) -> Iterator[Trivial]:
        """Yield the baselines of one strategy, those of all questions first."""
        right = {pipe: self._answers[pipe][answer] for pipe, answer in chosen.items()}
        n = {pipe: counts.total() for pipe, counts in self._answers.items()}

        def baseline(of: str, value: float, items: int, formula: str = how) -> Trivial:
            return Trivial(
                of=of,
                key=key,
                name=name,
                value=ratio(value, items),
                n=items,
                formula=formula,
            )

        if is_whole:
            alone, by_recall = self._worth(chosen)
            formula = f"{how}; the variants that the model found"
            yield baseline(SCORE.path, by_recall, self._scored, formula)
            yield baseline(QUESTION_ACC.path, alone, self._with_questions, formula)
            total = sum(right.values()), sum(n.values())
            yield baseline(f"pipeline.{TOTAL}.accuracy", *total)
        for pipe in pipelines:
            if pipe in chosen and pipe in n:
                yield baseline(f"pipeline.{pipe}.accuracy", right[pipe], n[pipe])

    def _worth(self, chosen: Chosen) -> tuple[float, float]:
        """Return the sum of papers' accuracies, and of accuracy times recall."""
        alone = by_recall = Fraction()
        for pipe, answer in sorted(chosen.items()):
            shares: _Shares = self._shares.get(pipe, {}).get(answer, Counter())
            for (of, recall), n in shares.items():
                alone += Fraction(n, of)
                by_recall += Fraction(n, of) * Fraction(recall)
        return float(alone), float(by_recall)


def _folded(question: PaperQuestion) -> str:
    """Return the expected answer; study fields are folded and stripped."""
    return (
        expected(question)
        if question.is_mcq
        else " ".join(expected(question).casefold().split())
    )


T = TypeVar("T")
Key = tuple[float | int | str, ...]


class Smallest(Generic[T]):
    """The *n* items with the smallest keys, ascending."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._smallest: list[tuple[Key, int, T]] = []
        self._seen = 0

    def add(self, key: Key, item: T) -> None:
        """Add *item* if its key is small enough; the earlier of equal ones wins."""
        self._seen += 1
        # the number prevents comparisons of items
        bisect.insort(self._smallest, (key, self._seen, item))
        del self._smallest[self._n :]

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._smallest)


def random_key(seed: int, model: str, question: str) -> Key:
    """Return a random sort key that is the same on every machine."""
    return (sha256(f"{seed}/{model}/{question}".encode()).hexdigest(),)


EXAMPLE_ANSWERS = 5
"""Number of right and wrong answers in a summary of questions."""


Answered: TypeAlias = tuple[QuestionItem, AnswerJudgement]


@dataclass(slots=True, kw_only=True)
class ModelCounts:
    """Counts of one model that its metrics are computed from."""

    mode: Mode = field(metadata=STAYS)
    rules: str = field(metadata=STAYS)  #: scoring variant with the other rules
    level: float  #: level of intervals
    papers: PaperScores = field(default_factory=PaperScores)
    breakdown: QuestionBreakdown = field(default_factory=QuestionBreakdown)
    extraction: ExtractionCounts = field(default_factory=ExtractionCounts)
    replies: ReplyCounts = field(default_factory=ReplyCounts)
    flips: Flips = field(default_factory=Flips)
    study: StudyCounts = field(default_factory=StudyCounts)
    trivial: TrivialAnswers = field(default_factory=TrivialAnswers)
    under: Mapping[str, PaperScores] = field(metadata=KEYS_STAY)
    """The same papers, by the name of each other scoring variant."""

    @property
    def clusters(self) -> Sequence[str]:
        """The papers that intervals are drawn from, ascending as text."""
        if self.mode == "questions":
            return self.breakdown.papers
        return self.papers.scored

    def measures(self) -> Iterator[Measurement]:
        """Yield all metrics of the model, in display order."""
        if self.mode != "questions":
            yield from headline(self.papers, self.mode)
            for name, papers in self.under.items():
                yield from headline_variants(name, papers, self.mode)
            yield from self._hidden()
            yield from self.extraction.measures(self.clusters)
        if self.mode != "extract":
            yield from self.breakdown.measures(self.clusters, self.level)
            yield from self.flips.measures(self.rules)
            yield from self.study.measures()
        yield from self.replies.measures()

    def _hidden(self) -> Iterator[Measurement]:
        split = self.under.get("split")
        if split is not None:
            reached = self.papers.total(lambda paper: paper.planned)
            hidden = split.total(lambda paper: paper.planned) - reached
            yield QUESTIONS_HIDDEN.measurement("questions_hidden", count(hidden))


class ModelTally(ModelCounts):
    """Counts of one model, over all replicates or in one of them."""

    def __init__(self, lenses: ScoringVariants, mode: Mode) -> None:
        super().__init__(
            mode=mode,
            rules=lenses.rules,
            level=lenses.chosen.settings.level,
            under={name: PaperScores() for name in lenses.others},
        )
        self._lenses = lenses
        n = lenses.chosen.settings.n_examples
        self._worst: Smallest[GradedPaper] = Smallest(n)
        self._best: Smallest[GradedPaper] = Smallest(n)
        self._answers: dict[tuple[Pipeline, bool], Smallest[Answered]] = {
            (pipeline, is_right): Smallest(EXAMPLE_ANSWERS)
            for pipeline in PIPELINES
            for is_right in (True, False)
        }

    def add(self, paper: GradedPaper, others: Mapping[str, GradedPaper]) -> None:
        """Add one paper, under the chosen scoring variant and the *others*."""
        self.breakdown.add(paper)
        self.replies.add(paper)
        self.flips.add(paper, self._lenses.others[self._lenses.rules].rules)
        self.study.add(paper)
        self.trivial.add(paper)
        if self.mode == "questions":
            self._keep_answers(paper)
            return
        self.papers.add(paper)
        self.extraction.add(paper)
        for name, seen in others.items():
            self.under[name].add(seen)
        if self.mode == "extract":
            self._keep_extremes(paper)

    @property
    def worst(self) -> list[GradedPaper]:
        """Papers with the lowest recall, ascending; only in mode extract."""
        return list(self._worst)

    @property
    def best(self) -> list[GradedPaper]:
        """Papers with the highest recall, descending; ascending in the old profile."""
        papers = list(self._best)
        return papers[::-1] if self._is_recorded else papers

    def examples(self, pipeline: Pipeline, *, is_right: bool) -> list[Answered]:
        """Return a few answers drawn by seed; only in mode questions."""
        return list(self._answers[pipeline, is_right])

    @property
    def _is_recorded(self) -> bool:
        return self._lenses.chosen.settings.profile == "clinpgx-qa"

    def _keep_extremes(self, paper: GradedPaper) -> None:
        recall = paper.recall
        if recall is None:
            return
        pmcid, index = paper.record.pmcid, len(self.papers)
        # the old profile sorts once, in record order, and uses both ends of the list
        low, high = (index, -index) if self._is_recorded else (pmcid, pmcid)
        self._worst.add((recall, low), paper)
        self._best.add((-recall, high), paper)

    def _keep_answers(self, paper: GradedPaper) -> None:
        seed = self._lenses.chosen.settings.boot_seed
        for graded_answer in paper.answers:
            item, judgement = graded_answer.item, graded_answer.judgement
            if judgement is not None:
                question = item.question
                key = random_key(seed, paper.record.model, question.question_id)
                examples = self._answers[question.pipeline, judgement.right]
                examples.add(key, (item, judgement))


QUESTIONS_HIDDEN = ComputedMeasure(
    "Questions hidden",
    "Questions that are not asked because their whole variant field is not recalled",
    definition="count@1(questions that whole links keep from being asked)",
)


def over_replicates(
    by_replicate: Sequence[ModelCounts],
    repeats: ReplicateAnswers,
    averages: Sequence[PaperAverage],
) -> Iterator[Measurement]:
    """Yield every metric of each replicate, and their spread.

    Args:
        by_replicate: counts of one model, by replicate.
        repeats: answers of the same model.
        averages: averages to compute the spread of.
    """
    for average in averages:
        values = [mean(tally.papers.values(average.value)) for tally in by_replicate]
        spread = replace(mean_of_values(values), value=std(values))
        yield Measurement(
            path=f"{average.path}~sd",
            definition="std@1(of the replicates' averages, ddof=1)",
            measured=spread,
        )
    yield from repeats.measures()
    for replicate, tally in enumerate(by_replicate, start=1):
        for measure in tally.measures():
            path = f"replicate.{replicate}.{measure.path}"
            undrawn = replace(measure.measured, statistic=None)
            yield replace(measure, path=path, measured=undrawn)


@dataclass(slots=True, kw_only=True)
class ReplicateAnswers:
    """Answers of one model in each replicate, to measure their agreement."""

    replicates: int
    _answers: dict[str, list[str]] = field(default_factory=dict)
    """Hashes of the answers, by question."""
    _predicted: dict[str, list[frozenset[str]]] = field(default_factory=dict)

    def add(self, paper: GradedPaper) -> None:
        """Add one paper in one replicate."""
        if paper.predicted is not None:
            sets = self._predicted.setdefault(paper.record.pmcid, [])
            sets.append(frozenset(paper.predicted))
        for graded_answer in paper.answers:
            if graded_answer.judgement is not None:
                value = graded_answer.judgement.value.encode()
                digests = self._answers.setdefault(graded_answer.item.key, [])
                digests.append(blake2b(value, digest_size=8).hexdigest())

    def measures(self) -> Iterator[Measurement]:
        """Yield the share of equal answers, and the overlap of the predicted sets."""
        yield from measured(REPLICATES, self)

    def same_answers(self) -> MeasuredValue:
        """Return the share of questions with one answer in all replicates."""
        full = [g for g in self._answers.values() if len(g) == self.replicates]
        return share(sum(len(set(digests)) == 1 for digests in full), len(full))

    def overlap(self) -> MeasuredValue:
        """Return the mean overlap of two replicates' lists."""
        overlaps = [
            _jaccard(left, right)
            for sets in self._predicted.values()
            for left, right in combinations(sets, 2)
        ]
        return count(mean(overlaps), len(overlaps))


REPLICATES: Mapping[str, ValueMeasure[ReplicateAnswers]] = {
    "replicates.same_answers": ValueMeasure(
        "Same answers in all replicates",
        "Share of questions with one answer in all replicates, among those answered "
        "in all",
        "higher",
        of=ReplicateAnswers.same_answers,
        definition="ratio@1(questions with one answer in all replicates / answered in "
        "all)",
    ),
    "replicates.jaccard": ValueMeasure(
        "Overlap of replicates' lists",
        "Mean Jaccard index of the variant lists of two replicates",
        "higher",
        of=ReplicateAnswers.overlap,
        definition="mean@1(Jaccard index of two replicates' lists, over all twos)",
    ),
}


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    shared = ratio(len(left & right), len(left | right))
    return 1.0 if shared is None else shared
