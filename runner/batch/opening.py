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
ANTHROPIC_ADDRESSES: Final = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
"""In this order, as litellm reads them for single calls."""


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
    if options.base_url is not None:
        # an address is one of OpenAI's form, whatever the model is called there
        return OpenAIBatches(model, options)
    if provider not in FORMS:
        raise UsageError(
            f"{model} cannot be asked by batches, only openai/..., anthropic/... and "
            "what --base-url serves in OpenAI's form; run without --batch."
        )
    if provider == AnthropicBatches.form:
        return AnthropicBatches(model, _at_anthropic(options))
    return OpenAIBatches(model, options)


def _at_anthropic(options: ClientOptions) -> ClientOptions:
    """Anthropic's address and key, from the variables that its own clients read."""
    found = (options.environment.get(name) for name in ANTHROPIC_ADDRESSES)
    base_url = next(filter(None, found), None)
    if base_url is not None and not base_url.rstrip("/").endswith("/v1"):
        # Anthropic's clients add /v1 to it, behind a gateway's path too
        base_url = f"{base_url.rstrip('/')}/v1"
    key = options.environment.get(ANTHROPIC_KEY)
    api_key = options.api_key or (Secret(key) if key else None)
    if api_key is None and base_url is None:
        raise UsageError(
            f"Anthropic's batches need a key: set {ANTHROPIC_KEY} in the environment "
            "or in .env."
        )
    return replace(options, api_key=api_key, base_url=base_url)


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
