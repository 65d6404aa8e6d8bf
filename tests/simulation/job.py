"""The toy job with what it lacks: words that the plan skips."""

from __future__ import annotations

from collections.abc import Iterator

from runner.job import Answer, Task, TaskSpec
from runner.messages import ChatRequest, Message, TextPart
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob, ToySettings

LONGEST = 600
"""Letters of a prompt; tokens at worst are a third of it."""


class VariedJob(ToyJob):
    """Reads, asks about words, sums them up; prompts differ in length."""

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        """The task's name and some filling, by model and replicate too."""
        request = super().request(dataset, task)
        name = f"{request.messages[0].text} {task.model} {task.replicate} "
        filling = "x" * (sum(name.encode()) % LONGEST)
        part = TextPart(text=name + filling)
        return replace(request, messages=(Message(role="user", parts=(part,)),))

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """As the toy job's, less the words ending in z."""
        for spec in super().follow_up(dataset, group):
            yield replace(spec, skip="last letter") if spec.key.endswith("z") else spec
