"""The commands methods and check, on runs as they are made, changed and packed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from runner import sent_requests
from tests.commands import Done, command


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    words = ("--limit", 3, "--run-id", "r", "--no-report", "--set", "boot_b=50")
    runs = ("--runs-dir", folder / "runs")
    assert command("run", "paper-investigation", *words, *runs).code == 0
    return folder


@pytest.fixture(name="folder")
def _folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs", tmp_path / "runs")
    return tmp_path


def _do(folder: Path, *words: object) -> Done:
    return command(*words, "--runs-dir", folder / "runs")


def _text(folder: Path, name: str = "text.md") -> Path:
    done = _do(folder, "methods", "r", "--out", folder / name)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        str(folder / name),
        str(folder / f"{Path(name).stem}-prompts.md"),
    ]
    return folder / name


@pytest.mark.parametrize("name", ["text.md", "text.tex", "text.docx"])
def test_what_methods_writes_is_what_check_finds(folder: Path, name: str) -> None:
    if name.endswith("docx"):
        pytest.importorskip("docx")
    path = _text(folder, name)
    done = _do(folder, "check", path)
    assert done.code == 0, done.out
    assert re.search(r"\d{2,} values checked against run r, 0 wrong", done.out)
    prompts = (folder / "text-prompts.md").read_text()
    assert "## Templates" in prompts
    assert "CYP" not in prompts.split("## Prompt 1")[1]  # no text of a paper


def test_a_text_to_read_names_no_path_and_asks_authors(folder: Path) -> None:
    done = _do(folder, "methods", "r")
    assert str(folder) not in done.out
    assert "/sample" not in done.out
    plain = re.sub(r"<!--.*?-->|\\", "", done.out)
    assert "Data collection was supported by siftlog" in plain
    assert "[To be completed by the authors:" in plain
    assert "--out FILE also writes the prompts" in done.err


def test_a_changed_value_is_named_with_its_place_and_the_exit_code_is_6(
    folder: Path,
) -> None:
    path = _text(folder, "text.tex")
    text = path.read_text()
    marked = re.search(r"\\siftlogvalue\{count:tasks.planned\}\{(\d+)\}", text)
    assert marked is not None
    path.write_text(text[: marked.start(1)] + "7" + text[marked.end(1) :])
    line = text.count("\n", 0, marked.start()) + 1
    column = marked.start(1) - text.rfind("\n", 0, marked.start(1))
    done = _do(folder, "check", path)
    assert done.code == 6
    assert f"{path}:{line}:{column}: count:tasks.planned is 7, not {marked[1]}" in (
        done.out
    )
    said = json.loads(_do(folder, "check", path, "--json").out)
    assert [fault["kind"] for fault in said["faults"]] == ["denominator"]
    assert not said["sound"]


def test_a_run_that_was_scored_anew_makes_values_stale(folder: Path) -> None:
    path = _text(folder)
    score = ("score", "r", "--no-report", "--level", 0.8)
    assert _do(folder, *score).code == 0
    said = json.loads(_do(folder, "check", path, "--json").out)
    assert {fault["kind"] for fault in said["faults"]} == {"stale"}
    assert _do(folder, "check", path, "--scoring", 1).code == 0


@pytest.mark.skipif(
    "SIFTLOG_PROVE" not in os.environ, reason="slow; docs/methods-text.md does the same"
)
def test_a_bundle_is_verified_and_its_numbers_are_computed_again(
    folder: Path,
) -> None:
    path, bundle = _text(folder), folder / "r.zip"
    assert _do(folder, "bundle", "r", "--no-report", "--out", bundle).code == 0
    shutil.rmtree(folder / "runs")
    assert _do(folder, "check", path, "--bundle", bundle).code == 0
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    bundle.write_bytes(data)
    done = _do(folder, "check", path, "--bundle", bundle)
    assert done.code == 6
    assert done.err.startswith("siftlog: r.zip: ")


def test_values_of_a_model_whose_name_is_hidden_are_counted_not_checked(
    tmp_path: Path,
) -> None:
    model = "a-model-with-a-long-name"  # which is a piece of each prompt
    rows = [
        {"id": f"i{n}", "prompt": f"You are {model}: {n}?", "reply": "1", "target": n}
        for n in range(6)
    ]
    lines = [json.dumps({**row, "model": model}) for row in rows]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines))
    words = ("--run-id", "r", "--no-report")
    assert (
        _do(tmp_path, "import", "replies", tmp_path / "replies.jsonl", *words).code == 0
    )
    path, bundle = tmp_path / "text.md", tmp_path / "hidden.zip"
    assert _do(tmp_path, "methods", "r", "--out", path).code == 0
    assert _do(tmp_path, "bundle", "r", "--redact", "--out", bundle).code == 0
    assert model in path.read_text()
    done = _do(tmp_path, "check", path, "--bundle", bundle, "--json")
    said = json.loads(done.out)
    assert (done.code, said["faults"]) == (0, [])
    assert said["redacted"] > 10
    # what is of no model is still compared
    path.write_text(path.read_text().replace("-->6<", "-->7<"))
    assert _do(tmp_path, "check", path, "--bundle", bundle).code == 6


def test_a_run_without_a_scoring_has_a_text(folder: Path) -> None:
    words = ("--limit", 1, "--run-id", "r2", "--no-score")
    assert _do(folder, "run", "paper-investigation", *words).code == 0
    path = folder / "r2.md"
    assert _do(folder, "methods", "r2", "--out", path).code == 0
    assert "The answers have not been scored." in path.read_text()
    assert _do(folder, "check", path).code == 0


def test_all_values_can_be_copied(folder: Path) -> None:
    done = _do(folder, "methods", "r", "--values")
    assert done.code == 0
    copied = folder / "copied.md"
    copied.write_text(done.out)
    said = json.loads(_do(folder, "check", copied, "--bundle", "r", "--json").out)
    assert said["sound"], said["faults"][:3]
    assert said["checked"] == len(done.out.splitlines())
    assert any(":n" in line or "@n" in line for line in done.out.splitlines())


def test_mistakes_are_answered_with_the_next_step(folder: Path) -> None:
    plain = folder / "plain.md"
    plain.write_text("Recall was 0.9.")
    done = _do(folder, "check", plain)
    assert (done.code, "name it with --bundle RUN" in done.err) == (2, True)
    done = _do(folder, "check", plain, "--bundle", "r")
    assert (done.code, "has no value of run r" in done.err) == (1, True)
    done = _do(folder, "methods", "r", "--format", "docx")
    assert (done.code, "--out FILE.docx" in done.err) == (2, True)
    word = folder / "not.docx"
    word.write_text("no zip")
    done = _do(folder, "check", word, "--bundle", "r")
    assert (done.code, "is no DOCX file" in done.err) == (1, True)
    plain.write_bytes(b"\xff")
    done = _do(folder, "check", plain, "--bundle", "r")
    assert (done.code, "is not UTF-8" in done.err) == (1, True)


@pytest.mark.parametrize("verb", ["methods", "check"])
def test_each_request_is_read_once(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _text(folder)
    reads: Counter[int] = Counter()
    read = sent_requests.payload

    def counted(reader: sqlite3.Connection, seq: int) -> bytes | None:
        reads[seq] += 1
        return read(reader, seq)

    monkeypatch.setattr(sent_requests, "payload", counted)
    done = (
        _do(folder, "methods", "r") if verb == "methods" else _do(folder, "check", path)
    )
    assert done.code == 0, done.err
    prompts = (folder / "text-prompts.md").read_text().count("\n## Prompt ")
    # of requests of one form, one is read again, with its texts
    assert sum(reads.values()) == len(reads) + prompts
    assert len(reads) > prompts > 0
