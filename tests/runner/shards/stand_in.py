"""A verb that stands in for a shard: it says how it began, waits, and ends as told.

It is found by its entry point, as other people's verbs are (`tests/plugging.py`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import click


@click.command("stand-in")
@click.option("--config", type=click.Path(path_type=Path), required=True)
@click.option("--local-dir")
@click.option("--says", type=click.Path(path_type=Path), required=True)
@click.option("--seconds", type=float, default=60.0)
@click.option("--code", type=int, default=0)
def stand_in(
    config: Path, local_dir: str | None, says: Path, seconds: float, code: int
) -> int:
    """Wait, and end with a code; with 5 if that is asked by SIGTERM."""

    def drain(*_: object) -> None:
        sys.stderr.write("Interrupted; go on.\n")
        sys.exit(5)

    signal.signal(signal.SIGTERM, drain)
    began = {
        "pid": os.getpid(),
        "config": config.read_text("utf-8"),
        "local_dir": local_dir,
        "environment": dict(os.environ),
    }
    written = says.with_suffix(".part")
    written.write_text(json.dumps(began), "utf-8")
    written.rename(says)
    time.sleep(seconds)
    sys.stderr.write(f"It ends with {code}.\n\n")
    return code
