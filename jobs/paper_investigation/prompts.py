"""What a prompt shows: papers and questions as blocks between marks.

The wording around them is in `prompts.toml`. The system text and the paper have
identical bytes in every stage and only what follows differs, so that a provider's
prompt cache can reuse them. What comes from files stands between marks that carry the
hash of what they enclose, so no text can close its own mark, and instructions in it
stay material to read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.questions import LETTERS
from runner.messages import TextPart
from runner.prompts import PromptBook

STUDY_FIELDS = (
    ("Variant", "variant"),
    ("Gene", "gene"),
    ("Drug", "drug"),
    ("Phenotype category", "phenotype_category"),
    ("Phenotype", "phenotype"),
    ("Sentence", "sentence"),
)
"""Label in the prompt, and field of `Question`; blank fields are left out."""

QUESTION_PROMPTS = ("question.choice", "question.association")


def paper_part(pmcid: str, text: str) -> TextPart:
    """The paper between its marks; a provider's cache may end after it."""
    mark = _mark(text)
    return TextPart(
        text=f'<paper-{mark} id="{pmcid}">\n{text}\n</paper-{mark}>\n\n', cache=True
    )


def question_block(question: Question) -> str:
    """A question between its marks."""
    lines = _choice_lines(question) if question.is_mcq else _study_lines(question)
    text = "\n".join(lines)
    mark = _mark(text)
    return f"<question-{mark}>\n{text}\n</question-{mark}>"


def question_prompt(question: Question) -> str:
    """The prompt that asks a question alone."""
    choice, association = QUESTION_PROMPTS
    return choice if question.is_mcq else association


def question_values(book: PromptBook, question: Question) -> dict[str, str]:
    """What `question_prompt` shows beside the paper."""
    task = book.text(f"{question_prompt(question)}.task")
    return {"task": task, "question": question_block(question)}


def batch_values(book: PromptBook, questions: Sequence[Question]) -> dict[str, str]:
    """What the prompt of several questions shows, numbered from 1."""
    asked = {question_prompt(each) for each in questions}
    tasks = (f"{prompt}.task" for prompt in QUESTION_PROMPTS if prompt in asked)
    entries = (
        book.text("batch.entry", number=str(number), question=question_block(question))
        for number, question in enumerate(questions, start=1)
    )
    return {
        "tasks": "\n\n".join(map(book.text, tasks)),
        "questions": "\n\n".join(entries),
    }


def _choice_lines(question: Question) -> list[str]:
    options = zip(LETTERS, question.options or (), strict=True)
    return [
        f'"{_one_line(question.sentence)}"',
        *(f"{letter}) {_one_line(option)}" for letter, option in options),
    ]


def _study_lines(question: Question) -> list[str]:
    values = ((label, getattr(question, field)) for label, field in STUDY_FIELDS)
    return [f"{label}: {_one_line(value)}" for label, value in values if value]


def _one_line(text: str) -> str:
    """A field on one line: a line break in a file must not add an option."""
    return " ".join(text.split())


def _mark(text: str) -> str:
    """A text cannot hold its own hash, so it cannot hold its own closing mark."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
