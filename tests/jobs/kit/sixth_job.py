"""A sixth job on the kit, with two stages: which drug, and then which dose of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobs.kit.chat import data_block, read_blocks
from jobs.kit.evaluation import SourceMeasures
from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel
from jobs.kit.measurements import share
from jobs.kit.measures import ValueMeasure
from jobs.kit.questions import STAGE, QuestionJob, Questions
from runner.job import Answer, Answers, Stage, Task, TaskSpec
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart

DOSE_QUESTION = "Which dose of the drug was given, in mg? Answer with a number.\n\n"


class Treatment(RowModel):
    id: cells.Filled
    paper: cells.Filled
    text: cells.Filled
    drug: cells.Filled | None = None
    dose: cells.Count | None = None


def read_dose(_: object, task: Task, reply: Reply) -> int | ParseFailure:
    del task
    found = re.search(r"\d+", reply.text)
    return int(found[0]) if found else ParseFailure(reason="no_dose")


def collected(dataset: Questions, answers: Answers) -> Mapping[str, list[bool]]:
    right: dict[str, list[bool]] = {model: [] for model in answers.models}
    for _, *doses in answers.families():
        for answer in doses:
            dose = dataset.rows[answer.task.key].dose
            if answer.chat is not None and dose is not None:
                read = read_dose(dataset, answer.task, answer.chat)
                right[answer.task.model].append(read == dose)
    return right


DOSES = SourceMeasures(
    source=list[bool],
    measures={
        "dose.accuracy": ValueMeasure(
            "Dose accuracy",
            "Share of known doses that were answered right, where the drug was read",
            "higher",
            of=lambda right: share(sum(right), len(right)),
            definition="dose accuracy@1(right / answered rows with a known dose)",
        )
    },
    collect=collected,
)


class Treatments(QuestionJob):
    """Which drug was given, and in which dose?"""

    name, version, Row = "treatments", "1", Treatment
    question = "Which drug was given? Answer with its name only."
    show, truth, cluster, further = ("text",), "drug", "paper", DOSES

    def __init__(self) -> None:
        super().__init__()
        first = Stage(name=STAGE, parse=self.parse)
        self.stages = (first, Stage(name="dose", parse=read_dose, follows=False))

    def read(self, text: str) -> str | None:
        return text.lower() if text.isalpha() else None

    def offline(self, texts: Mapping[str, str]) -> str:
        return (re.findall(r"\w+in\b", texts["text"]) or ["not reported"])[0]

    def follow_up(
        self, dataset: Questions, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        if isinstance(group[0].parsed, str):
            yield TaskSpec(stage="dose", key=group[0].task.key)

    def request(self, dataset: Questions, task: Task) -> ChatRequest:
        if task.stage == STAGE:
            return super().request(dataset, task)
        text = data_block("text", dataset.rows[task.key].text, seed=task.key)
        parts = (TextPart(text=DOSE_QUESTION), TextPart(text=text))
        return ChatRequest(messages=(Message(role="user", parts=parts),), max_tokens=32)

    def baseline(self, request: ChatRequest) -> str:
        prompt = request.messages[0].text
        if not prompt.startswith(DOSE_QUESTION):
            return super().baseline(request)
        return (re.findall(r"(\d+) mg", dict(read_blocks(prompt))["text"]) or ["none"])[
            0
        ]


job = Treatments()
