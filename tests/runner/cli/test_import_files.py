"""The command import with files of other tools, from the file to a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.runner.imports.foreign_files import eval_log, json_log, lines, sample


def log(folder: Path) -> Path:
    samples = [sample(number, epoch) for epoch in (1, 2) for number in range(4)]
    samples[1]["output"] = {"model": "mock/a", "choices": []}
    samples[1]["error"] = {"message": "ConnectionError('x')"}
    return eval_log(folder / "theirs.eval", *samples)


def metrics_of(run: str, scoring: int, model: str) -> dict[str, Any]:
    card = Path("runs", run, "scores", str(scoring), "scorecard.json")
    metrics: dict[str, Any] = json.loads(card.read_text())["models"][model]["metrics"]
    return metrics


def test_a_log_becomes_a_run_that_is_scored_explained_and_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path)
    done = command("import", "theirs.eval", "--as", "theirs", "--no-report")
    assert done.code == 3
    assert done.err.splitlines()[-3:] == [
        "note: not kept: explanations of scores (8 replies)",
        "Imported 8 tasks of: mock/a, 1 failed.",
        "1 imported task had failed.",
    ]
    assert command("score", "theirs", "--no-report").code == 0
    metrics = metrics_of("theirs", 2, "mock/a")
    assert metrics["accuracy"]["value"] == 1.0
    assert metrics["score.length"]["value"] == 7.0
    assert metrics["score.length"]["n"] == 4
    page = command("explain", "theirs", "q1")
    assert "Say 1" in page.out
    rows = command("sql", "theirs", "select * from v_answers order by task", "--json")
    values = [json.loads(line)["row"] for line in rows.out.splitlines()]
    kept = {name: values[0][name] for name in ("tokens_in", "tokens_out", "latency_ms")}
    assert kept == {"tokens_in": 12, "tokens_out": 3, "latency_ms": 250.0}
    assert values[0]["served_model"] == "mock/a-2026"
    assert command("bundle", "theirs", "--out", "b.zip").code == 0
    assert command("verify", "b.zip").code == 0


def test_two_tools_runs_are_compared_by_their_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        samples = [sample(n, scores={"f1": {"value": n / 20}}) for n in range(12)]
        json_log(tmp_path / f"{name}.json", *samples)
        words = ("import", f"{name}.json", "--as", name, "--no-report")
        assert command(*words).code == 0
    done = command("compare", "one", "two", "--metric", "score.f1", "--json")
    (row,) = (json.loads(line) for line in done.out.splitlines())
    (pair,) = row["pairs"]
    metric = pair["metrics"]["score.f1"]
    assert (metric["n"], metric["difference"]) == (12, 0.0)


def test_several_files_are_the_same_files_when_they_are_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for item in ("a", "b"):
        lines(tmp_path / f"{item}.jsonl", {"id": item, "reply": "x", "model": "m"})
    words = ("import", "a.jsonl", "b.jsonl", "--as", "both", "--no-report")
    assert command(*words).code == 0
    assert "is not the file" not in command("score", "both", "--no-report").err
    lines(tmp_path / "a.jsonl", {"id": "a", "reply": "y", "model": "m"})
    changed = command("score", "both", "--no-report").err
    assert "note: rows is not the file that the run was started with." in changed


def test_a_dry_run_writes_nothing_and_prints_what_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = command("import", "theirs.eval", "--as", "x", "--dry-run", "--json")
    assert sorted(tmp_path.iterdir()) == before
    assert json.loads(done.out) == {
        "schema": "siftlog.import/1",
        "job": "replies",
        "models": ["mock/a"],
        "replicates": 2,
        "tasks": 8,
        "failed": 1,
        "skipped": 0,
        "missing": 0,
        "dropped": [{"what": "explanations of scores", "replies": 8}],
        "notes": [],
        "dry_run": True,
    }


def test_a_damaged_file_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = log(tmp_path)
    path.write_bytes(path.read_bytes()[:-300])
    done = command("import", "theirs.eval", "--as", "x")
    assert done.code == 1
    assert done.err.startswith("siftlog: theirs.eval: the archive is cut or damaged, ")
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_run_of_that_name_is_found_before_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "rows.jsonl", {"id": 1, "reply": "a", "model": "m"})
    assert command("import", "rows.jsonl", "--as", "x", "--no-score").code == 0
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "reply": ')
    done = command("import", "rows.jsonl", "--as", "x")
    assert done.code == 2
    assert done.err == (
        "siftlog: There is a run 'x' already; continue with siftlog resume x or choose "
        "another --as.\n"
    )
    assert command("import", "rows.jsonl", "--as", "x", "--dry-run").code == 1


def test_a_name_that_no_run_can_have_is_refused_by_its_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "rows.jsonl", {"id": 1, "reply": "a", "model": "m"})
    for name in ("a b", "screening"):
        done = command("import", "rows.jsonl", "--as", name)
        assert done.code == 2
        assert done.err.startswith(f"siftlog: --as {name}")


def test_replies_are_scored_by_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(
        tmp_path / "papers.jsonl",
        {"id": "q1", "text": "Twelve adults took part."},
        {"id": "q2", "text": "Ten adults took part."},
    )
    (tmp_path / "gold.csv").write_text("id,answer\nq1,12\nq2,10\n")
    reply = json.dumps({"answer": {"quote": "Twelve adults", "value": 12}})
    lines(tmp_path / "r.jsonl", {"id": "q1", "reply": reply, "model": "m"})
    done = command(
        *("import", "ask", "r.jsonl", "--papers", "papers.jsonl", "--gold", "gold.csv"),
        *("--question", "How many adults?", "--type", "integer", "--as", "asked"),
        "--no-report",
    )
    assert done.code == 0
    assert done.err.splitlines()[-2:] == [
        "note: 1 items of ask have no reply in the files.",
        "Imported 1 tasks of: m.",
    ]
    assert metrics_of("asked", 1, "m")["field.answer.accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("ask", "--question", "Why?", "--papers", "papers.jsonl"),
            "Name the files to import after ask: it has no forms of its own, and",
        ),
        (
            ("absent.eval", "--as", "x"),
            "absent.eval does not exist: name a job, or a file to import without one.",
        ),
        (
            ("papers.jsonl", "--as", "x"),
            "papers.jsonl: fits no known format (inspect, inspect-json, openai-batch,",
        ),
        (
            ("prompts.jsonl", "--as", "x"),
            "prompts.jsonl line 1: no reply (its key is one of reply, response, ",
        ),
        (
            ("papers.jsonl", "--as", "x", "--format", "csv"),
            "There is no format 'csv'; choose one of inspect, inspect-json,",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "papers.jsonl", {"id": "q1", "text": "Twelve took part."})
    lines(tmp_path / "prompts.jsonl", {"prompt": "Twelve took part?"})
    done = command("import", *words)
    assert done.code in {1, 2}
    assert done.err.startswith(f"siftlog: {sentence}")
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 400
    assert not (tmp_path / "runs").exists()


def test_the_prompts_of_an_imported_log_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": n, "prompt": f"Say {n}.", "reply": "1", "model": "m"} for n in (1, 2)
    ]
    lines(tmp_path / "plain.jsonl", *rows)
    done = command("import", "plain.jsonl", "--as", "r", "--no-report")
    assert done.code == 0, done.err
    shown = json.loads(command("show", "r", "2", "--json").out)
    assert shown["prompt"]["messages"] == [["user", "Say 2."]]
    (form,) = command("prompts", "r", "--json").out.splitlines()
    assert json.loads(form)["requests"] == 2
    assert json.loads(form)["messages"] == [{"role": "user", "content": "Say 1."}]
