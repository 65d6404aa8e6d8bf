"""Which form of batches serves a model, and the clients that ask by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from runner.batch.carrier import Patience, Setting
from runner.batch.client import BatchClient, Habits
from runner.batch.endpoint import BatchEndpoint
from runner.batch.known import LeftBatches
from runner.clients.options import ClientOptions
from runner.clients.secret import Secret
from runner.errors import UsageError
from runner.options import RunOptions

FORMS: Final = ("openai", "anthropic")
"""Named after the providers that they are of."""

ANTHROPIC_KEY: Final = "ANTHROPIC_API_KEY"


def open_endpoint(model: str, options: ClientOptions) -> BatchEndpoint:
    """The batches of *model*: of the form of its provider, or of OpenAI's.

    Raises:
        UsageError: its provider has no batches that siftlog can use, or wants a key.
    """
    # imported here, so that a run without batches does not pay for them
    from runner.batch.anthropic import (  # noqa: PLC0415 - see above
        AnthropicBatches,
    )
    from runner.batch.openai import OpenAIBatches  # noqa: PLC0415 - see above

    provider = model.partition("/")[0]
    if provider not in FORMS and options.base_url is None:
        raise UsageError(
            f"{model} cannot be asked by batches, only openai/..., anthropic/... and "
            "what --base-url serves in OpenAI's form; run without --batch."
        )
    if provider == AnthropicBatches.form:
        return AnthropicBatches(model, replace(options, api_key=_key(options)))
    return OpenAIBatches(model, options)


def _key(options: ClientOptions) -> Secret | None:
    """The key that was named, or Anthropic's own for Anthropic's own address."""
    if options.api_key is not None or options.base_url is not None:
        return options.api_key
    key = options.environment.get(ANTHROPIC_KEY)
    if not key:
        raise UsageError(
            f"Anthropic's batches need a key: set {ANTHROPIC_KEY} in the environment "
            "or in .env."
        )
    return Secret(key)


def open_batch_clients(
    endpoints: Mapping[str, BatchEndpoint],
    options: RunOptions,
    setting: Setting,
    left: LeftBatches,
) -> dict[str, BatchClient]:
    """The clients of *endpoints*, by model, going on with what is *left*."""
    patience = Patience(poll_s=options.batch_poll_s, settle_s=options.batch_settle_s)
    habits = Habits(
        size=options.batch_requests, patience=patience, adopts=options.batch_adopt
    )
    return {
        model: BatchClient(model, endpoint, habits, setting, left.of(model))
        for model, endpoint in endpoints.items()
    }
