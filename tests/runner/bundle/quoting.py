"""A toy job with texts wherever a run can have them: keys, replies, findings, notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from runner.job import Answer, Answers, InputFile, Job, Stage, Task, TaskSpec
from runner.messages import ChatRequest, Message, ParseFailure, Reply, TextPart
from runner.scorecard import (
    Finding,
    HistoryEntry,
    ItemValues,
    Labels,
    Metric,
    Scorecard,
    Verdict,
)
from store.results import ItemPart, ItemParts, ItemScore, Milestone
from tests.runner.toy_jobs import ToySettings

PROMPT = "You screen papers about the breeding of imaginary cave salamanders."
CHOICES = ("exclude", "include")


class QuotingSettings(ToySettings):
    """Settings of `Quoting`."""

    papers: Path = Path("papers.jsonl")
    question: str = ""


class Quoting(Job):
    """Decides on papers, and quotes them everywhere."""

    name = "quoting"
    version = "1"
    Settings = QuotingSettings

    def __init__(self) -> None:
        self.stages = (Stage(name="decide", parse=self._read),)

    @staticmethod
    def _read(
        dataset: list[dict[str, str]], task: Task, reply: Reply
    ) -> dict[str, str] | ParseFailure:
        del dataset, task
        content = json.loads(reply.text)
        if "quote" not in content:
            return ParseFailure(reason="no_quote", detail=f"near {reply.text!r}")
        return dict(content)

    def inputs(self, settings: QuotingSettings) -> tuple[InputFile, ...]:
        return (InputFile(setting="papers", path=settings.papers),)

    def load(self, settings: QuotingSettings) -> list[dict[str, str]]:
        lines = settings.papers.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def plan(self, dataset: list[dict[str, str]]) -> Iterator[TaskSpec]:
        for paper in dataset:
            yield TaskSpec(
                stage="decide",
                key=paper["title"],
                context=json.dumps({"begins": paper["text"][:60]}),
                group=paper["title"],
                skip="no_text" if not paper["text"] else None,
            )

    def request(self, dataset: list[dict[str, str]], task: Task) -> ChatRequest:
        (paper,) = (paper for paper in dataset if paper["title"] == task.key)
        user = (TextPart(text=paper["title"]), TextPart(text=paper["text"]))
        return ChatRequest(
            messages=(
                Message(role="system", parts=(TextPart(text=PROMPT),)),
                Message(role="user", parts=user),
            ),
            max_tokens=64,
        )

    def baseline(self, request: ChatRequest) -> str:
        text = request.messages[1].parts[1].text
        if "unreadable" in text:
            return json.dumps({"excuse": f"I cannot quote: {text[:80]}"})
        decision = CHOICES[len(text) % 2]
        return json.dumps({"decision": decision, "quote": text[20:90]})

    def score(self, dataset: list[dict[str, str]], answers: Answers) -> Scorecard:
        texts = {paper["title"]: paper["text"] for paper in dataset}
        truth = {paper["title"]: paper["label"] for paper in dataset}
        rows = [answer for family in answers.families() for answer in family]
        read = [(row, self._decided(row)) for row in rows if row.reply is not None]
        keys = [row.task.key for row, _ in read]
        hits = [float(said["decision"] == truth[row.task.key]) for row, said in read]
        value = sum(hits) / len(hits)
        metric = Metric(
            path="accuracy",
            value=value,
            n=len(hits),
            definition="accuracy@1()",
            note=f"the longest paper is {max(texts, key=lambda key: len(texts[key]))}",
        )
        models = dict.fromkeys(answers.models, (metric,))
        values = ItemValues(
            kind="mean",
            items=keys,
            clusters=keys,
            cluster="paper",
            first=hits,
            definition="accuracy@1()",
        )
        labels = Labels(
            what="decision",
            categories=CHOICES,
            items=keys,
            assigned=[said["decision"] or None for _, said in read],
        )
        model = answers.models[0]
        scores = {
            key: ItemScore(got=hit, of=1, passed=hit > 0)
            for key, hit in zip(keys, hits, strict=True)
        }
        return Scorecard(
            models=models,
            headline="accuracy",
            summary=f"accuracy {value}",
            findings=(
                Finding(
                    code="odd",
                    severity="warn",
                    where=keys[0],
                    message=f"A paper says: {texts[keys[0]][:70]}.",
                    example=texts[keys[-1]][-70:],
                ),
            ),
            details=[
                Verdict(
                    task=row.task.number,
                    model=row.task.model,
                    stage=row.task.stage,
                    key=row.task.key,
                    value=said["quote"],
                    expected=truth[row.task.key],
                    correct=hit > 0,
                    rule=f"json near {said['quote'][:30]}",
                    label=said["decision"] or None,
                    is_unparsed=not said["decision"],
                )
                for (row, said), hit in zip(read, hits, strict=True)
            ],
            comparable={model: {"accuracy": lambda: values}},
            labelled={model: lambda: labels},
            history_entry=HistoryEntry(
                milestone=Milestone(
                    job=self.name,
                    measure="accuracy",
                    item="paper",
                    part="claim",
                    items={key: texts[key][:40] for key in keys},
                    standings={model: scores},
                ),
                parts=ItemParts(
                    names={key: [texts[key][30:80]] for key in keys},
                    models={
                        model: {
                            key: [ItemPart(got=hit > 0)]
                            for key, hit in zip(keys, hits, strict=True)
                        }
                    },
                ),
            ),
        )

    @staticmethod
    def _decided(answer: Answer) -> dict[str, str]:
        assert answer.reply is not None
        content = json.loads(answer.reply.text)
        return {"decision": "", "quote": content.get("excuse", ""), **content}


job = Quoting()
"""Installed by tests as `quoting`."""
