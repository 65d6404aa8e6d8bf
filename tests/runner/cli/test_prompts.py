"""Prompts of jobs and runs as a person meets them: printed, replaced, exported."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from runner.cli.main import exit_code
from store.database import open_reader
from store.events import RunResumed
from store.read.status import run_started
from store.read.tasks import events
from store.runs import RunFolder

JOB = "screening"
AGENTS = Path(__file__).parents[3] / "jobs/review_benchmark/sample"
RESULTS, TRUTH = str(AGENTS / "results"), f"--truth={AGENTS / 'truth'}"
OWN = "[abstract]\nuser = '{review}{paper}Would you read it?'\n"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _did(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = exit_code([*words])
    said = capsys.readouterr()
    return code, said.out, said.err


def _run(run: str, *words: str) -> None:
    assert exit_code(["generate", JOB, f"--run-id={run}", "--no-cache", *words]) == 0


def _answers(
    capsys: pytest.CaptureFixture[str], run: str, *words: str
) -> list[dict[str, Any]]:
    assert _did(capsys, "export", run, "answers", *words)[0] == 0
    lines = Path(f"runs/{run}/exports/answers.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_cannot_be_called_like_a_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (
        ("run", JOB, "--run-id=screening"),
        ("generate", "evidence-retrieval", "--run-id=screening"),
        ("import", "review-benchmark", RESULTS, TRUTH, "--run-id=paper-investigation"),
    ):
        code, out, err = _did(capsys, *words)
        assert (code, out) == (2, "")
        assert "is the name of a job" in err
    assert not Path("runs").exists()


def test_what_was_sent_is_printed_and_exported_word_for_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path("own.toml")
    file.write_text(OWN)
    _run("r", "--prompts=own.toml", "--limit=3")
    capsys.readouterr()
    rows = _answers(capsys, "r")
    assert len(rows) == 3
    code, out, _ = _did(capsys, "prompts", "r")
    assert code == 0
    assert hashlib.sha256(OWN.encode()).hexdigest() in out
    assert "=== abstract: 3 requests of this form, such as task 1 " in out
    for row in rows:
        system, user = json.loads(row["prompt"])
        assert (system["role"], user["role"]) == ("system", "user")
        assert user["content"].endswith("\n\nWould you read it?")
    system, user = json.loads(rows[0]["prompt"])
    assert f"--- system\n{system['content']}\n--- user\n{user['content']}\n" in out
    _, lines, _ = _did(capsys, "prompts", "r", "--json")
    (example,) = map(json.loads, lines.splitlines())
    assert example["messages"] == [system, user]
    assert example["request_sha256"] == rows[0]["request_sha256"]
    assert json.loads(example["reply_schema"])["type"] == "object"
    without = _answers(capsys, "r", "--no-prompts")
    assert [row["request_sha256"] for row in without] == [
        row["request_sha256"] for row in rows
    ]
    assert "prompt" not in without[0]


def test_other_prompts_are_other_requests_and_the_printed_ones_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("own.toml").write_text(OWN)
    Path("printed.toml").write_text(_did(capsys, "prompts", JOB)[1])
    hashes = {}
    for run, words in {
        "shipped": (),
        "own": ("--prompts=own.toml",),
        "printed": ("--prompts=printed.toml",),
    }.items():
        _run(run, "--limit=3", *words)
        hashes[run] = {row["request_sha256"] for row in _answers(capsys, run)}
    assert hashes["shipped"] == hashes["printed"]
    assert hashes["shipped"].isdisjoint(hashes["own"])


def test_a_resume_refuses_other_prompts_until_they_are_accepted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path("own.toml")
    file.write_text(OWN)
    _run("named", "--prompts=own.toml", "--limit=2")
    _run("shipped", "--limit=2")
    file.write_text(OWN.replace("read it", "keep it"))
    capsys.readouterr()
    code, _, err = _did(capsys, "resume", "named")
    assert code == 1
    assert "own.toml (prompts) is not what the run was started with" in err
    code, _, err = _did(capsys, "resume", "named", "--set=prompts=")
    assert code == 1
    assert "started with prompts of a file; name that file with --prompts" in err
    code, _, err = _did(capsys, "resume", "shipped", "--prompts=own.toml")
    assert code == 1
    assert "started with the shipped prompts; leave --prompts out or add" in err
    code, _, err = _did(capsys, "resume", "named", "--accept-changes", "--no-score")
    assert code == 0, err
    with open_reader(RunFolder(Path("runs/named")).log) as reader:
        first = run_started(reader)
        (resumed,) = events(reader, kinds=["run_resumed"])
    assert isinstance(resumed.event, RunResumed)
    (changed,) = resumed.event.changed
    assert changed.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert changed.sha256 not in {each.sha256 for each in first.inputs}
    _, out, _ = _did(capsys, "prompts", "named")
    assert f"resumed with prompts of {file.resolve()} (sha256 {changed.sha256})" in out


def test_a_wrong_file_is_one_sentence_wherever_a_plan_is_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("own.toml").write_text("[abstract]\nuser = '{review}{papr}'\n")
    for verb in ("run", "estimate", "prompts"):
        code, out, err = _did(capsys, verb, JOB, "--prompts=own.toml")
        assert (code, out) == (1, "")
        (line,) = (line for line in err.splitlines() if line.startswith("siftlog: "))
        assert "own.toml: prompt abstract.user has the placeholder {papr}" in line
        assert "the nearest is {paper}" in line
    assert not Path("runs").exists()


def test_an_estimate_counts_the_prompts_that_would_be_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("own.toml").write_text(OWN.replace("Would", "Would " * 500))
    tokens = []
    for words in ((), ("--prompts=own.toml",)):
        code, out, _ = _did(capsys, "estimate", JOB, "--limit=2", "--json", *words)
        assert code == 0
        tokens.append(out)
    assert tokens[0] != tokens[1]


def test_the_prompts_of_a_profile_are_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = "paper-investigation"
    _, usual, _ = _did(capsys, "prompts", job, "--json")
    _, profile, _ = _did(capsys, "prompts", job, "--profile=clinpgx-qa", "--json")
    texts = [
        {line["prompt"]: line["text"] for line in map(json.loads, out.splitlines())}
        for out in (usual, profile)
    ]
    changed = {name for name in texts[0] if texts[0][name] != texts[1][name]}
    assert changed >= {
        "extract.user",
        "question.choice.task",
        "question.association.task",
        "batch.form_text",
    }
    # what its rules of reading want is what it asks for
    assert "JSON array" in texts[1]["extract.form_text"]
    assert "only the letter" in texts[1]["question.choice.form_text"]
    assert '"1. b"' in texts[1]["batch.form_text"]
