"""Forms of usage files, as tables of names: a further provider is a further row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COUNTS: Final = (
    *("tokens_in", "tokens_out", "tokens_cached"),
    *("tokens_cache_write", "tokens_cache_write_1h", "tokens_reasoning"),
)
"""Fields of `usage_file.UsageLine` and of `runner.messages.Usage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFileForm:
    """The form of a file: where each field of a line is.

    A field has several names, of which the first that has a value counts; `a.b` is
    field `b` of object `a`.
    """

    name: str
    marks: tuple[str, ...]  #: fields that every line has, and lines of no earlier form
    fields: Mapping[str, tuple[str, ...]]
    is_sum: bool = False
    sums_prompt: bool = False  #: the prompt's parts are stated, not its sum
    cost_per_usd: int = 1  #: 100: amounts are in cents


FORMS: Final = (
    UsageFileForm(
        name="litellm",
        marks=("spend", "startTime", "request_id"),
        fields={
            "ids": ("request_id", "litellm_call_id", "metadata.litellm_call_id"),
            "start": ("startTime",),
            "end": ("endTime",),
            "model": ("model",),
            "tokens_in": ("prompt_tokens",),
            "tokens_out": ("completion_tokens",),
            "tokens_cached": (
                "metadata.additional_usage_values.cache_read_input_tokens",
                "metadata.usage_object.prompt_tokens_details.cached_tokens",
            ),
            "tokens_cache_write": (
                "metadata.additional_usage_values.cache_creation_input_tokens",
                "metadata.usage_object.cache_creation_input_tokens",
            ),
            "tokens_reasoning": (
                "metadata.usage_object.completion_tokens_details.reasoning_tokens",
            ),
            "cost": ("spend",),
            "tier": ("metadata.cost_breakdown.service_tier",),
        },
    ),
    UsageFileForm(
        name="openrouter",
        marks=("generation_id", "cost_total"),
        fields={
            "ids": ("generation_id",),
            "start": ("created_at",),
            "model": ("model_permaslug",),
            "tokens_in": ("tokens_prompt",),
            "tokens_out": ("tokens_completion",),
            "tokens_cached": ("tokens_cached",),
            "tokens_reasoning": ("tokens_reasoning",),
            "cost": ("cost_total",),
        },
    ),
    UsageFileForm(
        name="openrouter-generation",
        marks=("native_tokens_prompt", "total_cost"),
        fields={
            "ids": ("id", "upstream_id"),
            "start": ("created_at",),
            "model": ("model",),
            "tokens_in": ("native_tokens_prompt",),
            "tokens_out": ("native_tokens_completion",),
            "tokens_cached": ("native_tokens_cached",),
            "tokens_reasoning": ("native_tokens_reasoning",),
            "cost": ("total_cost",),
        },
    ),
    UsageFileForm(
        name="openrouter-activity",
        marks=("date", "usage", "requests"),
        is_sum=True,
        fields={
            "start": ("date",),
            "model": ("model_permaslug", "model"),
            "calls": ("requests",),
            "tokens_in": ("prompt_tokens",),
            "tokens_out": ("completion_tokens",),
            "tokens_reasoning": ("reasoning_tokens",),
            "cost": ("usage",),
        },
    ),
    UsageFileForm(
        name="openai-usage",
        marks=("start_time", "input_tokens", "num_model_requests"),
        is_sum=True,
        fields={
            "start": ("start_time",),
            "end": ("end_time",),
            "model": ("model",),
            "calls": ("num_model_requests",),
            "tokens_in": ("input_tokens",),
            "tokens_out": ("output_tokens",),
            "tokens_cached": ("input_cached_tokens",),
            "tokens_cache_write": ("input_cache_write_tokens",),
            "tier": ("service_tier",),
            "batch": ("batch",),
        },
    ),
    UsageFileForm(
        name="openai-costs",
        marks=("start_time", "amount.value"),
        is_sum=True,
        fields={
            "start": ("start_time",),
            "end": ("end_time",),
            "cost": ("amount.value",),
        },
    ),
    UsageFileForm(
        name="anthropic-usage",
        marks=("starting_at", "uncached_input_tokens"),
        is_sum=True,
        sums_prompt=True,
        fields={
            "start": ("starting_at",),
            "end": ("ending_at",),
            "model": ("model",),
            "calls": ("requests",),
            "tokens_in": ("uncached_input_tokens",),
            "tokens_out": ("output_tokens",),
            "tokens_cached": ("cache_read_input_tokens",),
            "write_5m": ("cache_creation.ephemeral_5m_input_tokens",),
            "tokens_cache_write_1h": ("cache_creation.ephemeral_1h_input_tokens",),
            "tier": ("service_tier",),
        },
    ),
    UsageFileForm(
        name="anthropic-costs",
        marks=("starting_at", "amount"),
        is_sum=True,
        cost_per_usd=100,
        fields={
            "start": ("starting_at",),
            "end": ("ending_at",),
            "model": ("model",),
            "cost": ("amount",),
            "tier": ("service_tier",),
        },
    ),
    UsageFileForm(
        name="anthropic-console",
        marks=("usage_date_utc", "usage_input_tokens_no_cache"),
        is_sum=True,
        sums_prompt=True,
        fields={
            "start": ("usage_date_utc",),
            "model": ("model_version",),
            "tokens_in": ("usage_input_tokens_no_cache",),
            "tokens_out": ("usage_output_tokens",),
            "tokens_cached": ("usage_input_tokens_cache_read",),
            "write_5m": ("usage_input_tokens_cache_write_5m",),
            "tokens_cache_write_1h": ("usage_input_tokens_cache_write_1h",),
            "tier": ("usage_type",),
        },
    ),
    UsageFileForm(
        name="plain",
        marks=("time", "model", "cost_usd"),
        fields={
            "ids": ("request_id",),
            "start": ("time",),
            "end": ("end_time",),
            "model": ("model",),
            **{count: (count,) for count in COUNTS},
            "cost": ("cost_usd",),
            "tier": ("tier",),
            "batch": ("batch",),
        },
    ),
)
"""Forms that are read, the most particular first."""
