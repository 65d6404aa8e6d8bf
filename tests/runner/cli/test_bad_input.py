"""Whatever is wrong: one sentence, the right exit code, nothing half-written."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runner.cli.main import exit_code
from store.database import open_reader
from store.read.status import status as read_status
from store.runs import RunFolder
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.gates import gated
from tests.processes import SIFTLOG, simulated, start, status
from tests.refusing import serve

JOB = "paper-investigation"


def _fails(code: int, *words: object, cwd: Path) -> str:
    """Run a command that must fail; its one sentence."""
    done = siftlog(*words, cwd=cwd, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("siftlog: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    return write_corpus(tmp_path / "corpus", 3)


def _nothing_written(cwd: Path) -> bool:
    return not (cwd / "runs").exists() or not list((cwd / "runs").iterdir())


def test_a_missing_file_is_named(tmp_path: Path, corpus: list[str]) -> None:
    said = _fails(1, "run", JOB, *corpus, "--bench=nowhere.jsonl", cwd=tmp_path)
    assert "nowhere.jsonl" in said
    assert _nothing_written(tmp_path)


def test_a_bundle_that_is_not_there_is_a_missing_file(tmp_path: Path) -> None:
    said = _fails(2, "verify", "r.1.siftlog.zip", cwd=tmp_path)
    assert said.startswith("siftlog: There is no file r.1.siftlog.zip; ")


def test_a_broken_line_is_named_with_its_number(
    tmp_path: Path, corpus: list[str]
) -> None:
    bench = tmp_path / "corpus" / "bench.jsonl"
    bench.write_text(bench.read_text() + '{"pmcid": "PMC1", "variants":\n')
    said = _fails(1, "run", JOB, *corpus, cwd=tmp_path)
    assert "bench.jsonl line 4" in said
    assert _nothing_written(tmp_path)


def test_an_unknown_setting_is_answered_with_the_nearest(
    tmp_path: Path, corpus: list[str]
) -> None:
    said = _fails(2, "run", JOB, *corpus, "--set", "temprature=1", cwd=tmp_path)
    assert "temprature" in said
    assert "temperature" in said
    assert _nothing_written(tmp_path)


def test_a_job_or_a_run_that_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    assert JOB in _fails(2, "run", "paper-investigations", cwd=tmp_path)
    assert "siftlog runs" in _fails(2, "status", "nothing", cwd=tmp_path)


def test_a_provider_that_is_not_served_yet_is_said(
    tmp_path: Path, corpus: list[str]
) -> None:
    words = ("run", JOB, *corpus, "--model", "acme/large")
    assert "acme/large" in _fails(2, *words, cwd=tmp_path)
    assert _nothing_written(tmp_path)


@pytest.mark.parametrize("flag", ["--model", "--judge-model"])
def test_a_baseline_that_there_is_not_is_refused_with_the_offline_models(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flag: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for verb in ("run", "generate", "estimate"):
        assert exit_code([verb, JOB, flag, "baseline/nonsense"]) == 2
        assert capsys.readouterr().err.endswith(
            "siftlog: There is no offline model 'baseline/nonsense': use "
            "baseline/lexical (the nearest), recorded:FILE or recorded:RUN.\n"
        )
    assert _nothing_written(tmp_path)


@pytest.mark.parametrize("verb", ["run", "generate"])
@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "nonsense"])
def test_an_address_that_is_none_is_refused_before_a_price_is_missed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    url: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code([verb, JOB, "--model=x", f"--base-url={url}"]) == 2
    said = capsys.readouterr().err
    assert f"The base URL {url!r} is not an address" in said
    assert "price" not in said
    assert _nothing_written(tmp_path)


def test_the_folder_of_another_program_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "other"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "log.db")) as db:
        db.execute("CREATE TABLE theirs(x)")
        db.commit()
    before = (folder / "log.db").read_bytes()
    for verb in ("status", "resume", "score", "verify"):
        assert "log.db" in _fails(1, verb, "other", cwd=tmp_path)
    assert (folder / "log.db").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["log.db"]


def test_a_folder_without_a_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    assert "holds no run" in _fails(1, "status", "empty", cwd=tmp_path)


def test_a_wrong_key_is_one_sentence_and_its_tasks_stay_open(
    tmp_path: Path, corpus: list[str], refusing: str
) -> None:
    done = siftlog(
        *("run", JOB, *corpus, "--model", "openai/x", f"--base-url={refusing}"),
        "--run-id=r",
        cwd=tmp_path,
        check=False,
        env={"OPENAI_API_KEY": "sk-wrong-0123456789"},
    )
    assert done.returncode == 1
    assert "refused the key" in done.stderr
    assert "siftlog resume r" in done.stderr
    stands = status(tmp_path, "r")
    assert stands["state"] == "drained"
    assert stands["tasks"]["open"] == stands["tasks"]["planned"] == 3
    assert stands["tasks"]["failed"] == 0


@pytest.fixture
def refusing() -> Iterator[str]:
    """An endpoint that answers 401 to everybody and echoes what it was sent."""
    with serve(401) as url:
        yield url


def test_an_unreachable_endpoint_is_one_sentence_and_loses_nothing(
    tmp_path: Path, corpus: list[str]
) -> None:
    done = siftlog(
        *("run", JOB, *corpus, "--model", "x", "--base-url=http://127.0.0.1:9"),
        "--run-id=r",
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert "127.0.0.1:9 never answered" in done.stderr
    assert "siftlog resume r" in done.stderr
    assert "Traceback" not in done.stderr
    assert status(tmp_path, "r")["tasks"]["open"] == 3


def test_a_second_writer_is_refused_while_the_first_goes_on(
    tmp_path: Path, corpus: list[str]
) -> None:
    with simulated("--job", JOB, cwd=tmp_path) as url, gated(url, passes=0) as gate:
        first = start(
            *("run", JOB, *corpus, "--model=x", f"--base-url={gate.url}", "--run-id=r"),
            cwd=tmp_path,
        )
        gate.wait(first)
        said = _fails(1, "resume", "r", cwd=tmp_path)
        assert "another process" in said
        gate.open()
        assert first.wait() == 0
    assert status(tmp_path, "r")["tasks"]["open"] == 0


def test_a_full_disk_ends_the_run_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 150)
    blocks = 3072  # of 1 KiB: a limit on file size fails writes as a full disk does
    words = " ".join(["run", JOB, *corpus, "--run-id=r", "--json"])
    done = subprocess.run(
        ["/bin/bash", "-c", f"ulimit -f {blocks}; exec {SIFTLOG} {words}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "siftlog: " in done.stderr
    with open_reader(RunFolder(tmp_path / "runs" / "r").log) as reader:
        answered = read_status(reader).attempts.answered
    siftlog("verify", "r", cwd=tmp_path)
    resumed = siftlog("resume", "r", "--json", cwd=tmp_path)
    end = json.loads(resumed.stdout.splitlines()[-1])
    assert end["tasks"]["open"] == 0
    assert end["attempts"]["answered"] >= answered > 0
    assert end["attempts"]["answered"] == end["tasks"]["completed"]


def test_a_run_without_its_inputs_says_which_one_it_misses(
    tmp_path: Path, corpus: list[str]
) -> None:
    siftlog("run", JOB, *corpus, "--run-id=r", cwd=tmp_path)
    shutil.rmtree(tmp_path / "corpus" / "papers")
    assert "papers" in _fails(1, "score", "r", cwd=tmp_path)


def test_a_misspelt_flag_is_answered_with_the_options_near_it(tmp_path: Path) -> None:
    said = _fails(2, "run", JOB, "--modle", "x", cwd=tmp_path)
    assert "'mode' or 'model'" in said
    assert "'concurrency'" in _fails(2, "run", JOB, "--concurency=3", cwd=tmp_path)


def test_a_misspelt_command_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = siftlog("stauts", "last", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "did you mean 'status'?" in done.stderr


def test_a_variable_that_sets_nothing_is_told(
    tmp_path: Path, corpus: list[str]
) -> None:
    (tmp_path / ".env").write_text(
        "SIFTLOG_RPM=3\nSIFTLOG_HTTP=httpx\nOPENAI_API_KEY=sk-x\n"
    )
    mine = {"SIFTLOG_CONCURENCY": "3", "SIFTLOG_TPM": "9", "SIFTLOG_SET_REASK": "0"}
    done = siftlog("estimate", JOB, *corpus, cwd=tmp_path, env=mine)
    warnings = [line for line in done.stderr.splitlines() if "SIFTLOG_" in line]
    assert warnings == [
        (
            "warn: SIFTLOG_CONCURENCY in the environment is unknown "
            "and ignored; did you mean 'SIFTLOG_CONCURRENCY'?"
        ),
        "warn: SIFTLOG_RPM in .env is ignored: that file is for keys only.",
    ]


def test_a_ceiling_is_lifted_by_either_of_its_words(
    tmp_path: Path, corpus: list[str]
) -> None:
    siftlog("run", JOB, *corpus, "--run-id=r", "--no-score", cwd=tmp_path)
    for word in ("none", "inf"):
        done = siftlog("limits", "r", "--rpm", word, "--dry-run", cwd=tmp_path)
        assert "no limit of requests a minute" in done.stderr


def test_a_model_where_a_run_belongs_is_told_how_to_look_for_it(tmp_path: Path) -> None:
    said = _fails(2, "models", "gpt-4o", cwd=tmp_path)
    assert "siftlog models --filter gpt-4o" in said
