"""The clients of a run: one for each model that it asks, with its key and address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from runner.clients.client import ModelClient
from runner.clients.opening import open_client
from runner.clients.options import ClientOptions, Timeouts
from runner.clients.secret import Secret
from runner.errors import UsageError
from runner.job import Job
from runner.options import RunOptions
from runner.roles import assigned
from runner.shell import Shell

OPENAI_KEY = "OPENAI_API_KEY"

Clients: TypeAlias = Mapping[str, ModelClient]
"""By model."""


def open_clients(job: Job, options: RunOptions, shell: Shell) -> Clients:
    """A client for each model; raise `UsageError` for one that cannot be served."""
    return {
        model: open_client(model, client_options(job, options, model, shell))
        for model in assigned(job, options).all_models
    }


def client_options(
    job: Job, options: RunOptions, model: str, shell: Shell
) -> ClientOptions:
    """What a model's client is opened with; raise `UsageError` for a missing key."""
    own = options.of(model)
    # a key goes nowhere it was not meant for: the default only to openai/...
    default = OPENAI_KEY if model.startswith("openai/") else None
    variable = own.api_key_env or default
    key = shell.environment.get(variable) if variable is not None else None
    if key is None and (own.api_key_env or (default and own.base_url is None)):
        raise UsageError(
            f"{model} needs a key: set {variable} in the environment or in .env."
        )
    return ClientOptions(
        base_url=own.base_url,
        api_key=Secret(key) if key else None,
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=shell.environment,
        job=job,
        runs_dir=shell.runs_dir,
        clock=shell.clock,
    )
