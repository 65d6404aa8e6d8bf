"""A log that something damaged: a sentence, whatever is asked, and nothing written."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

import pytest

from runner.cli.main import exit_code
from tests.corpus import write_corpus
from tests.crash.damage import DAMAGES, beheaded, scratched
from tests.processes import siftlog

VERBS = (
    *("status d", "tasks d", "events d", "verify d", "score d", "explain d PMC8000001"),
    *("export d", "export d --format=csv", "export d --format=parquet"),
    *("retry d --filter=state:completed", "resume d", "models d", "limits d"),
    *("budget d", "pause d --dry-run", "cancel d --dry-run", "estimate d"),
)
SCRATCHES = 200 if "SIFTLOG_PROVE" in os.environ else 6
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run's folder."""
    cwd = tmp_path_factory.mktemp("sound")
    corpus = write_corpus(cwd / "corpus", 6)
    siftlog("run", "paper-investigation", *corpus, "--run-id=r", cwd=cwd)
    # a reader that came last leaves no file of SQLite's beside the log
    siftlog("verify", "r", cwd=cwd)
    return cwd / "runs" / "r"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _copy(sound: Path, to: Path) -> Path:
    folder = to / "runs" / "d"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder, ignore=shutil.ignore_patterns("log.db-*"))
    return folder / "log.db"


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_log_that_cannot_be_read_is_one_sentence_and_stays_as_it_is(
    damage: str,
    words: str,
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = _copy(sound, tmp_path)
    DAMAGES[damage](log)
    before = log.read_bytes()
    code = exit_code(words.split())
    said = capsys.readouterr()
    (sentence,) = said.err.splitlines()
    assert code == 1 or (code == 6 and words == "verify d")
    assert sentence.startswith("siftlog: ")
    assert not CONTROLS.search(sentence)
    assert log.read_bytes() == before
    assert not list((log.parent / "exports").glob("*"))


@pytest.mark.parametrize("words", ["status d", "score d", "resume d"])
def test_a_log_without_its_first_event_is_not_said_to_be_an_empty_one(
    words: str,
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    beheaded(_copy(sound, tmp_path))
    assert exit_code(words.split()) == 1
    said = capsys.readouterr().err
    assert "the beginning of the log is missing" in said
    assert "delete" not in said


@pytest.mark.timeout(600 if "SIFTLOG_PROVE" in os.environ else 120)
def test_wherever_a_log_is_scratched_the_last_word_is_a_sentence(
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = (sound / "log.db").read_bytes()
    found = 0
    for seed in range(SCRATCHES):
        damaged = scratched(data, random.Random(seed))
        for words in VERBS:
            _copy(sound, tmp_path).write_bytes(damaged)
            code = exit_code(words.split())
            said = capsys.readouterr()
            assert code in {0, 1, 2, 3, 6}, (seed, words)
            assert not CONTROLS.search(said.out + said.err), (seed, words)
            if code in {1, 6}:
                found += 1
                assert said.err.splitlines()[-1].startswith("siftlog: "), said.err
    assert found > SCRATCHES


def test_an_error_that_nobody_foresaw_shows_no_raw_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("a reply: \x1b]0;owned\x07")

    monkeypatch.setattr("runner.cli.main.cli.main", breaks)
    assert exit_code(["status"]) == 1
    said = capsys.readouterr().err
    assert "in breaks" in said
    assert not CONTROLS.search(said)
    assert said.splitlines()[-1].startswith("siftlog: RuntimeError is a bug in")
