"""What the run has an answer to is taken over, and nothing of it is asked again.

Every job that ships, in shards: each task once, all of a family in one of them.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.errors import RunnerError, UsageError
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from runner.options import options_from
from runner.plan import identity
from runner.registry import load_job
from runner.shards.parts import (
    OtherLogs,
    read_other_logs,
    shard_of,
    takes_spec,
)
from runner.workload import load_workload
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import WriterLock, open_reader
from store.errors import PlaceAway
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    CommandApplied,
    CommandRejected,
    Entry,
    TasksPlanned,
)
from store.read.tasks import events
from store.read.usage import spending
from store.runs import RunFolder, places_in
from store.segments.place import Place
from store.task import PlannedTask, manifest_bytes
from tests.replacing import replace
from tests.runner.shards.sharded import Split, placed, rows, sample
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store.segments.carried import Fickle
from tests.store.union.union_logs import shard_log, shard_started


class Counting(ToyJob):
    """Keeps what its baseline was asked, and can prompt in other words."""

    def __init__(self, *, refused: str = "", words: str = "") -> None:
        super().__init__()
        self.asked: list[str] = []
        self.refused = refused
        self.words = words

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        del dataset
        text = f"{task.stage} {task.key}{self.words}"
        return ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text=text),)),),
            max_tokens=16,
        )

    def baseline(self, request: ChatRequest) -> str:
        text = request.messages[0].text
        self.asked.append(text)
        is_first = len(request.messages) == 1
        if self.refused and text.endswith(self.refused) and is_first:
            return ""
        return super().baseline(request)


class Renamed(Split):
    """Another run."""

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.place / "r2")


@dataclass
class Runs:
    """One split run, whose shards may come back with other words or numbers."""

    place: Path
    settings: ToySettings = field(default_factory=lambda: ToySettings(items=9))

    def split(self, job: Counting) -> Split:
        return Split(self.place, load_workload(job, self.settings))

    def asked(self, index: int, count: int, **words: str) -> list[str]:
        """What is asked when this shard is started."""
        job = Counting(**words)
        assert self.split(job).part(index, count).outcome == "finished"
        return job.asked


def test_other_shards_of_the_same_run_ask_nothing_again(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    asked = [text for i in range(2) for text in runs.asked(i, 2)]
    assert len(asked) == len(set(asked)) == 9 + 18 + 9
    assert [runs.asked(i, 3) for i in range(3)] == [[]] * 3
    # and what was taken over is taken over from there
    assert runs.asked(0, 1) == []
    folder = runs.split(Counting()).folder
    before = [row for i in range(2) for row in rows(folder.shard(i, 2))]
    after = rows(folder.shard(0, 1))
    assert {identity(row) for row in after} == {identity(row) for row in before}
    with open_reader(folder.shard(0, 1).log) as reader:
        answers = [r.event for r in events(reader, kinds=["attempt_answered"])]
        originals = {
            event.adopted for event in answers if isinstance(event, AttemptAnswered)
        }
    assert len(originals) == 36
    assert None not in originals
    folder.refresh()
    with open_reader(folder.log) as reader:
        assert spending(reader).spent_pico == 0


def test_a_log_that_goes_on_takes_over_what_others_did_meanwhile(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    first = runs.asked(0, 2)
    rest = runs.asked(0, 1)
    assert len(first) + len(rest) == 36
    assert runs.asked(1, 2) == []
    assert runs.asked(0, 2) == []


def test_an_answer_to_another_prompt_is_no_answer(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    before = runs.asked(0, 1)
    changed = runs.split(Counting(words=" now"))
    assert changed.part(0, 2).outcome == "finished"
    job = changed.work.job
    assert isinstance(job, Counting)
    assert 0 < len(job.asked) < len(before)
    assert any(
        f"{len(job.asked)} answers of the run belong to requests" in said
        for said in changed.told
    )


def test_what_came_of_asking_twice_is_taken_over_by_its_first_request(
    tmp_path: Path,
) -> None:
    """And what nobody could read even then is settled, too."""
    runs = Runs(tmp_path, ToySettings(items=3, reask=1))
    asked = runs.asked(0, 1, refused="i1")
    assert asked.count("read i1") == 2
    assert [runs.asked(i, 2, refused="i1") for i in range(2)] == [[], []]


def test_a_log_that_was_lost_is_found_again_where_it_was_carried(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path / "runs")
    place = Place.of(str(tmp_path / "place"))
    job = Counting()
    split = runs.split(job)
    split.place_of_logs = place
    assert split.part(0, 2).outcome == "finished"
    assert job.asked
    shutil.rmtree(tmp_path / "runs")
    again = runs.split(Counting())
    again.place_of_logs = place
    assert again.part(0, 2).outcome == "finished"
    assert again.work.job.asked == []
    assert places_in(again.folder.places) == [place.address]
    assert len(rows(again.folder.shard(0, 2))) == len(job.asked)


def test_a_union_knows_what_was_merged_into_it_from_logs_that_are_gone(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    assert runs.asked(0, 2)
    folder = runs.split(Counting()).folder
    folder.refresh()
    for file in folder.path.glob("log.0-2.*"):
        file.unlink()
    assert runs.asked(0, 2) == []


def test_a_shard_does_not_merge_what_was_carried_of_itself(tmp_path: Path) -> None:
    split = Runs(tmp_path / "runs").split(Counting())
    split.place_of_logs = Place.of(str(tmp_path / "place"))
    split.part(0, 2)
    split.part(0, 2)
    assert not split.folder.log.exists()


def test_a_place_holds_the_logs_of_one_run(tmp_path: Path) -> None:
    place = Place.of(str(tmp_path / "place"))
    split = Runs(tmp_path / "a").split(Counting())
    split.place_of_logs = place
    split.part(0, 2)
    held = place.names("seg")
    other = Renamed(tmp_path / "b", split.work, place_of_logs=place)
    with pytest.raises(UsageError, match="holds the logs of run r1: name another"):
        other.part(1, 2)
    assert place.names("seg") == held
    assert not other.folder.path.exists()


def test_a_place_that_nothing_can_be_kept_in_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    job = Counting()
    split = Runs(tmp_path / "a").split(job)
    split.place_of_logs = Fickle(str(tmp_path / "place"), takes=0)
    with pytest.raises(PlaceAway, match="cannot be used"):
        split.part(0, 2)
    assert job.asked == []
    assert not split.folder.path.exists()


def test_a_shard_is_of_the_run_that_the_others_are_of(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.asked(0, 2)
    other = Runs(tmp_path, ToySettings(items=10)).split(Counting())
    with pytest.raises(
        UsageError, match=r"log\.0-2\.db was started with another 'items'"
    ):
        other.part(1, 2)
    more = replace(runs.split(Counting()), options=options_from({"replicates": 2}))
    with pytest.raises(UsageError, match="another 'replicates'"):
        more.part(0, 2)
    named = replace(runs.split(Counting()), options=options_from({"model": ["b"]}))
    with pytest.raises(UsageError, match="another 'models'"):
        named.part(0, 2)
    deciding = replace(
        more,
        options=options_from({"model": ["a", "b"], "stop_when_decided": "answers"}),
    )
    with pytest.raises(UsageError, match="--stop-when-decided"):
        deciding.part(0, 2)


def test_a_run_is_split_from_its_beginning_or_not_at_all(tmp_path: Path) -> None:
    split = Runs(tmp_path).split(Counting())
    split.whole()
    with pytest.raises(UsageError, match="r1 is not split"):
        split.part(0, 2)
    shutil.rmtree(tmp_path / "r1")
    split.part(0, 2)
    with pytest.raises(UsageError, match="There is a run 'r1' already"):
        split.whole()


def test_no_two_processes_work_on_the_same_slices(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.asked(0, 2)
    split = runs.split(Counting())
    lock = WriterLock(split.folder.shard(0, 2).lock)
    lock.acquire()
    try:
        with pytest.raises(
            RunnerError, match=r"Shard 0/2 .* on 170 slices of Shard 1/3"
        ):
            split.part(1, 3)
        with pytest.raises(RunnerError, match="being written by another process"):
            split.part(0, 2)
        assert split.part(1, 2).outcome == "finished"
    finally:
        lock.release()


def _ask(folder: RunFolder, kind: str, **payload: object) -> None:
    command = Command(
        id=f"{kind}-1",
        author="somebody",
        host="here",
        at_us=1,
        kind=kind,
        payload=payload,
    )
    send_command(folder, command)


def test_what_was_asked_of_earlier_shards_is_not_done_twice_but_limits_hold(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    job = Counting()
    split = replace(
        runs.split(job), options=options_from({"budget": 8, "price": [1, 1]})
    )
    split.part(0, 2)
    _ask(split.folder, "budget", add_usd=2)
    _ask(split.folder, "limits", rpm=1e6)
    _ask(split.folder, "retry", filter="task:1")
    split.part(0, 2)
    split.part(0, 1)
    split.part(0, 1)
    folder = split.folder.shard(0, 1)
    with open_reader(folder.log) as reader:
        assert spending(reader).cap_usd == 10
        (answer,) = events(reader, kinds=["command_applied"])
    assert isinstance(answer.event, CommandApplied)
    assert answer.event.command == "limits-1"
    with open_reader(split.folder.shard(0, 2).log) as reader:
        (refused,) = events(reader, kinds=["command_rejected"])
    assert isinstance(refused.event, CommandRejected)
    assert "other numbers in the logs of shards" in refused.event.reason
    split.folder.refresh()
    with open_reader(split.folder.log) as reader:
        assert spending(reader).cap_usd == 10


def test_a_cancelled_run_is_not_begun_again_by_other_shards(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    split = runs.split(Counting())
    split.folder.path.mkdir(parents=True)
    _ask(split.folder, "cancel", now=True)
    assert [split.part(i, 2).outcome for i in range(2)] == ["cancelled"] * 2
    with pytest.raises(UsageError, match="r1 was cancelled; bring its tasks back"):
        split.part(0, 1)
    _ask(split.folder, "retry", filter="reason:cancelled")
    assert split.part(0, 1).outcome == "finished"


def _paid(folder: Path, index: int, count: int, usd: float) -> None:
    """The log of a shard that paid so much for one answer."""
    task = PlannedTask(
        stage="read", key=f"{index}-{count}", model="m", replicate=1, root=1
    )
    shard_log(
        folder,
        f"{index}-{count}",
        [shard_started(index, count)],
        [
            Entry(
                event=TasksPlanned(first=1, count=1, consumed=1, exhausted=True),
                payload=manifest_bytes([task]),
            )
        ],
        [AttemptStarted(task=1, attempt=1, request_sha256="x")],
        [
            Entry(
                event=AttemptAnswered(
                    task=1,
                    attempt=1,
                    form="chat",
                    status=200,
                    latency_ms=1.0,
                    finish_reason="stop",
                    cost_usd=usd,
                ),
                payload=b"{}",
            )
        ],
    )


def test_what_other_logs_spent_is_shared_by_those_who_have_their_slices(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "r1")
    folder.path.mkdir()
    _paid(folder.path, 0, 2, 4.0)
    _paid(folder.path, 1, 2, 1.0)

    def found(index: int, count: int) -> OtherLogs:
        return asyncio.run(
            read_other_logs(
                folder.shard(index, count),
                shard_of(f"{index}/{count}"),
                None,
                SystemClock(),
                lambda _: None,
            )
        )

    def spent(index: int, count: int) -> int:
        return found(index, count).spent.spent_pico

    assert [spent(i, 4) for i in range(4)] == [2 * 10**12] * 2 + [10**12 // 2] * 2
    # its own log is not another
    assert [spent(i, 2) for i in range(2)] == [0, 0]
    assert [found(i, 2).adopted for i in range(2)] == [None, None]
    thirds = [spent(i, 3) for i in range(3)]
    assert 5 * 10**12 <= sum(thirds) <= 5 * 10**12 + 3


JOBS = (
    "evidence-retrieval",
    "paper-investigation",
    "property-extraction",
    "review-benchmark",
    "screening",
)


@pytest.mark.parametrize("name", JOBS)
def test_three_shards_have_the_tasks_and_the_scores_of_the_whole_run(
    tmp_path: Path, name: str
) -> None:
    work = sample(load_job(name))
    alone = Split(tmp_path / "alone", work)
    assert alone.whole().outcome == "finished"
    split = Split(tmp_path / "split", work)
    found, first_stage = [], {}
    for index in range(3):
        assert split.part(index, 3).outcome == "finished"
        folder = split.folder.shard(index, 3)
        found += [(identity(row), row.state, row.reason) for row in rows(folder)]
        first_stage.update(placed(folder))
    whole = rows(alone.folder)
    assert len(found) == len(set(found)) == len(whole)
    assert set(found) == {(identity(row), row.state, row.reason) for row in whole}
    firsts = [identity(row) for row in whole if row.root == row.task]
    assert [first_stage[place] for place in range(len(firsts))] == firsts
    assert split.card() == alone.card()


SETTINGS = {
    "paper-investigation": [{}, {"mode": "questions"}],
    "property-extraction": [{}, {"requote": False}],
    "evidence-retrieval": [{}, {"batch": "query"}],
    "review-benchmark": [{}],
    "screening": [{}, {"criteria_source": "llm"}],
}


@pytest.mark.parametrize("name", JOBS)
def test_what_is_gathered_together_is_of_one_item(name: str) -> None:
    job = load_job(name)
    settings = sample(job).settings
    for other in SETTINGS[name]:
        changed = job.Settings.model_validate({**settings.model_dump(), **other})
        work = load_workload(job, changed)
        takes = takes_spec(shard_of("0/2"), job, work.dataset)
        items: dict[str, set[str]] = {}
        taken = []
        for spec in job.plan(work.dataset):
            item = job.item(work.dataset, spec)
            items.setdefault(spec.group or spec.key, set()).add(item)
            taken.append(takes(spec))
        assert all(len(found) == 1 for found in items.values())
        assert any(taken)
        assert not all(taken)
