"""Reads results of promptfoo: `promptfoo eval --output FILE.json` or `.jsonl`.

A JSON file has its results in `results.results`, a JSON lines file one a line; a result
is a reply of one provider to one prompt with the variables of one test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.imports.json_stream import ELEMENT, values_in
from runner.imports.records import (
    ForeignReply,
    RoleMessage,
    decoded,
    error_word,
    finish_of,
    flat_fields,
    json_lines,
    messages_from,
    opened,
    score_number,
    seconds_of,
)
from runner.messages import Usage

ERROR: Final = 2
"""`failureReason` of a call that failed; 1 is of an assertion that did."""

RIGHT: Final = ("equals", "contains", "icontains")
"""Assertions whose value is a right answer."""


class PromptfooProvider(msgspec.Struct, kw_only=True):
    """A model, with its parameters."""

    id: str = ""
    label: str | None = None


class PromptfooPrompt(msgspec.Struct, kw_only=True):
    """The prompt as it was sent: text, or messages as JSON."""

    raw: str = ""
    label: str = ""


class PromptfooUsage(msgspec.Struct, kw_only=True):
    """Tokens of a reply; of a cached one, they are all `cached`."""

    prompt: int | None = None
    completion: int | None = None


class PromptfooResponse(msgspec.Struct, kw_only=True):
    """Response of the provider."""

    output: Any = None
    error: str | None = None
    tokenUsage: PromptfooUsage | None = None  # noqa: N815 - promptfoo's name
    finishReason: str | None = None  # noqa: N815 - as above


class PromptfooTest(msgspec.Struct, kw_only=True):
    """A test: its assertions, among them the right answer."""

    assertions: list[Any] = msgspec.field(name="assert", default_factory=list)


class PromptfooResult(msgspec.Struct, kw_only=True):
    """A result."""

    testIdx: int = 0  # noqa: N815 - as above
    promptIdx: int = 0  # noqa: N815 - as above
    provider: PromptfooProvider = msgspec.field(default_factory=PromptfooProvider)
    prompt: PromptfooPrompt = msgspec.field(default_factory=PromptfooPrompt)
    vars: dict[str, Any] = {}
    response: PromptfooResponse | None = None
    error: str | None = None
    failureReason: int = 0  # noqa: N815 - as above
    success: bool = False
    score: float | None = None
    namedScores: dict[str, Any] = {}  # noqa: N815 - as above
    latencyMs: float | None = None  # noqa: N815 - as above
    cost: float | None = None
    testCase: PromptfooTest = msgspec.field(default_factory=PromptfooTest)  # noqa: N815 - as above
    gradingResult: Any = None  # noqa: N815 - as above


_TIME: Final = ("results", "timestamp")
_RESULTS: Final = ("results", "results", ELEMENT)


def read_json(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a JSON file, in file order.

    Raises:
        DatasetError: the file is cut, or a value is off.
    """
    created: int | None = None
    with opened(path) as file:
        for value in values_in(file, path.name, [_TIME, _RESULTS]):
            where = f"{path.name} line {value.line}"
            if value.path == _TIME:
                created = seconds_of(decoded(value.raw, str, where))
            else:
                yield _reply(decoded(value.raw, PromptfooResult, where), created)


def read_lines(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a JSON lines file.

    Raises:
        DatasetError: a line is no result.
    """
    for _, result in json_lines(path, PromptfooResult):
        yield _reply(result, None)


def _reply(result: PromptfooResult, created_s: int | None) -> ForeignReply:
    dropped: dict[str, None] = {}
    response = result.response or PromptfooResponse()
    error = response.error or (result.error if result.failureReason == ERROR else None)
    output = response.output
    text = None
    if output is not None and not error:
        text = output if isinstance(output, str) else json.dumps(output)
    usage = response.tokenUsage
    scores = {name: score_number(value) for name, value in result.namedScores.items()}
    scores |= {"score": score_number(result.score), "pass": float(result.success)}
    if result.gradingResult:
        dropped["explanations of scores"] = None
    return ForeignReply(
        item=f"test-{result.testIdx}"
        + (f"/prompt-{result.promptIdx}" if result.promptIdx else ""),
        model=result.provider.label or result.provider.id,
        messages=messages_from(_prompt(result.prompt.raw), dropped)
        if result.prompt.raw
        else (),
        text=text,
        error="" if text is not None else error_word(error),
        finish_reason=finish_of(response.finishReason),
        usage=None
        if usage is None or usage.prompt is None or usage.completion is None
        else Usage(tokens_in=usage.prompt, tokens_out=usage.completion),
        created_s=created_s,
        latency_ms=result.latencyMs,
        cost_usd=result.cost,
        target=_target(result.testCase),
        # a call that failed has a score of 0, which no assertion gave
        scores={name: value for name, value in scores.items() if value is not None}
        if text is not None
        else {},
        fields=flat_fields(result.vars, "vars"),
        dropped=tuple(dropped),
    )


def _prompt(raw: str) -> str | list[RoleMessage]:
    """Return the messages of a prompt that is a list of them, or its text."""
    if not raw.lstrip().startswith("["):
        return raw
    try:
        return msgspec.json.decode(raw, type=list[RoleMessage])
    except msgspec.DecodeError:
        return raw


def _target(test: PromptfooTest) -> str | None:
    for assertion in test.assertions:
        if isinstance(assertion, dict) and assertion.get("type") in RIGHT:
            value = assertion.get("value")
            return value if isinstance(value, str) else None
    return None
