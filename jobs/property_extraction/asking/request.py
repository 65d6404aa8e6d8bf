"""The request of a task: which text, which rows, which names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jobs.chat import chat_request
from jobs.property_extraction.answered import Found
from jobs.property_extraction.asking import prompts, schemas
from jobs.property_extraction.asking.keys import paper_of
from jobs.property_extraction.asking.pieces import Piece, pieces
from jobs.property_extraction.asking.questions import Question
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.rubric import Kind, Property
from runner.job import Task
from runner.messages import ChatRequest, TextPart

_ROWS = msgspec.json.Decoder(tuple[Found, ...])


def request(dataset: Dataset, task: Task) -> ChatRequest:
    """The request of *task*; `KeyError` where the data lost its item."""
    match task.stage:
        case "extract":
            return extract(dataset, text_of(dataset, task.key))
        case "requote":
            return requote(dataset, dataset.papers.text(task.key), asked(task.context))
        case "verify":
            return verify(dataset, dataset.questions[task.key])
        case _:
            raise KeyError(task.stage)


def extract(dataset: Dataset, text: str) -> ChatRequest:
    """Which values does the text report?"""
    names, book = dataset.settings.names, dataset.prompts
    is_all = dataset.settings.properties == "all"
    shown: dict[str, str | TextPart] = {"paper": prompts.paper_part(text)}
    if names == "listed" or not is_all:
        shown["names"] = prompts.names_part(dataset.listed, are_all=not is_all)
    if not is_all:
        shown["naming"] = book.text(f"extract.wanted.naming_{names}")
    asked = book.messages(
        f"extract.{names if is_all else 'wanted'}",
        quote_chars=str(prompts.QUOTE_CHARS),
        **shown,
    )
    # a property that is not wanted is left out, so that no reply names one "other"
    return chat_request(
        dataset.settings, asked, schemas.EXTRACT[names if is_all else "free"]
    )


def requote(dataset: Dataset, text: str, rows: Sequence[Found]) -> ChatRequest:
    """Where does the paper say these values?"""
    asked = dataset.prompts.messages(
        "requote",
        quote_chars=str(prompts.QUOTE_CHARS),
        paper=prompts.paper_part(text),
        rows=prompts.rows_part(rows),
    )
    return chat_request(dataset.settings, asked, schemas.REQUOTE)


def verify(dataset: Dataset, question: Question) -> ChatRequest:
    """Do two names mean one property; or, which of its targets does a name mean?"""
    examples = dict.fromkeys(each for pair in question.pairs for each in pair.examples)
    predicted = prompts.predicted_part(
        dataset.settings.field, question.pred_name, list(examples)
    )
    targets = [_target(dataset, name) for name in question.targets]
    if question.is_choice:
        asked = dataset.prompts.messages(
            "verify.choice",
            predicted=predicted,
            targets=prompts.targets_part(targets),
        )
        return chat_request(dataset.settings, asked, schemas.CHOOSE)
    asked = dataset.prompts.messages(
        "verify.pair", predicted=predicted, target=prompts.target_part(targets[0])
    )
    return chat_request(dataset.settings, asked, schemas.VERIFY)


def pieces_of(dataset: Dataset, refno: str) -> tuple[Piece, ...]:
    """The pieces in which a paper is read."""
    settings = dataset.settings
    text = dataset.papers.text(refno)
    return pieces(text, settings.max_chars, settings.chunk_overlap)


def text_of(dataset: Dataset, key: str) -> str:
    """The text that a key of stage `extract` is about.

    Raises:
        KeyError: there is no such paper, or no such piece of it.
    """
    refno, number = paper_of(key)
    text = dataset.papers.text(refno)
    if number is None:
        return text
    found = pieces_of(dataset, refno)
    if number > len(found):
        raise KeyError(key)
    own = found[number - 1]
    return text[own.start : own.end]


def carrying(rows: Sequence[Found]) -> str:
    """Rows as the context of a task."""
    return msgspec.json.encode(rows).decode()


def asked(context: str | None) -> tuple[Found, ...]:
    """The rows in a context, in the order of their numbers; none without one."""
    return () if context is None else _ROWS.decode(context)


def _target(dataset: Dataset, name: str) -> Property:
    """What is known of a name."""
    found = dataset.rubric.properties.get(name)
    return found or Property(name=name, kind=Kind.EXACT)
