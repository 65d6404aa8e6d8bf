"""Reads logs of inspect_ai: `.eval` archives and `.json` files.

A log has a header (task, model, time) and samples. In an archive each sample is a JSON
file of its own, compressed by zstandard or deflate; in a JSON log they are a list.
`InspectHeader` and `InspectSample` declare the fields that are read of both, under
inspect's names: those of `EvalLog` and `EvalSample` in `inspect_ai.log`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec
import zstandard

from runner.errors import DatasetError
from runner.formats.inspect_log import HEADER, LETTERS, SAMPLES, START, InspectUsage
from runner.imports.json_stream import ELEMENT, values_in
from runner.imports.records import (
    Content,
    ForeignReply,
    RoleMessage,
    decoded,
    error_word,
    finish_of,
    flat_fields,
    messages_from,
    opened,
    score_number,
    seconds_of,
    text_of,
)
from store.served_by import ServedBy

# The archive

ZIP_ZSTANDARD: Final = 93
"""Compression method of zip for zstandard, which new logs have."""

ATTACHMENT: Final = "attachment://"
"""Begins a text that is stored once, in `attachments`, under what follows."""


class InspectEval(msgspec.Struct, kw_only=True):
    """Task, model and data set of the evaluation."""

    model: str
    task: str = ""
    created: str | None = None


class InspectHeader(msgspec.Struct, kw_only=True):
    """The header of a log."""

    eval: InspectEval


class InspectChoice(msgspec.Struct, kw_only=True):
    """A reply of the model."""

    message: RoleMessage
    stop_reason: str = "stop"


class InspectOutput(msgspec.Struct, kw_only=True):
    """The model's last output."""

    model: str = ""
    choices: list[InspectChoice] = []
    completion: str | None = None
    usage: InspectUsage | None = None
    time: float | None = None  #: seconds
    error: str | None = None
    response_id: str | None = None


class InspectScore(msgspec.Struct, kw_only=True):
    """A score of a sample."""

    value: Any = None


class InspectError(msgspec.Struct, kw_only=True):
    """Error that ended a sample early."""

    message: str = ""


class InspectSample(msgspec.Struct, kw_only=True):
    """A sample with its conversation, output and scores."""

    id: int | str
    epoch: int = 1
    input: str | list[RoleMessage] = ""
    choices: list[str] | None = None
    target: str | list[str] = ""
    messages: list[RoleMessage] = []
    output: InspectOutput = msgspec.field(default_factory=InspectOutput)
    scores: dict[str, InspectScore] | None = None
    score: InspectScore | None = None  #: of old logs, with one scorer
    metadata: dict[str, Any] = {}
    model_usage: dict[str, InspectUsage] = {}
    completed_at: str | None = None
    error: InspectError | None = None
    limit: Any = None
    attachments: dict[str, str] = {}


def read_archive(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a `.eval` archive, in the order of their samples.

    Raises:
        DatasetError: the archive or a member is damaged, or it has no samples.
    """
    try:
        with opened(path) as file, ZipFile(file) as archive:
            # a member that was written again counts once, as it was last
            members = {member.filename: member for member in archive.infolist()}
            first = members.get(HEADER, members.get(START))
            if first is None:
                raise DatasetError(
                    f"{path.name}: no log of inspect, it has neither {HEADER} nor "
                    f"{START} (name a .eval file of inspect_ai)."
                )
            where = f"{path.name}, {first.filename}"
            header = decoded(
                _member(file, archive, first, path.name), InspectHeader, where
            )
            for name, member in members.items():
                if name.startswith(SAMPLES) and name.endswith(".json"):
                    raw = _member(file, archive, member, path.name)
                    sample = decoded(raw, InspectSample, f"{path.name}, {name}")
                    yield _reply(header.eval, sample)
    except _BROKEN as error:
        raise DatasetError(
            f"{path.name}: the archive is cut or damaged, {str(error).lower()} (copy "
            "it again from where it was written)."
        ) from error


_BROKEN: Final = (
    *(BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, struct.error),
)
"""Errors that zipfile raises for damaged archives."""

_LOCAL: Final = struct.Struct("<4s22xHH")
"""Head of a member: signature, and the lengths of its name and of its extra field."""


def _member(file: BinaryIO, archive: ZipFile, member: ZipInfo, name: str) -> bytes:
    """Return the content of a member, checked by its checksum."""
    if member.compress_type in {ZIP_STORED, ZIP_DEFLATED}:
        return archive.read(member)
    if member.compress_type != ZIP_ZSTANDARD:
        raise DatasetError(
            f"{name}, {member.filename}: compressed by method {member.compress_type}, "
            "which cannot be read (write it again: inspect log convert --to eval)."
        )
    # zipfile of Python 3.11 does not know zstandard
    file.seek(member.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
        raise _damaged(name, member, "its head is missing")
    _, of_name, of_extra = _LOCAL.unpack(head)
    file.seek(of_name + of_extra, 1)
    packed = file.read(member.compress_size)
    try:
        with zstandard.ZstdDecompressor().stream_reader(
            packed, read_across_frames=True
        ) as reader:
            content = reader.read(member.file_size)
    except zstandard.ZstdError as error:
        raise _damaged(name, member, error) from error
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise _damaged(name, member, "its checksum differs")
    return content


def _damaged(name: str, member: ZipInfo, problem: object) -> DatasetError:
    return DatasetError(
        f"{name}, {member.filename}: the archive is damaged, {problem} (copy it again "
        "from where it was written)."
    )


_EVAL: Final = ("eval",)
_SAMPLES: Final = ("samples", ELEMENT)


def read_json(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a JSON log, in file order.

    Raises:
        DatasetError: the file is cut, a value is off, or its samples come before its
            header.
    """
    header: InspectEval | None = None
    with opened(path) as file:
        for value in values_in(file, path.name, [_EVAL, _SAMPLES]):
            where = f"{path.name} line {value.line}"
            if value.path == _EVAL:
                header = decoded(value.raw, InspectEval, where)
            elif header is None:
                raise DatasetError(
                    f"{where}: a sample before the header eval, as inspect does not "
                    "write it (convert the log: inspect log convert)."
                )
            else:
                yield _reply(header, decoded(value.raw, InspectSample, where))


def _reply(header: InspectEval, sample: InspectSample) -> ForeignReply:
    dropped: dict[str, None] = {}
    output = sample.output
    choice = output.choices[0] if output.choices else None
    prompt = _prompt(sample, choice)
    for message in prompt:
        message.content = _resolved(message.content, sample.attachments)
    text = None
    if choice is not None and sample.error is None:
        content = _resolved(choice.message.content, sample.attachments)
        text = text_of(content, dropped)
        if choice.message.tool_calls:
            dropped["tool calls"] = None
    if len(output.choices) > 1:
        dropped["further choices of a reply"] = None
    if sample.limit is not None:
        dropped["limits that ended a sample"] = None
    total = sample.model_usage.get(header.model)
    if total is not None and output.usage is not None and total != output.usage:
        dropped["usage of earlier calls of a sample"] = None
    usage = output.usage
    served = output.model if output.model not in {"", header.model} else None
    target = sample.target
    return ForeignReply(
        item=str(sample.id),
        model=header.model,
        messages=messages_from(prompt, dropped),
        text=text,
        error="" if text is not None else _error(sample),
        epoch=sample.epoch,
        finish_reason=finish_of(choice.stop_reason if choice else None),
        usage=None if usage is None else usage.usage,
        served=ServedBy(model=served, request_id=output.response_id)
        if served or output.response_id
        else None,
        created_s=seconds_of(sample.completed_at or header.created),
        latency_ms=None if output.time is None else output.time * 1000,
        cost_usd=None if usage is None else usage.total_cost,
        target=_one(target, dropped) if target else None,
        scores=_scores(sample, dropped),
        fields={
            "task": header.task,
            **flat_fields(sample.metadata, "metadata"),
        },
        dropped=tuple(dropped),
    )


def _prompt(sample: InspectSample, choice: InspectChoice | None) -> list[RoleMessage]:
    """Return the messages before the reply; the input if there was no call."""
    messages = sample.messages
    if choice is not None and messages and messages[-1].role == "assistant":
        messages = messages[:-1]
    if messages:
        return messages
    if isinstance(sample.input, str):
        return [RoleMessage(role="user", content=sample.input)]
    return sample.input


def _resolved(content: Content, attachments: Mapping[str, str]) -> Content:
    """Return a content with attached texts in their places."""
    if isinstance(content, str):
        name = content.removeprefix(ATTACHMENT)
        return attachments.get(name, content) if name != content else content
    if isinstance(content, list):
        return [
            {key: _resolved(value, attachments) for key, value in part.items()}
            if isinstance(part, dict)
            else part
            for part in content
        ]
    return content


def _error(sample: InspectSample) -> str:
    if sample.error is not None:
        return error_word(sample.error.message)
    return error_word(sample.output.error)


def _one(target: str | list[str], dropped: dict[str, None]) -> str:
    if isinstance(target, str):
        return target
    if len(target) > 1:
        dropped["further right answers of a sample"] = None
    return target[0]


def _scores(sample: InspectSample, dropped: dict[str, None]) -> dict[str, float]:
    """Return the scores that are numbers, by inspect's values of its letters."""
    scores: dict[str, float] = {}
    values = dict(sample.scores or ({"score": sample.score} if sample.score else {}))
    for name, score in values.items():
        parts = score.value if isinstance(score.value, dict) else {"": score.value}
        for part, value in parts.items():
            number = LETTERS.get(value) if isinstance(value, str) else None
            number = score_number(value) if number is None else number
            if number is None:
                dropped["scores that are no number"] = None
            else:
                scores[f"{name}.{part}".rstrip(".")] = number
    if values:
        dropped["explanations of scores"] = None
    return scores
