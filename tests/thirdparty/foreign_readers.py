"""inspect_ai and lm_eval in an environment of their own: they judge what is imported.

`python -m tests.thirdparty.foreign_readers` makes it (`make foreign-readers`). The
scripts in `foreign_scripts` run there.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.thirdparty.environments import Environment

SCRIPTS: Final = Path(__file__).with_name("foreign_scripts")

ENVIRONMENT: Final = Environment(
    name="foreign-readers",
    constraints=Path(__file__).with_name("foreign-constraints.txt"),
    packages=("inspect_ai", "lm_eval"),
)


def require_readers() -> None:
    """Skip a test where the environment is absent."""
    if os.environ.get("SIFTLOG_PROVE"):
        ENVIRONMENT.make()
    if not ENVIRONMENT.is_made():
        pytest.skip("inspect_ai and lm_eval have no environment: make foreign-readers")


def run(script: str, *words: object, cwd: Path) -> Any:
    """Run a script there; return the JSON of its last line."""
    done = subprocess.run(
        [ENVIRONMENT.python, SCRIPTS / script, *map(str, words)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    ENVIRONMENT.make()
