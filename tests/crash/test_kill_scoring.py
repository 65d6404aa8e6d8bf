"""Hit while it starts or scores, a finished run keeps its answers and its scorings."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.corpus import write_corpus
from tests.processes import siftlog, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
TIMES = 60 if PROVE else 8
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST = 1.5
"""The latest blow, by how long starting and scoring take on this machine."""


@pytest.mark.timeout(600 if PROVE else 120)
def test_however_a_scoring_is_interrupted_the_next_one_says_the_same(
    tmp_path: Path,
) -> None:
    chance = random.Random(3)
    corpus = write_corpus(tmp_path / "corpus", 10)
    siftlog("run", "paper-investigation", *corpus, "--run-id=r", cwd=tmp_path)
    began = time.perf_counter()
    siftlog("resume", "r", cwd=tmp_path)
    latest_s = LONGEST * (time.perf_counter() - began)
    hit = 0
    for turn in range(TIMES):
        process = start("resume", "r", cwd=tmp_path)
        time.sleep(chance.uniform(0.02, latest_s))
        process.send_signal(SIGNALS[turn % len(SIGNALS)])
        code = process.wait(30)
        assert code in {0, 5, *(-number for number in SIGNALS)}
        hit += code != 0
    assert hit > TIMES // 3, "it was always over before it was hit"
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
