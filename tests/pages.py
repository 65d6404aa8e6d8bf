"""Blocks of Markdown pages, and shells that follow them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.processes import path_with_command


def blocks(language: str, text: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def follow(text: str, folder: Path, env: dict[str, str] | None = None) -> str:
    """Run all the shell blocks of a text as one script; what they print."""
    # a run that was detached goes on without the script
    leave = (
        "trap 'siftlog drain last &> /dev/null || true; "
        "kill $(jobs -p) 2> /dev/null || true' EXIT"
    )
    script = "\n".join(["set -euo pipefail", leave, *blocks("sh", text)])
    with TemporaryDirectory() as commands:
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            cwd=folder,
            env={
                **os.environ,
                **(env or {}),
                "PATH": path_with_command(Path(commands)),
            },
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout
