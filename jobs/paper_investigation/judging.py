"""Judges whether a reply answers its question, under various rules.

Pure. Replies repeat (most letters are one of four strings), so each distinct reply is
parsed once and each distinct pair of parsed and expected value is compared once.

Every open point of the method has two interpretations. The chosen settings give the
result; each `ScoringVariant` changes one point, to show the effect of the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from jobs.paper_investigation.data import Options, PaperQuestion
from jobs.paper_investigation.parsing import Letter, StudyAnswer
from jobs.paper_investigation.records import Mode, QuestionBatch, QuestionItem
from jobs.paper_investigation.rule_sets import (
    needs_options,
    p_value_right,
    parse_batch,
    parse_letter,
    parse_study,
    significance_right,
)
from jobs.paper_investigation.settings import PROFILES, InvestigationSettings, Rules
from runner.messages import ParseFailure, Reply

Parsed: TypeAlias = Letter | StudyAnswer | ParseFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChoice:
    """Rules for parsing and comparing replies."""

    lists: Rules
    letters: Rules
    p_values: Rules
    tolerance: float  #: relative, between p-values

    @classmethod
    def of(cls, settings: InvestigationSettings) -> RuleChoice:
        """Return the rules that *settings* choose."""
        return cls(
            lists=settings.list_rules,
            letters=settings.letter_rules,
            p_values=settings.p_rules,
            tolerance=settings.p_tolerance,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerJudgement:
    """The judgement of one reply to one question."""

    right: bool
    rule: str  #: the parsing rule that fired, or the reason of the failure
    failed: bool = False  #: the reply was unparsed, and so counts as wrong
    letter: str | None = None
    p_value: str | None = None
    significance: str | None = None
    p_value_right: bool = False
    significance_right: bool = False

    @property
    def value(self) -> str:
        """The parsed answer as text, or ""."""
        if self.p_value is not None and self.significance is not None:
            return study_text(self.p_value, self.significance)
        return self.letter or ""


def study_text(p_value: str, significance: str) -> str:
    """Format a study-parameter answer, as in investigation records.

    Their p-values begin with a sign of their own; `answer_words` reads better.
    """
    return f"p={p_value}, sig={significance}"


def expected(question: PaperQuestion) -> str:
    """Return the correct answer to a question as text."""
    if question.is_mcq:
        return question.correct or ""
    return study_text(question.expected_p_value, question.expected_significance)


def judge(item: QuestionItem, rules: RuleChoice) -> AnswerJudgement | None:
    """Parse and compare the reply to one question; None without a reply."""
    if item.reply is None:
        return None
    question = item.question
    if item.batch is None:
        judged = _judge_by(rules)(
            item.reply.text,
            item.reply.finish_reason,
            question.is_mcq,
            (
                question.correct,
                question.expected_p_value,
                question.expected_significance,
            ),
        )
        if judged is not None:
            return judged
    return _compared(
        _parsed(item, item.reply, rules),
        question.correct,
        question.expected_p_value,
        question.expected_significance,
        rules,
    )


_Expected: TypeAlias = tuple[str | None, str, str]
"""Correct letter, p-value and significance."""

_JudgeText: TypeAlias = Callable[[str, str, bool, _Expected], AnswerJudgement | None]
"""Arguments: text, finish reason, whether it is a letter, expected values."""


@lru_cache(maxsize=8)
def _judge_by(rules: RuleChoice) -> _JudgeText:
    """Return the judge of replies to single questions, without their options.

    It caches judgements by a few texts, which is faster than by parsed values. It
    returns None if the options are needed.
    """

    @lru_cache(maxsize=1 << 14)
    def of_text(
        text: str, finish_reason: str, is_mcq: bool, expected: _Expected
    ) -> AnswerJudgement | None:
        parsed: Parsed
        if is_mcq:
            parsed = read = _letter(text, finish_reason, None, rules.letters)
            if needs_options(read, rules.letters):
                return None
        else:
            parsed = _study(text, finish_reason, rules.p_values)
        return _compared(parsed, *expected, rules)

    return of_text


def _parsed(item: QuestionItem, reply: Reply, rules: RuleChoice) -> Parsed:
    question = item.question
    if item.batch:
        answers = _batch(reply.text, reply.finish_reason, item.batch, rules)
        return answers[item.batch.keys.index(question.key)]
    if not question.is_mcq:
        return _study(reply.text, reply.finish_reason, rules.p_values)
    letter = _letter(reply.text, reply.finish_reason, None, rules.letters)
    if needs_options(letter, rules.letters):
        options = question.options
        return _letter(reply.text, reply.finish_reason, options, rules.letters)
    return letter


# Texts instead of replies are the keys, since no two replies have the same usage.
# Questions of a batch are consecutive, so a few batches are enough.


@lru_cache(maxsize=1 << 14)
def _letter(
    text: str, finish_reason: str, options: Options | None, rules: Rules
) -> Letter | ParseFailure:
    return parse_letter(Reply(text=text, finish_reason=finish_reason), rules, options)


@lru_cache(maxsize=1 << 14)
def _study(text: str, finish_reason: str, rules: Rules) -> Parsed:
    return parse_study(Reply(text=text, finish_reason=finish_reason), rules)


@lru_cache(maxsize=16)
def _batch(
    text: str, finish_reason: str, batch: QuestionBatch, rules: RuleChoice
) -> tuple[Parsed, ...]:
    return parse_batch(
        Reply(text=text, finish_reason=finish_reason),
        batch.kinds,
        letter_rules=rules.letters,
        p_rules=rules.p_values,
        options=batch.options,
    )


@lru_cache(maxsize=1 << 14)
def _compared(
    parsed: Parsed,
    letter: str | None,
    p_value: str,
    significance: str,
    rules: RuleChoice,
) -> AnswerJudgement:
    """Compare a parsed answer with the expected letter or texts."""
    if isinstance(parsed, ParseFailure):
        return AnswerJudgement(right=False, rule=parsed.reason, failed=True)
    if isinstance(parsed, Letter):
        right = parsed.letter == letter
        return AnswerJudgement(right=right, rule=parsed.rule, letter=parsed.letter)
    p_right = p_value_right(p_value, parsed.p_value, rules.p_values, rules.tolerance)
    sig_right = significance_right(significance, parsed.significance)
    return AnswerJudgement(
        right=p_right and sig_right,
        rule=parsed.rule,
        p_value=parsed.p_value,
        significance=parsed.significance,
        p_value_right=p_right,
        significance_right=sig_right,
    )


RULES = ("list_rules", "letter_rules", "p_rules")

MEANING = ("variant_case", "variant_link", *RULES)
"""Settings of a profile about the interpretation of answers, not about requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringVariant:
    """Settings for the interpretation of records."""

    settings: InvestigationSettings
    rules: RuleChoice
    stored: InvestigationSettings  #: for questions whose links cannot be recomputed

    @classmethod
    def of(cls, settings: InvestigationSettings) -> ScoringVariant:
        """Return the scoring variant of *settings*."""
        return cls(
            settings=settings,
            rules=RuleChoice.of(settings),
            stored=settings.model_copy(
                update={"variant_link": "whole", "max_questions_per_variant": 0}
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringVariants:
    """The chosen scoring variant, and the others by their metrics' suffix."""

    chosen: ScoringVariant
    others: Mapping[str, ScoringVariant]
    rules: str  #: the one of `others` with the other rules
    profile: str  #: the other profile's name
    other_profile: ScoringVariant

    @classmethod
    def of(cls, settings: InvestigationSettings, mode: Mode) -> ScoringVariants:
        """Return the scoring variants of *settings* for a run in *mode*."""

        def changed(**values: Any) -> ScoringVariant:
            return ScoringVariant.of(settings.model_copy(update=values))

        is_robust = all(getattr(settings, name) == "robust" for name in RULES)
        rules = "rules_clinpgx" if is_robust else "rules_robust"
        others = {}
        if mode != "questions":
            if settings.variant_case == "fold":
                others["case_sensitive"] = changed(variant_case="keep")
            else:
                others["case_folded"] = changed(variant_case="fold")
        if mode == "investigate":
            if settings.variant_link == "split":
                others["whole"] = changed(variant_link="whole")
            else:
                others["split"] = changed(variant_link="split")
        others[rules] = changed(
            **dict.fromkeys(RULES, "clinpgx-qa" if is_robust else "robust")
        )
        profile = "clinpgx-qa" if settings.profile == "siftlog" else "siftlog"
        fields = InvestigationSettings.model_fields
        meaning = {
            name: PROFILES[profile].get(name, fields[name].default) for name in MEANING
        }
        return cls(
            chosen=ScoringVariant.of(settings),
            others=others,
            rules=rules,
            profile=profile,
            other_profile=changed(**meaning),
        )
