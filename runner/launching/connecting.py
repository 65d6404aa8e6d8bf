"""The clients of a run: one for each model that it asks, with its key and address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from runner.batch.endpoint import BatchEndpoint
from runner.batch.opening import open_endpoint
from runner.clients.client import ModelClient
from runner.clients.ladder import Ladder
from runner.clients.opening import open_client
from runner.clients.options import ClientOptions, Timeouts
from runner.clients.route import Route, route
from runner.clients.secret import Secret
from runner.errors import UsageError
from runner.job import Job
from runner.launching.shell import Shell
from runner.money.catalogue import api_of
from runner.options import RunOptions
from runner.parameters import Parameters, variable_in
from runner.roles import assigned, terms
from runner.terms import Terms
from runner.work import Work
from store.events import ParameterRefused

OPENAI_KEY = "OPENAI_API_KEY"

Clients: TypeAlias = Mapping[str, ModelClient]
"""By model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Where a run's models are asked, each in one of two ways."""

    clients: Clients  #: of those that are asked call by call
    endpoints: Mapping[str, BatchEndpoint]  #: of those that are asked by batches
    terms: Mapping[str, Terms]  #: how they are asked, where they are online
    ladders: Mapping[str, Ladder]  #: what their endpoints take


def connect(
    work: Work,
    options: RunOptions,
    shell: Shell,
    facts: Sequence[ParameterRefused] = (),
) -> Connections:
    """The connections to all models of a run.

    Args:
        work: the run's job and settings.
        options: how calls are sent.
        shell: what surrounds the run.
        facts: what earlier processes have found out of endpoints.

    Raises:
        UsageError: one cannot be served, or none by batches though that was wanted.
    """
    job, asks = work.job, terms(work, options)
    ladders = {model: ladder(model, options, asks[model]) for model in asks}
    for each in ladders.values():
        each.restore(facts)
    asked = {
        model: replace(
            client_options(job, options, model, shell), ladder=ladders.get(model)
        )
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
        terms=asks,
        ladders=ladders,
    )


def ladder(model: str, options: RunOptions, asks: Terms) -> Ladder:
    """What is known of the endpoint of a model before the first call."""
    return Ladder(
        endpoint_name(model, options.of(model).base_url),
        model,
        terms=asks,
        drops=options.drop_refused,
    )


def endpoint_name(model: str, base_url: str | None) -> str:
    """Where a model is asked, as facts about it are recorded."""
    if route(model, has_base_url=base_url is not None) is not Route.DIRECT:
        return model.partition("/")[0]
    # with its HTTP library, so only where it is needed
    from runner.clients.openai_compatible import (  # noqa: PLC0415 - see above
        OPENAI_URL,
        endpoint_url,
    )

    return endpoint_url(OPENAI_URL if base_url is None else base_url)


def client_options(
    job: Job, options: RunOptions, model: str, shell: Shell
) -> ClientOptions:
    """What a model's client is opened with; raise `UsageError` for a missing key."""
    own = options.of(model)
    headers, masked = _headers(options.parameters_of(model), model, shell.environment)
    return ClientOptions(
        base_url=own.base_url,
        api=api_of(model, options),
        api_key=key_of(model, options, shell.environment),
        headers=headers,
        masked=masked,
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=shell.environment,
        job=job,
        runs_dir=shell.runs_dir,
        clock=shell.clock,
    )


def key_of(
    model: str, options: RunOptions, environment: Mapping[str, str]
) -> Secret | None:
    """The key of a model's endpoint; raise `UsageError` where one is missing."""
    own = options.of(model)
    # a key goes nowhere it was not meant for: the default only to openai/...
    default = OPENAI_KEY if model.startswith("openai/") else None
    variable = own.api_key_env or default
    key = environment.get(variable) if variable is not None else None
    if key is None and (own.api_key_env or (default and own.base_url is None)):
        raise UsageError(
            f"{model} needs a key: set {variable} in the environment or in .env."
        )
    return Secret(key) if key else None


def _headers(
    parameters: Parameters, model: str, environment: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Secret, ...]]:
    """The headers of a model's requests with their secrets, and these."""
    headers: dict[str, str] = {}
    secrets: list[Secret] = []
    for name, value in parameters.extra_headers:
        found = variable_in(value)
        if found is None:
            headers[name] = value
            continue
        before, variable = found
        if not environment.get(variable):
            raise UsageError(
                f"{model}: header {name} needs {variable} in the environment or in "
                ".env."
            )
        secret = Secret(environment[variable])
        secrets.append(secret)
        headers[name] = before + secret.reveal()
    return headers, tuple(secrets)
