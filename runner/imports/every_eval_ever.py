"""Reads instance records of Every Eval Ever: JSON lines of its instance-level schema.

A record is one reply under one metric; records of a sample under several metrics are
one reply with several scores. `Instance` declares the fields that are read, under the
names of the schema (version 0.3.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    error_word,
    flat_fields,
    json_lines,
    messages_from,
)
from runner.messages import Usage


class Input(msgspec.Struct, kw_only=True):
    """The prompt, before and after templates."""

    raw: str
    formatted: str | None = None
    reference: list[str] = []


class Output(msgspec.Struct, kw_only=True):
    """The replies of a sample with a single turn."""

    raw: list[str] = []
    reasoning_trace: list[str] | None = None


class Evaluation(msgspec.Struct, kw_only=True):
    """The score under the record's metric."""

    score: float | None = None
    is_correct: bool | None = None


class TokenUsage(msgspec.Struct, kw_only=True):
    """Tokens; cached ones are part of `input_tokens`, a total."""

    input_tokens: int
    output_tokens: int
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None


class Performance(msgspec.Struct, kw_only=True):
    """Times of the call."""

    latency_ms: float | None = None


class Instance(msgspec.Struct, kw_only=True):
    """A record."""

    model_id: str
    evaluation_name: str
    sample_id: str
    input: Input
    evaluation: Evaluation
    evaluation_id: str = ""
    evaluation_result_id: str = ""
    interaction_type: str = "single_turn"
    output: Output | None = None
    messages: list[RoleMessage] | None = None
    token_usage: TokenUsage | None = None
    performance: Performance | None = None
    error: str | None = None
    metadata: dict[str, str] | None = None

    @property
    def reply_key(self) -> tuple[str, str, str]:
        """What records of the same reply have in common."""
        return self.evaluation_id, self.model_id, self.sample_id


def read(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a file, each with the scores of all its records.

    Raises:
        DatasetError: a line is no record.
    """
    scores = _scores(path)
    for _, record in json_lines(path, Instance):
        of_reply = scores.pop(record.reply_key, None)
        if of_reply is not None:
            yield from _replies(record, of_reply)


def _scores(path: Path) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the scores by reply and metric, whose records may be apart."""
    scores: dict[tuple[str, str, str], dict[str, float]] = {}
    for _, record in json_lines(path, Instance):
        of_reply = scores.setdefault(record.reply_key, {})
        name = record.evaluation_result_id or record.evaluation_name
        evaluation = record.evaluation
        if evaluation.score is not None:
            of_reply[name] = evaluation.score
        if evaluation.is_correct is not None:
            of_reply[f"{name}.is_correct"] = float(evaluation.is_correct)
    return scores


def _replies(record: Instance, scores: dict[str, float]) -> Iterator[ForeignReply]:
    dropped: dict[str, None] = {}
    prompt, texts = _conversation(record)
    if record.output is not None and record.output.reasoning_trace:
        dropped["reasoning"] = None
    references = record.input.reference
    if len(references) > 1:
        dropped["further right answers of a sample"] = None
    usage = record.token_usage
    messages = messages_from(prompt, dropped)
    for epoch, text in enumerate(texts or [None], 1):
        failed = text is None or bool(record.error)
        yield ForeignReply(
            item=record.sample_id,
            model=record.model_id,
            messages=messages,
            text=None if failed else text,
            error=error_word(record.error) if failed else "",
            epoch=epoch,
            # the usage is of all replies
            usage=_usage(usage) if usage is not None and len(texts) == 1 else None,
            latency_ms=record.performance.latency_ms if record.performance else None,
            target=references[0] if references else None,
            scores=scores,
            fields={
                "evaluation_name": record.evaluation_name,
                **flat_fields(record.metadata or {}, "metadata"),
            },
            dropped=tuple(dropped),
        )


def _conversation(
    record: Instance,
) -> tuple[str | Sequence[RoleMessage], Sequence[str]]:
    """Return prompt and replies; of several turns the last is the reply."""
    if record.messages:
        *before, last = record.messages
        is_reply = last.role == "assistant" and isinstance(last.content, str)
        return before if is_reply else record.messages, (
            [str(last.content)] if is_reply else []
        )
    output = record.output
    return record.input.formatted or record.input.raw, output.raw if output else []


def _usage(usage: TokenUsage) -> Usage:
    return Usage(
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        tokens_cached=usage.input_tokens_cache_read or 0,
        tokens_cache_write=usage.input_tokens_cache_write or 0,
        tokens_reasoning=usage.reasoning_tokens or 0,
    )
