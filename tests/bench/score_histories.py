"""The history of a thousand runs, as the command reads and prints it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.bench.row import Row
from tests.bench.verdict import most
from tests.jobs.remembered import milestone, parts, recorded
from tests.processes import siftlog

MODELS, REVIEWS = 2, 8


def measure(quick: bool) -> list[Row]:
    """Runs of two models and eight reviews each."""
    runs = 100 if quick else 1_000
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        for day in range(runs):
            got = {
                f"model {model}": {
                    f"CD{review}": range(day % 4 + 1) for review in range(REVIEWS)
                }
                for model in range(MODELS)
            }
            recorded(cwd / "runs", day, milestone(got), below=parts(got))
        words = ("history", "review-benchmark", "--against", "best", "--json")
        began = time.perf_counter()
        done = siftlog(*words, cwd=cwd, check=False)
        took = time.perf_counter() - began
    assert done.stdout.count('"run":') >= runs * MODELS
    return [
        most("reviews", f"history over {runs:,} runs, s", took, 2.0),
    ]
