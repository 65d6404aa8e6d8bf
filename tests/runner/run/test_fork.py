"""A fork asks exactly the requests that differ, and equals a run from nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGSTOP
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.added_stages import declared, extended
from runner.clients.client import Call, ClientOptions
from runner.clients.offline import FunctionClient
from runner.errors import UsageError
from runner.job import Answer, Answers, Job, Task, TaskSpec
from runner.messages import AnyReply, ChatRequest, Message, Reply, TextPart, Usage
from runner.money.tokens import prompt_tokens, text_tokens, worst_output
from runner.options import RunOptions, options_from
from runner.run import endpoints, launch
from runner.run.add_stage import StageSource
from runner.run.fork import carried_stages, fork_origin, forks_of
from runner.run.rehearsal import ForkForecast, rehearsal_room, rehearse
from runner.score.scoring import score_run
from runner.scorecard import Metric, Scorecard
from runner.shards.parts import shard_of
from runner.shards.worker import work_on
from runner.workload import load_workload
from store.clock import SystemClock
from store.database import copy_log, open_reader
from store.errors import CommitRefused, StoreError, Unwritable
from store.events import Entry
from store.lineage import StageAdded
from store.read.tasks import every_task
from store.read.usage import spending
from store.runs import RunFolder
from store.tables import payload
from store.verify import verify
from tests.commands import command
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start, status, until
from tests.runner.run.test_launch import _shell
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store import log_reader
from tests.store.union.union_logs import merge_in_another_order

EXAMPLES = 150 if "SIFTLOG_PROVE" in os.environ else 5

Sent = list[tuple[str, str, str, int, str]]
"""Stage, key, model, replicate and request of each call."""

Parts = tuple[str, ...]
"""Shards that make a run, in this order; later ones adopt what others answered."""


@dataclass(frozen=True, kw_only=True)
class Edits:
    """What a person may change between two runs."""

    items: int = 3
    words: int = 2
    prompts: tuple[str, str, str] = ("", "", "")  #: added to those of each stage
    edited: frozenset[int] = frozenset()  #: items whose data were changed
    sums: bool = True  #: whether the last stage is planned
    models: tuple[str, ...] = ("m1",)
    from_stage: str | None = None


FIELDS = """
[fields.fits]
ask = "Does the reply name the prompt's words?"
type = "one-of"
options = ["yes", "no"]
"""

STAGES = (
    *(f'name = "seen"\njudges = "{stage}"\n{FIELDS}' for stage in ("ask", "sum")),
    f'name = "seen"\nscans = "read"\n{FIELDS}',
)
"""Stages that may be added to the toy job."""


class EditedJob(ToyJob):
    """The toy job after some edits; its baseline's words depend on the prompt."""

    def __init__(self, edits: Edits) -> None:
        super().__init__()
        self.edits = edits

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        del dataset
        stages = [stage.name for stage in self.stages]
        item = int(task.key.partition("/")[0][1:])
        data = "new" if item in self.edits.edited else "old"
        edit = self.edits.prompts[stages.index(task.stage)]
        text = f"{task.stage} {task.key} {data if task.stage == 'read' else ''} {edit}"
        part = TextPart(text=text)
        message = Message(role="user", parts=(part,))
        return ChatRequest(messages=(message,), max_tokens=16)

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        for spec in super().follow_up(dataset, group):
            if self.edits.sums or spec.stage != "sum":
                yield spec

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        del dataset
        texts = [
            f"{answer.task.stage} {answer.task.key} {answer.parsed}"
            for family in answers.families()
            for answer in family
        ]
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        metric = Metric(
            path="answers", value=len(texts), n=len(texts), definition="answers@1"
        )
        return Scorecard(
            models=dict.fromkeys(answers.models, (metric,)), summary=digest
        )

    def baseline(self, request: ChatRequest) -> str:
        text = request.messages[0].text
        if not text.startswith("read"):
            return text
        letters = hashlib.sha256(text.encode()).hexdigest()
        return f"{letters[0]} x{letters[1]}"


@dataclass(frozen=True)
class World:
    """A folder of runs beside a deterministic endpoint that records its calls."""

    path: Path

    def options(self, edits: Edits, **changes: Any) -> RunOptions:
        plain = {
            "model": edits.models,
            "stage_models": ["judge"],
            "base_url": "http://127.0.0.1:9/v1",
            "price": (0.15, 0.6),
            "api": "chat",
        }
        return options_from({**plain, **changes})

    def run(
        self,
        name: str,
        edits: Edits,
        parent: str | None = None,
        stage: str | None = None,
        parts: Parts = (),
        **changes: Any,
    ) -> tuple[RunFolder, Sent, bytes, ForkForecast | None]:
        """Run the edited job; return its folder, calls, scorecard and forecast.

        With the declaration of a stage the run has it from the beginning; a fork has
        those of its parent. With parts the run is split.
        """
        job: Job = EditedJob(edits)
        added = [] if stage is None else [self.declared(stage)]
        if parent is not None:
            added = carried_stages(RunFolder(self.path / parent))
        for entry in added:
            assert isinstance(entry.event, StageAdded)
            job = extended(job, declared(entry.event, entry.payload or b""))
        sent = Sent()
        folder, shell = RunFolder(self.path / name), _shell(self.path)
        options = self.options(edits, **changes)
        work = load_workload(job, ToySettings(items=edits.items, words=edits.words))

        def answer(call: Call) -> AnyReply:
            task, text = call.task, job.baseline(call.request)
            sent.append(
                (task.stage, task.key, task.model, task.replicate, call.request_sha256)
            )
            written = min(text_tokens(text) + 1, worst_output(call.request))
            usage = Usage(tokens_in=prompt_tokens(call.request), tokens_out=written)
            return Reply(text=text, usage=usage)

        def opened(_model: str, _options: ClientOptions) -> FunctionClient:
            return FunctionClient(answer)

        async def carried() -> tuple[bytes, ForkForecast | None]:
            plan = origin = None
            for part in parts:
                shard = shard_of(part)
                of_part = folder.shard(shard.index, shard.count)
                ended = await work_on(of_part, shard, work, options, shell)
                assert ended.outcome == "finished"
            if parts:
                folder.refresh()
            if parent is not None:
                above = RunFolder(self.path / parent)
                origin = fork_origin(
                    above,
                    job,
                    self.options(edits),
                    options,
                    {},
                    now_us=SystemClock().now_us(),
                    from_stage=edits.from_stage,
                )
                plan = await rehearse(
                    above, name, work, options, shell, fork=origin, added=added
                )
                assert sent == []
            if not parts:
                ended = await launch.start(
                    folder, work, options, shell, fork=origin, added=added
                )
                assert ended.outcome == "finished"
            scoring = await score_run(
                job, folder, work.settings, clock=SystemClock(), record=True
            )
            return scoring.content, plan

        with pytest.MonkeyPatch.context() as replaced:
            replaced.setattr(endpoints, "open_client", opened)
            content, plan = asyncio.run(carried())
        return folder, sent, content, plan

    def declared(self, text: str) -> Entry:
        """The event that adds a stage."""
        file = self.path / "stage.toml"
        file.write_text(text)
        return StageSource.read(file, "judge").entry(None)


def _spent(folder: RunFolder) -> int:
    with open_reader(folder.log) as reader:
        return spending(reader).spent_pico


EDITS = st.builds(
    Edits,
    items=st.integers(1, 4),
    words=st.integers(0, 2),
    prompts=st.tuples(*[st.sampled_from(["", "please"])] * 3),
    edited=st.frozensets(st.integers(0, 3), max_size=2),
    sums=st.booleans(),
    models=st.sampled_from([("m1",), ("m2",), ("m1", "m2")]),
    from_stage=st.sampled_from([None, None, "read", "ask", "sum"]),
)
PARENTS = st.one_of(
    st.sampled_from([None, *STAGES]).map(lambda stage: (stage, ())),
    st.sampled_from(
        [
            ("0/2", "1/2"),
            ("2/3", "0/3", "1/3"),
            ("1/2", "0/1"),
            ("0/2", "1/2", "0/3", "1/3", "2/3"),
        ]
    ).map(lambda parts: (None, parts)),
)
"""The stage that was added to a parent, and the parts of one that is split."""


@pytest.mark.timeout(3600 if EXAMPLES > 100 else 900)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(first=EDITS, then=EDITS, above=PARENTS)
def test_a_fork_asks_what_differs_and_equals_a_run_from_nothing(
    first: Edits, then: Edits, above: tuple[str | None, Parts]
) -> None:
    stage, parts = above
    with TemporaryDirectory() as room:
        world = World(Path(room))
        parent, before, _, _ = world.run("parent", first, stage=stage, parts=parts)
        scratch, whole, expected, _ = world.run("scratch", then, stage=stage)
        fork, asked, content, plan = world.run("fork", then, parent="parent")
        assert plan is not None
        assert len(whole) >= then.items * len(then.models)
        stages = [*(each.name for each in EditedJob(then).stages), "seen"]
        anew = stages[stages.index(then.from_stage) :] if then.from_stage else []
        known = {(stage, sha256) for stage, _, _, _, sha256 in before}
        differs = sorted(
            call for call in whole if call[0] in anew or (call[0], call[4]) not in known
        )
        assert sorted(asked) == differs
        assert differs == sorted(
            (r.stage, r.key, r.model, r.replicate, r.request_sha256) for r in plan.sent
        )
        assert content == expected
        assert _spent(fork) == plan.spend_pico
        assert plan.saved_pico + _spent(fork) == _spent(scratch)
        if parts:
            merge_in_another_order(parent)
        with open_reader(fork.log) as reader:
            assert verify(reader).is_sound


def test_a_fork_has_the_stages_that_were_added_and_adopts_their_answers(
    tmp_path: Path,
) -> None:
    world, judge = World(tmp_path), STAGES[0]
    _, before, _, _ = world.run("a", Edits(), stage=judge)
    edited = Edits(edited=frozenset([1]))
    _, asked, content, plan = world.run("b", edited, parent="a")
    # words of the item that was edited are asked anew, and their replies judged
    assert {call[0] for call in asked} >= {"read", "seen"}
    assert len([call for call in asked if call[0] == "seen"]) < len(
        [call for call in before if call[0] == "seen"]
    )
    assert plan is not None
    assert plan.stages["seen", "judge"].adopted > 0
    metrics = json.loads(content)["models"]["m1"]["metrics"]
    assert metrics["seen.fits.yes"]["n"] == 6


def stored_bodies_of(folder: RunFolder) -> list[bytes | None]:
    with open_reader(folder.log) as reader:
        return [payload(reader, row.reply_seq or 0) for row in every_task(reader)]


def test_a_fork_of_a_fork_reads_bodies_that_only_the_first_run_stores(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    parent, *_ = world.run("a", Edits())
    _, asked, _, _ = world.run("b", Edits(prompts=("", "", "please")), parent="a")
    assert {call[0] for call in asked} == {"sum"}
    last, asked, content, plan = world.run("c", Edits(), parent="b")
    assert {call[0] for call in asked} == {"sum"}
    assert content == (parent.scores / "1" / "scorecard.json").read_bytes()
    assert plan is not None
    # what `b` had adopted counts at its first price
    assert plan.saved_pico + _spent(last) == _spent(parent)
    assert sorted(map(bytes, stored_bodies_of(last))) == sorted(
        map(bytes, stored_bodies_of(parent))
    )
    with sqlite3.connect(last.log) as conn:
        (stored,) = conn.execute(
            "SELECT count(*) FROM body JOIN event USING (seq) JOIN kind AS k "
            "ON k.id = event.kind WHERE k.name = 'attempt_answered'"
        ).fetchone()
    assert stored == len(asked)
    with open_reader(last.log) as reader:
        assert verify(reader).is_sound
    assert (forks_of(parent), forks_of(last)) == (["b"], [])
    assert read_by_the_page(last) == stored_bodies_of(last)


def read_by_the_page(folder: RunFolder) -> list[bytes | None]:
    log = log_reader.read(folder.log)
    assert log.is_chained
    return [task.reply for task in log.tasks.values()]


def test_a_copy_needs_no_parent_and_a_fork_says_where_its_parent_was(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    parent, *_ = world.run("a", Edits())
    fork, asked, _, _ = world.run("b", Edits(), parent="a")
    assert asked == []
    bodies = stored_bodies_of(fork)
    assert None not in bodies
    copy = RunFolder(tmp_path / "elsewhere" / "b")
    copy.path.mkdir(parents=True)
    copy_log(fork.log, copy.log, lambda _: None)
    parent.path.rename(tmp_path / "gone")
    assert stored_bodies_of(copy) == bodies == read_by_the_page(copy)
    with open_reader(copy.log) as reader:
        assert verify(reader).is_sound
    with pytest.raises(StoreError, match=r"a/log\.db, which is missing"):
        stored_bodies_of(fork)
    with open_reader(fork.log) as reader:
        (fault,) = verify(reader).faults
    assert "which is missing" in fault.message


def test_a_missing_run_is_named_also_by_a_fork_of_its_fork_and_by_a_scoring(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    parent, *_ = world.run("a", Edits())
    world.run("b", Edits(), parent="a")
    last, *_ = world.run("c", Edits(), parent="b")
    parent.path.rename(tmp_path / "gone")
    with pytest.raises(StoreError, match=r"a/log\.db, which is missing"):
        stored_bodies_of(last)
    for query in ("SELECT reply(task) FROM v_answers", "SELECT length(data) FROM body"):
        done = command("sql", last.path, query)
        assert (done.code, "a/log.db, which is missing" in done.err) == (1, True)
    job, clock = EditedJob(Edits()), SystemClock()
    scoring = score_run(job, last, ToySettings(), clock=clock, record=False)
    with pytest.raises(StoreError, match=r"a/log\.db, which is missing"):
        asyncio.run(scoring)


def test_an_answer_changed_in_the_parent_is_found(tmp_path: Path) -> None:
    world = World(tmp_path)
    parent, *_ = world.run("a", Edits())
    fork, *_ = world.run("b", Edits(), parent="a")
    with sqlite3.connect(parent.log) as conn:
        conn.execute("DROP TRIGGER body_no_update")
        answers = (
            "SELECT seq FROM event JOIN kind AS k ON k.id = kind "
            "WHERE k.name = 'attempt_answered'"
        )
        conn.execute(
            f"UPDATE body SET data = CAST(data || '!' AS BLOB) WHERE seq IN ({answers})"
        )
    with open_reader(fork.log) as reader:
        (fault,) = verify(reader).faults
    assert "changed in the parent run" in fault.message
    with pytest.raises(ValueError, match="has changed"):
        log_reader.read(fork.log)


def test_another_endpoint_is_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("a", Edits())
    elsewhere = {"base_url": "http://127.0.0.1:10/v1"}
    _, asked, _, _ = world.run("b", Edits(), parent="a", **elsewhere)
    assert len(asked) == 3 + 6 + 3


def test_a_stage_that_is_not_there_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("a", Edits())
    with pytest.raises(UsageError, match="toy has the stages read, ask, sum"):
        world.run("b", Edits(from_stage="nope"), parent="a")


def test_a_forecast_without_space_names_the_temporary_folder() -> None:
    full = sqlite3.OperationalError("database or disk is full")
    with pytest.raises(Unwritable, match=r"disk is full\).*set TMPDIR"):  # noqa: SIM117
        with rehearsal_room():
            raise CommitRefused("the log could not be written") from full
    with pytest.raises(StoreError, match=r"log\.db is damaged$"):  # noqa: SIM117
        with rehearsal_room() as room:
            raise StoreError(f"{room}/a/log.db is damaged")  # its link to the parent


def test_a_killed_fork_pays_nothing_twice(tmp_path: Path) -> None:
    job = ("--job", "screening", "--latency-ms", 20, "--ledger", "ledger.jsonl")
    model = ("--model", "m1", "--price", "0.15,0.60", "--concurrency", 4)
    (tmp_path / "p.toml").write_text("[abstract]\nuser = '{review}{paper} Be brief.'\n")
    with simulated(*job, cwd=tmp_path) as url:
        sample = ("screening", *model, "--base-url", url, "--set", "limit=16")
        siftlog("run", *sample, "--run-id", "a", "--no-score", cwd=tmp_path)
        first = len(read_ledger(tmp_path / "ledger.jsonl"))
        fork = start("fork", "a", "--as", "b", "--prompts", "p.toml", cwd=tmp_path)
        until(tmp_path, "b", lambda seen: seen["attempts"]["answered"] >= 5)
        fork.kill()
        fork.wait()
        siftlog("resume", "b", "--no-score", cwd=tmp_path)
        lines = read_ledger(tmp_path / "ledger.jsonl")[first:]
    state = status(tmp_path, "b")
    assert state["tasks"]["completed"] == 16
    # only the calls in flight at the kill are made again; the last may not have left
    assert 16 <= len(lines) <= 16 + state["attempts"]["unknown"] <= 20


def test_a_fork_of_a_killed_run_adopts_what_was_answered(tmp_path: Path) -> None:
    job = ("--job", "screening", "--latency-ms", 200, "--ledger", "ledger.jsonl")
    model = ("--model", "m1", "--price", "0.15,0.60", "--concurrency", 2)
    with simulated(*job, cwd=tmp_path) as url:
        sample = ("screening", *model, "--base-url", url, "--set", "limit=16")
        run = start("run", *sample, "--run-id", "a", "--no-score", cwd=tmp_path)
        until(tmp_path, "a", lambda seen: seen["attempts"]["answered"] >= 5)
        run.send_signal(SIGSTOP)
        refused = siftlog("fork", "a", "--as", "b", cwd=tmp_path, check=False)
        run.kill()
        run.wait()
        first = len(read_ledger(tmp_path / "ledger.jsonl"))
        siftlog("fork", "a", "--as", "b", "--no-score", cwd=tmp_path)
        lines = read_ledger(tmp_path / "ledger.jsonl")[first:]
    assert refused.returncode == 2
    assert "stop it with siftlog drain a" in refused.stderr
    assert status(tmp_path, "b")["tasks"]["completed"] == 16
    assert status(tmp_path, "a")["tasks"]["completed"] + len(lines) == 16


def test_an_ended_run_is_a_cache_for_another(tmp_path: Path) -> None:
    job = ("--job", "screening", "--ledger", "ledger.jsonl")
    with simulated(*job, cwd=tmp_path) as url:
        model = ("--model", "m1", "--price", "0.15,0.60", "--base-url", url)
        words = ("run", "screening", *model, "--no-score")
        siftlog(*words, "--run-id", "a", "--set", "limit=8", cwd=tmp_path)
        first = len(read_ledger(tmp_path / "ledger.jsonl"))
        more = (*words, "--run-id", "b", "--set", "limit=11", "--cache-from", "a")
        planned = siftlog(*more, "--dry-run", "--json", cwd=tmp_path).stdout
        siftlog(*more, cwd=tmp_path)
        lines = read_ledger(tmp_path / "ledger.jsonl")[first:]
    forecast = json.loads(planned)
    seen = status(tmp_path, "b")
    assert (forecast["adopted"], forecast["sent"]) == (8, 3)
    assert len(lines) == 3
    assert seen["tasks"]["completed"] == 11
    assert "is sound" in siftlog("verify", "b", cwd=tmp_path).stdout


def test_a_cache_must_lie_beside_the_run(tmp_path: Path) -> None:
    model = ("--model", "baseline/lexical", "--no-score")
    siftlog("run", "screening", *model, "--run-id", "a", "--limit", 2, cwd=tmp_path)
    words = ("run", "screening", *model, "--cache-from", "runs/a")
    refused = siftlog(*words, "--runs-dir", "other", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert f"add --runs-dir {tmp_path / 'runs'}" in refused.stderr
    words += ("--shards", 2, "--engine", "processes")
    refused = siftlog(*words, cwd=tmp_path, check=False)
    assert "--cache-from adopts answers into a run with one log" in refused.stderr
