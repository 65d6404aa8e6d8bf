"""A person who screens as a file of labels says, through the real command."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from jobs.screening.inputs import SAMPLE
from tests.processes import SIFTLOG, environment

LABELS = SAMPLE / "library" / "labels.csv"
_ITEM = re.compile(r"^\d[\d,]* of \d[\d,]*  library:(\S+)")


def truth(file: Path = LABELS) -> dict[str, str]:
    """Key by key, what the file says: i or e."""
    with file.open(newline="") as opened:
        return {row["id"]: "ie"[row["label"] == "0"] for row in csv.DictReader(opened)}


def screen(
    cwd: Path,
    *words: str,
    answer: Callable[[str], str],
    stop_after: int | None = None,
    kill_after: int | None = None,
) -> tuple[int, str]:
    """Answer each question; return how many were answered, and the output.

    Args:
        cwd: where the command runs.
        words: after `siftlog screen`.
        answer: the key for a record.
        stop_after: quit after so many answers.
        kill_after: kill -9 when so many answers are acknowledged by the next question.
    """
    with subprocess.Popen(
        (str(SIFTLOG), "screen", *words, "--plain"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=environment({"PYTHONUNBUFFERED": "1", **os.environ}),
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answered = [], 0
        for line in process.stdout:
            lines.append(line)
            match = _ITEM.match(line)
            if match is None:
                continue
            if kill_after is not None and answered >= kill_after:
                lines.append(process.stdout.readline())  # what is proved by then
                process.kill()
                break
            key = "q" if answered == stop_after else answer(match[1])
            answered += key != "q"
            process.stdin.write(f"{key}\n")
            process.stdin.flush()
        return answered, "".join(lines)
