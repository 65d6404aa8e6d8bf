"""Counts answers by pipeline, type and study field; reading rules; verdict flips.

Every question counts once here, however many recalled variants it belongs to; `links`
says how often the variants' own accuracies use them.

Study questions with a swapped-in variant, drug or phenotype ask about an association
that the paper does not report. A model that names a p-value there has invented it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.kit.measurements import Measurement
from jobs.kit.metrics import Ratio
from jobs.paper_investigation.grading import GradedAnswer, GradedPaper
from jobs.paper_investigation.judging import AnswerJudgement, RuleChoice, judge
from jobs.paper_investigation.measures import count, rate, wilson_rate
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.settings import PIPELINES
from runner.messages import ParseFailure, Reply

TOTAL = "TOTAL"
"""Stands behind the pipelines for all of them together."""

ACCURACY = "right / answered, each question once"
"""What the accuracy of a pipeline is."""

TypeOf: TypeAlias = Literal["question_type", "table_type"]
TYPES: tuple[TypeOf, ...] = ("question_type", "table_type")


@dataclass(slots=True, kw_only=True)
class QuestionGroup:
    """Questions that have something in common."""

    total: int = 0
    right: int = 0
    unparsed: int = 0
    missing: Counter[str] = field(default_factory=Counter)  #: by reason
    links: int = 0

    @property
    def answered(self) -> int:
        """Questions that have a reply, readable or not."""
        return self.total - self.missing.total()

    def add(self, question: GradedAnswer) -> None:
        """Count one question."""
        self.total += 1
        judgement = question.judgement
        if judgement is None:
            self.missing[question.item.absent or ""] += 1
            return
        self.right += judgement.right
        self.unparsed += judgement.failed


class QuestionBreakdown:
    """The questions of one model, grouped in every way that is reported."""

    def __init__(self) -> None:
        names = (*PIPELINES, TOTAL)
        self.pipelines: dict[str, QuestionGroup] = {
            name: QuestionGroup() for name in names
        }
        #: by what is grouped, by pipeline, by its value
        self.types: dict[TypeOf, dict[str, dict[str, QuestionGroup]]] = {
            kind: {name: defaultdict(QuestionGroup) for name in names} for kind in TYPES
        }
        #: by pipeline, by paper: right, answered; for the intervals
        self._by_paper: dict[str, dict[str, list[int]]] = {name: {} for name in names}

    def add(self, paper: GradedPaper) -> None:
        """Count the questions of one paper in one replicate."""
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
        """The figures of every group; *papers* are the clusters of the intervals."""
        for name, group in self.pipelines.items():
            path = f"pipeline.{name}"
            yield from _counts(path, group)
            yield rate(
                f"{path}.accuracy",
                group.right,
                group.answered,
                ACCURACY,
                self._ratio(name, papers),
            )
            yield wilson_rate(
                f"{path}.accuracy",
                group.right,
                group.answered,
                ACCURACY,
                level,
            )
        for kind in TYPES:
            for name, group in sorted(self.types[kind][TOTAL].items()):
                if name:
                    yield rate(
                        f"{kind}.{name}.accuracy",
                        group.right,
                        group.answered,
                        f"right / answered of the {kind}",
                    )

    def _note(self, name: str, graded_answer: GradedAnswer) -> None:
        if graded_answer.judgement is not None:
            pmcid = graded_answer.item.question.pmcid
            paper = self._by_paper[name].setdefault(pmcid, [0, 0])
            paper[0] += graded_answer.judgement.right
            paper[1] += 1

    def _ratio(self, name: str, papers: Sequence[str]) -> Ratio:
        """Right over answered, as columns over *papers*."""
        pairs = [self._by_paper[name].get(pmcid, (0, 0)) for pmcid in papers]
        return Ratio([right for right, _ in pairs], [n for _, n in pairs])


def _counts(path: str, group: QuestionGroup) -> Iterator[Measurement]:
    yield count(f"{path}.questions", group.answered, "questions with a reply")
    yield count(f"{path}.correct", group.right, "right answers")
    yield count(f"{path}.unparsed", group.unparsed, "replies that could not be read")
    missing = group.missing.total()
    yield count(f"{path}.missing", missing, "questions without a reply")
    for reason in sorted(group.missing):
        yield count(f"{path}.missing.{reason}", group.missing[reason], "by reason")
    yield count(f"{path}.links", group.links, "uses in variants' own accuracies")


STUDY = "study_param"
"""Where the paths of these metrics begin."""

NOT_FOUND = "not found"
OTHERWISE = "otherwise"
SIGNIFICANCES = ("yes", "no", "not stated", NOT_FOUND, OTHERWISE)
"""What can be expected and answered; the last for every other text, or none."""

MODIFIED = "modified_"
"""The beginning of the question types that ask about something swapped in."""


@dataclass(slots=True, kw_only=True)
class FieldCounts:
    """Answers of one question type, field by field."""

    answered: int = 0
    p_value: int = 0  #: right ones, as the next two
    significance: int = 0
    both: int = 0
    read: int = 0  #: replies that could be read
    not_found: int = 0  #: of them, those whose p-value is "not found"


class StudyCounts:
    """The study-parameter answers of one model."""

    def __init__(self) -> None:
        self.types: dict[str, FieldCounts] = defaultdict(FieldCounts)
        self.all = FieldCounts()
        self.significances: Counter[tuple[str, str]] = Counter()
        """Answers by the expected and the stated significance."""

    def add(self, paper: GradedPaper) -> None:
        """Count the study-parameter answers of one paper in one replicate."""
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
        """Accuracy by field, over all and by question type, and invented p-values."""
        if not self.all.answered:
            return
        yield from _by_field(STUDY, self.all)
        for name in sorted(filter(None, self.types)):
            fields = self.types[name]
            path = f"{STUDY}.{name}"
            yield from _by_field(path, fields)
            if name.startswith(MODIFIED):
                yield rate(
                    f"{path}.not_found",
                    fields.not_found,
                    fields.read,
                    "p-value 'not found' / readable answers",
                )
                yield rate(
                    f"{path}.invented",
                    fields.read - fields.not_found,
                    fields.read,
                    "p-value other than 'not found' / readable answers",
                )


def _significance(text: str) -> str:
    plain = text.strip().lower()
    return plain if plain in SIGNIFICANCES else OTHERWISE


def _by_field(path: str, fields: FieldCounts) -> Iterator[Measurement]:
    for name, right in (
        ("p_value", fields.p_value),
        ("significance", fields.significance),
        ("both", fields.both),
    ):
        yield rate(
            f"{path}.{name}.accuracy",
            right,
            fields.answered,
            right_of(name),
        )


def right_of(field: str) -> str:
    """What the accuracy of a field is."""
    return f"{field} right / answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One answer whose verdict depends on the rules."""

    graded_answer: GradedAnswer
    other: AnswerJudgement


def flips(paper: GradedPaper, other: RuleChoice) -> Iterator[Flip]:
    """The counted answers of *paper* that the *other* rules judge differently."""
    for graded_answer in paper.answers:
        judged = judge(graded_answer.item, other)
        if judged is not None and judged.right != graded_answer.is_right:
            yield Flip(graded_answer=graded_answer, other=judged)


class Flips:
    """Flips of one model, by pipeline and direction."""

    def __init__(self) -> None:
        self.to_right = dict.fromkeys((*PIPELINES, TOTAL), 0)
        self.to_wrong = dict.fromkeys((*PIPELINES, TOTAL), 0)

    def add(self, paper: GradedPaper, other: RuleChoice) -> None:
        """Count the flips of one paper in one replicate."""
        for flip in flips(paper, other):
            counted = self.to_right if flip.other.right else self.to_wrong
            counted[flip.graded_answer.item.question.pipeline] += 1
            counted[TOTAL] += 1

    def measures(self, rules: str) -> Iterator[Measurement]:
        """Flips from the chosen rules to those of the lens called *rules*."""
        for name in self.to_right:
            for direction, counted in (
                ("to_right", self.to_right),
                ("to_wrong", self.to_wrong),
            ):
                yield count(
                    f"pipeline.{name}.{direction}~{rules}",
                    counted[name],
                    "verdicts that change under the other rules",
                )


Kind: TypeAlias = Literal["extract", "question"]
KINDS: tuple[Kind, ...] = ("extract", "question")


class ReplyCounts:
    """The replies of one model."""

    def __init__(self) -> None:
        self.rules: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.failures: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.received = 0
        self.empty = 0
        self.cut = 0
        self.refused = 0
        self.stale = 0
        self.unasked = 0

    def add(self, paper: GradedPaper) -> None:
        """Count the replies of one paper in one replicate."""
        self.stale += paper.stale
        self.unasked += len(paper.unasked)
        if isinstance(paper.parsed_list, VariantList):
            self.rules["extract"][paper.parsed_list.rule] += 1
        elif isinstance(paper.parsed_list, ParseFailure):
            self.failures["extract"][paper.parsed_list.reason] += 1
        self._note(paper.record.reply)
        for graded_answer in (*paper.answers, *paper.missed_variant_answers):
            self._add_question(graded_answer)

    def _add_question(self, graded_answer: GradedAnswer) -> None:
        if graded_answer.judgement is None:
            return
        counted = self.failures if graded_answer.judgement.failed else self.rules
        counted["question"][graded_answer.judgement.rule] += 1
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
        """Replies by rule and by reason of failure."""
        for kind in KINDS:
            for word, counter in (
                ("rule", self.rules[kind]),
                ("unparsed", self.failures[kind]),
            ):
                for name in sorted(counter):
                    yield count(
                        f"replies.{kind}.{word}.{name}",
                        counter[name],
                        "replies read so",
                    )
        for name, n in (
            ("empty", self.empty),
            ("cut", self.cut),
            ("refused", self.refused),
        ):
            yield count(f"replies.{name}", n, f"{name} replies")
        yield count("replies.stale", self.stale, "replies the plan does not ask for")
        yield count("questions_not_asked", self.unasked, "planned, but not in the run")
