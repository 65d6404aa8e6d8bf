"""Whole runs that share a cache, by the endpoint's own ledger; the verbs about it."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.gates import Gate, gated
from tests.processes import simulated, start, status

JOB = "paper-investigation"
PAPERS = 6
CACHE = ("--cache", "--cache-dir", "caches")


class Office:
    """A corpus, an endpoint with its ledger, and runs that share a cache folder."""

    def __init__(self, cwd: Path, gate: Gate) -> None:
        self.cwd = cwd
        self.gate = gate  #: is open, but to a test that shuts it
        self.corpus = write_corpus(cwd / "corpus", PAPERS)
        self._read = 0

    def words(self, run: str, *more: object, url: str | None = None) -> list[object]:
        address = ["--model=tested", "--base-url", url or self.gate.url]
        return [JOB, *self.corpus, *address, f"--run-id={run}", *CACHE, *more]

    def run(self, run: str) -> str:
        """Run to the end and score; what was said on stderr."""
        return siftlog("run", *self.words(run), cwd=self.cwd).stderr

    def generate(self, run: str, *more: object, url: str | None = None) -> str:
        """Run to the end; what was said on stderr."""
        words = self.words(run, *more, url=url)
        return siftlog("generate", *words, cwd=self.cwd).stderr

    def requests(self) -> int:
        """Requests that came since the last look."""
        lines = (self.cwd / "ledger.jsonl").read_bytes().count(b"\n")
        new, self._read = lines - self._read, lines
        return new

    def card(self, run: str) -> bytes:
        return (self.cwd / f"runs/{run}/scores/1/scorecard.json").read_bytes()

    def cached(self, run: str) -> int:
        return int(status(self.cwd, run)["attempts"]["cached"])


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    options = ("--job", JOB, "--seed", 5, "--latency-ms", 20)
    with (
        simulated(*options, "--ledger", "ledger.jsonl", cwd=tmp_path) as url,
        gated(url, passes=math.inf) as gate,
    ):
        yield Office(tmp_path, gate)


def test_a_second_run_sends_nothing_and_has_the_same_scorecard(office: Office) -> None:
    office.run("first")
    sent = office.requests()
    assert sent > PAPERS
    said = office.run("second")
    assert office.requests() == 0
    assert office.card("second") == office.card("first")
    assert office.cached("second") == sent
    assert f"{sent} from the cache" in said
    assert status(office.cwd, "second")["cost_usd"] == 0.0
    assert siftlog("verify", "second", cwd=office.cwd).returncode == 0

    # a hit waits for no budget, and for no slot
    office.generate("poor", "--price=100,100", "--budget=0.0001", "--rpm=1")
    poor = status(office.cwd, "poor")
    assert (poor["state"], poor["cost_usd"], poor["possible_usd"]) == ("finished", 0, 0)
    assert office.requests() == 0

    # another endpoint, or another replicate, is another question
    with simulated("--job", JOB, "--seed", 5, cwd=office.cwd) as url:
        office.generate("elsewhere", url=url)
    assert office.cached("elsewhere") == 0
    office.generate("twice", "--replicates", 2)
    assert office.cached("twice") == sent
    assert office.requests() == sent


def test_a_killed_run_goes_on_with_the_cache_and_pays_nothing_twice(
    office: Office,
) -> None:
    office.run("first")
    office.requests()
    # half of the answers are gone, so that the second run has to send some
    size = (office.cwd / "caches/cache.db").stat().st_size // 2
    siftlog(
        "cache", "prune", "--max-size", f"{size}b", "--cache-dir=caches", cwd=office.cwd
    )
    office.gate.let(4)
    process = start("run", *office.words("second", "--concurrency", 2), cwd=office.cwd)
    office.gate.wait(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    office.gate.open()
    before = status(office.cwd, "second")["attempts"]
    # the folder of the cache, and that it is wanted, are the run's own by now
    siftlog("resume", "second", cwd=office.cwd)
    after = status(office.cwd, "second")["attempts"]
    assert office.card("second") == office.card("first")
    assert after["answered"] == status(office.cwd, "first")["attempts"]["answered"]
    assert before["cached"] <= after["cached"] < after["answered"]
    sent = office.requests()
    assert after["answered"] - after["cached"] <= sent
    assert sent <= after["answered"] - after["cached"] + after["unknown"]
    # what was in the log at the kill and not yet in the cache is asked for once more
    office.generate("third")
    assert office.requests() <= before["answered"] - before["cached"]
    office.generate("fourth")
    assert office.requests() == 0


def test_retry_asks_the_endpoint_again(office: Office) -> None:
    office.generate("first")
    office.requests()
    office.generate("second")
    siftlog("retry", "second", "--filter", "stage:extract", cwd=office.cwd)
    siftlog("resume", "second", "--no-score", cwd=office.cwd)
    assert office.requests() == PAPERS


def test_no_cache_is_made_or_read_unless_it_is_asked_for(office: Office) -> None:
    environment = {"SIFTLOG_CACHE_DIR": "caches"}
    plain = [word for word in office.words("plain") if word not in CACHE]
    siftlog("generate", *plain, cwd=office.cwd, env=environment)
    siftlog("generate", JOB, *CACHE, "--run-id=offline", cwd=office.cwd)
    assert not (office.cwd / "caches").exists()
    office.generate("first")
    office.requests()
    office.generate("second", "--no-cache")
    assert office.requests() > 0
    assert office.cached("second") == 0


def test_a_run_says_what_is_wrong_with_its_cache_and_goes_on(office: Office) -> None:
    (office.cwd / "caches").mkdir()
    (office.cwd / "caches/cache.db").write_bytes(b"something else" * 1000)
    said = office.generate("first")
    assert "The response cache is left out: caches/cache.db is damaged" in said
    assert office.requests() > 0
    done = siftlog("cache", "list", "--cache-dir=caches", cwd=office.cwd, check=False)
    assert done.returncode == 1
    assert "delete it to start a new cache" in done.stderr
    assert "Traceback" not in done.stderr


def _lines(cwd: Path, *words: object) -> list[dict[str, object]]:
    done = siftlog("cache", *words, "--json", "--cache-dir=caches", cwd=cwd)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_verbs_list_and_prune(office: Office) -> None:
    assert _lines(office.cwd, "list") == []
    assert not (office.cwd / "caches").exists()
    office.generate("first")
    sent = office.requests()
    (group,) = _lines(office.cwd, "list")
    assert (group["model"], group["entries"], group["hits"]) == ("tested", sent, 0)
    assert group["endpoint"] == office.gate.url.rstrip("/").removesuffix("/v1") + "/v1"
    assert _lines(office.cwd, "list", "--model", "another") == []
    shown = siftlog("cache", "list", "--cache-dir=caches", cwd=office.cwd).stdout
    assert all(len(line) <= 80 for line in shown.splitlines())

    (would,) = _lines(office.cwd, "prune", "--model", "tested", "--dry-run")
    assert (would["entries"], would["left_entries"]) == (sent, 0)
    (kept,) = _lines(office.cwd, "prune", "--older-than", "1h", "--max-size", "1GB")
    assert (kept["entries"], kept["left_entries"]) == (0, sent)
    (gone,) = _lines(office.cwd, "prune", "--older-than", "0s")
    assert gone == {**would, "dry_run": False}

    for words in (["--older-than", "long"], ["--max-size", "2"], []):
        done = siftlog("cache", "prune", *words, cwd=office.cwd, check=False)
        assert done.returncode == 2
        assert "30d" in done.stderr or "2GB" in done.stderr
