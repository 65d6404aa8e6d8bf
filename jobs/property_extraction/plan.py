"""Plans the tasks of a run, builds the request of each, and parses its reply.

Pure and lazy; it never uses values of the truth. The plan of a run is derived again
from data and stored replies whenever it is resumed or scored, so the same inputs must
yield the same specs in the same order. Parsing never raises on model output.

Long papers are read in chunks, which overlap and end with paragraphs. With `chunk=auto`
a new run chooses their length once, by the model with the least room, so that all of
its models read the same chunks. The length is recorded as `max_chars`: a resumed run
cuts identically even if the price table has changed.

The rule: a row takes some 70 tokens of a reply (a recorded reply has 10,116 for 146
rows), and a text hardly ever states more than one value in 70 tokens. A reply is
therefore expected to be at most as long as its text, and a chunk has at most as many
tokens as a reply may have. Chunk, instructions and reply together must fit the model's
context window.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from jobs.kit.chat import chat_request, is_longer_than
from jobs.property_extraction import prompts, rows
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.parsing import (
    ParsedChoice,
    ParsedExtraction,
    ParsedQuotes,
    ParsedVerdict,
    ReportedValue,
    parse_choice,
    parse_extraction,
    parse_requote,
    parse_verdict,
)
from jobs.property_extraction.rows import ROWS_STAGE, Prediction, parse_rows
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.tasks import NameQuestion, paper_of, piece_key
from jobs.property_extraction.values.comparison import ComparisonKind, Property
from runner.job import Answer, ModelLimits, Stage, Task, TaskSpec
from runner.messages import ChatRequest, ParseFailure, Reply, TextPart

_ENDS: Final = (
    re.compile(r"\n\s*\n"),  # end of a paragraph
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s"),
    re.compile(r"\s"),
)
"""Places at which a chunk may end, the best first; without any of them it ends inside a
word."""


MOST_REPLY: Final = 16_384
"""Highest output limit to choose. A budget reserves the limit of every call, and a
paper that needs more is split into chunks instead."""

PROMPT_TOKENS: Final = 4_000
"""Room for instructions, listed names and schema in a context window."""

LEAST_PART: Final = 1_000
"""Least tokens of a chunk, even in a small context window."""

CHARS_PER_TOKEN: Final = 3
"""Prose in English has four or five; tables of numbers have fewer."""


def fit(
    settings: PropertySettings, limits: Mapping[str, ModelLimits]
) -> PropertySettings:
    """Return a new run's settings, with lengths of chunks and replies for its models.

    Explicit settings are unchanged.

    Args:
        settings: of the run.
        limits: of the models that are reached online; offline ones have none.
    """
    if settings.chunk == "off" or settings.mode == "verify" or not limits:
        return settings
    set_fields = settings.model_fields_set
    windows = [
        model_limits.context_tokens
        for model_limits in limits.values()
        if model_limits.context_tokens
    ]
    reply = settings.max_output_tokens
    if "max_output_tokens" not in set_fields:
        # a third of a window at most, which leaves the rest for text and instructions
        bounds = [MOST_REPLY, *(window // 3 for window in windows)]
        reply = min(
            *bounds,
            *(model_limits.output_tokens or reply for model_limits in limits.values()),
        )
    rooms = (settings.max_prompt_tokens, *(window - reply for window in windows))
    part = max(min(reply, min(rooms) - PROMPT_TOKENS), LEAST_PART)
    length = max(part * CHARS_PER_TOKEN, 2 * settings.chunk_overlap)
    return settings.model_copy(
        update={
            "max_output_tokens": reply,
            "max_chars": settings.max_chars if "max_chars" in set_fields else length,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPiece:
    """A chunk of a text, by offsets into it."""

    start: int
    end: int  #: exclusive


def pieces(text: str, most: int, overlap: int) -> tuple[PaperPiece, ...]:
    """Return chunks that cover every character of a text, in order.

    Args:
        text: of a paper.
        most: characters of a chunk; 0: the whole text is one.
        overlap: characters that a chunk shares with the previous one, fewer if a word
            would be cut; less than *most*.
    """
    if not most or len(text) <= most:
        return (PaperPiece(start=0, end=len(text)),)
    return tuple(_cut(text, most, overlap))


def _cut(text: str, most: int, overlap: int) -> Iterator[PaperPiece]:
    start = 0
    while len(text) - start > most:
        # a chunk must extend beyond its overlap with the previous one
        end = _end(text, start + overlap + 1, start + most)
        yield PaperPiece(start=start, end=end)
        start = _start(text, end - overlap, end)
    yield PaperPiece(start=start, end=len(text))


def _end(text: str, least: int, most: int) -> int:
    for kind in _ENDS:
        matches = deque(kind.finditer(text, least, most), maxlen=1)
        if matches:
            return matches[0].end()
    return most


def _start(text: str, least: int, most: int) -> int:
    """Return the start of the first word from *least* on, before *most*."""
    if least == 0 or text[least - 1].isspace():
        return least
    match = _ENDS[-1].search(text, least, most)
    return least if match is None else match.end()


_ROWS = msgspec.json.Decoder(tuple[ReportedValue, ...])


def request(dataset: PropertyDataset, task: Task) -> ChatRequest:
    """Return the request of *task*; raise `KeyError` if the data lack its item."""
    match task.stage:
        case "extract":
            return extract_request(dataset, text_of(dataset, task.key))
        case "requote":
            return requote_request(
                dataset, dataset.papers.text(task.key), rows_of_context(task.context)
            )
        case "verify":
            return verify_request(dataset, dataset.questions[task.key])
        case _:
            raise KeyError(task.stage)


def extract_request(dataset: PropertyDataset, text: str) -> ChatRequest:
    """Request the values that the text reports."""
    names, book = dataset.settings.names, dataset.prompts
    is_all = dataset.settings.properties == "all"
    parts: dict[str, str | TextPart] = {"paper": prompts.paper_part(text)}
    if names == "listed" or not is_all:
        parts["names"] = prompts.names_part(
            dataset.listed_properties, are_all=not is_all
        )
    if not is_all:
        parts["naming"] = book.text(f"extract.wanted.naming_{names}")
    messages = book.messages(
        f"extract.{names if is_all else 'wanted'}",
        quote_chars=str(prompts.QUOTE_CHARS),
        **parts,
    )
    # unwanted properties are left out, so no reply needs the name "other"
    return chat_request(
        dataset.settings, messages, prompts.EXTRACT[names if is_all else "free"]
    )


def requote_request(
    dataset: PropertyDataset, text: str, rows: Sequence[ReportedValue]
) -> ChatRequest:
    """Request the quotes of values in a paper."""
    messages = dataset.prompts.messages(
        "requote",
        quote_chars=str(prompts.QUOTE_CHARS),
        paper=prompts.paper_part(text),
        rows=prompts.rows_part(rows),
    )
    return chat_request(dataset.settings, messages, prompts.REQUOTE)


def verify_request(dataset: PropertyDataset, question: NameQuestion) -> ChatRequest:
    """Request whether two names mean one property, or which target a name means."""
    examples = dict.fromkeys(
        example for pair in question.pairs for example in pair.examples
    )
    predicted = prompts.predicted_part(
        dataset.settings.field, question.pred_name, list(examples)
    )
    targets = [_target(dataset, name) for name in question.targets]
    if question.is_choice:
        messages = dataset.prompts.messages(
            "verify.choice",
            predicted=predicted,
            targets=prompts.targets_part(targets),
        )
        return chat_request(dataset.settings, messages, prompts.CHOOSE)
    messages = dataset.prompts.messages(
        "verify.pair", predicted=predicted, target=prompts.target_part(targets[0])
    )
    return chat_request(dataset.settings, messages, prompts.VERIFY)


def pieces_of(dataset: PropertyDataset, refno: str) -> tuple[PaperPiece, ...]:
    """Return the chunks in which a paper is read."""
    settings = dataset.settings
    text = dataset.papers.text(refno)
    return pieces(text, settings.max_chars, settings.chunk_overlap)


def text_of(dataset: PropertyDataset, key: str) -> str:
    """Return the text of a key of stage `extract`.

    Raises:
        KeyError: there is no such paper, or no such chunk of it.
    """
    refno, number = paper_of(key)
    text = dataset.papers.text(refno)
    if number is None:
        return text
    paper_pieces = pieces_of(dataset, refno)
    if number > len(paper_pieces):
        raise KeyError(key)
    piece = paper_pieces[number - 1]
    return text[piece.start : piece.end]


def context_of_rows(rows: Sequence[ReportedValue]) -> str:
    """Encode rows as the context of a task."""
    return msgspec.json.encode(rows).decode()


def rows_of_context(context: str | None) -> tuple[ReportedValue, ...]:
    """Decode the rows in a context, in the order of their numbers; none without one."""
    return () if context is None else _ROWS.decode(context)


def _target(dataset: PropertyDataset, name: str) -> Property:
    """Return the property of a name, from the rubric if it has the name."""
    prop = dataset.rubric.properties.get(name)
    return prop or Property(name=name, kind=ComparisonKind.EXACT)


def planned_stages(dataset: PropertyDataset) -> frozenset[str]:
    """Return the stages that the settings need."""
    if dataset.settings.mode == "verify":
        return frozenset({"verify"})
    return frozenset(
        {"extract", "requote"} if dataset.settings.requote else {"extract"}
    )


def plan(dataset: PropertyDataset) -> Iterator[TaskSpec]:
    """Yield papers by refno, or questions in the order of the candidates.

    Tasks that need no call are planned as skipped, with a reason: `no_text`,
    `empty_text`, `too_long`, `auto_verified`, `already_verified`.
    """
    if dataset.settings.mode == "verify":
        yield from _questions(dataset)
    elif dataset.settings.papers is not None:
        for refno in sorted({*dataset.papers, *dataset.truth_by_paper}):
            yield from _paper(dataset, refno)


def titles(dataset: PropertyDataset) -> Iterator[tuple[str, str]]:
    """Yield the papers with their titles."""
    return ((refno, dataset.papers.title(refno)) for refno in dataset.papers)


def follow_up(
    dataset: PropertyDataset, group: tuple[Answer, ...]
) -> Iterator[TaskSpec]:
    """Yield another request about a paper if quotes are missing or not in it."""
    refno, _ = paper_of(group[0].task.key)
    extractions = [
        answer.parsed for answer in group if isinstance(answer.parsed, ParsedExtraction)
    ]
    if not dataset.settings.requote or refno not in dataset.papers:
        return
    paper = dataset.papers.paper(refno)
    ungrounded_rows = rows.ungrounded(paper, list(rows.count_mentions(extractions)))
    if ungrounded_rows:
        yield TaskSpec(
            stage="requote",
            key=refno,
            skip=_too_long(
                dataset, requote_request(dataset, paper.text, ungrounded_rows)
            ),
            context=context_of_rows(ungrounded_rows),
        )


def _paper(dataset: PropertyDataset, refno: str) -> Iterator[TaskSpec]:
    """Yield a task for each chunk of a paper."""
    group = refno if dataset.settings.requote else None
    if refno not in dataset.papers:
        yield TaskSpec(stage="extract", key=refno, skip="no_text")
        return
    text = dataset.papers.text(refno)
    if not text.strip():
        yield TaskSpec(stage="extract", key=refno, skip="empty_text")
        return
    paper_pieces = pieces_of(dataset, refno)
    for number, piece in enumerate(paper_pieces, start=1):
        request = extract_request(dataset, text[piece.start : piece.end])
        yield TaskSpec(
            stage="extract",
            key=piece_key(refno, number if len(paper_pieces) > 1 else None),
            skip=_too_long(dataset, request),
            group=group,
        )


def _questions(dataset: PropertyDataset) -> Iterator[TaskSpec]:
    for question in dataset.questions.values():
        skip = question.skip
        if skip is None:
            skip = _too_long(dataset, verify_request(dataset, question))
        yield TaskSpec(stage="verify", key=question.key, skip=skip)


def _too_long(dataset: PropertyDataset, request: ChatRequest) -> str | None:
    is_long = is_longer_than(request, dataset.settings.max_prompt_tokens)
    return "too_long" if is_long else None


def read_extraction(
    dataset: PropertyDataset, _task: Task, reply: Reply
) -> ParsedExtraction | ParseFailure:
    """Parse the values that a paper, or a chunk of it, reports."""
    return parse_extraction(reply, partial=dataset.settings.partial)


def read_requote(
    _dataset: PropertyDataset, _task: Task, reply: Reply
) -> ParsedQuotes | ParseFailure:
    """Parse new quotes for values, and withdrawals."""
    return parse_requote(reply)


def read_verdict(
    dataset: PropertyDataset, task: Task, reply: Reply
) -> ParsedVerdict | ParsedChoice | ParseFailure:
    """Parse a verdict or choice; imported verdicts are about pairs."""
    question = dataset.questions.get(task.key)
    if question is not None and question.is_choice:
        return parse_choice(reply, question.targets)
    return parse_verdict(reply)


def read_rows(
    _dataset: PropertyDataset, task: Task, reply: Reply
) -> tuple[Prediction, ...] | ParseFailure:
    """Parse the rows of a file."""
    return parse_rows(task.key, reply)


STAGES = (
    Stage(name="extract", parse=read_extraction, gathers=True),
    Stage(name="requote", parse=read_requote, follows=False),
    Stage(name="verify", parse=read_verdict, follows=False),
    Stage(name=ROWS_STAGE, parse=read_rows, follows=False),
)
"""Stages; the chunks of a paper are gathered: one request asks for all missing quotes.

`rows` is for imports only, and `verify` for runs of that mode.
"""
