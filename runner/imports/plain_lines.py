"""Reads plain JSON lines: a prompt, its reply and the model that gave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.errors import DatasetError
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    decoded,
    error_word,
    finish_of,
    flat_fields,
    item_of,
    json_lines,
    messages_from,
    score_number,
    seconds_of,
    text_of,
)
from runner.messages import Usage

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "item": ("id", "item", "key", "item_id", "sample_id", "custom_id"),
    "prompt": ("prompt", "messages", "input", "question", "query"),
    "reply": ("reply", "response", "output", "completion", "answer", "generation"),
    "model": ("model", "model_name", "model_id"),
    "target": ("target", "expected", "reference", "gold", "ground_truth"),
    "score": ("score", "scores"),
    "error": ("error",),
    "finish_reason": ("finish_reason", "stop_reason"),
    "usage": ("usage",),
    "time": ("created", "created_at", "timestamp", "time"),
    "latency_ms": ("latency_ms",),
    "cost_usd": ("cost_usd", "cost"),
}
"""Names of keys by what they hold; the first that an object has counts."""

USED: Final = frozenset(name for names in NAMES.values() for name in names)


class PlainUsage(msgspec.Struct, kw_only=True):
    """Tokens, under OpenAI's or Anthropic's names."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


def read(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a file of JSON lines.

    Without an id, equal prompts are one item.

    Raises:
        DatasetError: a line is no object, or has neither a reply nor an error.
    """
    for where, line in json_lines(path, dict[str, Any]):
        yield _reply(line, where)


def _reply(line: Mapping[str, Any], where: str) -> ForeignReply:
    values = {
        what: next((line[name] for name in names if line.get(name) is not None), None)
        for what, names in NAMES.items()
    }
    dropped: dict[str, None] = {}
    if values["reply"] is None and values["error"] is None:
        raise DatasetError(
            f"{where}: no reply (its key is one of {', '.join(NAMES['reply'])}; rename "
            "it, or write why the call failed as error)."
        )
    prompt = values["prompt"] or ""
    if not isinstance(prompt, str):
        prompt = _converted(prompt, list[RoleMessage], where)
    messages = messages_from(prompt, dropped) if prompt else ()
    item = values["item"]
    if item is None and not messages:
        raise DatasetError(
            f"{where}: neither an id nor a prompt (its key is one of "
            f"{', '.join((*NAMES['item'], *NAMES['prompt']))}; rename it)."
        )
    usage = values["usage"]
    text = None
    if values["reply"] is not None:
        text = text_of(_content(values["reply"]), dropped)
    return ForeignReply(
        item=item_of(messages) if item is None else str(item),
        model=str(values["model"] or ""),
        messages=messages,
        text=text,
        error="" if text is not None else error_word(values["error"]),
        finish_reason=finish_of(values["finish_reason"]),
        usage=None if usage is None else _usage(_converted(usage, PlainUsage, where)),
        created_s=seconds_of(values["time"]),
        latency_ms=score_number(values["latency_ms"]),
        cost_usd=score_number(values["cost_usd"]),
        target=None if values["target"] is None else str(values["target"]),
        scores=_scores(values["score"], dropped),
        fields=flat_fields({k: v for k, v in line.items() if k not in USED}, ""),
        dropped=tuple(dropped),
    )


def _content(reply: object) -> Any:  # noqa: ANN401 - of any endpoint
    """Return the content of a reply, which may be a message."""
    if isinstance(reply, dict) and "content" in reply:
        return reply["content"]
    return reply if isinstance(reply, str | list | dict) else str(reply)


def _converted(value: object, kind: Any, where: str) -> Any:  # noqa: ANN401 - of that kind
    return decoded(msgspec.json.encode(value), kind, where)


def _usage(usage: PlainUsage) -> Usage | None:
    tokens_in = usage.prompt_tokens or usage.input_tokens
    tokens_out = usage.completion_tokens or usage.output_tokens
    if tokens_in is None and tokens_out is None:
        return None
    return Usage(tokens_in=tokens_in or 0, tokens_out=tokens_out or 0)


def _scores(score: object, dropped: dict[str, None]) -> dict[str, float]:
    values = score if isinstance(score, dict) else {"score": score}
    scores: dict[str, float] = {}
    for name, value in values.items():
        number = score_number(value)
        if number is not None:
            scores[str(name)] = number
        elif value is not None:
            dropped["scores that are no number"] = None
    return scores
