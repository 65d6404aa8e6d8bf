"""The verb export as a program: tables of a run, and its telemetry."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from runner.cli.main import exit_code
from runner.errors import RunnerError
from runner.export import scores
from store.database import open_reader
from store.events import RunFinished
from store.read.status import scorings
from store.runs import RunFolder
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.replacing import replace
from tests.runner.collector import attributes, collecting
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, completed, plan_first, reply

JOB = "paper-investigation"
TASKS = 30


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run, `r`, that was scored twice."""
    cwd = tmp_path_factory.mktemp("exported")
    corpus = write_corpus(cwd / "corpus", 3)
    siftlog("run", JOB, *corpus, "--run-id=r", cwd=cwd)
    siftlog("score", "r", "--variant-link=whole", cwd=cwd)
    return cwd


def _export(
    capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[dict[str, Any], str]:
    code = exit_code(["export", "r", *words, "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out), said.err


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = exit_code(["export", "r", *words])
    said = capsys.readouterr()
    (sentence,) = said.err.splitlines()
    assert said.out == ""
    return code, sentence


def test_tasks_and_answers_are_written_without_further_words(
    scored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    told, _ = _export(capsys)
    folder = Path("runs/r/exports")
    assert [file["file"] for file in told["files"]] == [
        str(folder / "tasks.jsonl"),
        str(folder / "answers.jsonl"),
    ]
    for file in told["files"]:
        assert file["rows"] == TASKS
        assert file["bytes"] == Path(file["file"]).stat().st_size
    assert exit_code(["export", "r", "answers", "--format=csv"]) == 0
    assert capsys.readouterr().out == f"{folder / 'answers.csv'}\n"


def test_the_scores_of_any_scoring_are_tables_with_types(
    scored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    told, _ = _export(capsys, "scores", "--format=parquet")
    first, _ = _export(capsys, "scores", "--format=parquet", "--scoring=1")
    assert (told["scoring"], first["scoring"]) == (2, 1)
    for number, content in ((2, told), (1, first)):
        where = Path(f"runs/r/exports/scores/{number}")
        assert {Path(file["file"]) for file in content["files"]} == {
            *where.rglob("*.*")
        }
        card = json.loads(Path(f"runs/r/scores/{number}/scorecard.json").read_text())
        metrics = pq.read_table(where / "metrics.parquet").to_pylist()
        assert {(row["model"], row["metric"]): row["value"] for row in metrics} == {
            (model, path): metric["value"]
            for model, own in card["models"].items()
            for path, metric in own["metrics"].items()
        }
        verdicts = pq.read_table(where / "verdicts.parquet")
        assert str(verdicts.schema.field("correct").type) == "bool"
        assert verdicts.num_rows > TASKS / 2
    assert (where / "tables" / "questions.parquet").exists()


def test_a_dry_run_counts_what_would_be_written(
    scored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    told, _ = _export(capsys, "tasks", "--format=parquet", "--dry-run")
    (file,) = told["files"]
    assert file == {
        "file": "runs/r/exports/tasks.parquet",
        "rows": TASKS,
        "bytes": None,
    }
    assert not Path(file["file"]).exists()
    assert exit_code(["export", "r", "tasks", "--format=parquet", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out == "runs/r/exports/tasks.parquet\n"
    assert "tasks.parquet would have 30 rows" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scoring=1"], "say export RUN scores"),
        (["tasks", "--otlp=http://x"], "writes no file"),
        (["--format=csv", "--otlp=http://x"], "writes no file"),
        (["--otlp=x"], "not the address"),
        (["scores", "--scoring=7"], "has no scoring 7"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    words: list[str],
    told: str,
    scored: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scored)
    code, sentence = _refused(capsys, *words)
    assert code == 2
    assert told in sentence


def test_scores_that_a_replay_does_not_give_again_are_not_exported(
    scored: Path,
) -> None:
    folder = RunFolder(scored / "runs" / "r")
    with open_reader(folder.log) as reader:
        recorded = replace(scorings(reader)[0], digest="0" * 64)
    with (
        pytest.raises(RunnerError, match="Scoring 1 of r cannot be repeated"),
        scores(folder, recorded),
    ):
        pass


def test_a_run_is_sent_to_a_collector_as_spans_and_histograms(
    scored: Path,
) -> None:
    with collecting() as collector:
        done = siftlog(
            *("export", "r", "--otlp", collector.url, "--json"),
            cwd=scored,
            env={"NO_PROXY": "127.0.0.1"},
        )
    told = json.loads(done.stdout)
    assert (told["spans"], told["refused"]) == (2 * TASKS + 1, 0)
    assert (told["collector"], told["partial"]) == (collector.url, False)
    assert done.stderr == ""
    names = [span.name for span in collector.spans]
    assert names[-1] == f"run {JOB}"
    assert names.count("chat baseline/lexical") == TASKS
    keys = {attributes(span).get("siftlog.task.key") for span in collector.spans}
    assert "PMC8000000" in keys
    (point,) = collector.points["gen_ai.client.operation.duration"]
    assert point.count == TASKS
    texts = str(collector.traces) + str(collector.metrics)
    assert "rs1" not in texts, "no text of a prompt or a reply leaves the log"


def test_of_answers_made_elsewhere_there_are_no_calls_to_tell(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "runs" / "r"
    folder.mkdir(parents=True)
    first = replace(RUN_STARTED, imported=True)
    written(
        folder / "log.db",
        [first, plan_first(1)],
        [reply(1, b"{}"), completed(1)],
        [RunFinished(completed=1, failed=0, skipped=0)],
    )
    monkeypatch.chdir(tmp_path)
    assert exit_code(["export", "r", "--otlp=http://127.0.0.1:9", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert "were imported" in said.err
    assert "partial" not in said.err
    assert said.out.endswith("would be sent to http://127.0.0.1:9\n")


def test_without_its_extra_telemetry_is_a_sentence_and_a_dry_run_works(
    scored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    for name in [*sys.modules]:
        if name.startswith(("opentelemetry", "runner.otlp")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    code, sentence = _refused(capsys, "--otlp=http://127.0.0.1:9")
    assert code == 1
    assert "pip install 'siftlog[otel]'" in sentence
    told, _ = _export(capsys, "--otlp=http://127.0.0.1:9", "--dry-run")
    assert told["spans"] == 2 * TASKS + 1


def test_without_pyarrow_parquet_is_refused_and_left_out_of_a_scoring(
    scored: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.table_files.find_spec", lambda _: None)
    monkeypatch.chdir(scored)
    for more in ((), ("--dry-run",)):
        code, sentence = _refused(capsys, "--format=parquet", *more)
        assert code == 2
        assert sentence.endswith("pip install 'siftlog[parquet]'.")
    monkeypatch.chdir(tmp_path)
    assert exit_code(["run", "ask", "--run-id=a", "--no-report"]) == 0
    assert "Not written: answers.parquet, which needs" in capsys.readouterr().err
    files = {path.suffix for path in Path("runs/a/scores/1").glob("answers.*")}
    assert files == {".csv", ".jsonl", ".xlsx", ".html"}
    # said once, with the first scoring
    assert exit_code(["score", "a", "--no-report"]) == 0
    assert "Not written" not in capsys.readouterr().err
