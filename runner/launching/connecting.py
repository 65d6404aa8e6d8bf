"""The clients of a run: one for each model that it asks, with its key and address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from runner.batch.endpoint import BatchEndpoint
from runner.batch.opening import open_endpoint
from runner.clients.client import ModelClient
from runner.clients.opening import open_client
from runner.clients.options import ClientOptions, Timeouts
from runner.clients.secret import Secret
from runner.errors import UsageError
from runner.job import Job
from runner.launching.shell import Shell
from runner.money.catalogue import api_of
from runner.options import RunOptions
from runner.roles import assigned

OPENAI_KEY = "OPENAI_API_KEY"

Clients: TypeAlias = Mapping[str, ModelClient]
"""By model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Where a run's models are asked, each in one of two ways."""

    clients: Clients  #: of those that are asked call by call
    endpoints: Mapping[str, BatchEndpoint]  #: of those that are asked by batches


def connect(job: Job, options: RunOptions, shell: Shell) -> Connections:
    """The connections to all models of a run.

    Raises:
        UsageError: one cannot be served, or none by batches though that was wanted.
    """
    asked = {
        model: client_options(job, options, model, shell)
        for model in assigned(job, options).all_models
    }
    batched = {model for model in asked if options.is_batched(model)}
    if options.batch and not batched:
        raise UsageError(
            "No model of this run can be asked by batches: those that answer offline "
            "cannot; name another with --model, or run without --batch."
        )
    return Connections(
        clients={
            model: open_client(model, own)
            for model, own in asked.items()
            if model not in batched
        },
        endpoints={
            model: open_endpoint(model, own)
            for model, own in asked.items()
            if model in batched
        },
    )


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
        api=api_of(model, options),
        api_key=Secret(key) if key else None,
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=shell.environment,
        job=job,
        runs_dir=shell.runs_dir,
        clock=shell.clock,
    )
