"""What the engine makes of each stage's replies: the parser with the data's rules.

Never raises on model output, nor on a question that the data no longer holds: both are
a `ParseFailure`, counted by its reason.
"""

from __future__ import annotations

from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.importing.context import decode_question
from jobs.paper_investigation.parsing import (
    Letter,
    StudyAnswer,
    VariantList,
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
)
from jobs.paper_investigation.request import batch_of, question_of
from runner.job import Stage, Task
from runner.messages import ParseFailure, Reply

UNKNOWN = ParseFailure(reason="unknown_question")


def read_extraction(
    dataset: Dataset,
    task: Task,  # noqa: ARG001 - every stage's parser has the same form
    reply: Reply,
) -> VariantList | ParseFailure:
    """The variants that a reply lists."""
    return parse_list(reply, dataset.settings.list_rules)


def read_question(
    dataset: Dataset, task: Task, reply: Reply
) -> Letter | StudyAnswer | ParseFailure:
    """The answer to one question."""
    try:
        question = _question(dataset, task)
    except KeyError:
        return UNKNOWN
    if question.is_mcq:
        return parse_letter(reply, dataset.settings.letter_rules, question.options)
    return parse_study(reply, dataset.settings.p_rules)


def read_batch(
    dataset: Dataset, task: Task, reply: Reply
) -> tuple[Letter | StudyAnswer | ParseFailure, ...] | ParseFailure:
    """The answers to a batch, in its order; one failure where none could be read."""
    try:
        questions = batch_of(dataset, task)
    except KeyError:
        return UNKNOWN
    answers = parse_batch(
        reply,
        tuple("mcq" if question.is_mcq else "study" for question in questions),
        letter_rules=dataset.settings.letter_rules,
        p_rules=dataset.settings.p_rules,
        options=tuple(question.options for question in questions),
    )
    failures = [answer for answer in answers if isinstance(answer, ParseFailure)]
    return failures[0] if failures and len(failures) == len(answers) else answers


def _question(dataset: Dataset, task: Task) -> Question:
    """The question asked; an imported task brings its own."""
    if task.context is not None:
        return decode_question(task.context).question
    return question_of(dataset, task)


STAGES = (
    Stage(name="extract", parse=read_extraction),
    Stage(name="question", parse=read_question, follows=False),
    Stage(name="batch", parse=read_batch, follows=False),
)
