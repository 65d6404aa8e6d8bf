"""Counts over a run's answers, and compares recomputed with imported facts.

Only a few numbers per paper and model are stored, so that memory does not depend on the
number of questions per paper.

Facts stated in a file are compared, never trusted. They are compared under the chosen
profile and under the other one, to show which rules produced old results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.metrics import FEW_CLUSTERS, Resamples
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.data import InvestigationDataset, PaperQuestion
from jobs.paper_investigation.grading import (
    ExtractionReading,
    GradedPaper,
    grade,
    read_extraction_reply,
)
from jobs.paper_investigation.judging import (
    AnswerJudgement,
    RuleChoice,
    ScoringVariant,
    ScoringVariants,
)
from jobs.paper_investigation.measures import MEASURES
from jobs.paper_investigation.model_pairs import (
    AnswerVerdicts,
    ModelAnswers,
    PaperModelPair,
    paper_pairs,
)
from jobs.paper_investigation.model_tally import (
    ModelCounts,
    ModelTally,
    ReplicateAnswers,
    over_replicates,
)
from jobs.paper_investigation.paper_scores import AVERAGES
from jobs.paper_investigation.records import Fact, Mode, PaperRecord, records
from jobs.paper_investigation.settings import Case, InvestigationSettings
from jobs.paper_investigation.variant_counts import (
    GroundedCounts,
    Grounding,
    GroundingCollector,
)
from jobs.paper_investigation.variants import VariantClass
from runner.evaluation import KEYS_STAY, STAYS
from runner.job import Answers
from runner.scorecard import Metric

LISTED_DIFFERENCES = 10

NOT_READ = "parse_error"
"""Value in result files of a study-parameter field that could not be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDifference:
    """One fact that differs under a profile."""

    profile: str
    model: str
    where: str  #: the paper, or the question's key
    fact: str
    recorded: Fact
    recomputed: Fact


def paper_facts(paper: GradedPaper) -> dict[str, Fact]:
    """Return the facts about a paper in result files, recomputed."""
    predicted = paper.predicted or {}
    return {
        "variant_recall": paper.recall,
        "paper_score": paper.score,
        "recall": paper.recall,
        "parse_failure": not paper.is_parsed,
        "predicted": sorted(predicted),
        "true_positives": sorted(paper.recalled),
        "false_negatives": sorted(set(paper.truth) - set(paper.recalled)),
    }


def question_facts(
    question: PaperQuestion, judgement: AnswerJudgement
) -> dict[str, Fact]:
    """Return the facts about an answer in result files, recomputed."""
    if question.is_mcq:
        return {"prediction_parsed": judgement.letter, "correct": judgement.right}
    failed = judgement.failed
    return {
        "response_p_value": NOT_READ if failed else judgement.p_value,
        "response_significance": NOT_READ if failed else judgement.significance,
        "p_value_correct": judgement.p_value_right,
        "significance_correct": judgement.significance_right,
        "both_correct": judgement.right,
        "correct": judgement.right,
    }


@dataclass(slots=True, kw_only=True)
class FactTally:
    """Comparisons of one fact."""

    compared: int = 0
    agreeing: int = 0


class RecordedAgreement:
    """Comparisons under one profile; the first differences are stored."""

    def __init__(self, profile: str, case: Case) -> None:
        self.profile = profile
        self.facts: dict[str, FactTally] = {}
        self.differences: list[RecordedDifference] = []
        self._case: Case = case

    def add(self, paper: GradedPaper) -> None:
        """Compare one paper and its answers."""
        record = paper.record
        stated, recomputed = record.recorded, paper_facts(paper)
        self._compare(record.model, record.pmcid, stated, recomputed)
        for graded_answer in (*paper.answers, *paper.missed_variant_answers):
            item, judgement = graded_answer.item, graded_answer.judgement
            if judgement is not None:
                recomputed = question_facts(item.question, judgement)
                self._compare(record.model, item.key, item.recorded, recomputed)

    def _compare(
        self,
        model: str,
        where: str,
        stated: Mapping[str, Fact],
        recomputed: Mapping[str, Fact],
    ) -> None:
        for fact, recorded in stated.items():
            tally = self.facts.setdefault(fact, FactTally())
            tally.compared += 1
            if self._comparable(recorded) == self._comparable(recomputed[fact]):
                tally.agreeing += 1
            elif len(self.differences) < LISTED_DIFFERENCES:
                self.differences.append(
                    RecordedDifference(
                        profile=self.profile,
                        model=model,
                        where=where,
                        fact=fact,
                        recorded=recorded,
                        recomputed=recomputed[fact],
                    )
                )

    def _comparable(self, fact: Fact) -> Fact:
        """Normalise lists of variants as the profile compares them."""
        if isinstance(fact, list):
            return sorted({naming.normalize(text, self._case) for text in fact})
        return fact

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield profile, fact, number of comparisons and of agreements."""
        for fact, tally in self.facts.items():
            yield self.profile, fact, tally.compared, tally.agreeing


CACHED_DRAWS = 4
"""Number of cached sets of resampled papers; models of a run mostly share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationFrame:
    """Input of the metrics."""

    settings: InvestigationSettings
    mode: Mode = field(metadata=STAYS)
    models: tuple[str, ...] = field(metadata=STAYS)
    counts: Mapping[str, ModelCounts] = field(metadata=KEYS_STAY)
    by_replicate: Mapping[str, Sequence[ModelCounts]] = field(metadata=KEYS_STAY)
    """By model; empty for a single replicate."""
    repeats: Mapping[str, ReplicateAnswers] = field(metadata=KEYS_STAY)
    grounded: Mapping[str, Mapping[VariantClass, GroundedCounts]] = field(
        metadata=STAYS
    )
    """By model, or `TRUTH`."""

    def metrics(self) -> Mapping[str, tuple[Metric, ...]]:
        """Return all metrics of each model."""
        settings = self.settings
        draw = lru_cache(maxsize=CACHED_DRAWS)(
            partial(
                Resamples,
                b=settings.boot_b,
                seed=settings.boot_seed,
                level=settings.level,
                cluster="paper",
                form=settings.interval,
            )
        )
        metrics = {}
        for model in self.models:
            # the same resamples for the same papers
            papers = tuple(self.counts[model].clusters)
            few = f"interval from {len(papers)} papers only"
            note = few if len(papers) < FEW_CLUSTERS else ""
            drawn = with_intervals(self._measures(model), draw(papers), note)
            metrics[model] = MEASURES.describe(drawn)
        return metrics

    def _measures(self, model: str) -> Iterator[Measurement]:
        yield from self.counts[model].measures()
        yield from Grounding(verdicts={}, classes=self.grounded).measures(model)
        if model in self.by_replicate:
            yield from over_replicates(
                self.by_replicate[model], self.repeats[model], AVERAGES[self.mode]
            )


class RunTally:
    """All counts over a run's answers."""

    def __init__(
        self, dataset: InvestigationDataset, answers: Answers, mode: Mode
    ) -> None:
        settings = dataset.settings
        self.mode: Mode = mode
        self.lenses = ScoringVariants.of(settings, mode)
        self.models = answers.models
        self.replicates = range(1, answers.replicates + 1)
        self.by_model = {model: ModelTally(self.lenses, mode) for model in self.models}
        self.by_replicate = {
            (model, replicate): ModelTally(self.lenses, mode)
            if len(self.replicates) > 1
            else self.by_model[model]
            for model in self.models
            for replicate in self.replicates
        }
        self.verdicts = AnswerVerdicts()
        self._repeats = {
            model: ReplicateAnswers(replicates=answers.replicates)
            for model in self.models
        }
        self._collector = GroundingCollector(
            texts=dataset.papers if settings.grounding else None
        )
        self.agreements = (
            RecordedAgreement(settings.profile, settings.variant_case),
            RecordedAgreement(
                self.lenses.profile, self.lenses.other_profile.settings.variant_case
            ),
        )
        self.contradictions: list[str] = []  #: records that contradict their lists

    def add(self, record: PaperRecord) -> None:
        """Add one record."""
        readings: dict[RuleChoice, ExtractionReading] = {}

        def seen(lens: ScoringVariant) -> GradedPaper:
            if lens.rules not in readings:
                readings[lens.rules] = read_extraction_reply(record, lens.rules)
            return grade(readings[lens.rules], lens)

        paper = seen(self.lenses.chosen)
        others = {name: seen(lens) for name, lens in self.lenses.others.items()}
        self.by_model[record.model].add(paper, others)
        self.verdicts.add(paper)
        self._collector.add(paper)
        if len(self.replicates) > 1:
            self.by_replicate[record.model, record.replicate].add(paper, others)
            self._repeats[record.model].add(paper)
        if record.recorded or any(item.recorded for item in record.items):
            self._compare(paper, seen(self.lenses.other_profile))

    def _compare(self, paper: GradedPaper, otherwise: GradedPaper) -> None:
        """Compare the facts in the file under both profiles."""
        for agreement, seen in zip(self.agreements, (paper, otherwise), strict=True):
            agreement.add(seen)
        recorded = paper.record.recorded
        for fact in ("variant_recall", "recall"):
            if recorded.get(fact) not in {None, paper.recall, otherwise.recall}:
                self.contradictions.append(f"{paper.record.model} {paper.record.pmcid}")

    def grounding(self) -> Grounding:
        """Search all variants in the papers' texts."""
        return self._collector.ground_all()

    def frame(self, grounding: Grounding) -> InvestigationFrame:
        """Return the input of the metrics."""
        is_repeated = len(self.replicates) > 1
        return InvestigationFrame(
            settings=self.lenses.chosen.settings,
            mode=self.mode,
            models=self.models,
            counts=self.by_model,
            by_replicate={
                model: [self.by_replicate[model, at] for at in self.replicates]
                for model in self.models
                if is_repeated
            },
            repeats=self._repeats,
            grounded=grounding.classes,
        )

    @property
    def answers(self) -> Mapping[str, ModelAnswers]:
        """Data for comparisons of the models, by model."""
        return {
            model: ModelAnswers(
                model=model, papers=tally.papers, verdicts=self.verdicts
            )
            for model, tally in self.by_model.items()
        }

    def pairs(self) -> tuple[PaperModelPair, ...]:
        """Compare every two models."""
        return paper_pairs(self.answers, self.mode, self.lenses.chosen.settings)


def tally_run(dataset: InvestigationDataset, answers: Answers) -> RunTally:
    """Count over all records; the first one has the mode."""
    tally: RunTally | None = None
    for record in records(dataset, answers):
        if tally is None:
            tally = RunTally(dataset, answers, record.mode)
        tally.add(record)
    return tally or RunTally(dataset, answers, dataset.settings.mode)
