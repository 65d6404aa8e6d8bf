"""Reads instance records of Every Eval Ever: JSON lines of its instance-level schema.

A record is one reply under one metric; records of a sample under several metrics are
one reply with several scores. `InstanceRecord` declares the fields that are read, under
the names of the schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from runner.formats.every_eval_ever import RIGHT, InstanceUsage
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    error_word,
    flat_fields,
    json_lines,
    messages_from,
)


class InstanceInput(msgspec.Struct, kw_only=True):
    """The prompt, before and after templates."""

    raw: str
    formatted: str | None = None
    reference: list[str] = []


class InstanceOutput(msgspec.Struct, kw_only=True):
    """The replies of a sample with a single turn."""

    raw: list[str] = []
    reasoning_trace: list[str] | None = None


class InstanceEvaluation(msgspec.Struct, kw_only=True):
    """The score under the record's metric."""

    score: float | None = None
    is_correct: bool | None = None


class InstanceTimes(msgspec.Struct, kw_only=True):
    """Times of the call."""

    latency_ms: float | None = None


class InstanceRecord(msgspec.Struct, kw_only=True):
    """A record."""

    model_id: str
    evaluation_name: str
    sample_id: str
    input: InstanceInput
    evaluation: InstanceEvaluation
    evaluation_id: str = ""
    evaluation_result_id: str = ""
    output: InstanceOutput | None = None
    messages: list[RoleMessage] | None = None
    token_usage: InstanceUsage | None = None
    performance: InstanceTimes | None = None
    error: str | None = None
    metadata: dict[str, str] | None = None

    @property
    def metric(self) -> str:
        """The name of the record's metric."""
        return self.evaluation_result_id or self.evaluation_name

    @property
    def replicate(self) -> int | None:
        """Number of the reply, from 1; None: the metadata have none."""
        number = (self.metadata or {}).get("replicate", "")
        return int(number) if number.isdecimal() else None

    @property
    def key(self) -> ReplyKey:
        """Key that the records of one reply share, whatever their metric."""
        return self.evaluation_id, self.model_id, self.sample_id, self.replicate


ReplyKey: TypeAlias = tuple[str, str, str, int | None]


@dataclass(slots=True)
class _Reply:
    """Content of the records of one reply."""

    scores: dict[str, float] = field(default_factory=dict)
    texts: set[int] = field(default_factory=set)  #: hashes of its texts


def read(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a file, each with the scores of all its records.

    The schema has no number of a replicate. Exports of siftlog have it in the metadata;
    else the second record of a sample under the same metric is of its second reply.

    Raises:
        DatasetError: a line is no record.
    """
    replies: dict[tuple[ReplyKey, int], _Reply] = {}
    for record, number in _numbered(path):
        reply = replies.setdefault((record.key, number), _Reply())
        if record.evaluation.score is not None:
            reply.scores[record.metric] = record.evaluation.score
        reply.texts.add(hash(tuple(record.output.raw if record.output else ())))
    for record, number in _numbered(path):
        first = replies.pop((record.key, number), None)
        if first is not None:
            yield from _replies(record, number, first)


def _numbered(path: Path) -> Iterator[tuple[InstanceRecord, int]]:
    """Yield the records with the number of their reply, from 1."""
    seen: Counter[tuple[ReplyKey, str]] = Counter()
    for _, record in json_lines(path, InstanceRecord):
        seen[record.key, record.metric] += 1
        yield record, seen[record.key, record.metric]


def _replies(
    record: InstanceRecord, number: int, of_reply: _Reply
) -> Iterator[ForeignReply]:
    dropped: dict[str, None] = {}
    prompt, texts = _conversation(record)
    if len(of_reply.texts) > 1:
        dropped["other texts of a reply under further metrics"] = None
    is_correct, score = record.evaluation.is_correct, record.evaluation.score
    if is_correct is not None and is_correct != (score == RIGHT):
        dropped["is_correct, where the score does not say so"] = None
    if record.output is not None and record.output.reasoning_trace:
        dropped["reasoning"] = None
    references = record.input.reference
    if len(references) > 1:
        dropped["further right answers of a sample"] = None
    usage = record.token_usage
    messages = messages_from(prompt, dropped)
    replies: Sequence[str | None] = texts or [None]
    for text in replies:
        failed = text is None or bool(record.error)
        yield ForeignReply(
            item=record.sample_id,
            model=record.model_id,
            messages=messages,
            text=None if failed else text,
            error=error_word(record.error) if failed else "",
            epoch=record.replicate or number,
            # the usage is of all replies
            usage=usage.usage if usage is not None and len(texts) == 1 else None,
            latency_ms=record.performance.latency_ms if record.performance else None,
            target=references[0] if references else None,
            scores=of_reply.scores,
            fields={
                "evaluation_name": record.evaluation_name,
                **flat_fields(record.metadata or {}, "metadata"),
            },
            dropped=tuple(dropped),
        )


def _conversation(
    record: InstanceRecord,
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
