"""What a run is carried out with: values and services that the engine shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from runner.clients.client import ModelClient
from runner.clients.ladder import Ladder
from runner.engine.bell import Bell
from runner.engine.futility import Futility
from runner.engine.growth import Growth
from runner.engine.known import AnswerStore, Known
from runner.engine.scheduler import Scheduler
from runner.faults import JobFaults
from runner.job import Dataset, Job
from runner.money.bounds import Bounds
from runner.money.prices import Price
from runner.request import Request
from runner.task import Task
from runner.terms import USUAL, Terms
from store.clock import Clock
from store.events import AttemptStarted
from store.log.interface import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is carried out with."""

    job: Job
    dataset: Dataset
    log: Log
    clock: Clock
    clients: Mapping[str, ModelClient]  #: by model
    scheduler: Scheduler
    growth: Growth
    tell: Callable[[str], None]  #: shows a sentence to people
    faults: JobFaults | None = None  #: takes exceptions of the job's own code
    seed: int = 0  #: of the jitter; never touches a result
    reask: int = 0  #: how often an unreadable reply is asked for again
    grace_s: float = 30.0  #: how long a drain waits for calls in flight
    frees_held: bool = False  #: send what an earlier process held as unknown
    known: Known | None = None  #: answers that other logs of the run have
    cache: AnswerStore | None = None  #: answers of other runs
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    """By model; None, or none at all: unknown."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """By model: what is known to bound its calls."""
    shares_budget: bool = False  #: with other runs of this process
    bell: Bell = field(default_factory=Bell)  #: wakes whoever shares what this run uses
    terms: Mapping[str, Terms] = field(default_factory=dict)  #: by model
    ladders: Mapping[str, Ladder] = field(default_factory=dict)
    """By model: what its endpoint takes; none of those that answer offline."""
    batched: Collection[str] = ()  #: models whose calls leave in batches
    futility: Futility = field(default_factory=Futility)
    """Judges replies; stops a model whose replies are of no use."""
    carried: Sequence[AttemptStarted] = ()  #: attempts of earlier processes in batches
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as the run drains: batches are then left to a later process."""

    def request(self, task: Task) -> Request:
        """What is sent for *task*."""
        terms = self.terms.get(task.model, USUAL)
        return terms.request(self.job, self.dataset, task)
