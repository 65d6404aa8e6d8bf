"""Both rule sets behind one face: which functions read a reply and judge an answer.

No function here raises on model output: what cannot be read is a `ParseFailure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.paper_investigation.parsing import (
    batch,
    clinpgx_qa,
    letters,
    lists,
    p_values,
    study,
)
from jobs.paper_investigation.parsing.values import (
    Letter,
    StudyAnswer,
    VariantList,
    unread,
)
from jobs.paper_investigation.settings import Rules
from runner.job import guarded
from runner.messages import ParseFailure, Reply

Options: TypeAlias = tuple[str, str, str, str]
Kind: TypeAlias = Literal["mcq", "study"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """One way of reading replies and of judging what they say."""

    read_list: Callable[[Reply], VariantList | ParseFailure]
    read_letter: Callable[[Reply, Options | None], Letter | ParseFailure]
    needs_options: Callable[[Letter | ParseFailure], bool]
    read_study: Callable[[Reply], StudyAnswer | ParseFailure]
    split_batch: Callable[[Reply, int], batch.BatchedAnswers]
    p_value_right: Callable[[str, str, float], bool]
    significance_right: Callable[[str, str], bool]


RULE_SETS: Mapping[Rules, RuleSet] = {
    "robust": RuleSet(
        read_list=lists.read_list,
        read_letter=letters.read_letter,
        needs_options=letters.needs_options,
        read_study=study.read_study,
        split_batch=batch.split_batch,
        p_value_right=p_values.p_value_right,
        significance_right=p_values.significance_right,
    ),
    "clinpgx-qa": RuleSet(
        read_list=clinpgx_qa.read_list,
        read_letter=clinpgx_qa.read_letter,
        needs_options=clinpgx_qa.needs_options,
        read_study=clinpgx_qa.read_study,
        split_batch=clinpgx_qa.split_batch,
        p_value_right=clinpgx_qa.p_value_right,
        significance_right=p_values.significance_right,
    ),
}


@guarded
def parse_list(reply: Reply, rules: Rules) -> VariantList | ParseFailure:
    """The variants that an extraction reply lists."""
    return RULE_SETS[rules].read_list(reply)


@guarded
def parse_letter(
    reply: Reply, rules: Rules, options: Options | None
) -> Letter | ParseFailure:
    """The option that a reply picks; *options* are None where they are unknown."""
    return RULE_SETS[rules].read_letter(reply, options)


def needs_options(read: Letter | ParseFailure, rules: Rules) -> bool:
    """Whether a reply *read* without the options' texts can be read otherwise by them.

    Most replies are bare letters: read without options, they are alike for all
    questions and need to be read once.
    """
    return RULE_SETS[rules].needs_options(read)


@guarded
def parse_study(reply: Reply, rules: Rules) -> StudyAnswer | ParseFailure:
    """The p-value and significance that a reply states."""
    return RULE_SETS[rules].read_study(reply)


def parse_batch(
    reply: Reply,
    kinds: Sequence[Kind],
    *,
    letter_rules: Rules,
    p_rules: Rules,
    options: Sequence[Options | None],
) -> tuple[Letter | StudyAnswer | ParseFailure, ...]:
    """The answer to each question of a batch, in the order in which they were asked.

    A question without an answer in a complete reply is `missing_in_batch`.
    """
    batches = {
        "mcq": _split(reply, len(kinds), letter_rules),
        "study": _split(reply, len(kinds), p_rules),
    }

    def parse(index: int, kind: Kind) -> Letter | StudyAnswer | ParseFailure:
        batched = batches[kind]
        if isinstance(batched, ParseFailure):
            return batched
        own = batched.answers[index]
        if own is None:
            return unread(reply, "missing_in_batch")
        if kind == "study":
            return parse_study(own, p_rules)
        return parse_letter(own, letter_rules, options[index])

    return tuple(parse(index, kind) for index, kind in enumerate(kinds))


def stray_answers(reply: Reply, count: int, rules: Rules) -> int:
    """How many answers of a batched reply bear a number that no question has."""
    batched = _split(reply, count, rules)
    return 0 if isinstance(batched, ParseFailure) else batched.stray


@guarded
def _split(reply: Reply, count: int, rules: Rules) -> batch.BatchedAnswers:
    """The answers of a batched reply, one by one."""
    return RULE_SETS[rules].split_batch(reply, count)


def p_value_right(expected: str, answer: str, rules: Rules, tolerance: float) -> bool:
    """Whether *answer* states the *expected* p-value; *tolerance* is relative."""
    return RULE_SETS[rules].p_value_right(expected, answer, tolerance)


def significance_right(expected: str, answer: str, rules: Rules) -> bool:
    """Whether *answer* states the *expected* significance."""
    return RULE_SETS[rules].significance_right(expected, answer)
