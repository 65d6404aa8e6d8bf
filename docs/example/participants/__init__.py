"""participants: how many people did a trial enrol? A whole job in sixty lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from jobs.kit.inputs.files import read_jsonl
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.metrics import ratio, wilson
from runner.job import Answers, Job, Stage, Task, TaskSpec
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart
from runner.scorecard import Metric, Scorecard, Verdict

ASK = "How many people did this trial enrol? Answer with one number only.\n\n"
Trials = Mapping[str, tuple[str, int]]  # abstract and truth, by id


def parse(trials: Trials, task: Task, reply: Reply) -> int | ParseFailure:
    found = re.findall(r"\d+", reply.text.replace(",", ""))
    return int(found[0]) if len(found) == 1 else ParseFailure(reason="no_number")


class Options(BaseModel):
    trials: Path = Field(description="JSONL of trials: id, abstract, enrolled")


class Participants(Job):
    name, version, Settings = "participants", "1", Options
    stages = (Stage(name="count", parse=parse, follows=False),)

    def load(self, options: Options) -> Trials:
        needed = ("id", "abstract", "enrolled")
        rows = read_jsonl(options.trials, needed, findings=InputFindings())
        return {r.text("id"): (r.text("abstract"), r.count("enrolled")) for r in rows}

    def plan(self, trials: Trials) -> Iterator[TaskSpec]:
        return (TaskSpec(stage="count", key=trial) for trial in trials)

    def request(self, trials: Trials, task: Task) -> ChatRequest:
        parts = (TextPart(text=ASK), TextPart(text=trials[task.key][0]))
        return ChatRequest(messages=(Message(role="user", parts=parts),), max_tokens=32)

    def baseline(self, request: ChatRequest) -> str:
        found = re.search(r"([\d,]+) (patients|adults|women)", request.messages[0].text)
        return found[1] if found else "not reported"

    def score(self, trials: Trials, answers: Answers) -> Scorecard:
        given = (a for (a,) in answers.families() if a.task.key in trials)
        verdicts = [judged(a.task, a.chat, trials) for a in given if a.chat]
        metrics = {model: (accuracy(verdicts, model),) for model in answers.models}
        return Scorecard(
            models=metrics,
            summary="\n".join(f"{m}: {own.value}" for m, (own,) in metrics.items()),
            headline="accuracy",
            details=verdicts,
        )


def judged(task: Task, reply: Reply, trials: Trials) -> Verdict:
    read, enrolled = parse(trials, task, reply), trials[task.key][1]
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value=str(read),
        expected=str(enrolled),
        correct=read == enrolled,
        rule="one number",
    )


def accuracy(verdicts: Sequence[Verdict], model: str) -> Metric:
    right = [v.correct is True for v in verdicts if v.model == model]
    ends = wilson(sum(right), len(right))
    return Metric(
        path="accuracy",
        value=ratio(sum(right), len(right)),
        n=len(right),
        lo=ends.lo,
        hi=ends.hi,
        definition="accuracy@1; Wilson's interval, answers as independent",
    )


job = Participants()
