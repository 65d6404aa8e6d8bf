"""How an endpoint writes usage: which fields, and where it counts reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from runner.reply import Usage

ReasoningPlace = Literal[
    "inside the output", "beside the output", "only in the total", "none counted"
]


def usage_fields(replies: tuple[Any, ...]) -> tuple[str, ...]:
    """The fields under `usage`, as paths."""
    fields: dict[str, None] = {}
    for reply in replies:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        for name, value in usage.items() if isinstance(usage, dict) else ():
            inner = value if isinstance(value, dict) else {}
            fields |= dict.fromkeys([f"{name}.{each}" for each in inner] or [name])
    return tuple(fields)


def _number_in(usage: Mapping[str, Any], *paths: str) -> int | None:
    for path in paths:
        value: Any = usage
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def reasoning_place(replies: tuple[Any, ...], counted: list[Usage]) -> ReasoningPlace:
    """Where the usage of replies counts tokens of reasoning."""
    for reply in replies:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        if not isinstance(usage, dict):
            continue
        prompt = _number_in(usage, "prompt_tokens", "input_tokens")
        output = _number_in(usage, "completion_tokens", "output_tokens")
        total = _number_in(usage, "total_tokens")
        reasoning = _number_in(
            usage,
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "reasoning_tokens",
        )
        if prompt is None or output is None:
            continue
        rest = None if total is None else total - prompt - output
        if reasoning and (rest == reasoning or reasoning > output):
            return "beside the output"
        if not reasoning and rest is not None and rest > 0:
            return "only in the total"
        if reasoning:
            return "inside the output"
    return (
        "inside the output"
        if any(u.tokens_reasoning for u in counted)
        else "none counted"
    )
