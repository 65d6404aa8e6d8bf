"""Connects the models of a run to their endpoints: clients, batches, shared limits."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from runner.batch.batch import BatchEndpoint, run_tag
from runner.batch.carrier import BatchContext
from runner.batch.client import (
    BatchClient,
    open_batch_clients,
    open_endpoint,
    pending_batches,
)
from runner.clients import open_client
from runner.clients.client import (
    ClientOptions,
    ModelClient,
    Route,
    Secret,
    Timeouts,
    is_offline,
    route,
)
from runner.clients.fallbacks import Fallbacks
from runner.engine.background import WakeUps
from runner.engine.driver import Driver
from runner.engine.scheduler import Scheduler
from runner.errors import UsageError
from runner.job import Job
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Parameters, variable_in
from runner.model_terms import ModelTerms
from runner.money.budget import Budget
from runner.money.prices import api_of
from runner.options import ModelOptions, RunOptions
from runner.roles import assigned, terms
from runner.run.context import RunContext
from runner.workload import Workload
from store.database import open_reader
from store.events import AttemptStarted, ParameterRefused
from store.log.interface import Log
from store.read.usage import sent_starts
from store.runs import RunFolder

if TYPE_CHECKING:
    from runner.shards.lease_client import LeaseHolder

OPENAI_KEY = "OPENAI_API_KEY"

Clients: TypeAlias = Mapping[str, ModelClient]
"""Clients by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Connections to a run's models: single calls or batches."""

    clients: Clients  #: models with single calls
    endpoints: Mapping[str, BatchEndpoint]  #: models with batches
    terms: Mapping[str, ModelTerms]  #: how requests to online models are built
    ladders: Mapping[str, Fallbacks]  #: parameters that their endpoints accept


def connect(
    work: Workload,
    options: RunOptions,
    context: RunContext,
    facts: Sequence[ParameterRefused] = (),
) -> Connections:
    """Open the connections to all models of a run.

    Args:
        work: the run's job and settings.
        options: how calls are sent.
        context: the context of the run.
        facts: facts about endpoints from earlier processes.

    Raises:
        UsageError: a model cannot be served, or batches were requested and none
            supports them.
    """
    job, terms_by_model = work.job, terms(work, options)
    ladders = {
        model: ladder(model, options, terms_by_model[model]) for model in terms_by_model
    }
    for fallbacks in ladders.values():
        fallbacks.restore(facts)
    options_by_model = {
        model: replace(
            client_options(job, options, model, context), ladder=ladders.get(model)
        )
        for model in assigned(job, options).all_models
    }
    batched = {model for model in options_by_model if options.is_batched(model)}
    if options.batch and not batched:
        raise UsageError(
            "No model of this run has a batch API, because all answer "
            "offline; name another with --model, or run without "
            "--batch."
        )
    return Connections(
        clients={
            model: open_client(model, model_options)
            for model, model_options in options_by_model.items()
            if model not in batched
        },
        endpoints={
            model: open_endpoint(model, model_options)
            for model, model_options in options_by_model.items()
            if model in batched
        },
        terms=terms_by_model,
        ladders=ladders,
    )


def ladder(model: str, options: RunOptions, model_terms: ModelTerms) -> Fallbacks:
    """Return what is known about a model's endpoint before the first call."""
    return Fallbacks(
        endpoint_name(model, options.of(model).base_url),
        model,
        terms=model_terms,
        drops=options.drop_refused,
    )


def check_addresses(models: Iterable[str], options: RunOptions) -> None:
    """Refuse invalid base URLs before any other check of a model.

    Raises:
        UsageError: a URL is invalid or contains a password.
    """
    for model in models:
        endpoint_name(model, options.of(model).base_url)


def endpoint_name(model: str, base_url: str | None) -> str:
    """Return a model's endpoint as recorded in facts about it."""
    if route(model, has_base_url=base_url is not None) is not Route.DIRECT:
        return model.partition("/")[0]
    # with its HTTP library, so only where it is needed
    from runner.clients.http_client import (  # noqa: PLC0415 - see above
        OPENAI_URL,
        endpoint_url,
    )

    return endpoint_url(OPENAI_URL if base_url is None else base_url)


def client_options(
    job: Job, options: RunOptions, model: str, context: RunContext
) -> ClientOptions:
    """Return a client's configuration; raise `UsageError` for a missing key."""
    model_options = options.of(model)
    headers, masked = _headers(options.parameters_of(model), model, context.environment)
    return ClientOptions(
        base_url=model_options.base_url,
        api=api_of(model, options),
        api_key=key_of(model, options, context.environment),
        headers=headers,
        masked=masked,
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=context.environment,
        job=job,
        runs_dir=context.runs_dir,
        clock=context.clock,
    )


def key_of(
    model: str, options: RunOptions, environment: Mapping[str, str]
) -> Secret | None:
    """Return the key of a model's endpoint; raise `UsageError` if it is missing."""
    model_options = options.of(model)
    # a key is sent only to its intended endpoint: the default only to openai/...
    default = OPENAI_KEY if model.startswith("openai/") else None
    variable = model_options.api_key_env or default
    key = environment.get(variable) if variable is not None else None
    if key is None and (
        model_options.api_key_env or (default and model_options.base_url is None)
    ):
        raise UsageError(
            f"{model} needs a key: set {variable} in the environment or in .env."
        )
    return Secret(key) if key else None


def _headers(
    parameters: Parameters, model: str, environment: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Secret, ...]]:
    """Return the headers of a model's requests, and the secrets in them."""
    headers: dict[str, str] = {}
    secrets: list[Secret] = []
    for name, value in parameters.extra_headers:
        reference = variable_in(value)
        if reference is None:
            headers[name] = value
            continue
        before, variable = reference
        if not environment.get(variable):
            raise UsageError(
                f"{model}: header {name} needs {variable} in the environment or in "
                ".env."
            )
        secret = Secret(environment[variable])
        secrets.append(secret)
        headers[name] = before + secret.reveal()
    return headers, tuple(secrets)


class SharedEndpoints:
    """Runs of one process that share endpoints and, if there is one, a budget."""

    def __init__(
        self,
        limits: Mapping[str, Limits] | None = None,
        budget: Budget | None = None,
        *,
        holder: LeaseHolder | None = None,
    ) -> None:
        """Start without any runs.

        Args:
            limits: the user's limits for whole endpoints, by address.
            budget: budget of all runs together; None: each has its own.
            holder: leases from a broker; None: no broker.
        """
        self.budget = budget
        self.wakeups = WakeUps()
        self._limits = limits or {}
        self._holder = holder
        self._endpoints: dict[str, Endpoint] = {}
        self._drivers: list[Driver] = []
        self._is_draining = False
        self._is_stopping = False

    def scheduler(
        self,
        job: Job,
        options: RunOptions,
        run_budget: Budget,
        reached: Mapping[str, int] | None = None,
    ) -> Scheduler:
        """Return the scheduler of a run.

        Args:
            job: the run's job.
            options: how its calls are sent.
            run_budget: its own budget; applies if none is shared.
            reached: by model, the calls at a time to start with.
        """
        roles = assigned(job, options)
        models = [
            (
                model,
                roles.stages_of(job, model),
                options.limits_of(model),
                self._endpoint(options.endpoint_of(model), model),
            )
            for model in roles.all_models
        ]
        for model, _, _, endpoint in models:
            if reached and model in reached:
                endpoint.start_with(model, reached[model])
        return Scheduler(
            models,
            deadline_s=options.deadline_s,
            budget=self._money(run_budget),
            fence=self._holder,
        )

    def _money(self, run_budget: Budget) -> Budget:
        """Return the budget of a run: the shared one or *run_budget*."""
        if self.budget is not None:
            return self.budget
        if self._holder is not None and run_budget.statistics().cap_pico is not None:
            return self._holder.money_share
        return run_budget

    def _endpoint(self, name: str, model: str) -> Endpoint:
        """Return a model's endpoint; an offline model belongs to one run's job."""
        if is_offline(model):
            return Endpoint(name)
        if name not in self._endpoints:
            limits = self._limits.get(name)
            self._endpoints[name] = Endpoint(name, limits, lender=self._holder)
        return self._endpoints[name]

    @contextmanager
    def joined(self, driver: Driver) -> Iterator[None]:
        """Forward signals to *driver* during the block, including earlier ones."""
        self._drivers.append(driver)
        if self._is_draining:
            driver.drain()
        if self._is_stopping:
            driver.stop()
        try:
            yield
        finally:
            self._drivers.remove(driver)

    def drain(self) -> None:
        """Drain all runs; calls in flight get the grace time."""
        self._is_draining = True
        for driver in self._drivers:
            driver.drain()

    def stop(self) -> None:
        """End every run at once."""
        self._is_draining = self._is_stopping = True
        for driver in self._drivers:
            driver.stop()


REQUESTED_FILES: Final = 1 << 16
"""Maximum open files to request: a machine has as many ports per address."""

RESERVED: Final = 24
"""Files that a run opens in addition to its connections: readers of the log with its
WAL and index, inputs, DNS, the response cache, a scoring. Sixteen were seen at most."""


def with_room(
    options: RunOptions, models: tuple[str, ...], notify: Callable[[str], None]
) -> RunOptions:
    """Return *options* with concurrency limited by the possible connections.

    Args:
        options: how calls are sent.
        models: all models of the run.
        notify: called if the limit was lowered.

    Raises:
        UsageError: not even one connection is possible.
    """
    online = [
        model
        for model in models
        if not is_offline(model) and not options.is_batched(model)
    ]
    if not online:
        return options
    limit = raised_limit()
    free = limit - _open_files() - RESERVED
    per_model = free // len(online)
    concurrency = max(options.of(model).concurrency or 0 for model in online)
    if per_model >= concurrency:
        return options
    cure = f"raise the limit with: ulimit -n {max(1024, 2 * concurrency * len(online))}"
    if per_model < 1:
        raise UsageError(
            f"This process may have {limit} files open (ulimit -n), which leaves room "
            f"for no call: {cure}"
        )
    notify(
        f"At most {per_model} calls at a time and model, not {concurrency}: this "
        f"process may have {limit} files open (ulimit -n), and each call needs "
        f"one; {cure}"
    )
    capped = {
        model: options.models.get(model, ModelOptions()).model_copy(
            update={
                "concurrency": min(
                    per_model, options.of(model).concurrency or per_model
                )
            }
        )
        for model in online
    }
    return options.model_copy(update={"models": {**options.models, **capped}})


def raised_limit() -> int:
    """Raise the limit of open files as far as possible, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return REQUESTED_FILES
    best = (
        REQUESTED_FILES
        if hard == resource.RLIM_INFINITY
        else min(hard, REQUESTED_FILES)
    )
    if best > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (best, hard))
    return max(soft, best)


def _open_files() -> int:
    """Return the number of open files."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are not needed


def carried(folder: RunFolder, options: RunOptions) -> Sequence[AttemptStarted]:
    """Return the attempts that earlier processes put, or were to put, into batches.

    Each was sent only after its batch was in the log, so every outcome can be
    determined.

    Raises:
        UsageError: there are some, and the run resumes without batches.
    """
    with open_reader(folder.log) as reader:
        batched_starts = [start for start in sent_starts(reader) if start.batched]
    if batched_starts and not options.batch:
        raise UsageError(
            f"{len(batched_starts):,} requests of run {folder.run_id} "
            "wait in batches: continue with siftlog resume "
            f"{folder.run_id} --batch."
        )
    return batched_starts


def tag_of(folder: RunFolder) -> str:
    """Return the key prefix of all batches of a run, or of a shard."""
    return run_tag(f"{folder.run_id}{folder.part}")


def batch_clients(
    folder: RunFolder,
    log: Log,
    options: RunOptions,
    context: RunContext,
    *,
    endpoints: Mapping[str, BatchEndpoint],
    starts: Sequence[AttemptStarted],
    leaving: asyncio.Event,
) -> dict[str, BatchClient]:
    """Return the clients of the models with batches.

    Args:
        folder: the run's.
        log: the run's.
        options: how calls are sent.
        context: the context of the run.
        endpoints: the endpoints of these models.
        starts: the attempts to continue.
        leaving: set when the process is about to end.
    """
    if not endpoints:
        return {}
    with open_reader(folder.log) as reader:
        left = pending_batches(reader, starts)
    setting = BatchContext(
        tag=tag_of(folder),
        log=log,
        clock=context.clock,
        leaving=leaving,
        notify=context.notify,
        ids=set(left.ids),
        adopted=left.adopted,
    )
    return open_batch_clients(endpoints, options, setting, left)
