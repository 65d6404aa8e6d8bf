"""The verbs that look back: what they say of an earlier moment, and of none."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from runner.cli.main import exit_code
from store.database import open_reader
from store.runs import RunFolder
from store.tables import last_seq
from tests.corpus import write_corpus
from tests.processes import siftlog
from tests.store.logs import taken_up_again


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that was killed, taken up again and finished."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "r1")
    folder.path.mkdir()
    taken_up_again(folder.log)
    return folder


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run of a job, never scored."""
    cwd = tmp_path_factory.mktemp("answered")
    corpus = write_corpus(cwd / "corpus", 1)
    siftlog("generate", "paper-investigation", *corpus, "--run-id=r", cwd=cwd)
    return RunFolder(cwd / "runs" / "r")


def _json(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert exit_code([*map(str, words), "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("1", (1, "live", 0)),
        ("3", (3, "live", 1)),
        ("2026-01-01T00:01:00Z", (3, "lost", 1)),
        ("-60s", (4, "live", 1)),
        ("5", (5, "finished", 1)),
    ],
)
def test_status_is_that_of_the_moment(
    folder: RunFolder,
    capsys: pytest.CaptureFixture[str],
    at: str,
    expected: tuple[int, str, int],
) -> None:
    said = _json(capsys, "status", folder.path, "--at", at)
    started = said["attempts"]["started"]
    assert (said["last_seq"], said["state"], started) == expected
    assert said["at"]["seq"] == said["last_seq"]


def test_people_are_told_which_moment_it_is(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["status", str(folder.path), "--at=-60s"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "after event 4, at 2026-01-01T00:01:50.000000+00:00"
    assert second.startswith("run r1")


def test_a_check_is_of_the_moment(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = "2026-01-01T00:01:00Z"
    assert exit_code(["status", str(folder.path), "--at", lost, "--check"]) == 6
    assert exit_code(["status", str(folder.path), "--at", "5", "--check"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("verb", ["status", "score"])
@pytest.mark.parametrize("at", ["0", "nothing", "2026-01-01T00:00:00"])
def test_no_moment_is_a_mistake_of_use(
    answered: RunFolder, capsys: pytest.CaptureFixture[str], verb: str, at: str
) -> None:
    assert exit_code([verb, str(answered.path), "--at", at]) == 2
    said = capsys.readouterr().err
    assert said.startswith("siftlog: ")
    assert len(said.splitlines()) == 1


def test_a_prefix_is_scored_and_never_recorded(
    answered: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    before = hashlib.sha256(answered.log.read_bytes()).digest()
    with open_reader(answered.log) as reader:
        last = last_seq(reader)
    words = ("score", answered.path)
    now = _json(capsys, *words, "--no-record")
    end = _json(capsys, *words, "--at", last)
    half = _json(capsys, *words, "--at", last // 2)
    assert end["digest"] == now["digest"]
    assert (end["scoring"], end["partial"]) == (None, False)
    assert (half["at"]["seq"], half["seq"], half["partial"]) == (
        last // 2,
        last // 2,
        True,
    )
    assert 0 < half["ended"] < end["ended"]
    assert exit_code(["score", str(answered.path), "--at", str(last)]) == 0
    assert "an earlier state, not recorded" in capsys.readouterr().err
    assert hashlib.sha256(answered.log.read_bytes()).digest() == before
    assert not answered.scores.exists()


def test_a_look_back_has_no_files_to_be_copied(
    answered: RunFolder, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["score", str(answered.path), "--at=5", f"--output-dir={tmp_path / 'o'}"]
    assert exit_code(words) == 2
    assert "leave out --output-dir" in capsys.readouterr().err
