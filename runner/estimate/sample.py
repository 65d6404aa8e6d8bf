"""Answers a few items of a plan offline to measure the cost of an item.

An item is a first-stage task, or all consecutive ones that share a group. A sample of
them is answered by the job's baseline, with the real requests, parsers and follow-ups,
in memory. Nothing is sent or recorded. A task whose `request`, `follow_up` or baseline
raises is counted as failing, and the sample continues.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from runner.errors import JobFault
from runner.job import Answer, Dataset, Job, Task, TaskSpec
from runner.job_faults import job_fault, read_reply
from runner.messages import Content, Reply, Request
from runner.model_terms import USUAL, ModelTerms
from runner.money.tokens import CountTokens, prompt_tokens, text_tokens, worst_output
from runner.plan import Roles, followers, stage_of

SEED: Final = 20
"""Seed of the sampling: the same data give the same estimate."""
LARGEST: Final = 1000
"""Maximum tasks kept of an item."""


@dataclass(slots=True, kw_only=True)
class StageUsage:
    """Usage of a stage's calls to one model, in one replicate."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0  #: tokens of the baseline's replies
    most_out: float = 0.0  #: maximum that the requests allow


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledStage:
    """The first or the follow-up tasks of a stage and model."""

    stage: str
    model: str
    is_first: bool  #: first-stage tasks, which follow from none


Grown = dict[SampledStage, StageUsage]
"""Usage of one item by stage."""


@dataclass(slots=True, kw_only=True)
class PlanItem:
    """An item of the plan."""

    specs: list[TaskSpec]
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingTasks:
    """Tasks of the tried items that fail because the job's code raises."""

    tasks: int = 0
    first: str = ""  #: first failure: the method, the exception's class and its line

    @property
    def sentence(self) -> str:
        """Describe the failures in a sentence."""
        tasks = "task" if self.tasks == 1 else "tasks"
        return (
            f"{self.tasks:,} {tasks} of the items tried would fail: the "
            f"job's {self.first}. Fix the job before the run."
        )


NONE_FAILS: Final = FailingTasks()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSample:
    """The items of a plan, with the usage of the tried ones."""

    items: int
    specs: int  #: first-stage tasks, skipped ones included
    first_calls: Counter[str]  #: sent first-stage calls by stage: exact
    tried: tuple[Grown, ...]
    failing: FailingTasks = NONE_FAILS  #: failing tasks of the tried items
    follow_ups: tuple[float, ...] = ()
    """Follow-ups of each first-stage task that is sent, in the order of the plan; the
    mean of those not tried. Empty if fewer than half were, or items hold several."""


def draw_sample(
    job: Job,
    dataset: Dataset,
    *,
    roles: Roles,
    items: int,
    goes_on: Callable[[int], bool],
    among: int | None = None,
    largest: int = LARGEST,
    count: CountTokens = text_tokens,
    terms: Mapping[str, ModelTerms] = MappingProxyType({}),
) -> PlanSample:
    """Try some items of a plan, drawn uniformly with a fixed seed.

    Args:
        job: provides plan, requests, parsers, follow-ups and baseline.
        dataset: its data.
        roles: models by role; one replicate of each task is tried.
        items: maximum number to try.
        goes_on: whether to try another item after that many baseline answers; one is
            always tried.
        among: maximum number of items of the plan to read; None: all.
        largest: maximum tasks kept of an item; the first ones represent the rest.
        count: counts the tokens of a text.
        terms: request parameters of models, by name; others have the usual ones.
    """
    first_calls: Counter[str] = Counter()
    chance = random.Random(SEED)  # noqa: S311 - a sample, no secret
    sampled: list[PlanItem] = []
    seen = specs = 0
    next_sampled = _Skips(items, chance)
    for unit in islice(_units(job, dataset, first_calls, largest), among):
        seen += 1
        specs += unit.size
        if len(sampled) < items:
            sampled.append(unit)
        elif seen == next_sampled.at:
            sampled[chance.randrange(items)] = unit
            next_sampled.skip()
    order = list(range(len(sampled)))
    chance.shuffle(order)
    offline = _Offline(job, dataset, roles, count, terms)
    tried: dict[int, Grown] = {}
    for at in order:
        if tried and not goes_on(offline.calls):
            break
        tried[at] = offline.grown(sampled[at])
    return PlanSample(
        items=seen,
        specs=specs,
        first_calls=first_calls,
        tried=tuple(tried.values()),
        failing=offline.failing,
        follow_ups=_follow_ups(sampled, tried) if len(sampled) == specs else (),
    )


def _follow_ups(
    sampled: Sequence[PlanItem], tried: Mapping[int, Grown]
) -> tuple[float, ...]:
    """Return the follow-ups of each item that is sent; see `PlanSample`."""
    sent = [at for at, unit in enumerate(sampled) if unit.specs[0].skip is None]
    known = {
        at: sum(use.calls for key, use in tried[at].items() if not key.is_first)
        for at in sent
        if at in tried
    }
    if 2 * len(known) < len(sent) or not known:
        return ()
    mean = sum(known.values()) / len(known)
    return tuple(known.get(at, mean) for at in sent)


class _Skips:
    """Chooses the items that enter a full reservoir: algorithm L (Li, 1994)."""

    def __init__(self, size: int, chance: random.Random) -> None:
        self._size = size
        self._chance = chance
        self._w = 1.0
        self.at = size
        self.skip()

    def skip(self) -> None:
        """Choose the next one."""
        self._w *= math.exp(math.log(1.0 - self._chance.random()) / self._size)
        gap = math.log(1.0 - self._chance.random()) / math.log1p(-self._w)
        self.at += math.floor(gap) + 1


def _units(
    job: Job, dataset: Dataset, first_calls: Counter[str], largest: int
) -> Iterator[PlanItem]:
    gathers = {stage.name for stage in job.stages if stage.gathers}
    unit: PlanItem | None = None
    for spec in job.plan(dataset):
        first_calls[spec.stage] += spec.skip is None
        group = spec.group if spec.stage in gathers else None
        if unit is not None:
            if group is not None and unit.specs[-1].group == group:
                unit.size += 1
                if len(unit.specs) < largest:
                    unit.specs.append(spec)
                continue
            yield unit
        unit = PlanItem(specs=[spec])
    if unit is not None:
        yield unit


@dataclass(frozen=True, slots=True, kw_only=True)
class _SampledTask:
    """A task of an item, and the first task of its family."""

    spec: TaskSpec
    model: str
    root: _SampledTask | None = None  #: None: itself

    @property
    def identity(self) -> tuple[str, ...]:
        """Return its identity in its item: family, stages, keys and models."""
        return tuple(
            word
            for member in (self.root or self, self)
            for word in (member.spec.stage, member.spec.key, member.model)
        )

    @property
    def ancestors(self) -> list[tuple[str, str]]:
        """Return the stages and models that its follow-ups may inherit."""
        first = self.root or self
        return [(self.spec.stage, self.model), (first.spec.stage, first.model)]


@dataclass(slots=True, kw_only=True)
class _Group:
    """Answers that a stage gathers under a key."""

    leader: _SampledTask
    answers: list[Answer] = field(default_factory=list)
    followed: int = 0  #: number of answers when it was followed up


class _Offline:
    """Answers items by the baseline."""

    def __init__(
        self,
        job: Job,
        dataset: Dataset,
        roles: Roles,
        count: CountTokens,
        terms: Mapping[str, ModelTerms],
    ) -> None:
        self._job = job
        self._dataset = dataset
        self._roles = roles
        self._count = count
        self._terms = terms
        #: of the current item: models with equal requests get equal answers
        self._answers: dict[Request, tuple[Content | None, int]] = {}
        self.calls = 0
        self.failing = NONE_FAILS

    def grown(self, unit: PlanItem) -> Grown:
        """Return the usage of an item with all its follow-ups."""
        self._answers.clear()
        uses: Grown = {}
        seen: set[tuple[str, ...]] = set()
        groups: dict[tuple[str, str, str], _Group] = {}
        queue = deque(
            _SampledTask(spec=spec, model=model)
            for spec in unit.specs
            for model in self._roles.of(stage_of(self._job, spec.stage))
        )
        while queue or (queue := deque(self._gather(groups))):
            sampled_task = queue.popleft()
            if sampled_task.identity in seen:
                continue
            seen.add(sampled_task.identity)
            queue.extend(
                self._follow(sampled_task, self._answer(sampled_task, uses), groups)
            )
        share = unit.size / len(unit.specs)
        return {
            sampled_stage: _scaled(use, share) for sampled_stage, use in uses.items()
        }

    def _answer(self, sampled_task: _SampledTask, uses: Grown) -> Answer:
        spec = sampled_task.spec
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model=sampled_task.model,
            replicate=1,
            context=spec.context,
        )
        if spec.skip is not None:
            return Answer(task=task, skip=spec.skip)
        model_terms = self._terms.get(task.model, USUAL)
        try:
            request = model_terms.request(self._job, self._dataset, task)
        except Exception as error:  # noqa: BLE001 - the job is not ours
            return Answer(task=task, error=self._fails(error, "request"))
        content, tokens_in = self._content(request)
        sampled_stage = SampledStage(
            stage=spec.stage,
            model=sampled_task.model,
            is_first=sampled_task.root is None,
        )
        use = uses.setdefault(sampled_stage, StageUsage())
        use.calls += 1
        use.tokens_in += tokens_in
        use.most_out += worst_output(request)
        if content is None:
            return Answer(task=task, error=JobFault.__name__)
        reply = Reply(text=content) if isinstance(content, str) else content
        if isinstance(reply, Reply):
            reply_tokens = self._count(reply.text) + 1
            use.tokens_out += min(reply_tokens, worst_output(request))
        stage = stage_of(self._job, spec.stage)
        parsed = read_reply(stage, self._dataset, task, reply)
        return Answer(task=task, reply=reply, parsed=parsed)

    def _content(self, request: Request) -> tuple[Content | None, int]:
        """Return the baseline's answer and the prompt tokens; None if it raises."""
        cached = self._answers.get(request)
        if cached is None:
            self.calls += 1
            tokens = prompt_tokens(request, self._count)
            content: Content | None
            try:
                content = self._job.baseline(request)
            except Exception as error:  # noqa: BLE001 - the job is not ours
                self._fails(error, "baseline")
                content = None
            cached = self._answers[request] = (content, tokens)
        elif cached[0] is None:
            self.failing = replace(self.failing, tasks=self.failing.tasks + 1)
        return cached

    def _fails(self, error: Exception, method: str) -> str:
        """Count a task that fails in the job's *method*; return the error's class."""
        fault = job_fault(error, self._job, method)
        first = self.failing.first or f"{method} raised {fault}"
        self.failing = FailingTasks(tasks=self.failing.tasks + 1, first=first)
        return type(fault).__name__

    def _follow(
        self,
        sampled_task: _SampledTask,
        answer: Answer,
        groups: dict[tuple[str, str, str], _Group],
    ) -> Iterable[_SampledTask]:
        stage = stage_of(self._job, sampled_task.spec.stage)
        if stage.gathers:
            if sampled_task.spec.group is not None:
                key = (stage.name, sampled_task.model, sampled_task.spec.group)
                group = groups.setdefault(key, _Group(leader=sampled_task))
                group.answers.append(answer)
            return []
        is_followed = self._job.follows(self._dataset, stage)
        if not is_followed or answer.reply is None:
            return []
        return self._next(sampled_task, (answer,))

    def _next(
        self, leader: _SampledTask, group: tuple[Answer, ...]
    ) -> Iterator[_SampledTask]:
        """Yield the follow-up tasks of a group."""
        root = leader.root or leader
        try:
            specs = list(self._job.follow_up(self._dataset, group))
        except Exception as error:  # noqa: BLE001 - the job is not ours
            self._fails(error, "follow_up")
            return
        for spec in specs:
            for model in followers(
                self._job, spec.stage, leader.ancestors, self._roles
            ):
                yield _SampledTask(spec=spec, model=model, root=root)

    def _gather(
        self, groups: dict[tuple[str, str, str], _Group]
    ) -> Iterable[_SampledTask]:
        """Follow up the groups of the earliest stage that has grown."""
        for stage in self._job.stages:
            tasks: list[_SampledTask] = []
            for (name, _, _), group in groups.items():
                if name == stage.name and group.followed < len(group.answers):
                    group.followed = len(group.answers)
                    tasks += self._next(group.leader, tuple(group.answers))
            if tasks:
                return tasks
        return ()


def _scaled(use: StageUsage, share: float) -> StageUsage:
    return StageUsage(
        calls=use.calls * share,
        tokens_in=use.tokens_in * share,
        tokens_out=use.tokens_out * share,
        most_out=use.most_out * share,
    )
