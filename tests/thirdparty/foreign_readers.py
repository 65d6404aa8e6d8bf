"""inspect_ai and lm_eval in an environment of their own: they judge what is imported.

`python -m tests.thirdparty.foreign_readers` makes the environment (`make
foreign-readers`). In it, `write_logs` runs as a script of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
CONSTRAINTS: Final = HERE / "foreign-constraints.txt"
HOME: Final = Path(sys.prefix) / "foreign-readers"
"""In the project's own environment, which is kept out of the repository."""

READY: Final = HOME / ".ready"
SCRIPTS: Final = HERE / "foreign_scripts"


def is_made() -> bool:
    """Whether the environment is there, with the versions of today's constraints."""
    return READY.exists() and READY.read_text("utf-8") == _wanted()


def make() -> None:
    """Make the environment unless it is there; several processes make it once."""
    with HOME.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made():
            return
        python = HOME / "bin" / "python"
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run([sys.executable, "-m", "venv", "--clear", HOME], check=True)
        words = [*quiet, "-c", CONSTRAINTS, "inspect_ai", "lm_eval"]
        subprocess.run([python, "-m", "pip", "install", *words], check=True)
        READY.write_text(_wanted(), "utf-8")


def _wanted() -> str:
    return hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()


def run(script: str, *words: object, cwd: Path) -> Any:
    """Run a script of `foreign_scripts` there; return the JSON of its last line."""
    done = subprocess.run(
        [HOME / "bin" / "python", SCRIPTS / script, *map(str, words)],
        cwd=cwd,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    make()
