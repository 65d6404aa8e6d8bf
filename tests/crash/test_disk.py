"""A disk that is full or may not be written, on a file system of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.simulate.options import RequestOutcome
from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated

JOB = "paper-investigation"
SMALL, LARGE = "size=2m", "size=64m"


def _mount(*words: str) -> bool:
    if not Path("/bin/mount").exists():
        return False
    done = subprocess.run(["/bin/mount", *words], capture_output=True, check=False)
    return done.returncode == 0


class Disk:
    """A file system that a test may fill, and make larger or read-only."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self._folder = folder

    def becomes(self, option: str) -> None:
        assert _mount("-o", f"remount,{option}", str(self._folder))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk in memory; it takes root to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or not _mount("-t", "tmpfs", "-o", SMALL, "siftlog", str(folder)):
        pytest.skip("a file system of its own can only be mounted by root")
    yield Disk(folder)
    subprocess.run(["/bin/umount", "--lazy", "--recursive", str(folder)], check=True)


def _ledger_repeats(ledger: Path) -> int:
    """Requests that were answered more than once; each is asked once in this run."""
    answered = [
        line.request
        for line in read_ledger(ledger)
        if line.outcome is RequestOutcome.ANSWERED
    ]
    return len(answered) - len(set(answered))


def test_a_full_disk_is_a_sentence_and_once_there_is_room_the_run_goes_on(
    disk: Disk, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 250)
    ledger = tmp_path / "ledger.jsonl"
    here = f"--runs-dir={disk.runs}"
    server = ("--job", JOB, "--latency-ms", 20, "--ledger", ledger)
    with simulated(*server, cwd=tmp_path) as url:
        engine = (f"--base-url={url}", "--concurrency=16", here)
        done = siftlog(
            *("run", JOB, *corpus, "--run-id=r", "--model=x", *engine),
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        sentences = [s for s in done.stderr.splitlines() if s.startswith("siftlog: ")]
        assert len(sentences) == 1
        assert "free space" in sentences[0]
        assert "Traceback" not in done.stderr
        # a full disk is no reason not to look
        assert "answered" in siftlog("status", "r", here, cwd=tmp_path).stdout
        again = siftlog("resume", "r", *engine, cwd=tmp_path, check=False)
        assert again.returncode == 1
        assert "Traceback" not in again.stderr

        disk.becomes(LARGE)
        before = json.loads(siftlog("status", "r", "--json", here, cwd=tmp_path).stdout)
        kept = before["attempts"]["answered"]
        assert 0 < kept < before["tasks"]["planned"]
        siftlog("resume", "r", *engine, cwd=tmp_path)
    siftlog("verify", "r", here, cwd=tmp_path)
    end = json.loads(siftlog("status", "r", "--json", here, cwd=tmp_path).stdout)
    assert end["tasks"]["open"] == end["tasks"]["failed"] == 0
    assert end["attempts"]["answered"] == end["tasks"]["completed"]
    # what was answered and found no room is asked once more; nothing else is
    assert _ledger_repeats(ledger) <= end["attempts"]["unknown"]


def test_a_disk_that_became_read_only_is_a_sentence_and_can_be_looked_at(
    disk: Disk, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 3)
    here = f"--runs-dir={disk.runs}"
    disk.becomes(LARGE)
    siftlog("run", JOB, *corpus, "--run-id=r", here, cwd=tmp_path)
    disk.becomes("ro")
    for words in (
        ("resume", "r"),
        ("score", "r"),
        ("export", "r"),
        ("retry", "r", "--filter=state:completed"),
        ("run", JOB, *corpus, "--run-id=s"),
    ):
        done = siftlog(*words, here, cwd=tmp_path, check=False)
        assert done.returncode == 1, (words, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stderr.splitlines()[-1].startswith("siftlog: ")
        assert str(disk.runs) in done.stderr
    for words in (("status", "r"), ("tasks", "r"), ("events", "r"), ("verify", "r")):
        assert siftlog(*words, here, cwd=tmp_path).stdout
    siftlog("score", "r", "--no-record", here, cwd=tmp_path)


@pytest.mark.parametrize("name", ["log.db", "log.lock"])
def test_one_file_that_may_not_be_written_is_a_sentence(
    name: str, disk: Disk, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 3)
    here = f"--runs-dir={disk.runs}"
    disk.becomes(LARGE)
    siftlog("generate", JOB, *corpus, "--run-id=r", here, cwd=tmp_path)
    file = str(disk.runs / "r" / name)
    assert _mount("--bind", file, file)
    assert _mount("-o", "remount,bind,ro", file)
    done = siftlog("resume", "r", here, cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stderr
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("siftlog: ")
    assert "is writable" in sentence
    assert "finished" in siftlog("status", "r", here, cwd=tmp_path).stdout
