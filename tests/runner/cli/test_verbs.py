"""The verbs as programs meet them: JSON lines on stdout, exit codes, live control."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.gates import gated
from tests.processes import simulated, start, status, until, until_said

JOB = "paper-investigation"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished and scored run, `r`."""
    cwd = tmp_path_factory.mktemp("scored")
    corpus = write_corpus(cwd / "corpus", 5)
    siftlog("run", JOB, *corpus, "--run-id=r", cwd=cwd)
    return cwd


def _lines(cwd: Path, *words: object) -> list[dict[str, object]]:
    done = siftlog(*words, "--json", cwd=cwd)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_run_prints_a_launch_line_and_a_done_line(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 2)
    launch, done = _lines(tmp_path, "run", JOB, *corpus, "--run-id=r")
    assert launch == {"schema": "siftlog.launch/1", "event": "launch", "run": "r"}
    assert done == {
        "schema": "siftlog.done/1",
        "event": "done",
        "run": "r",
        "exit": 0,
        "tasks": status(tmp_path, "r")["tasks"],
        "attempts": {
            "started": 20,
            "answered": 20,
            "cached": 0,
            "kept": 0,
            "failed": 0,
            "unknown": 0,
        },
        "replies": status(tmp_path, "r")["replies"],
        "findings": [],
        "cost_usd": 0.0,
        "possible_usd": 0.0,
        "in_flight_usd": 0.0,
        "scoring": 1,
    }


def test_generate_does_not_score(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 1)
    *_, done = _lines(tmp_path, "generate", JOB, *corpus, "--run-id=r")
    assert done["scoring"] is None
    assert not (tmp_path / "runs/r/scores").exists()


def test_score_prints_one_object_with_an_entry_a_model(scored: Path) -> None:
    (said,) = _lines(scored, "score", "r", "--no-record")
    assert (said["run"], said["scoring"], said["job"]) == ("r", None, JOB)
    metric = said["models"]["baseline/lexical"]["metrics"]["avg_paper_score"]
    assert set(metric) >= {"value", "n", "n_defined", "lo", "hi", "definition"}
    assert metric["n"] == 5
    assert said["headlines"][0] == "avg_paper_score"
    assert set(said["headlines"]) <= set(said["models"]["baseline/lexical"]["metrics"])
    assert said["ended"] == status(scored, "r")["tasks"]["completed"]
    assert said["seq"] > said["ended"]


def test_the_scorecard_file_holds_what_score_prints(scored: Path) -> None:
    (said,) = _lines(scored, "score", "r")
    folder = scored / "runs/r/scores" / str(said["scoring"])
    card = json.loads((folder / "scorecard.json").read_text())
    assert card["models"] == said["models"]
    assert "findings" in card
    assert not {"run", "scoring", "artifacts"} & set(card)
    assert str(scored) not in (folder / "scorecard.json").read_text()
    assert sorted(said["artifacts"]) == sorted(p.name for p in folder.iterdir())


def test_status_has_the_keys_that_programs_rely_on(scored: Path) -> None:
    said = status(scored, "r")
    assert said["state"] == "finished"
    assert set(said["tasks"]) >= {"planned", "completed", "failed", "skipped", "open"}
    assert set(said["attempts"]) == {
        "started",
        "answered",
        "cached",
        "kept",
        "failed",
        "unknown",
    }
    assert (said["cost_usd"], said["possible_usd"]) == (0.0, 0.0)
    assert said["budget_usd"] is None
    assert "heartbeat_age_s" in said


def test_tasks_are_filtered_and_limited(scored: Path) -> None:
    extractions = _lines(scored, "tasks", "r", "--filter", "stage:extract")
    assert [row["key"] for row in extractions] == [f"PMC800000{i}" for i in range(5)]
    assert len(_lines(scored, "tasks", "r", "--limit", 7)) == 7
    assert siftlog("tasks", "r", "--csv", cwd=scored).stdout.startswith("task,stage,")
    both = siftlog("tasks", "r", "--csv", "--json", cwd=scored, check=False)
    assert (both.returncode, both.stdout) == (2, "")
    assert "--csv and --json" in both.stderr
    bare = siftlog("tasks", "r", "--filter", "failed", cwd=scored)
    assert bare.stderr.endswith("Did you mean --filter 'state:failed'?\n")
    done = siftlog("tasks", "r", "--filter", "state:nowhere", cwd=scored, check=False)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_events_come_in_order_and_by_kind(scored: Path) -> None:
    rows = _lines(scored, "events", "r")
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["event"] == "run_started"
    finished = _lines(scored, "events", "r", "--kind", "run_finished")
    assert [row["facts"]["completed"] for row in finished] == [50]


def test_exports_hold_every_task_in_all_forms(scored: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, this test's alone

    for form in ("jsonl", "csv", "parquet"):
        siftlog("export", "r", "--format", form, cwd=scored)
    folder = scored / "runs/r/exports"
    for name in ("tasks", "answers"):
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        assert len(rows) == 50
        assert pq.read_table(folder / f"{name}.parquet").to_pylist() == rows
        assert len((folder / f"{name}.csv").read_text().splitlines()) >= 51


def test_runs_can_be_named_by_beginning_folder_and_last(scored: Path) -> None:
    stands = status(scored, "r")
    stands |= {"schema": "siftlog.status/4"}
    stands.pop("heartbeat_age_s")
    for name in ("r", "last", "runs/r", str(scored / "runs" / "r")):
        (said,) = _lines(scored, "status", name)
        assert said.pop("heartbeat_age_s", "missing") != "missing"
        assert said == stands
    assert [row["run"] for row in _lines(scored, "runs")] == ["r"]


def test_a_run_with_failed_tasks_says_so_and_retry_mends_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6)
    replies = tmp_path / "replies.jsonl"
    line = '{{"stage": "extract", "key": "PMC800000{}", "response": "[\\"rs1\\"]"}}\n'
    replies.write_text("".join(line.format(i) for i in range(4)))
    words = ("run", JOB, *corpus, "--mode=extract", f"--model=recorded:{replies}")
    done = siftlog(*words, "--run-id=r", cwd=tmp_path, check=False)
    assert done.returncode == 3
    assert "2 tasks failed" in done.stderr
    again = siftlog("resume", "r", "--json", cwd=tmp_path, check=False)
    assert again.returncode == 3
    for said in (done.stdout, again.stderr):
        assert "of 2 failed tasks: " in said
    assert "2 tasks" in siftlog("retry", "r", cwd=tmp_path).stderr
    replies.write_text("".join(line.format(i) for i in range(6)))
    siftlog("resume", "r", cwd=tmp_path)
    end = status(tmp_path, "r")
    assert end["tasks"]["completed"] == 6
    assert end["tasks"]["failed"] == end["tasks"]["open"] == 0
    assert end["attempts"]["started"] == 8, "a failed task was repeated without a word"


@pytest.mark.parametrize("how", ["drain", "signal"])
def test_a_live_run_is_drained_and_resumed(tmp_path: Path, how: str) -> None:
    corpus = write_corpus(tmp_path / "corpus", 40)
    with (
        simulated("--latency-ms", 50, "--job", JOB, cwd=tmp_path) as url,
        gated(url, passes=40) as gate,
    ):
        engine = ("--model=x", f"--base-url={gate.url}", "--concurrency=8")
        process = start("run", JOB, *corpus, *engine, "--run-id=r", cwd=tmp_path)
        gate.wait(process)
        if how == "drain":
            siftlog("drain", "r", cwd=tmp_path)  # it waits for the answer
        else:
            process.send_signal(signal.SIGTERM)
            until_said(process, tmp_path / "err.txt", "press again to stop at once")
        gate.open()
        assert process.wait() == 5
        assert "siftlog resume r" in (tmp_path / "err.txt").read_text()
        stands = status(tmp_path, "r")
        assert stands["state"] == "drained"
        assert stands["tasks"]["open"] > 0
        (limits,) = stands["limits"]
        assert limits["model"] == "x"
        assert limits["concurrency"] <= 8
        told = siftlog("status", "r", cwd=tmp_path).stdout
        assert f"limits    x: {limits['concurrency']} calls at a time" in told
        assert stands["attempts"]["started"] == stands["attempts"]["answered"]
        checked = siftlog("status", "r", "--check", cwd=tmp_path, check=False)
        assert checked.returncode == 5
        if how == "drain":
            scored = siftlog("score", "r", "--no-record", cwd=tmp_path).stdout
            assert "next      siftlog resume r" in scored
            assert "siftlog score r" not in scored  # it has just been done
        siftlog("resume", "r", cwd=tmp_path)
    end = status(tmp_path, "r")
    assert end["state"] == "finished"
    assert end["attempts"]["started"] == end["attempts"]["answered"]
    assert end["attempts"]["unknown"] == 0


def _wait_until_answered(cwd: Path, count: int) -> None:
    until(cwd, "r", lambda s: s["attempts"]["answered"] >= count)


def test_following_the_events_of_a_live_run_ends_with_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 10)
    with simulated("--latency-ms", 100, "--job", JOB, cwd=tmp_path) as url:
        words = ("run", JOB, *corpus, "--model=x", f"--base-url={url}", "--run-id=r")
        process = start(*words, cwd=tmp_path)
        _wait_until_answered(tmp_path, 1)
        followed = _lines(tmp_path, "events", "r", "--follow", "--kind", "run_finished")
        assert process.wait(30) == 0
    assert [row["event"] for row in followed] == ["run_finished"]
    assert [row["event"] for row in _lines(tmp_path, "events", "r")].count(
        "scoring_recorded"
    ) == 1


def test_options_come_from_command_line_environment_and_file(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 1)
    config = tmp_path / "c.toml"
    config.write_text("replicates = 2\nconcurrency = 3\n[settings]\nmode = 'extract'\n")
    siftlog("run", JOB, *corpus, f"--config={config}", "--run-id=a", cwd=tmp_path)
    assert status(tmp_path, "a")["tasks"]["planned"] == 2
    environment = {"SIFTLOG_REPLICATES": "3"}
    words = ("run", JOB, *corpus, f"--config={config}")
    siftlog(*words, "--run-id=b", cwd=tmp_path, env=environment)
    assert status(tmp_path, "b")["tasks"]["planned"] == 3
    siftlog(*words, "--run-id=c", "--replicates=4", cwd=tmp_path, env=environment)
    assert status(tmp_path, "c")["tasks"]["planned"] == 4
    kept = (tmp_path / "runs/c/run.toml").read_text()
    assert "replicates = 4" in kept
    assert 'mode = "extract"' in kept
