"""Counts answers by pipeline, type and study field; parsing rules; verdict flips.

Every question counts once here, regardless of the number of recalled variants that it
belongs to; `links` counts its uses in the accuracies of variants.

Study questions with a substituted variant, drug or phenotype are about an association
that the paper does not report. A model that states a p-value there has invented it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    share,
    wilson_share,
)
from jobs.kit.measures import RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import Ratio
from jobs.paper_investigation.data import NOT_FOUND
from jobs.paper_investigation.grading import GradedAnswer, GradedPaper
from jobs.paper_investigation.judging import AnswerJudgement, RuleChoice, judge
from jobs.paper_investigation.paper_scores import counted
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.settings import PIPELINES
from runner.evaluation import KEYS_STAY, STAYS
from runner.messages import ParseFailure, Reply

TOTAL = "TOTAL"
"""Name of the total over all pipelines."""

GROUPS = (*PIPELINES, TOTAL)

ACCURACY = "ratio@1(right / answered, each question once)"
"""Definition of the accuracy of a pipeline."""

TypeOf: TypeAlias = Literal["question_type", "table_type"]
TYPES: tuple[TypeOf, ...] = ("question_type", "table_type")


@dataclass(slots=True, kw_only=True)
class QuestionGroup:
    """Counts of a group of questions."""

    total: int = 0
    right: int = 0
    unparsed: int = 0
    missing: Counter[str] = field(default_factory=Counter, metadata=STAYS)
    """By reason."""
    links: int = 0

    @property
    def answered(self) -> int:
        """Number of questions that have a reply, readable or not."""
        return self.total - self.missing.total()

    def add(self, question: GradedAnswer) -> None:
        """Add one question."""
        self.total += 1
        judgement = question.judgement
        if judgement is None:
            self.missing[question.item.absent or ""] += 1
            return
        self.right += judgement.right
        self.unparsed += judgement.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineAnswers:
    """The questions of a pipeline, with data for the intervals of their accuracy."""

    group: QuestionGroup
    by_paper: Ratio  #: correct and answered
    level: float


PIPELINE: Mapping[str, ValueMeasure[PipelineAnswers] | RateMeasure[PipelineAnswers]] = {
    "questions": ValueMeasure(
        "Questions, {pipeline}",
        "Questions with a reply, among {pipeline}",
        of=lambda answers: count(answers.group.answered),
        definition="count@1(questions with a reply)",
    ),
    "correct": ValueMeasure(
        "Right answers, {pipeline}",
        "Right answers to {pipeline}",
        "higher",
        of=lambda answers: count(answers.group.right),
        definition="count@1(right answers)",
    ),
    "unparsed": ValueMeasure(
        "Unreadable replies, {pipeline}",
        "Replies to {pipeline} that could not be read",
        "lower",
        of=lambda answers: count(answers.group.unparsed),
        definition="count@1(replies that could not be read)",
    ),
    "missing": ValueMeasure(
        "Missing replies, {pipeline}",
        "Questions without a reply",
        "lower",
        of=lambda answers: count(answers.group.missing.total()),
        definition="count@1(questions without a reply)",
    ),
    "missing.{reason}": ValueMeasure(
        "Missing replies, {pipeline}, {reason}",
        "Questions without a reply, for the reason {reason}",
        "lower",
        of=lambda answers: counted(answers.group.missing),
        definition="count@1(by reason)",
    ),
    "links": ValueMeasure(
        "Question uses, {pipeline}",
        "Times that {pipeline} count in the accuracy of a variant",
        of=lambda answers: count(answers.group.links),
        definition="count@1(uses in variants' own accuracies)",
    ),
    "accuracy": RateMeasure(
        "Accuracy, {pipeline}",
        "Share of right answers to {pipeline}, each question once",
        "higher",
        of=lambda answers: answers.by_paper,
        definition=ACCURACY,
    ),
    "accuracy~wilson": ValueMeasure(
        "Wilson interval",
        "with an interval that takes questions as independent",
        of=lambda answers: wilson_share(
            answers.group.right, answers.group.answered, answers.level, is_rounded=True
        ),
        definition=f"{ACCURACY}; wilson@1(level={{level}})",
        note="assumes independent questions",
    ),
}
"""Paths after `pipeline.{pipeline}.`; the last one has the words of its form."""


def _group_types() -> dict[TypeOf, dict[str, dict[str, QuestionGroup]]]:
    return {
        kind: {name: defaultdict(QuestionGroup) for name in GROUPS} for kind in TYPES
    }


@dataclass(slots=True, kw_only=True)
class QuestionBreakdown:
    """The questions of one model, in all reported groups."""

    pipelines: dict[str, QuestionGroup] = field(
        default_factory=lambda: {name: QuestionGroup() for name in GROUPS},
        metadata=STAYS,
    )
    types: dict[TypeOf, dict[str, dict[str, QuestionGroup]]] = field(
        default_factory=_group_types, metadata=STAYS
    )
    """By kind of type, by pipeline, by its value."""
    _by_paper: dict[str, dict[str, list[int]]] = field(
        default_factory=lambda: {name: {} for name in GROUPS}, metadata=KEYS_STAY
    )
    """By pipeline, by paper: correct and answered, for the intervals."""

    def add(self, paper: GradedPaper) -> None:
        """Add the questions of one paper in one replicate."""
        for graded_answer in paper.answers:
            question = graded_answer.item.question
            for name in (question.pipeline, TOTAL):
                self.pipelines[name].add(graded_answer)
                self._note(name, graded_answer)
                self.types["question_type"][name][question.question_type].add(
                    graded_answer
                )
                self.types["table_type"][name][question.table_type].add(graded_answer)
        for graded_answer in itertools.chain.from_iterable(paper.links.values()):
            if graded_answer.judgement is not None:
                self.pipelines[graded_answer.item.question.pipeline].links += 1
                self.pipelines[TOTAL].links += 1

    @property
    def papers(self) -> list[str]:
        """Papers with an answered question, ascending as text."""
        return sorted(self._by_paper[TOTAL])

    def measures(self, papers: Sequence[str], level: float) -> Iterator[Measurement]:
        """Yield the metrics of every group; *papers* are the clusters of intervals."""
        for name, group in self.pipelines.items():
            answers = PipelineAnswers(
                group=group, by_paper=self._ratio(name, papers), level=level
            )
            yield from measured(
                PIPELINE,
                answers,
                path=f"pipeline.{name}.",
                parameters={"level": str(level)},
            )
        yield from measured(TYPE_ACCURACIES, self)

    def shares(self, kind: TypeOf) -> dict[str, MeasuredValue]:
        """Return the share of correct answers by the values of a kind of type."""
        groups = sorted(self.types[kind][TOTAL].items())
        return {
            name: share(group.right, group.answered) for name, group in groups if name
        }

    def _note(self, name: str, graded_answer: GradedAnswer) -> None:
        if graded_answer.judgement is not None:
            pmcid = graded_answer.item.question.pmcid
            paper = self._by_paper[name].setdefault(pmcid, [0, 0])
            paper[0] += graded_answer.judgement.right
            paper[1] += 1

    def _ratio(self, name: str, papers: Sequence[str]) -> Ratio:
        """Return the ratio of correct to answered, with *papers* as clusters."""
        pairs = [self._by_paper[name].get(pmcid, (0, 0)) for pmcid in papers]
        return Ratio([right for right, _ in pairs], [n for _, n in pairs])


TYPE_ACCURACIES: Mapping[str, ValueMeasure[QuestionBreakdown]] = {
    "question_type.{type*}.accuracy": ValueMeasure(
        "Accuracy, question type {type}",
        "Share of right answers to questions of the type {type}",
        "higher",
        of=lambda breakdown: breakdown.shares("question_type"),
        definition="ratio@1(right / answered of the question_type)",
    ),
    "table_type.{table*}.accuracy": ValueMeasure(
        "Accuracy, annotation table {table}",
        "Share of right answers to questions that come from the annotation table "
        "{table}",
        "higher",
        of=lambda breakdown: breakdown.shares("table_type"),
        definition="ratio@1(right / answered of the table_type)",
    ),
}


STUDY = "study_param"
"""Prefix of the paths of these metrics."""

OTHERWISE = "otherwise"
SIGNIFICANCES = ("yes", "no", "not stated", NOT_FOUND, OTHERWISE)
"""Possible values; the last one includes all other texts, and none."""

MODIFIED = "modified_"
"""Prefix of the question types with a substituted field."""


@dataclass(slots=True, kw_only=True)
class FieldCounts:
    """Counts of one question type's answers, field by field."""

    answered: int = 0
    p_value: int = 0  #: correct ones, as in the next two
    significance: int = 0
    both: int = 0
    read: int = 0  #: parsed replies
    not_found: int = 0  #: replies with the p-value "not found"


FIELD_DEFINITION = "ratio@1({part} right / answered)"

FIELD_ACCURACIES: Mapping[str, ValueMeasure[FieldCounts]] = {
    "{part}.accuracy": ValueMeasure(
        "Accuracy, {part} of studies",
        "Share of right answers to study parameter questions, by {part}",
        "higher",
        of=lambda fields: {
            "p_value": share(fields.p_value, fields.answered),
            "significance": share(fields.significance, fields.answered),
            "both": share(fields.both, fields.answered),
        },
        definition=FIELD_DEFINITION,
    ),
}
"""Paths after `study_param.`, for all questions and by type."""

INVENTED: Mapping[str, ValueMeasure[FieldCounts]] = {
    "not_found": ValueMeasure(
        "Rightly not found, question type {type}",
        "Share of questions about findings that the paper does not have (type {type}) "
        "that are answered with 'not found'",
        "higher",
        of=lambda fields: share(fields.not_found, fields.read),
        definition="ratio@1(p-value 'not found' / readable answers)",
    ),
    "invented": ValueMeasure(
        "Invented p-values, question type {type}",
        "Share of questions about findings that the paper does not have (type {type}) "
        "that are answered with a p-value",
        "lower",
        of=lambda fields: share(fields.read - fields.not_found, fields.read),
        definition="ratio@1(p-value other than 'not found' / readable answers)",
    ),
}
"""Paths after `study_param.{type}.`, for types with a substituted field."""


@dataclass(slots=True, kw_only=True)
class StudyCounts:
    """Counts of the study-parameter answers of one model."""

    types: dict[str, FieldCounts] = field(
        default_factory=lambda: defaultdict(FieldCounts), metadata=STAYS
    )
    all: FieldCounts = field(default_factory=FieldCounts)
    significances: Counter[tuple[str, str]] = field(
        default_factory=Counter, metadata=STAYS
    )
    """Answers by the expected and the stated significance."""

    def add(self, paper: GradedPaper) -> None:
        """Add the study-parameter answers of one paper in one replicate."""
        for graded_answer in paper.answers:
            question, judgement = graded_answer.item.question, graded_answer.judgement
            if question.is_mcq or judgement is None:
                continue
            pair = (question.expected_significance, judgement.significance or "")
            expected, stated = map(_significance, pair)
            self.significances[expected, stated] += 1
            for fields in (self.types[question.question_type], self.all):
                fields.answered += 1
                fields.p_value += judgement.p_value_right
                fields.significance += judgement.significance_right
                fields.both += judgement.right
                fields.read += not judgement.failed
                p_value = (judgement.p_value or "").strip().lower()
                fields.not_found += p_value == NOT_FOUND

    def measures(self) -> Iterator[Measurement]:
        """Yield accuracies by field and question type, and invented p-values."""
        if not self.all.answered:
            return
        yield from measured(FIELD_ACCURACIES, self.all, path=f"{STUDY}.")
        for name in sorted(filter(None, self.types)):
            path = f"{STUDY}.{name}."
            yield from measured(FIELD_ACCURACIES, self.types[name], path=path)
            if name.startswith(MODIFIED):
                yield from measured(INVENTED, self.types[name], path=path)


def _significance(text: str) -> str:
    plain = text.strip().lower()
    return plain if plain in SIGNIFICANCES else OTHERWISE


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """An answer whose verdict depends on the rules."""

    graded_answer: GradedAnswer
    other: AnswerJudgement


def flips(paper: GradedPaper, other: RuleChoice) -> Iterator[Flip]:
    """Yield the counted answers of *paper* that the *other* rules judge differently."""
    for graded_answer in paper.answers:
        judged = judge(graded_answer.item, other)
        if judged is not None and judged.right != graded_answer.is_right:
            yield Flip(graded_answer=graded_answer, other=judged)


def _by_group() -> dict[str, int]:
    return dict.fromkeys(GROUPS, 0)


@dataclass(slots=True, kw_only=True)
class Flips:
    """Flips of one model, by pipeline and direction."""

    to_right: dict[str, int] = field(default_factory=_by_group, metadata=STAYS)
    to_wrong: dict[str, int] = field(default_factory=_by_group, metadata=STAYS)

    def add(self, paper: GradedPaper, other: RuleChoice) -> None:
        """Add the flips of one paper in one replicate."""
        for flip in flips(paper, other):
            counted = self.to_right if flip.other.right else self.to_wrong
            counted[flip.graded_answer.item.question.pipeline] += 1
            counted[TOTAL] += 1

    def measures(self, rules: str) -> Iterator[Measurement]:
        """Yield flips from the chosen rules to those of the scoring variant *rules*."""
        for name in self.to_right:
            pair = self.to_right[name], self.to_wrong[name]
            for flip in measured(FLIPS, pair, path=f"pipeline.{name}."):
                yield replace(flip, path=f"{flip.path}~{rules}")


FLIPS: Mapping[str, ValueMeasure[tuple[int, int]]] = {
    "to_right": ValueMeasure(
        "Verdicts turned right, {pipeline}",
        "Wrong answers to {pipeline} that are right under the other rules",
        of=lambda pair: count(pair[0]),
        definition="count@1(verdicts that change under the other rules)",
    ),
    "to_wrong": ValueMeasure(
        "Verdicts turned wrong, {pipeline}",
        "Right answers to {pipeline} that are wrong under the other rules",
        of=lambda pair: count(pair[1]),
        definition="count@1(verdicts that change under the other rules)",
    ),
}
"""Paths after `pipeline.{pipeline}.`."""


Kind: TypeAlias = Literal["extract", "question"]
KINDS: tuple[Kind, ...] = ("extract", "question")


@dataclass(frozen=True, slots=True)
class Readings:
    """Parsing rules and failures of replies of one kind."""

    rules: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)  #: by reason


@dataclass(slots=True, kw_only=True)
class ReplyCounts:
    """Counts of the replies of one model."""

    _readings: dict[Kind, Readings] = field(
        default_factory=lambda: {kind: Readings() for kind in KINDS}, metadata=STAYS
    )
    received: int = 0
    empty: int = 0
    cut: int = 0
    refused: int = 0
    stale: int = 0
    unasked: int = 0

    def add(self, paper: GradedPaper) -> None:
        """Add the replies of one paper in one replicate."""
        self.stale += paper.stale
        self.unasked += len(paper.unasked)
        lists = self._readings["extract"]
        if isinstance(paper.parsed_list, VariantList):
            lists.rules[paper.parsed_list.rule] += 1
        elif isinstance(paper.parsed_list, ParseFailure):
            lists.failures[paper.parsed_list.reason] += 1
        self._note(paper.record.reply)
        for graded_answer in (*paper.answers, *paper.missed_variant_answers):
            self._add_question(graded_answer)

    def _add_question(self, graded_answer: GradedAnswer) -> None:
        if graded_answer.judgement is None:
            return
        answers, judgement = self._readings["question"], graded_answer.judgement
        by_rule = answers.failures if judgement.failed else answers.rules
        by_rule[judgement.rule] += 1
        batch = graded_answer.item.batch
        if batch is None or batch.keys[0] == graded_answer.item.question.key:
            self._note(graded_answer.item.reply)

    def _note(self, reply: Reply | None) -> None:
        if reply is None:
            return
        self.received += 1
        self.empty += not reply.text.strip()
        self.cut += reply.is_truncated
        self.refused += reply.is_refused

    def measures(self) -> Iterator[Measurement]:
        """Yield the number of replies by rule and by reason of failure."""
        for kind, readings in self._readings.items():
            yield from measured(READINGS, readings, path=f"replies.{kind}.")
        yield from measured(REPLIES, self)


READINGS: Mapping[str, ValueMeasure[Readings]] = {
    "rule.{rule*}": ValueMeasure(
        "Replies read by rule {rule}, {stage}",
        "Replies with {stage} that were read by the rule {rule}",
        of=lambda readings: counted(readings.rules),
        definition="count@1(replies read so)",
    ),
    "unparsed.{rule*}": ValueMeasure(
        "Unreadable replies, {stage}, {rule}",
        "Replies with {stage} that could not be read, for the reason {rule}",
        "lower",
        of=lambda readings: counted(readings.failures),
        definition="count@1(replies read so)",
    ),
}
"""Paths after `replies.{stage}.`."""

REPLIES: Mapping[str, ValueMeasure[ReplyCounts]] = {
    "replies.empty": ValueMeasure(
        "Empty replies",
        "Replies without any text",
        "lower",
        of=lambda replies: count(replies.empty),
        definition="count@1(empty replies)",
    ),
    "replies.cut": ValueMeasure(
        "Cut replies",
        "Replies that end at the limit of output tokens",
        "lower",
        of=lambda replies: count(replies.cut),
        definition="count@1(cut replies)",
    ),
    "replies.refused": ValueMeasure(
        "Refused replies",
        "Replies that a content filter withheld",
        "lower",
        of=lambda replies: count(replies.refused),
        definition="count@1(refused replies)",
    ),
    "replies.stale": ValueMeasure(
        "Stale replies",
        "Stored replies that the present plan does not ask for",
        of=lambda replies: count(replies.stale),
        definition="count@1(replies the plan does not ask for)",
    ),
    "questions_not_asked": ValueMeasure(
        "Questions not asked",
        "Questions that are planned but not in the run",
        of=lambda replies: count(replies.unasked),
        definition="count@1(planned, but not in the run)",
    ),
}
