"""participants: how many people did a trial enrol? A whole job in thirty lines."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, Field

from jobs.kit.inputs.files import read_jsonl
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.matches import score_matches
from runner.job import Answers, Job, Stage, Task, TaskSpec
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart
from runner.scorecard import Scorecard

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
        expected = {trial: enrolled for trial, (_, enrolled) in trials.items()}
        return score_matches(self.stages[0], trials, answers, expected)


job = Participants()
