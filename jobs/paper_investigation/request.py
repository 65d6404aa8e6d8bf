"""The request of a task: which parts, which schema, how many tokens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jobs.paper_investigation import prompts, schemas
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.settings import Settings
from runner.job import Task
from runner.messages import ChatRequest, Message, Schema, TextPart


def request(dataset: Dataset, task: Task) -> ChatRequest:
    """The request of *task*: system, then the paper, then what is asked of it."""
    settings, book = dataset.settings, dataset.prompts
    if task.stage == "extract":
        listed = book.text(f"extract.reference_{settings.reference_alleles}")
        prompt, shown = "extract", {"reference_alleles": listed}
        schema, max_tokens = schemas.VARIANTS, settings.max_tokens_extract
    elif task.stage == "batch":
        questions = batch_of(dataset, task)
        prompt, shown = "batch", prompts.batch_values(book, questions)
        schema = schemas.BATCH
        max_tokens = settings.max_tokens_question * len(questions)
    else:
        question = question_of(dataset, task)
        prompt = prompts.question_prompt(question)
        shown = prompts.question_values(book, question)
        schema = schemas.CHOICE if question.is_mcq else schemas.STUDY
        max_tokens = settings.max_tokens_question
    messages = book.messages(
        prompt,
        paper=_paper(dataset, prompt, paper_of(task.key)),
        form=_form(dataset, prompt),
        **shown,
    )
    schema_sent = schema if settings.structured == "auto" else None
    return _chat(settings, task.model, messages, schema_sent, max_tokens)


def question_text(dataset: Dataset, question: Question) -> str:
    """What is asked of a question alone, without the paper."""
    prompt, book = prompts.question_prompt(question), dataset.prompts
    return book.text(
        f"{prompt}.user",
        paper="",
        form=_form(dataset, prompt),
        **prompts.question_values(book, question),
    )


def _form(dataset: Dataset, prompt: str) -> str:
    """How a prompt says in which form to answer."""
    form = "form_json" if dataset.settings.structured == "auto" else "form_text"
    return dataset.prompts.text(f"{prompt}.{form}")


def paper_of(key: str) -> str:
    """The paper id at the front of a task's key."""
    return key.partition("/")[0]


def question_of(dataset: Dataset, task: Task) -> Question:
    """The question a `question` task asks; `KeyError` where the data lost it."""
    pmcid, _, key = task.key.partition("/")
    return _known(dataset, pmcid, key)


def batch_of(dataset: Dataset, task: Task) -> tuple[Question, ...]:
    """The questions of a `batch` task, in order; their keys are its context.

    Which questions share a call follows from what the model recalled, so it cannot be
    derived from the task's own key.
    """
    keys = msgspec.json.decode(task.context or "[]", type=list[str])
    return tuple(_known(dataset, paper_of(task.key), key) for key in keys)


def batch_context(questions: Sequence[Question]) -> str:
    """What `batch_of` reads: the questions' keys as JSON."""
    return msgspec.json.encode([question.key for question in questions]).decode()


def _known(dataset: Dataset, pmcid: str, key: str) -> Question:
    question = dataset.question(pmcid, key)
    if question is None:
        raise KeyError(f"{pmcid}/{key}")
    return question


def _paper(dataset: Dataset, prompt: str, pmcid: str) -> TextPart:
    if pmcid not in dataset.papers:
        return TextPart(
            text=dataset.prompts.text(f"{prompt}.paper_absent", pmcid=pmcid)
        )
    text = dataset.papers.text(pmcid)
    return prompts.paper_part(pmcid, text[: dataset.settings.max_chars or None])


def _chat(
    settings: Settings,
    model: str,
    messages: tuple[Message, ...],
    schema: Schema | None,
    max_tokens: int,
) -> ChatRequest:
    reasons = model in settings.reasoning_models
    return ChatRequest(
        messages=messages,
        # a reasoning model spends its output tokens on thought before the answer,
        # and refuses a temperature
        max_tokens=settings.max_tokens_reasoning if reasons else max_tokens,
        temperature=None if reasons else settings.temperature,
        schema=schema,
    )
