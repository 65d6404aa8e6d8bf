"""Defines how requests to one model are built: parameters, family, reasoning tokens.

Models of some families refuse parameters that every other model accepts, and some spend
output tokens on reasoning before they answer. Both follow from the model's name, so a
run need not learn them from refused calls or empty replies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel

from runner.errors import UsageError
from runner.job import Dataset, Job, Task
from runner.messages import NOTHING_SET, ChatRequest, Parameters, Request, decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """Models that accept other parameters than most."""

    name: str  #: as shown to users
    pattern: re.Pattern[str]  #: for the model's name without its provider
    refuses: frozenset[str] = frozenset()
    limit: str | None = None  #: field that carries the output limit; None: the usual
    reasons: bool = False  #: whether it reasons by default


OPENAI_REASONING: Final = ModelFamily(
    name="OpenAI's reasoning models",
    pattern=re.compile(r"(o[1-9]\d*|gpt-[5-9])(?!.*chat)([.-].*)?"),
    refuses=frozenset({"temperature", "top_p"}),
    limit="max_completion_tokens",
    reasons=True,
)
"""OpenAI's guide to reasoning models: no temperature, no top_p, and the output limit as
`max_completion_tokens`; the chat variants of GPT-5 are ordinary models."""

FAMILIES: Final = (
    OPENAI_REASONING,
    ModelFamily(
        name="reasoning models",
        pattern=re.compile(
            r"gemini-(2\.5|[3-9]).*|grok-(4|3-mini).*|deepseek-r\d.*|gpt-oss.*"
            r"|deepseek-reasoner|qwq.*|magistral.*|.*[-_]thinking([-_].*)?",
            re.IGNORECASE,
        ),
        reasons=True,
    ),
)
"""The first match decides."""

ROOM: Final = {"none": 0, "minimal": 2_000, "low": 8_000, "high": 50_000}
"""Output tokens for reasoning, by effort."""
USUAL_ROOM: Final = 25_000
"""Reservation for reasoning models that OpenAI's guide recommends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerms:
    """Request parameters and limits of one model."""

    parameters: Parameters = NOTHING_SET
    explicit: frozenset[str] = frozenset()
    """Fields set by the user: they are never omitted without a message."""
    family: ModelFamily | None = None
    room: int = 0  #: tokens for reasoning beyond a job's limit of a reply
    most_output: int | None = None  #: maximum output tokens of the model; None: unknown

    def request(self, job: Job, dataset: Dataset, task: Task) -> Request:
        """Return the request of *task*, with the parameters set for its model."""
        request = job.request(dataset, task)
        parameters = self.parameters
        if parameters is NOTHING_SET and not self.room:
            return request
        if not isinstance(request, ChatRequest):
            return (
                request
                if parameters == NOTHING_SET
                else replace(request, parameters=parameters)
            )
        changes: dict[str, Any] = {}
        if parameters != NOTHING_SET:
            changes["parameters"] = parameters
        if parameters.temperature is not None or "temperature" in parameters.absent:
            changes["temperature"] = parameters.temperature
        if parameters.max_output_tokens is not None:
            changes["max_tokens"] = parameters.max_output_tokens
        elif "max_output_tokens" in parameters.absent and self.most_output is not None:
            changes["max_tokens"] = self.most_output
        elif self.room:
            changes["room"] = self._room(request.max_tokens)
        return replace(request, **changes) if changes else request

    def _room(self, limit: int) -> int:
        """Return the tokens beyond a reply's *limit* that the model can write."""
        if self.most_output is None:
            return self.room
        return max(0, min(self.room, self.most_output - limit))


USUAL: Final = ModelTerms()


def family_of(model: str) -> ModelFamily | None:
    """Return the family of *model*, by the last part of its name.

    >>> family_of("openrouter/openai/gpt-5-mini").name
    "OpenAI's reasoning models"
    """
    name = model.rpartition("/")[2].lower()
    return next((family for family in FAMILIES if family.pattern.fullmatch(name)), None)


def terms_of(
    model: str,
    parameters: Parameters,
    *,
    most_output: int | None,
    settings: BaseModel | None = None,
) -> ModelTerms:
    """Return the request terms of *model*.

    Args:
        model: its name.
        parameters: the user's parameters.
        most_output: maximum output tokens, if known.
        settings: settings of the run's job; a temperature other than the job's default
            counts as set by the user.

    Raises:
        UsageError: the token limit is disabled, and the model's limit is unknown.
    """
    if "max_output_tokens" in parameters.absent and most_output is None:
        raise UsageError(
            f"{model}: max_output_tokens may be none only if the "
            "model's maximum output is known, because the budget "
            "reserves it; give a number."
        )
    explicit = parameters.names
    if settings is not None and _is_changed(settings, "temperature"):
        explicit |= {"temperature"}
    family = family_of(model)
    return ModelTerms(
        parameters=parameters,
        explicit=explicit,
        family=family,
        room=_room(parameters, family),
        most_output=most_output,
    )


def _is_changed(settings: BaseModel, name: str) -> bool:
    """Return whether a setting differs from its default."""
    field = type(settings).model_fields.get(name)
    return field is not None and getattr(settings, name) != field.default


def _room(parameters: Parameters, family: ModelFamily | None) -> int:
    """Return the output tokens that a model's reasoning may use."""
    thinking = decoded(parameters.thinking)
    if thinking:
        budget = thinking.get("budget_tokens")
        is_off = thinking.get("type") == "disabled"
        return 0 if is_off else budget if isinstance(budget, int) else USUAL_ROOM
    if parameters.reasoning_effort is not None:
        return ROOM.get(parameters.reasoning_effort, USUAL_ROOM)
    return USUAL_ROOM if family is not None and family.reasons else 0
