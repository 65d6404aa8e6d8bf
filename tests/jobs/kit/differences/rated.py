"""A job of numbers held against a gold file, and runs of it whose answers are given.

Its parser and its scorer can be exchanged, as code is from one version to the next.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from jobs.kit.metrics import auroc
from runner.clients.wire import encode_answer
from runner.job import Answers, InputFile
from runner.messages import Reply
from runner.score.scoring import Scoring, score_run
from runner.scorecard import Booking, ItemValues, Metric, Scorecard, Table, Verdict
from runner.workload import as_json, validated
from store.events import (
    AttemptAnswered,
    Entry,
    Event,
    RunStarted,
    TaskCompleted,
    TasksReopened,
)
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.runner.toy_jobs import ToyJob
from tests.store.memory_log import FakeClock
from tests.store.samples import plan, task

MODEL = "m-large"

Given = Mapping[str, float]
"""Numbers by item; an item is `PAPER/QUESTION`."""


class RatedSettings(BaseModel):
    """Settings of `Rated`."""

    gold: Path | None = None
    threshold: float = Field(0.5, gt=0)
    least: float = 0.0  #: must not be above the threshold
    power: int = 1

    def model_post_init(self, context: Any) -> None:
        del context
        if self.least > self.threshold:
            raise ValueError("least is above threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    settings: RatedSettings
    gold: Given


class Rated(ToyJob):
    """Says of each item whether its number is on the same side as the gold's."""

    name = "rated"
    Settings = RatedSettings
    factor = 1.0  #: of the parser: what a reply's number is multiplied by
    slack = 0.0  #: of the scorer

    def inputs(self, settings: RatedSettings) -> tuple[InputFile, ...]:
        path = settings.gold
        return () if path is None else (InputFile(setting="gold", path=path),)

    def load(self, settings: RatedSettings) -> Data:
        gold = {} if settings.gold is None else json.loads(settings.gold.read_text())
        return Data(settings=settings, gold=gold)

    def score(self, dataset: Data, answers: Answers) -> Scorecard:
        read = {
            family[0].task: float(family[0].chat.text) * self.factor
            for family in answers.families()
            if family[0].chat is not None and family[0].task.key in dataset.gold
        }
        edge = dataset.settings.threshold
        right, weight, verdicts = {}, {}, []
        for asked, value in read.items():
            truth = dataset.gold[asked.key]
            right[asked.key] = float((value >= edge + self.slack) == (truth >= edge))
            weight[asked.key] = (1 + abs(truth)) ** dataset.settings.power
            verdicts.append(
                Verdict(
                    task=asked.number,
                    model=MODEL,
                    stage="read",
                    key=asked.key,
                    value=repr(value),
                    expected=repr(truth),
                    correct=bool(right[asked.key]),
                    rule="number",
                )
            )
        above = sum(right[item] * weight[item] for item in right)
        labels = [float(dataset.gold[asked.key] >= edge) for asked in read]
        area = auroc(labels, list(read.values()))
        n = len(right)
        values = {
            "accuracy": sum(right.values()) / n if n else None,
            "weighted": above / sum(weight.values()) if n else None,
            "area": area,
            "right": sum(right.values()),
            "all_right": 1.0 if n and all(right.values()) else None,
        }
        made = partial(_items, list(right))
        return Scorecard(
            models={
                MODEL: tuple(
                    Metric(path=path, value=value, n=n, definition=f"{path}@1")
                    for path, value in values.items()
                )
            },
            summary="",
            headline="accuracy",
            details=verdicts,
            comparable={
                MODEL: {
                    "accuracy": partial(made, "mean", list(right.values()), None),
                    "weighted": partial(
                        made,
                        "ratio",
                        [right[item] * weight[item] for item in right],
                        list(weight.values()),
                    ),
                    "area": partial(made, "auroc", labels, list(read.values())),
                }
            },
            bookable={MODEL: lambda: sum(right.values())},
        )

    def causes(
        self, names: frozenset[str], before: float, after: float
    ) -> Booking | None:
        if names != {"threshold"}:
            return None
        change = int(after - before)
        table = Table(
            name="sides", columns=("side", "n"), rows=(("any", change),), caption="side"
        )
        return Booking(metric="right", change=change, table=table)


def _items(
    items: list[str],
    kind: Any,
    first: list[float],
    second: list[float] | None,
) -> ItemValues:
    return ItemValues(
        kind=kind,
        items=items,
        clusters=[item.partition("/")[0] for item in items],
        cluster="paper",
        first=first,
        second=second,
        definition="given",
    )


job = Rated()


class RatedRun:
    """A run of `Rated`: answers, gold and code may change between its scorings."""

    def __init__(self, home: Path) -> None:
        self.gold = home / "gold.json"
        self.folder = RunFolder(home / "runs" / "r")
        self.folder.path.mkdir(parents=True)
        self.clock = FakeClock()
        self._numbers: dict[str, int] = {}
        asyncio.run(self._start())

    async def _start(self) -> None:
        async with await SqliteLog.create(
            self.folder.log,
            run_id="r",
            config_sha256=bytes(32),
            clock=self.clock,
            owner="tests",
        ) as log:
            await log.append(
                RunStarted(
                    run_id="r",
                    job=Rated.name,
                    job_version="1",
                    code_sha256="0" * 64,
                    settings=as_json(validated(job, {})),
                    models={"subject": [MODEL]},
                    replicates=1,
                    inputs=[],
                    siftlog_version="0.1.0",
                )
            )

    def answer(self, answers: Given) -> None:
        """Have items answered; those that were answered before, once more."""
        again = [self._numbers[key] for key in answers if key in self._numbers]
        fresh = [key for key in answers if key not in self._numbers]
        first = len(self._numbers) + 1
        self._numbers |= {key: number for number, key in enumerate(fresh, first)}
        entries: list[Entry | Event] = []
        if again:
            entries.append(TasksReopened(tasks=again, by="someone"))
        if fresh:
            tasks = [task(self._numbers[key], stage="read", key=key) for key in fresh]
            entries.append(plan(tasks, first=first))
        for key, value in answers.items():
            entries += _answered(self._numbers[key], value)
        if entries:
            asyncio.run(self._append(entries))

    async def _append(self, entries: list[Entry | Event]) -> None:
        async with await SqliteLog.open(
            self.folder.log, clock=self.clock, owner="tests"
        ) as log:
            await log.append(*entries)

    def scored(self, gold: Given, **settings: object) -> Scoring:
        """Score it by a gold file of that content."""
        self.gold.write_text(json.dumps(gold))
        made = validated(job, {"gold": self.gold, **settings})
        scoring = score_run(
            job, self.folder, made, clock=self.clock, record=True, report=False
        )
        return asyncio.run(scoring)


def _answered(number: int, value: float) -> Iterator[Entry | Event]:
    form, body = encode_answer(Reply(text=repr(value), finish_reason="stop"))
    event = AttemptAnswered(
        task=number,
        attempt=1,
        form=form,
        status=200,
        latency_ms=None,
        finish_reason="stop",
    )
    yield Entry(event=event, payload=body)
    yield TaskCompleted(task=number, attempt=1, unparsed=None)
