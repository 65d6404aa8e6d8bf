"""What a run must come to, worked out without the engine.

Stage by stage, from the job's own functions and what the model says; no log, no limits,
no faults.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from runner.job import Answer, Task, TaskSpec
from runner.messages import ParseFailure, Reply
from store.task import TaskState
from tests.runner.toy_jobs import ToySettings
from tests.simulation.job import VariedJob
from tests.simulation.says import Identity, Says
from tests.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """How a task has to end."""

    state: TaskState
    text: str | None = None
    reason: str | None = None
    error: str | None = None


def expected(scenario: Scenario) -> dict[Identity, Final]:
    """Every task that there will be, with its end."""
    found: dict[Identity, Final] = {}
    for lane in scenario.lanes:
        for replicate in range(1, scenario.replicates + 1):
            found |= _Part(scenario, lane.model, replicate).ends()
    return found


class _Part:
    """One model's one replicate."""

    def __init__(self, scenario: Scenario, model: str, replicate: int) -> None:
        self._job = VariedJob()
        self._data = ToySettings(items=scenario.items, words=scenario.words)
        self._says = Says(seed=scenario.seed)
        self._reask = scenario.reask
        self._model = model
        self._replicate = replicate

    def ends(self) -> dict[Identity, Final]:
        found: dict[Identity, Final] = {}
        specs: dict[str, list[TaskSpec]] = {s.name: [] for s in self._job.stages}
        specs["read"] += self._job.plan(self._data)
        for stage in self._job.stages:
            groups: dict[str, list[Answer]] = defaultdict(list)
            for number, spec in enumerate(specs[stage.name]):
                asked = (stage.name, spec.key, self._model, self._replicate)
                answer, found[asked] = self._end(spec, asked)
                groups[(spec.group or "") if stage.gathers else str(number)].append(
                    answer
                )
            for group in groups.values():
                is_followed = self._job.follows(self._data, stage)
                if not is_followed or not _counts(group, gathers=stage.gathers):
                    continue
                for follow_up in self._job.follow_up(self._data, tuple(group)):
                    specs[follow_up.stage].append(follow_up)
        return found

    def _end(self, spec: TaskSpec, asked: Identity) -> tuple[Answer, Final]:
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model=self._model,
            replicate=self._replicate,
        )
        if spec.skip is not None:
            final = Final(state=TaskState.SKIPPED, reason=spec.skip)
            return Answer(task=task, skip=spec.skip), final
        error = self._says.refusal(asked, 0)
        if error is not None:
            final = Final(state=TaskState.FAILED, error=error)
            return Answer(task=task, error=error), final
        reply, parsed = self._last_reply(task, asked)
        final = Final(
            state=TaskState.COMPLETED,
            text=reply.text,
            reason=parsed.reason if isinstance(parsed, ParseFailure) else None,
        )
        return Answer(task=task, reply=reply, parsed=parsed), final

    def _last_reply(self, task: Task, asked: Identity) -> tuple[Reply, object]:
        stage = next(s for s in self._job.stages if s.name == task.stage)
        turn = 0
        while True:
            reply = self._says.reply(asked, turn)
            parsed = stage.parse(self._data, task, reply)
            is_final = not isinstance(parsed, ParseFailure) or reply.is_truncated
            turn += 1
            if is_final or turn > self._reask or self._says.refusal(asked, turn):
                # what asking again does not better, stands
                return reply, parsed


def _counts(group: list[Answer], *, gathers: bool) -> bool:
    """Whether a group is followed up: alone, only a reply is."""
    if gathers:
        return any(answer.skip is None for answer in group)
    return group[0].reply is not None
