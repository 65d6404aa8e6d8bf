"""Computes the billed tokens of a reply from an endpoint's counts; never raises.

Endpoints of one form count in different ways. `USAGE_FORMS` has a row for each, and one
formula evaluates them all:

- input is the prompt's count, plus what the cache read and wrote where the form counts
  those apart, and never less than what the cache read and wrote;
- output is the largest of the completion, of completion and reasoning if these are
  separate, and of the total less the prompt.

Counts come as integers, floats or strings, and any may be null or missing. A count that
cannot be read is treated as missing. If input or output is unknown, the whole usage is
unknown, because a guess would be summed like a count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from runner.messages import Usage

MOST_TOKENS: Final = 10**9
"""More than any call has; the sum of many still fits in a database integer."""

MOST_USD: Final = 1e6
"""More than any call costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageForm:
    """Fields in which one family of endpoints reports counts.

    Fields are dotted paths. The first readable one counts.
    """

    name: str
    marks: tuple[str, ...] = ()  #: any of these selects this form; empty: always
    without: str | None = None  #: unless this is present
    prompt: tuple[str, ...]
    completion: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()  #: prompt tokens not in `cached`
    written: tuple[str, ...] = ()  #: tokens written to the cache, any lifetime
    written_5m: tuple[str, ...] = ()
    written_1h: tuple[str, ...] = ()
    is_cache_apart: bool = False  #: the prompt's count excludes the cache


_IN: Final = "input_tokens_details"
_OUT: Final = "output_tokens_details"
_PROMPT: Final = "prompt_tokens_details"
_COMPLETION: Final = "completion_tokens_details"
_LIFETIMES: Final = "cache_creation_token_details"

USAGE_FORMS: Final = (
    UsageForm(
        name="anthropic",
        marks=(
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cache_creation",
        ),
        without="prompt_tokens",
        prompt=("input_tokens",),
        completion=("output_tokens",),
        reasoning=(f"{_OUT}.reasoning_tokens", f"{_OUT}.thinking_tokens"),
        cached=("cache_read_input_tokens",),
        written=("cache_creation_input_tokens",),
        written_5m=("cache_creation.ephemeral_5m_input_tokens",),
        written_1h=("cache_creation.ephemeral_1h_input_tokens",),
        is_cache_apart=True,
    ),
    UsageForm(
        name="deepseek",
        marks=("prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
        prompt=("prompt_tokens",),
        completion=("completion_tokens",),
        reasoning=(f"{_COMPLETION}.reasoning_tokens",),
        cached=("prompt_cache_hit_tokens",),
        missed=("prompt_cache_miss_tokens",),
    ),
    UsageForm(
        name="responses",
        marks=("input_tokens", "output_tokens"),
        without="prompt_tokens",
        prompt=("input_tokens",),
        completion=("output_tokens",),
        reasoning=(f"{_OUT}.reasoning_tokens",),
        cached=(f"{_IN}.cached_tokens",),
        written=(f"{_IN}.cache_write_tokens", f"{_IN}.cache_creation_tokens"),
    ),
    # OpenAI, vLLM, Azure, Mistral, Ollama, llama.cpp; litellm, also of Anthropic; xAI
    # and Gemini, whose total includes reasoning outside the completion; OpenRouter
    UsageForm(
        name="chat",
        prompt=("prompt_tokens",),
        completion=("completion_tokens",),
        reasoning=(f"{_COMPLETION}.reasoning_tokens", "reasoning_tokens"),
        cached=(f"{_PROMPT}.cached_tokens", "cache_read_input_tokens"),
        written=(
            f"{_PROMPT}.cache_write_tokens",
            f"{_PROMPT}.cache_creation_tokens",
            "cache_creation_input_tokens",
        ),
        written_5m=(f"{_PROMPT}.{_LIFETIMES}.ephemeral_5m_input_tokens",),
        written_1h=(f"{_PROMPT}.{_LIFETIMES}.ephemeral_1h_input_tokens",),
    ),
)
"""The first matching row decides; the last one always matches."""

_PATHS: Final = {
    field: (field.split(".")[0], tuple(field.split(".")[1:]))
    for form in USAGE_FORMS
    for fields in (
        form.prompt,
        form.completion,
        form.reasoning,
        form.cached,
        form.missed,
        form.written,
        form.written_5m,
        form.written_1h,
    )
    for field in fields
}
"""Name in the usage, and names below it, by field."""


def usage_in(counted: object, *, has_output: bool = True) -> Usage | None:
    """Return the billed tokens in *counted*; None if they are unknown.

    Args:
        counted: the value of `usage` in a body, of any type.
        has_output: the reply is generated text. For vectors and scores, all counted
            tokens are input.
    """
    if not isinstance(counted, dict):
        return None
    form = _form_of(counted)
    total = count_of(counted.get("total_tokens"))
    cached = _first(counted, form.cached) or 0
    written_1h = _first(counted, form.written_1h) or 0
    lifetimes = (_first(counted, form.written_5m) or 0) + written_1h
    written = max(_first(counted, form.written) or 0, lifetimes)
    prompt = _first(counted, form.prompt)
    if prompt is None:
        missed = _first(counted, form.missed)
        prompt = (
            total if not has_output else None if missed is None else missed + cached
        )
    elif form.is_cache_apart:
        prompt += cached + written
    if prompt is None:
        return None
    tokens_out, reasoning, doubt, exceeds_completion = 0, 0, False, False
    if has_output:
        completion = _first(counted, form.completion)
        reasoning = _first(counted, form.reasoning) or 0
        # a total of this form may exclude the cache and is then useless
        rest = None if total is None or total < prompt else total - prompt
        if completion is None and rest is None:
            return None
        stated_output = (completion or 0) + (
            reasoning if reasoning > (completion or 0) else 0
        )
        tokens_out = max(stated_output, rest or 0)
        exceeds_completion = completion is not None and tokens_out > completion
        sum_of_parts = prompt + stated_output
        if form.is_cache_apart:
            sum_of_parts -= cached + written
        doubt = total is not None and total < sum_of_parts
    tokens_in = max(prompt, cached + written)
    if max(tokens_in, tokens_out) > MOST_TOKENS:
        return None
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=cached,
        tokens_cache_write=written,
        tokens_cache_write_1h=written_1h,
        tokens_reasoning=min(reasoning, tokens_out),
        charged_usd=_charge(counted.get("cost")),
        is_doubtful=doubt,
        exceeds_completion=exceeds_completion,
    )


def count_of(value: object) -> int | None:
    """Return a count of tokens, rounded up; None if it is not a valid count."""
    if type(value) is int:  # nearly always, and ten times as fast
        return value if 0 <= value <= MOST_TOKENS else None
    number = _number(value)
    if number is None or not 0 <= number <= MOST_TOKENS:
        return None
    return math.ceil(number)


def _charge(value: object) -> float | None:
    usd = _number(value)
    return usd if usd is not None and 0 <= usd <= MOST_USD else None


def _number(value: object) -> float | None:
    """Return a finite number from an int, float or string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _form_of(counted: dict[str, Any]) -> UsageForm:
    *special, usual = USAGE_FORMS
    for form in special:
        if not counted.keys().isdisjoint(form.marks) and form.without not in counted:
            return form
    return usual


def _first(counted: dict[str, Any], fields: tuple[str, ...]) -> int | None:
    """Return the first of *fields* that contains a count."""
    for field in fields:
        name, below = _PATHS[field]
        node: Any = counted.get(name)
        if node is None:
            continue
        for name in below:
            node = node.get(name) if type(node) is dict else None
        if node is not None:
            count = count_of(node)
            if count is not None:
                return count
    return None
