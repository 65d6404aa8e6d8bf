"""Folders that `siftlog export --to` writes, as far as siftlog can tell by itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from runner.exports import FORMS
from runner.exports.source import VerdictIndex
from runner.job import Job
from runner.registry import job_of
from runner.scorecard import Verdict
from store.events import RunStarted
from tests.commands import siftlog
from tests.corpus import write_corpus

JOB = "paper-investigation"


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scored run `r`, and a run `bare` without a scoring."""
    cwd = tmp_path_factory.mktemp("exported")
    corpus = write_corpus(cwd / "corpus", 2)
    siftlog("run", JOB, *corpus, "--run-id=r", "--no-report", cwd=cwd)
    siftlog("run", JOB, *corpus, "--run-id=bare", "--no-score", cwd=cwd)
    return cwd


def _contents(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_same_run_gives_the_same_bytes(form: str, cwd: Path) -> None:
    out = cwd / form
    done = siftlog("export", "r", "--to", form, form, "--json", cwd=cwd)
    files = json.loads(done.stdout)["files"]
    assert files
    for file in files:
        assert (cwd / file["file"]).stat().st_size == file["bytes"]
    first = _contents(out)
    out.rename(cwd / f"{form}-first")
    siftlog("export", "r", "--to", form, form, cwd=cwd)
    again = _contents(out)
    assert first.keys() == again.keys()
    assert [name for name in first if first[name] != again[name]] == []


@pytest.mark.parametrize("form", FORMS)
def test_an_existing_folder_is_never_changed(
    form: str, cwd: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("kept")
    done = siftlog("export", "r", "--to", form, tmp_path, cwd=cwd, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"siftlog: {tmp_path} exists already, and an export replaces nothing: give "
        "another name, or remove it.\n"
    )
    assert _contents(tmp_path) == {"mine": b"kept"}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_left_of_an_export_that_fails(
    form: str, cwd: Path, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "r"
    siftlog("export", "r", "tasks", cwd=cwd)  # the folder is there
    for name, content in _contents(cwd / "runs" / "r").items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    with closing(sqlite3.connect(run / "log.db")) as log, log:
        triggers = log.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            log.execute(f'DROP TRIGGER "{name}"')
        (seq,) = log.execute("SELECT max(reply_seq) FROM task").fetchone()
        log.execute("DELETE FROM body WHERE seq = ?", (seq,))
    words = ("export", "r", "--to", form, tmp_path / "out")
    done = siftlog(*words, cwd=tmp_path, check=False)
    assert done.returncode not in {0, 2}
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "ro-crate"])
def test_a_run_without_a_scoring_has_answers_alone(form: str, cwd: Path) -> None:
    out = cwd / f"{form}-bare"
    done = siftlog("export", "bare", "--to", form, out, cwd=cwd)
    assert "run bare has no scoring" in done.stderr
    contents = _contents(out)
    match form:
        case "inspect":
            ((name, _),) = contents.items()
            with ZipFile(out / name) as log:
                assert "results" not in json.loads(log.read("header.json"))
                samples = json.loads(log.read("summaries.json"))
                assert len(samples) == len(log.namelist()) - 2 > 0
                assert not any("scores" in sample for sample in samples)
        case "every-eval-ever":
            ((_, content),) = contents.items()
            assert json.loads(content)["evaluation_results"] == []
        case "hugging-face":
            assert {*contents} == {
                *("README.md", "data/answers.parquet", "data/tasks.parquet"),
            }
        case "mlflow":
            assert {Path(name).name for name in contents if "/metrics/" in name} == {
                *("siftlog.replies", "siftlog.tokens_in", "siftlog.tokens_out"),
                "siftlog.cost_usd",
            }
            assert not any(name.endswith("metrics.jsonl") for name in contents)


FILES = [(form, ending) for form, of in FORMS.items() for ending in of.endings]


@pytest.mark.parametrize(("form", "ending"), FILES)
def test_a_target_that_ends_like_a_file_is_one_file(
    form: str, ending: str, cwd: Path, tmp_path: Path
) -> None:
    names = [f"out{ending}", f"again{ending}"]
    for name in names:
        done = siftlog("export", "r", "--to", form, tmp_path / name, "--json", cwd=cwd)
        content = json.loads(done.stdout)
        path = tmp_path / name
        assert content["out"] == str(path)
        assert content["files"] == [{"file": str(path), "bytes": path.stat().st_size}]
    assert {path.name for path in tmp_path.iterdir()} == {*names}
    first, second = ((tmp_path / name).read_bytes() for name in names)
    assert first == second
    done = siftlog("export", "r", "--to", form, path, cwd=cwd, check=False)
    assert done.returncode == 2
    assert "exists already, and an export replaces nothing" in done.stderr


def test_one_file_has_what_the_folder_has(cwd: Path, tmp_path: Path) -> None:
    for form, name in (
        *(("inspect", name) for name in ("log", "log.eval", "log.json")),
        *(("ro-crate", name) for name in ("crate", "crate.zip")),
    ):
        siftlog("export", "r", "--to", form, tmp_path / name, cwd=cwd)
    (log,) = (tmp_path / "log").iterdir()
    assert log.read_bytes() == (tmp_path / "log.eval").read_bytes()
    whole = json.loads((tmp_path / "log.json").read_bytes())
    with ZipFile(log) as archive:
        samples = [n for n in archive.namelist() if n.startswith("samples/")]
        assert whole.pop("samples") == [json.loads(archive.read(n)) for n in samples]
        assert samples
        assert whole == json.loads(archive.read("header.json"))
    with ZipFile(tmp_path / "crate.zip") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    assert content == _contents(tmp_path / "crate")


def test_one_log_of_inspect_is_of_one_model(tmp_path: Path) -> None:
    rows = [{"id": 1, "reply": "a", "model": model} for model in "mn"]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    siftlog("import", "rows.jsonl", "--as", "two", "--no-report", cwd=tmp_path)
    words = ("export", "two", "--to", "inspect")
    done = siftlog(*words, "two.eval", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "siftlog: Run two has 2 models, and a log of inspect has one: name a folder, "
        "such as two, for a log of each.\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"rows.jsonl", "runs"}
    siftlog(*words, "two", cwd=tmp_path)
    assert len([*(tmp_path / "two").iterdir()]) == 2


def test_the_job_of_an_imported_run_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": n, "prompt": f"Say {n}", "reply": "a"} for n in range(5)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("import", "rows.jsonl", "--model=m", "--as", "i", "--no-report")
    siftlog(*words, cwd=tmp_path)
    searched: list[RunStarted] = []

    def counted(first: RunStarted) -> Job:
        searched.append(first)
        return job_of(first)

    monkeypatch.setattr("runner.exports.source.job_of", counted)
    siftlog("export", "i", "--to", "inspect", "i.json", cwd=tmp_path)
    samples = json.loads((tmp_path / "i.json").read_bytes())["samples"]
    assert [sample["input"] for sample in samples] == [f"Say {n}" for n in range(5)]
    assert len(searched) == 1


@pytest.mark.parametrize(
    ("form", "out", "sentence"),
    [
        ("every-eval-ever", "out.json", "writes a folder: name a folder, such as out."),
        ("mlflow", "mlflow.db", "writes a folder: name a folder, such as mlflow."),
        ("inspect", "out.zip", "writes a folder, or a file that ends in .eval or "),
    ],
)
def test_a_folder_does_not_end_like_a_file(
    form: str, out: str, sentence: str, cwd: Path
) -> None:
    done = siftlog("export", "r", "--to", form, out, cwd=cwd, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"siftlog: {out} ends like a file, and --to {form} {sentence}"
    )
    assert not (cwd / out).exists()


def test_a_crate_needs_a_scoring_and_prompts(cwd: Path, tmp_path: Path) -> None:
    for words, told in (
        (("bare",), "Run bare has no scoring; make one with: siftlog score bare"),
        (("r", "--no-prompts"), "A bundle holds the prompts of its run: "),
    ):
        out = ("--to", "ro-crate", tmp_path / "crate")
        done = siftlog("export", *words, *out, cwd=cwd, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"siftlog: {told}")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("form", ["inspect", "mlflow", "every-eval-ever"])
def test_prompts_are_left_out_on_request(form: str, cwd: Path, tmp_path: Path) -> None:
    phrase = "We genotyped"  # of every paper
    for more, is_there in (((), True), (("--no-prompts",), False)):
        out = tmp_path / str(is_there)
        siftlog("export", "r", "--to", form, out, *more, cwd=cwd)
        texts = [*_contents(out).values()]
        for log in out.glob("*.eval"):
            with ZipFile(log) as archive:
                texts += map(archive.read, archive.namelist())
        assert any(phrase.encode() in text for text in texts) is is_there


@pytest.mark.parametrize(
    "words", [("tasks",), ("--format=csv",), ("--otlp=http://127.0.0.1:1",)]
)
def test_a_folder_is_written_alone(words: tuple[str], cwd: Path) -> None:
    done = siftlog("export", "r", *words, "--to", "inspect", "x", cwd=cwd, check=False)
    assert done.returncode == 2
    assert "--to writes one folder or file with everything in it" in done.stderr


def test_the_verdicts_of_a_task_come_back_in_order() -> None:
    def verdict(task: int, value: str) -> Verdict:
        return Verdict(
            task=task,
            model="m",
            stage="s",
            key="k",
            value=value,
            expected="",
            correct=None,
            rule="",
        )

    given = [(7, "a"), (2, "b"), (7, "c"), (7, "d" * 3_000_000), (1, "e")]
    with ExitStack() as leaving:
        verdicts = VerdictIndex(leaving)
        for task, value in given:
            verdicts.add(verdict(task, value))
        for task in range(10):
            assert [v.value for v in verdicts.of(task)] == [
                value for of_task, value in given if of_task == task
            ]
