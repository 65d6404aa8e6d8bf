"""Holds the configuration of the engine, in groups with one owner each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runner.clients.client import ModelClient, Received
from runner.clients.fallbacks import Fallbacks
from runner.engine.background import WakeUps
from runner.engine.failure_policy import FutilityMonitor
from runner.engine.planner import Planner
from runner.engine.scheduler import Scheduler
from runner.job import Dataset, Job, Task
from runner.job_faults import JobFaults
from runner.messages import Request
from runner.model_terms import USUAL, ModelTerms
from runner.money.prices import Price
from runner.money.tokens import TokenBounds
from store.clock import Clock
from store.events import AttemptStarted
from store.log.interface import Log


class AnswerSource(Protocol):
    """A source of answers."""

    def serves(self, model: str) -> bool:
        """Return whether answers of *model* are looked up here."""
        ...

    async def find(self, requests: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """Return the reply to each task's request, given by its hash, or None."""
        ...


class AnswerStore(AnswerSource, Protocol):
    """A source of answers that also stores them for later runs."""

    def keep(self, task: Task, request_sha256: str, received: Received) -> None:
        """Queue the reply to *task*'s request for writing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineServices:
    """The run's work, and the services that every part of the engine uses."""

    job: Job
    dataset: Dataset
    log: Log
    clock: Clock
    scheduler: Scheduler
    planner: Planner
    notify: Callable[[str], None]  #: shows a message to the user
    faults: JobFaults | None = None  #: receives exceptions of the job's own code


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoints:
    """Clients of the models, and the parameters their endpoints accept."""

    clients: Mapping[str, ModelClient]
    terms: Mapping[str, ModelTerms] = field(default_factory=dict)
    ladders: Mapping[str, Fallbacks] = field(default_factory=dict)
    """Accepted forms of request, by model; offline models have none."""
    batched: Collection[str] = ()  #: models whose calls are sent in batches

    def request(self, services: EngineServices, task: Task) -> Request:
        """Return the request of *task*."""
        terms = self.terms.get(task.model, USUAL)
        return terms.request(services.job, services.dataset, task)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSources:
    """Sources of answers that avoid a call."""

    other_logs: AnswerSource | None = None  #: answers that other logs of the run have
    parent: AnswerSource | None = None  #: answers of the run that this one forks
    cache: AnswerStore | None = None  #: answers of other runs


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBounds:
    """Bounds of a call's cost, by model."""

    prices: Mapping[str, Price | None] = field(default_factory=dict)
    """None or a missing model: unknown."""
    bounds: Mapping[str, TokenBounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """Rules for retries and for stopping a model."""

    seed: int = 0  #: of the jitter; never affects results
    reask: int = 0  #: maximum re-asks of an unreadable reply
    futility: FutilityMonitor = field(default_factory=FutilityMonitor)
    """Judges replies; stops a model whose replies are useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverOptions:
    """State from earlier processes of the run."""

    frees_held: bool = False  #: send again what an earlier process held as unknown
    carried: Sequence[AttemptStarted] = ()  #: attempts that continue in batches


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Draining of a run."""

    grace_s: float = 30.0  #: how long a drain waits for calls in flight
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the run drains: batches are then left to a later process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWithRuns:
    """Resources shared with other runs of this process."""

    has_budget: bool = False
    wakeups: WakeUps = field(default_factory=WakeUps)  #: wakes all runs that share


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Configuration of the engine for one run."""

    services: EngineServices
    endpoints: ModelEndpoints
    sources: AnswerSources = field(default_factory=AnswerSources)
    costs: CostBounds = field(default_factory=CostBounds)
    retries: RetryOptions = field(default_factory=RetryOptions)
    takeover: TakeoverOptions = field(default_factory=TakeoverOptions)
    drain: DrainOptions = field(default_factory=DrainOptions)
    shared: SharedWithRuns = field(default_factory=SharedWithRuns)
