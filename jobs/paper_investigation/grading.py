"""Grades a paper: recalled variants, correct answers, and the paper's score.

These are the formulas of the job's specification, for one paper at a time. The numbers
of a graded paper are a `PaperScore`; `PaperScores` has those of a model. With truth T,
predicted set L, recalled R = L and T, and Q(v) the answered questions of a recalled
variant v:

    recall             |R| / |T|
    precision          |R| / |L|, undefined if L is empty
    F1                 2 |R| / (|T| + |L|)
    accuracy(v)        right / answered over Q(v)
    question accuracy  unweighted mean of accuracy(v) over recalled v with answers
    paper score        recall x question accuracy; 0 if no recalled variant has
                       questions; undefined if none of them has a reply
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from jobs.kit.metrics import mean, ratio
from jobs.paper_investigation import plan
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.judging import (
    AnswerJudgement,
    RuleChoice,
    ScoringVariant,
    judge,
)
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.records import PaperRecord, QuestionItem
from jobs.paper_investigation.rule_sets import parse_list
from jobs.paper_investigation.settings import Case
from runner.evaluation import STAYS
from runner.messages import ParseFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedAnswer:
    """A question that was sent, with the judgement of its answer."""

    item: QuestionItem
    judgement: AnswerJudgement | None  #: None: there is no reply

    @property
    def is_right(self) -> bool:
        """Whether it was answered correctly."""
        return self.judgement is not None and self.judgement.right


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedPaper:
    """A paper under one model, replicate and scoring variant."""

    record: PaperRecord
    skip: str | None = None  #: reason why the paper has no score
    parsed_list: VariantList | ParseFailure | None = None  #: None: no reply to read
    truth: Mapping[str, str] = field(default_factory=dict)  #: normal form -> spelling
    predicted: Mapping[str, str] | None = None  #: likewise; None: unknown
    recalled: tuple[str, ...] = ()  #: in truth order
    links: Mapping[str, tuple[GradedAnswer, ...]] = field(default_factory=dict)
    """By recalled variant with questions that were sent, in truth order."""
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """Share of correct answers, by recalled variant with answers."""
    answers: tuple[GradedAnswer, ...] = ()  #: those of `links`, each once
    missed_variant_answers: tuple[
        GradedAnswer, ...
    ] = ()  #: about missed variants, for diagnosis only
    unlinked: tuple[str, ...] = ()  #: recalled variants that no question names
    unasked: tuple[QuestionItem, ...] = ()  #: in the current plan, but not in the run
    stale: int = 0  #: replies that the current plan does not need

    @property
    def is_parsed(self) -> bool:
        """Whether the extraction's reply has a list."""
        return self.predicted is not None

    @property
    def recall(self) -> float | None:
        """Share of the truth that was listed."""
        if self.predicted is None:
            return None
        share = ratio(len(self.recalled), len(self.truth))
        return 1.0 if share is None else share

    @property
    def precision(self) -> float | None:
        """Share of the list that is truth: a lower bound, as curators list findings."""
        return ratio(len(self.recalled), len(self.predicted or ()))

    @property
    def f1(self) -> float | None:
        """Harmonic mean of recall and precision."""
        if self.predicted is None:
            return None
        return ratio(2 * len(self.recalled), len(self.truth) + len(self.predicted))

    @property
    def variants_by_question(self) -> dict[str, list[str]]:
        """Recalled variants that each question counts for, by its key."""
        variants_by_question: dict[str, list[str]] = {}
        for variant, answers in self.links.items():
            for graded_answer in answers:
                variants_by_question.setdefault(
                    graded_answer.item.question.key, []
                ).append(variant)
        return variants_by_question

    @property
    def question_accuracy(self) -> float | None:
        """Mean of `accuracies`; undefined if there are none."""
        return mean(self.accuracies.values())

    @property
    def pooled_accuracy(self) -> float | None:
        """Share of correct answers among all answers of the paper."""
        answered = [q for q in self.answers if q.judgement]
        return ratio(sum(q.is_right for q in answered), len(answered))

    @property
    def score(self) -> float | None:
        """Recall x question accuracy; never above recall."""
        if self.skip is not None or self.record.mode != "investigate":
            return None
        return self._score(self.question_accuracy)

    @property
    def score_with_missing_as_wrong(self) -> float | None:
        """The score if every question without a reply counted as wrong."""
        if not self.is_parsed or self.record.mode != "investigate":
            return None
        if all(question.judgement for question in self.answers):
            return self.score
        return self._score(
            mean(
                ratio(sum(question.is_right for question in answers), len(answers))
                for answers in self.links.values()
            )
        )

    def _score(self, accuracy: float | None) -> float:
        return (self.recall or 0.0) * (accuracy or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReading:
    """A record's parsed replies; shared by scoring variants with the same rules."""

    record: PaperRecord
    parsed_list: VariantList | ParseFailure | None  #: None: no reply to read
    keys: tuple[str, ...]  #: of the record's questions, in their order
    answers: Mapping[str, GradedAnswer]  #: those that were sent, by their keys


def read_extraction_reply(record: PaperRecord, rules: RuleChoice) -> ExtractionReading:
    """Parse all replies of a record."""
    keys = tuple([item.question.key for item in record.items])
    return ExtractionReading(
        record=record,
        parsed_list=_parsed_list(record, rules),
        keys=keys,
        answers={
            key: GradedAnswer(item=item, judgement=judge(item, rules))
            for key, item in zip(keys, record.items, strict=True)
            if item.task is not None
        },
    )


def grade(reading: ExtractionReading, lens: ScoringVariant) -> GradedPaper:
    """Compare the parsed replies with the truth, by the rules of *lens*."""
    record, parsed_list = reading.record, reading.parsed_list
    if record.mode == "questions":
        answers = tuple(reading.answers.values())
        return GradedPaper(record=record, answers=answers, stale=record.strays)
    truth = distinct(record.truth, lens.settings.variant_case)
    if isinstance(parsed_list, VariantList):
        return _marked_paper(reading, lens, truth, parsed_list)
    return GradedPaper(
        record=record,
        skip="extraction_unparsed" if parsed_list else record.absent,
        parsed_list=parsed_list,
        truth=truth,
        stale=record.strays + sum(item.reply is not None for item in record.items),
    )


# Variants of a record, and models for one paper, need the same lists in a row.
@lru_cache(maxsize=64)
def distinct(variants: tuple[str, ...], case: Case) -> Mapping[str, str]:
    """Return normalised forms in order, each with its first spelling."""
    return naming.distinct(variants, case)


def _marked_paper(
    reading: ExtractionReading,
    lens: ScoringVariant,
    truth: Mapping[str, str],
    variant_list: VariantList,
) -> GradedPaper:
    record = reading.record
    predicted = distinct(variant_list.entries, lens.settings.variant_case)
    recalled = tuple([variant for variant in truth if variant in predicted])
    if record.mode == "extract":
        return GradedPaper(
            record=record,
            parsed_list=variant_list,
            truth=truth,
            predicted=predicted,
            recalled=recalled,
        )
    settings = lens.stored if record.fixed_links else lens.settings
    variants: Iterable[str] = truth if settings.ask == "all" else recalled
    questions = (item.question for item in record.items)
    groups = plan.link(zip(reading.keys, questions, strict=True), variants, settings)
    read = reading.answers
    links = {
        variant: answers
        for variant in recalled
        if (answers := tuple([read[key] for key in groups[variant] if key in read]))
    }
    keys = frozenset(chain.from_iterable(groups.values()))
    counted = frozenset(chain.from_iterable(groups[name] for name in links))
    missed = keys - counted
    accuracies = dict(_accuracies(links))
    unlinked = tuple([variant for variant in recalled if not groups[variant]])
    is_complete = len(links) + len(unlinked) == len(recalled)
    skip = None
    if not accuracies:
        skip = _questions_skip(links, is_complete=is_complete)
        if skip is None and record.unlabelled:
            skip = "questions_unlabelled"
    left_out = [answer for key, answer in read.items() if key not in keys]
    return GradedPaper(
        record=record,
        skip=skip,
        parsed_list=variant_list,
        truth=truth,
        predicted=predicted,
        recalled=recalled,
        links=links,
        accuracies=accuracies,
        answers=tuple([answer for key, answer in read.items() if key in counted]),
        missed_variant_answers=tuple([read[key] for key in read if key in missed]),
        unlinked=unlinked,
        unasked=tuple(
            [
                item
                for key, item in zip(reading.keys, record.items, strict=True)
                if item.task is None and key in keys
            ]
        ),
        stale=record.strays + sum(a.judgement is not None for a in left_out),
    )


def _parsed_list(
    record: PaperRecord, rules: RuleChoice
) -> VariantList | ParseFailure | None:
    if record.reply is not None:
        return parse_list(record.reply, rules.lists)
    if record.absent == "extraction_failed" and rules.lists == "clinpgx-qa":
        return ParseFailure(reason="empty_reply")
    return None


def _accuracies(
    links: Mapping[str, tuple[GradedAnswer, ...]],
) -> Iterator[tuple[str, float]]:
    for variant, answers in links.items():
        verdicts = [q.judgement.right for q in answers if q.judgement]
        accuracy = ratio(sum(verdicts), len(verdicts))
        if accuracy is not None:
            yield variant, accuracy


def _questions_skip(
    links: Mapping[str, tuple[GradedAnswer, ...]], *, is_complete: bool
) -> str | None:
    """Return the reason why a paper without any answer has no score.

    A paper without questions has one: 0.
    """
    answers = [question for group in links.values() for question in group]
    if any(question.item.absent == "open" for question in answers):
        return "open"
    if answers:
        return "questions_failed"
    return None if is_complete else "questions_not_asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperScore:
    """Metrics and counts of one paper in one replicate."""

    skip: str | None = field(metadata=STAYS)
    is_parsed: bool
    truth: int  #: variants
    recalled: int
    predicted: int
    recall: float | None
    precision: float | None
    f1: float | None
    accuracies: tuple[float, ...]  #: by recalled variant with answers
    question_accuracy: float | None
    score: float | None
    score_with_missing_as_wrong: float | None
    right: int
    answered: int
    missing: int  #: sent, without a reply
    planned: int  #: questions of recalled variants, sent or not
    not_asked: int  #: recalled variants without a question that was sent
    unlinked: int  #: recalled variants that no question names
    merged: int  #: spellings in the truth that are the same variant as an earlier one

    @classmethod
    def of(cls, paper: GradedPaper) -> PaperScore:
        """Return the numbers of *paper*."""
        accuracies = tuple(paper.accuracies.values())
        answered = [q for q in paper.answers if q.judgement]
        is_answered, score = len(answered) == len(paper.answers), paper.score
        return cls(
            skip=paper.skip,
            is_parsed=paper.is_parsed,
            truth=len(paper.truth),
            recalled=len(paper.recalled),
            predicted=len(paper.predicted or ()),
            recall=paper.recall,
            precision=paper.precision,
            f1=paper.f1,
            accuracies=accuracies,
            question_accuracy=mean(accuracies),
            score=score,
            score_with_missing_as_wrong=score
            if is_answered and paper.is_parsed
            else paper.score_with_missing_as_wrong,
            right=sum(q.is_right for q in answered),
            answered=len(answered),
            missing=len(paper.answers) - len(answered),
            planned=len(paper.answers) + len(paper.unasked),
            not_asked=len(paper.recalled) - len(paper.links),
            unlinked=len(paper.unlinked),
            merged=len(distinct(paper.record.truth, "keep")) - len(paper.truth),
        )

    @property
    def pooled_accuracy(self) -> float:
        """Share of correct answers; 0 if there are none."""
        return ratio(self.right, self.answered) or 0.0


Value = Callable[[PaperScore], float | None]


@dataclass(slots=True, kw_only=True)
class PaperScores:
    """Scores of one model's papers, in the order of `add`.

    A paper of several replicates counts once: its value is the mean over the replicates
    that have one.
    """

    _figures: dict[str, tuple[PaperScore, ...]] = field(default_factory=dict)
    """By paper, then by replicate."""
    _scored: tuple[str, ...] | None = field(default=None, init=False)
    """None: to be computed after `add`."""

    def add(self, paper: GradedPaper) -> None:
        """Add one paper of one replicate."""
        pmcid = paper.record.pmcid
        self._figures[pmcid] = (*self._figures.get(pmcid, ()), PaperScore.of(paper))
        self._scored = None

    def __len__(self) -> int:
        return len(self._figures)

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    @property
    def scored(self) -> Sequence[str]:
        """Papers with a score in some replicate, ascending as text."""
        if self._scored is None:
            papers = self._figures.items()
            self._scored = tuple(
                sorted(p for p, figures in papers if not _skip(figures))
            )
        return self._scored

    @property
    def skips(self) -> dict[str, str]:
        """The other papers with their reasons, in order."""
        reasons = {
            pmcid: _skip(replicates) for pmcid, replicates in self._figures.items()
        }
        return {pmcid: reason for pmcid, reason in reasons.items() if reason}

    def value(self, pmcid: str, of: Value) -> float | None:
        """Return a paper's value: its mean over the replicates that have one."""
        figures = self._figures[pmcid]
        # a fast path: most runs have one replicate, and large ones call this a million
        # times
        if len(figures) == 1:
            return of(figures[0]) if figures[0].skip is None else None
        values = [of(replicate) for replicate in figures if replicate.skip is None]
        return values[0] if len(values) == 1 else mean(values)

    def values(self, of: Value) -> list[float | None]:
        """Return the value of each scored paper."""
        return [self.value(pmcid, of) for pmcid in self.scored]

    def sums(self, of: Callable[[PaperScore], int]) -> list[int]:
        """Return the total over replicates of each scored paper."""
        return [sum(map(of, self._counted(pmcid))) for pmcid in self.scored]

    def parsed_values(self, of: Value) -> list[float | None]:
        """Return the value of each paper with a parsed extraction, scored or not."""
        return [
            mean(of(replicate) for replicate in replicates if replicate.is_parsed)
            for replicates in self._figures.values()
            if any(replicate.is_parsed for replicate in replicates)
        ]

    def total(self, of: Callable[[PaperScore], int]) -> int:
        """Return the total over all papers and replicates, skipped ones included."""
        return sum(
            of(replicate)
            for replicates in self._figures.values()
            for replicate in replicates
        )

    def accuracies(self) -> list[float]:
        """Return the question accuracies of recalled variants of scored papers."""
        return [
            accuracy
            for pmcid in self.scored
            for replicate in self._counted(pmcid)
            for accuracy in replicate.accuracies
        ]

    def _counted(self, pmcid: str) -> list[PaperScore]:
        return [
            replicate for replicate in self._figures[pmcid] if replicate.skip is None
        ]


def _skip(replicates: Sequence[PaperScore]) -> str | None:
    """Return the reason why no replicate has a score; None if one has."""
    if len(replicates) == 1:
        return replicates[0].skip
    reasons = [replicate.skip for replicate in replicates]
    return None if None in reasons else reasons[0]
