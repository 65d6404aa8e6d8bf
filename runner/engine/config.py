"""Holds the values and services that the parts of the engine share."""

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
from runner.job import Dataset, Job, JobFaults, Task
from runner.messages import Request
from runner.model_terms import USUAL, ModelTerms
from runner.money.prices import Price
from runner.money.tokens import TokenBounds
from store.clock import Clock
from store.events import AttemptStarted
from store.log.interface import Log


class AnswerSource(Protocol):
    """Where a task's answer may be found."""

    def serves(self, model: str) -> bool:
        """Whether answers of *model* are looked for."""
        ...

    async def find(self, asked: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """The reply to each task's request, given by its hash, where there is one."""
        ...


class AnswerStore(AnswerSource, Protocol):
    """Where answers are looked for, and kept for later runs."""

    def keep(self, task: Task, request_sha256: str, received: Received) -> None:
        """Have the reply to *task*'s request written some time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What a run is carried out with."""

    job: Job
    dataset: Dataset
    log: Log
    clock: Clock
    clients: Mapping[str, ModelClient]  #: by model
    scheduler: Scheduler
    growth: Planner
    tell: Callable[[str], None]  #: shows a sentence to people
    faults: JobFaults | None = None  #: takes exceptions of the job's own code
    seed: int = 0  #: of the jitter; never touches a result
    reask: int = 0  #: how often an unreadable reply is asked for again
    grace_s: float = 30.0  #: how long a drain waits for calls in flight
    frees_held: bool = False  #: send what an earlier process held as unknown
    known: AnswerSource | None = None  #: answers that other logs of the run have
    cache: AnswerStore | None = None  #: answers of other runs
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    """By model; None, or none at all: unknown."""
    bounds: Mapping[str, TokenBounds] = field(default_factory=dict)
    """By model: what is known to bound its calls."""
    shares_budget: bool = False  #: with other runs of this process
    bell: WakeUps = field(
        default_factory=WakeUps
    )  #: wakes whoever shares what this run uses
    terms: Mapping[str, ModelTerms] = field(default_factory=dict)  #: by model
    ladders: Mapping[str, Fallbacks] = field(default_factory=dict)
    """By model: what its endpoint takes; none of those that answer offline."""
    batched: Collection[str] = ()  #: models whose calls leave in batches
    futility: FutilityMonitor = field(default_factory=FutilityMonitor)
    """Judges replies; stops a model whose replies are of no use."""
    carried: Sequence[AttemptStarted] = ()  #: attempts of earlier processes in batches
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as the run drains: batches are then left to a later process."""

    def request(self, task: Task) -> Request:
        """What is sent for *task*."""
        terms = self.terms.get(task.model, USUAL)
        return terms.request(self.job, self.dataset, task)
