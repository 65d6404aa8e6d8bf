"""Rules by which dialects refuse parameters, in the providers' own words; pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from runner.request import ChatRequest
from runner.simulate.asked import Asked
from runner.simulate.dialect import CHAT, JSON, MESSAGES, TEXT, Rule, Trouble, Words

ANTHROPIC_FIELDS: Final = frozenset(
    (
        *("cache_control", "container", "diagnostics", "inference_geo"),
        *("max_tokens", "messages", "metadata", "model", "output_config"),
        *("service_tier", "speed", "stop_sequences", "stream", "system"),
        *("temperature", "thinking", "tool_choice", "tools", "top_k", "top_p"),
        *("user_profile_id", "workspace_id"),
    )
)
"""Those of a message (types of the anthropic package, and what older models took)."""

MISTRAL_FIELDS: Final = frozenset(
    (
        *("frequency_penalty", "guardrails", "max_tokens", "messages"),
        *("metadata", "model", "n", "parallel_tool_calls", "prediction"),
        *("presence_penalty", "prompt_mode", "random_seed", "reasoning_effort"),
        *("response_format", "safe_prompt", "stop", "stream", "temperature"),
        *("tool_choice", "tools", "top_p"),
    )
)
"""Those of a chat (Mistral's API reference)."""


def only_default(name: str, default: float = 1) -> Rule:
    """OpenAI's reasoning models: any value but the default is unsupported."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        value = asked.fields.get(name)
        if value is None or value == default:
            return None
        return Trouble(
            status=400,
            message=f"Unsupported value: '{name}' does not support {value} with this "
            f"model. Only the default ({default}) value is supported.",
            param=name,
            code="unsupported_value",
        )

    return rule


def unsupported(name: str, instead: str = "") -> Rule:
    """OpenAI's reasoning models: the parameter itself is unsupported."""
    hint = f" Use '{instead}' instead." if instead else ""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        if asked.fields.get(name) is None:
            return None
        return Trouble(
            status=400,
            message=f"Unsupported parameter: '{name}' is not supported with this "
            f"model.{hint}",
            param=name,
            code="unsupported_parameter",
        )

    return rule


def extra_forbidden(known: Collection[str]) -> Rule:
    """Mistral: every field that it does not know, in one error of its validator."""

    def rule(asked: Asked, path: str) -> Trouble | None:
        if path != CHAT:
            return None
        found = [
            {
                "type": "extra_forbidden",
                "loc": ["body", name],
                "msg": "Extra inputs are not permitted",
                "input": value,
            }
            for name, value in asked.fields.items()
            if name not in known
        ]
        if not found:
            return None
        body: dict[str, Any] = {
            "object": "error",
            "message": {"detail": found},
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        return Trouble(status=422, message="", body=body)

    return rule


def unknown_field(known: Collection[str]) -> Rule:
    """Anthropic: the first field that it does not know."""

    def rule(asked: Asked, path: str) -> Trouble | None:
        if path != MESSAGES:
            return None  # its OpenAI form ignores what it does not know
        name = next((name for name in asked.fields if name not in known), None)
        if name is None:
            return None
        return Trouble(status=400, message=f"{name}: Extra inputs are not permitted")

    return rule


def temperature_range(low: float, high: float, message: str, **words: Any) -> Rule:
    """The temperature has to lie above *low* and not above *high*."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        value = asked.fields.get("temperature")
        if value is None or low < value <= high:
            return None
        return Trouble(message=message, **{"status": 400, **words})

    return rule


def no_schema(status: int, message: str, *, media: str = JSON, **words: Any) -> Rule:
    """Structured output by a JSON schema is refused."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        form = asked.fields.get("response_format")
        if not isinstance(form, dict) or form.get("type") != "json_schema":
            return None
        body = message if media == TEXT else None
        return Trouble(status=status, message=message, media=media, body=body, **words)

    return rule


def no_system_role(words: Words) -> Rule:
    """Templates like Gemma's, by the model's name: there is no system role."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        request = asked.request
        if "gemma" not in asked.model.lower() or not isinstance(request, ChatRequest):
            return None
        if all(message.role != "system" for message in request.messages):
            return None
        return Trouble(
            status=words.status,
            message=words.message.format(model=asked.model),
            type=words.type,
            code=words.code,
        )

    return rule


def one_choice(message: str, **words: Any) -> Rule:
    """More than one answer is refused."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        if asked.choices == 1:
            return None
        return Trouble(message=message, **{"status": 400, "param": "n", **words})

    return rule


def penalties(names: Collection[str]) -> Rule:
    """XAI's reasoning models: arguments that they do not take."""

    def rule(asked: Asked, _path: str) -> Trouble | None:
        name = next((each for each in names if asked.fields.get(each)), None)
        if name is None:
            return None
        return Trouble(
            status=400,
            message=f"Argument not supported on this model: {name}",
            type="Client specified an invalid argument",
        )

    return rule


_NEW_CLAUDE: Final = re.compile(r"claude-(\w+-)*(4-[7-9]|[5-9])\b")


def sampling_is_deprecated(asked: Asked, _path: str) -> Trouble | None:
    """Anthropic's models since Opus 4.7: a default temperature, no top_p, no top_k."""
    if _NEW_CLAUDE.search(asked.model) is None:
        return None
    refused = {"temperature": (None, 1), "top_p": (None,), "top_k": (None,)}
    for name, allowed in refused.items():
        if asked.fields.get(name) not in allowed:
            return Trouble(
                status=400, message=f"`{name}` is deprecated for this model."
            )
    return None


def thinking_needs_room(asked: Asked, _path: str) -> Trouble | None:
    """Anthropic: thinking wants the default temperature, and room below the limit."""
    thinking = asked.fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens", 0)
    if asked.fields.get("temperature", 1) != 1:
        return Trouble(
            status=400,
            message="`temperature` may only be set to 1 when thinking is enabled.",
        )
    if budget >= (asked.cap(("max_tokens",)) or 0):
        return Trouble(
            status=400,
            message="`max_tokens` must be greater than `thinking.budget_tokens`.",
        )
    return None
