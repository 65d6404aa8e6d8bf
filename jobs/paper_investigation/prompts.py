"""Builds the request of a task: prompt blocks, reply schema, token limit.

The wording around them is in `prompts.toml`. The system text and the paper are
identical in every stage and only the rest differs, so that a provider's prompt cache
can reuse them. Text from files is between delimiters with a hash of their content, so
no text can contain its closing delimiter, and instructions in it remain data.

The schemas are strict in the sense of the endpoints that enforce them: every property
is required and no other is allowed. Properties are in the order of the answer, which
endpoints and models follow. An endpoint may put its schema before the messages, so each
schema costs another prompt prefix; there are only four.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from jobs.kit.chat import closed_object, json_schema
from jobs.paper_investigation.data import LETTERS, InvestigationDataset, PaperQuestion
from runner.job import Task
from runner.messages import ChatRequest, TextPart
from runner.prompts import PromptBook

STUDY_FIELDS = (
    ("Variant", "variant"),
    ("Gene", "gene"),
    ("Drug", "drug"),
    ("Phenotype category", "phenotype_category"),
    ("Phenotype", "phenotype"),
    ("Sentence", "sentence"),
)
"""Label in the prompt, and field of `Question`; blank fields are omitted."""

QUESTION_PROMPTS = ("question.choice", "question.association")


def paper_part(pmcid: str, text: str) -> TextPart:
    """Return the part with the paper; a provider's cache may end after it."""
    mark = _mark(text)
    return TextPart(
        text=f'<paper-{mark} id="{pmcid}">\n{text}\n</paper-{mark}>\n\n', cache=True
    )


def question_block(question: PaperQuestion) -> str:
    """Return a question between delimiters."""
    text = "\n".join(question_lines(question))
    mark = _mark(text)
    return f"<question-{mark}>\n{text}\n</question-{mark}>"


def question_lines(question: PaperQuestion) -> list[str]:
    """Return the lines of a question, without delimiters."""
    return _choice_lines(question) if question.is_mcq else _study_lines(question)


def question_prompt(question: PaperQuestion) -> str:
    """Return the name of the prompt for a single question."""
    choice, association = QUESTION_PROMPTS
    return choice if question.is_mcq else association


def question_values(book: PromptBook, question: PaperQuestion) -> dict[str, str]:
    """Return the values of `question_prompt` other than the paper."""
    task = book.text(f"{question_prompt(question)}.task")
    return {"task": task, "question": question_block(question)}


def batch_values(
    book: PromptBook, questions: Sequence[PaperQuestion]
) -> dict[str, str]:
    """Return the values of the prompt for several questions, numbered from 1."""
    prompt_names = {question_prompt(question) for question in questions}
    tasks = (f"{prompt}.task" for prompt in QUESTION_PROMPTS if prompt in prompt_names)
    entries = (
        book.text("batch.entry", number=str(number), question=question_block(question))
        for number, question in enumerate(questions, start=1)
    )
    return {
        "tasks": "\n\n".join(map(book.text, tasks)),
        "questions": "\n\n".join(entries),
    }


def _choice_lines(question: PaperQuestion) -> list[str]:
    options = zip(LETTERS, question.options or (), strict=True)
    return [
        f'"{_one_line(question.sentence)}"',
        *(f"{letter}) {_one_line(option)}" for letter, option in options),
    ]


def _study_lines(question: PaperQuestion) -> list[str]:
    values = ((label, getattr(question, field)) for label, field in STUDY_FIELDS)
    return [f"{label}: {_one_line(value)}" for label, value in values if value]


def _one_line(text: str) -> str:
    """Join a field to one line: a line break in a file must not add an option."""
    return " ".join(text.split())


def _mark(text: str) -> str:
    """Return a delimiter's hash of *text*, which cannot contain its hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


_TEXT = {"type": "string"}
_LETTER = {"type": "string", "enum": list(LETTERS)}
_SIGNIFICANCE = {"type": "string", "enum": ["yes", "no", "not stated", "not found"]}
_NUMBER = {"type": "integer"}

_CHOICE = {"answer": _LETTER}
_STUDY = {"p_value": _TEXT, "significance": _SIGNIFICANCE}

VARIANTS = json_schema(
    "variants", closed_object({"variants": {"type": "array", "items": _TEXT}})
)
CHOICE = json_schema("choice", closed_object(_CHOICE))
STUDY = json_schema("study_parameters", closed_object(_STUDY))
BATCH = json_schema(
    "answers",
    closed_object(
        {
            "answers": {
                "type": "array",
                "items": {
                    "anyOf": [
                        closed_object({"n": _NUMBER, **_CHOICE}),
                        closed_object({"n": _NUMBER, **_STUDY}),
                    ]
                },
            }
        }
    ),
)


def request(dataset: InvestigationDataset, task: Task) -> ChatRequest:
    """Build the request of *task*: system, then the paper, then the question."""
    settings, book = dataset.settings, dataset.prompts
    if task.stage == "extract":
        reference_alleles = book.text(f"extract.reference_{settings.reference_alleles}")
        prompt, values = "extract", {"reference_alleles": reference_alleles}
        schema, max_tokens = VARIANTS, settings.max_tokens_extract
    elif task.stage == "batch":
        questions = batch_of(dataset, task)
        prompt, values = "batch", batch_values(book, questions)
        schema = BATCH
        max_tokens = settings.max_tokens_question * len(questions)
    else:
        question = question_of(dataset, task)
        prompt = question_prompt(question)
        values = question_values(book, question)
        schema = CHOICE if question.is_mcq else STUDY
        max_tokens = settings.max_tokens_question
    messages = book.messages(
        prompt,
        paper=_paper(dataset, prompt, paper_of(task.key)),
        form=_form(dataset, prompt),
        **values,
    )
    reasons = task.model in settings.reasoning_models
    return ChatRequest(
        messages=messages,
        # a reasoning model spends output tokens before the answer, and refuses a
        # temperature
        max_tokens=settings.max_tokens_reasoning if reasons else max_tokens,
        temperature=None if reasons else settings.temperature,
        schema=schema if settings.structured == "auto" else None,
    )


def question_text(dataset: InvestigationDataset, question: PaperQuestion) -> str:
    """Return the prompt of a single question, without the paper."""
    prompt, book = question_prompt(question), dataset.prompts
    return book.text(
        f"{prompt}.user",
        paper="",
        form=_form(dataset, prompt),
        **question_values(book, question),
    )


def _form(dataset: InvestigationDataset, prompt: str) -> str:
    """Return the part of a prompt about the format of the answer."""
    form = "form_json" if dataset.settings.structured == "auto" else "form_text"
    return dataset.prompts.text(f"{prompt}.{form}")


def paper_of(key: str) -> str:
    """Return the paper id at the start of a task's key."""
    return key.partition("/")[0]


def question_of(dataset: InvestigationDataset, task: Task) -> PaperQuestion:
    """Return the question of a `question` task; raise `KeyError` if it is lost."""
    pmcid, _, key = task.key.partition("/")
    return _require_question(dataset, pmcid, key)


def batch_of(dataset: InvestigationDataset, task: Task) -> tuple[PaperQuestion, ...]:
    """Return the questions of a `batch` task, in order; their keys are its context.

    The questions that share a call depend on the recalled variants, so they cannot be
    derived from the task's key.
    """
    keys = msgspec.json.decode(task.context or "[]", type=list[str])
    return tuple(_require_question(dataset, paper_of(task.key), key) for key in keys)


def batch_context(questions: Sequence[PaperQuestion]) -> str:
    """Encode the questions' keys as JSON, for `batch_of`."""
    return msgspec.json.encode([question.key for question in questions]).decode()


def _require_question(
    dataset: InvestigationDataset, pmcid: str, key: str
) -> PaperQuestion:
    question = dataset.question(pmcid, key)
    if question is None:
        raise KeyError(f"{pmcid}/{key}")
    return question


def _paper(dataset: InvestigationDataset, prompt: str, pmcid: str) -> TextPart:
    if pmcid not in dataset.papers:
        return TextPart(
            text=dataset.prompts.text(f"{prompt}.paper_absent", pmcid=pmcid)
        )
    text = dataset.papers.text(pmcid)
    return paper_part(pmcid, text[: dataset.settings.max_chars or None])
