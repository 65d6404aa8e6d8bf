"""The flame graph of a call: `python -m tests.bench.flame_call OUT.svg TITLE`.

Runs `siftlog generate` against the bare server of the benches, under `flame`. To
measure another version, put its checkout into `PYTHONPATH`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import flame
from tests.bench.calls_per_second import serving
from tests.bench.siftlog_run import command, papers

CALLS, CONCURRENCY = 8_000, 64

LOOPS = ("BaseEventLoop._run_once", "_connection_worker_thread")
"""What the event loop and the writer's thread call; the start of Python is left out."""


def main() -> None:
    """Draw the calls of one run."""
    out, title = sys.argv[1:]
    with serving(latency_ms=0) as base_url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = papers(folder, CALLS)
        _, *words = command("generate", folder, base_url, made, CONCURRENCY)
        under = [word for loop in LOOPS for word in ("--under", loop)]
        subprocess.run(
            [
                *(sys.executable, flame.__file__, *under),
                *("--per", str(CALLS), "call", out, title, *words),
            ],
            stdout=subprocess.DEVNULL,
            check=True,
        )


if __name__ == "__main__":
    main()
