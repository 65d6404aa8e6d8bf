"""A few items of a plan, answered offline: what an item comes to; pure but for chance.

An item is a first-stage task, or all those in a row that share a group. A sample of
them is answered by the job's own baseline, through the real requests, parsers and
follow-ups, in memory. Nothing is sent and nothing recorded.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from runner.bounds import worst_output
from runner.job import Dataset, Job
from runner.plan import stage_of
from runner.reply import Reply
from runner.task import Answer, Task, TaskSpec
from runner.tokens import CountTokens, prompt_tokens, text_tokens

SEED: Final = 20
"""Of the choice of items: the same estimate from the same data."""
LARGEST: Final = 1000
"""Tasks that are kept of an item."""


@dataclass(slots=True, kw_only=True)
class Use:
    """What the calls of a stage come to, for one model and one replicate."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0  #: of the baseline's replies
    most_out: float = 0.0  #: as much as the requests allow


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A stage in a family of tasks."""

    stage: str
    root: str  #: stage of the family's first task
    is_first: bool  #: its tasks are planned first, and follow from none


Grown = dict[Place, Use]
"""What one item comes to."""


@dataclass(slots=True, kw_only=True)
class Unit:
    """An item of the plan."""

    specs: list[TaskSpec]
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The items of a plan, and what those came to that were tried."""

    items: int
    specs: int  #: first-stage tasks, skipped ones included
    first_calls: Counter[str]  #: those that are asked, by stage: exact
    tried: tuple[Grown, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every item was tried."""
        return len(self.tried) == self.items


def draw(
    job: Job,
    dataset: Dataset,
    *,
    items: int,
    goes_on: Callable[[int], bool],
    among: int | None = None,
    largest: int = LARGEST,
    model: str = "baseline/lexical",
    count: CountTokens = text_tokens,
) -> Sample:
    """Try some items of a plan, drawn evenly and always the same.

    Args:
        job: whose plan, requests, parsers, follow-ups and baseline.
        dataset: its data.
        items: how many to try, at most.
        goes_on: whether another is tried, after so many baseline answers; one is.
        among: look at no more than so many items of the plan; None: at all.
        largest: tasks of an item that are kept; the first stand for the rest.
        model: whose requests are built.
        count: counts the tokens of a text.
    """
    first_calls: Counter[str] = Counter()
    chance = random.Random(SEED)  # noqa: S311 - a sample, no secret
    kept: list[Unit] = []
    seen = specs = 0
    next_kept = _Skips(items, chance)
    for unit in islice(_units(job, dataset, first_calls, largest), among):
        seen += 1
        specs += unit.size
        if len(kept) < items:
            kept.append(unit)
        elif seen == next_kept.at:
            kept[chance.randrange(items)] = unit
            next_kept.skip()
    chance.shuffle(kept)
    offline = _Offline(job, dataset, model, count)
    tried: list[Grown] = []
    for unit in kept:
        if tried and not goes_on(offline.calls):
            break
        tried.append(offline.grown(unit))
    return Sample(items=seen, specs=specs, first_calls=first_calls, tried=tuple(tried))


class _Skips:
    """Which items enter a full reservoir: algorithm L (Li, 1994)."""

    def __init__(self, size: int, chance: random.Random) -> None:
        self._size = size
        self._chance = chance
        self._w = 1.0
        self.at = size
        self.skip()

    def skip(self) -> None:
        """Choose the next."""
        self._w *= math.exp(math.log(1.0 - self._chance.random()) / self._size)
        gap = math.log(1.0 - self._chance.random()) / math.log1p(-self._w)
        self.at += math.floor(gap) + 1


def _units(
    job: Job, dataset: Dataset, first_calls: Counter[str], largest: int
) -> Iterator[Unit]:
    gathers = {stage.name for stage in job.stages if stage.gathers}
    unit: Unit | None = None
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
        unit = Unit(specs=[spec])
    if unit is not None:
        yield unit


@dataclass(slots=True, kw_only=True)
class _Group:
    """Answers that a stage gathers under a key."""

    answers: list[Answer] = field(default_factory=list)
    followed: int = 0  #: answers it had when it was followed up


class _Offline:
    """Answers items by the baseline."""

    def __init__(
        self, job: Job, dataset: Dataset, model: str, count: CountTokens
    ) -> None:
        self._job = job
        self._dataset = dataset
        self._model = model
        self._count = count
        self.calls = 0

    def grown(self, unit: Unit) -> Grown:
        """What an item comes to with all that follows from it."""
        uses: Grown = {}
        first = {(spec.stage, spec.key) for spec in unit.specs}
        there: set[tuple[str, str]] = set()
        groups: dict[tuple[str, str], _Group] = {}
        queue = deque(unit.specs)
        while queue or (queue := deque(self._gather(groups))):
            spec = queue.popleft()
            name = (spec.stage, spec.key)
            if name in there:
                continue
            there.add(name)
            place = Place(
                stage=spec.stage, root=unit.specs[0].stage, is_first=name in first
            )
            answer = self._answer(spec, uses, place)
            queue.extend(self._follow(spec, answer, groups))
        share = unit.size / len(unit.specs)
        return {place: _scaled(use, share) for place, use in uses.items()}

    def _answer(self, spec: TaskSpec, uses: Grown, place: Place) -> Answer:
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model=self._model,
            replicate=1,
            context=spec.context,
        )
        if spec.skip is not None:
            return Answer(task=task, skip=spec.skip)
        request = self._job.request(self._dataset, task)
        content = self._job.baseline(request)
        reply = Reply(text=content) if isinstance(content, str) else content
        parse = stage_of(self._job, spec.stage).parse
        self.calls += 1
        use = uses.setdefault(place, Use())
        use.calls += 1
        use.tokens_in += prompt_tokens(request, self._count)
        if isinstance(reply, Reply):
            said = self._count(reply.text) + 1
            use.tokens_out += min(said, worst_output(request))
        use.most_out += worst_output(request)
        return Answer(task=task, reply=reply, parsed=parse(self._dataset, task, reply))

    def _follow(
        self,
        spec: TaskSpec,
        answer: Answer,
        groups: dict[tuple[str, str], _Group],
    ) -> Iterable[TaskSpec]:
        stage = stage_of(self._job, spec.stage)
        if stage.gathers:
            if spec.group is not None:
                group = groups.setdefault((spec.stage, spec.group), _Group())
                group.answers.append(answer)
            return ()
        if not stage.follows or answer.reply is None:
            return ()
        return self._job.follow_up(self._dataset, (answer,))

    def _gather(self, groups: dict[tuple[str, str], _Group]) -> Iterable[TaskSpec]:
        """Follow up the groups of the earliest stage that has grown."""
        for stage in self._job.stages:
            specs: list[TaskSpec] = []
            for (name, _), group in groups.items():
                if name == stage.name and group.followed < len(group.answers):
                    group.followed = len(group.answers)
                    specs += self._job.follow_up(self._dataset, tuple(group.answers))
            if specs:
                return specs
        return ()


def _scaled(use: Use, share: float) -> Use:
    return Use(
        calls=use.calls * share,
        tokens_in=use.tokens_in * share,
        tokens_out=use.tokens_out * share,
        most_out=use.most_out * share,
    )
