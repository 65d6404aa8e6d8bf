"""A whole run at an endpoint that takes no schema: found out once, recorded, done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from runner.job import Task
from runner.messages import ChatRequest, Schema
from runner.options import options_from
from runner.run import launch
from runner.workload import load_workload
from store.database import open_reader
from store.events import AttemptFailed, AttemptStarted
from store.read.status import status
from store.read.tasks import events
from store.runs import RunFolder
from tests.replacing import replace
from tests.runner.run.test_launch import _shell
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.wire_forms import DEEPSEEK
from tests.wire_server import Heard, Said, saying

pytestmark = pytest.mark.asyncio

AT_A_TIME = 8
ITEMS = 30


class Formal(ToyJob):
    """Asks for objects."""

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        asked = super().request(dataset, task)
        return replace(asked, schema=Schema(name="words", json='{"type":"object"}'))


def form_of(heard: Heard) -> str:
    return heard.body.get("response_format", {}).get("type", "text")


@pytest.mark.parametrize(
    "taken", [("text",), ("json_object", "text"), ("json_schema", "json_object")]
)
async def test_each_form_that_is_refused_costs_one_call(
    taken: tuple[str, ...], tmp_path: Path
) -> None:
    def answer(heard: Heard) -> Said:
        form = form_of(heard)
        if form not in taken:
            message = f"'response_format' of type '{form}' is not supported"
            return Said(body=DEEPSEEK.refuse(message), status=400)
        return Said(body=DEEPSEEK.reply("a b"))

    folder = RunFolder(tmp_path / "r1")
    async with saying(answer) as wire:
        options = options_from(
            {
                "model": "m",
                "base_url": wire.url,
                "concurrency": AT_A_TIME,
                "price": [0, 0],
            }
        )
        work = load_workload(Formal(), ToySettings(items=ITEMS))
        ended = await launch.start(folder, work, options, _shell(tmp_path))
    assert ended.outcome == "finished"
    with open_reader(folder.log) as reader:
        counts = status(reader).tasks
        found = [row.event for row in events(reader, limit=100_000)]
    assert (counts.completed, counts.failed) == (4 * ITEMS, 0)
    refused = [each for each in found if isinstance(each, AttemptFailed)]
    assert {each.error for each in refused} <= {"FormRefused"}
    heard = Counter(form_of(each) for each in wire.heard)
    best = ("json_schema", "json_object", "text").index(taken[0])
    assert len(refused) == best
    assert heard[taken[0]] == 4 * ITEMS
    # every request that left stands in the log
    started = sum(isinstance(each, AttemptStarted) for each in found)
    assert started == len(wire.heard) == 4 * ITEMS + len(refused)


async def test_a_schema_that_is_switched_off_by_the_job_is_never_tried(
    tmp_path: Path,
) -> None:
    async with saying(Said(body=DEEPSEEK.reply("a b"))) as wire:
        options = options_from({"model": "m", "base_url": wire.url, "price": [0, 0]})
        work = load_workload(ToyJob(), ToySettings(items=1))
        await launch.start(RunFolder(tmp_path / "r1"), work, options, _shell(tmp_path))
    assert {form_of(each) for each in wire.heard} == {"text"}
