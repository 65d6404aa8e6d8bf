"""Reads observations of Langfuse, as its exports and its API write them.

A file has an observation a line (exports to a blob store), or a list of them (exports
of its pages, and answers of the API under `data`). Names are in camelCase in the API
and the pages, and in snake_case in exports to a blob store. Generations are replies;
spans and events are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.imports.json_stream import ELEMENT, values_in
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    decoded,
    error_word,
    flat_fields,
    item_of,
    json_lines,
    messages_from,
    opened,
    score_number,
    seconds_of,
    text_of,
)
from runner.messages import Message, Usage

GENERATION: Final = "GENERATION"
"""Type of an observation that is a call of a model."""

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "trace": ("traceId", "trace_id"),
    "model": ("model", "provided_model_name", "providedModelName"),
    "usage": ("usageDetails", "usage_details", "usage"),
    "cost": ("totalCost", "total_cost", "calculatedTotalCost"),
    "latency": ("latency",),
    "time": ("endTime", "end_time", "startTime", "start_time"),
    "status": ("statusMessage", "status_message"),
}
"""Names of a field, by what it holds; the first that an observation has counts."""


def read_lines(path: Path) -> Iterator[ForeignReply]:
    """Yield the generations of a file with an observation a line.

    Raises:
        DatasetError: a line is no object.
    """
    for _, observation in json_lines(path, dict[str, Any]):
        yield from _replies(observation)


def read_list(path: Path) -> Iterator[ForeignReply]:
    """Yield the generations of a list of observations.

    Raises:
        DatasetError: the file is cut, or an element is no object.
    """
    yield from _elements(path, (ELEMENT,))


def read_answer(path: Path) -> Iterator[ForeignReply]:
    """Yield the generations of an answer of the API, whose `data` are a list.

    Raises:
        DatasetError: as `read_list`.
    """
    yield from _elements(path, ("data", ELEMENT))


def _elements(path: Path, at: tuple[str, ...]) -> Iterator[ForeignReply]:
    with opened(path) as file:
        for value in values_in(file, path.name, [at]):
            where = f"{path.name} line {value.line}"
            yield from _replies(decoded(value.raw, dict[str, Any], where))


def _replies(observation: Mapping[str, Any]) -> Iterator[ForeignReply]:
    if observation.get("type") != GENERATION:
        return
    values = {
        what: next(
            (observation[n] for n in names if observation.get(n) is not None), None
        )
        for what, names in NAMES.items()
    }
    dropped: dict[str, None] = {}
    messages = _prompt(_unpacked(observation.get("input")), dropped)
    has_failed = observation.get("level") == "ERROR"
    output = _unpacked(observation.get("output"))
    is_reply = output is not None and not has_failed
    latency = score_number(values["latency"])
    metadata = _unpacked(observation.get("metadata"))
    yield ForeignReply(
        item=item_of(messages) if messages else str(values["trace"]),
        model=str(values["model"] or ""),
        messages=messages,
        text=_text(output, dropped) if is_reply else None,
        error="" if is_reply else error_word(values["status"]),
        usage=_usage(values["usage"]),
        created_s=seconds_of(values["time"]),
        latency_ms=None if latency is None else latency * 1000,
        cost_usd=_number(values["cost"]),
        fields={
            "id": str(observation.get("id", "")),
            "trace": str(values["trace"] or ""),
            "name": str(observation.get("name") or ""),
            **flat_fields(metadata, "metadata"),
        },
        dropped=tuple(dropped),
    )


def _unpacked(value: object) -> Any:  # noqa: ANN401 - of any shape
    """Return a value that exports write as JSON in a text; a plain text as it is."""
    if isinstance(value, str) and value[:1] in {"{", "[", '"'}:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _prompt(value: object, dropped: dict[str, None]) -> tuple[Message, ...]:
    """Return the messages of an input: a list, an object with one, or a text."""
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
    if isinstance(value, list):
        try:
            chat = msgspec.convert(value, list[RoleMessage])
        except msgspec.ValidationError:
            chat = [RoleMessage(role="user", content=json.dumps(value))]
        return messages_from(chat, dropped)
    if value is None:
        return ()
    text = value if isinstance(value, str) else json.dumps(value)
    return messages_from(text, dropped)


def _text(output: object, dropped: dict[str, None]) -> str:
    """Return the text of an output: a message, its content, or a text."""
    if isinstance(output, list) and len(output) == 1:
        output = output[0]
    if isinstance(output, dict) and "content" in output:
        if output.get("tool_calls"):
            dropped["tool calls"] = None
        return text_of(output["content"], dropped)
    return output if isinstance(output, str) else json.dumps(output)


def _number(value: object) -> float | None:
    """Return a number, which an export may write as a text."""
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return None


INPUT_PARTS: Final = ("input", "input_cached_tokens", "input_cache_read")
"""Tokens of a prompt: Langfuse counts cached ones apart from `input`."""


def _usage(details: object) -> Usage | None:
    details = _unpacked(details)
    if not isinstance(details, dict):
        return None
    counts = {name: int(_number(value) or 0) for name, value in details.items()}
    if not counts.keys() & {"input", "output"}:
        return None
    cached = sum(counts.get(name, 0) for name in INPUT_PARTS[1:])
    reasoning = counts.get("output_reasoning_tokens", 0)
    return Usage(
        tokens_in=counts.get("input", 0) + cached,
        tokens_out=counts.get("output", 0) + reasoning,
        tokens_cached=cached,
        tokens_reasoning=reasoning,
    )
