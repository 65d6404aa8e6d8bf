"""Hit while it starts or scores, a finished run keeps its answers and its scorings."""

from __future__ import annotations

import os
import random
import signal
import time
from itertools import cycle
from pathlib import Path

import pytest

from tests.corpus import write_corpus
from tests.processes import siftlog, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
HITS = 40 if PROVE else 5
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SOONER = 0.8
"""By so much the latest blow comes sooner once one came too late."""


@pytest.mark.timeout(600 if PROVE else 300)
def test_however_a_scoring_is_interrupted_the_next_one_says_the_same(
    tmp_path: Path,
) -> None:
    chance = random.Random(3)
    corpus = write_corpus(tmp_path / "corpus", 10)
    siftlog("run", "paper-investigation", *corpus, "--run-id=r", cwd=tmp_path)
    began = time.perf_counter()
    siftlog("resume", "r", cwd=tmp_path)
    latest_s = time.perf_counter() - began
    hits, signals = 0, cycle(SIGNALS)
    while hits < HITS:
        process = start("resume", "r", cwd=tmp_path)
        time.sleep(chance.uniform(0.02, latest_s))
        # in turn, as one may be ignored: SIGINT is, by what a shell put aside
        process.send_signal(next(signals))
        code = process.wait()
        assert code in {0, 5, *(-number for number in SIGNALS)}
        if code:
            hits += 1
        else:
            latest_s *= SOONER
    siftlog("resume", "r", cwd=tmp_path)
    siftlog("verify", "r", cwd=tmp_path)
    recorded = status(tmp_path, "r")["scorings"]
    scores = tmp_path / "runs" / "r" / "scores"
    assert recorded == list(range(1, len(recorded) + 1))
    cards = {(scores / str(n) / "scorecard.json").read_bytes() for n in recorded}
    assert len(cards) == 1
    # a folder that no event speaks of is at most the one that was under way
    there = {int(path.name) for path in scores.iterdir() if path.name.isdigit()}
    assert there - set(recorded) <= {len(recorded) + 1}
