"""The programs whose files siftlog imports and exports, in an environment of their own.

They judge both directions: inspect_ai, lm_eval, Langfuse, MLflow, the validators of
RO-Crates, and the schemas of Every Eval Ever; and promptfoo, which needs npm.
`python -m tests.thirdparty.judges` makes the environments (`make judges`). The scripts
in `judge_scripts` run there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

import pytest

from tests.thirdparty.environments import Environment, NodePackages

SCHEMAS: Final = "every_eval_ever/schemas"
EVERY_EVAL_EVER: Final = "every-eval-ever==0.3.0"
"""Needs Python 3.12; only its published schemas are read."""


def _add_schemas(home: Path) -> None:
    with TemporaryDirectory() as folder:
        words = ("--quiet", "--no-deps", "--only-binary", ":all:")
        words += ("--python-version", "3.12", "--dest", folder, EVERY_EVAL_EVER)
        pip = [sys.executable, "-m", "pip", "download", *words]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(SCHEMAS)]
            archive.extractall(home, names)


_ENV: Final = {
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_OFFLINE": "1",
}

SCRIPTS: Final = Path(__file__).with_name("judge_scripts")

ENVIRONMENT: Final = Environment(
    name="judges",
    constraints=Path(__file__).with_name("judges-constraints.txt"),
    packages=(
        *("inspect-ai", "lm_eval", "langfuse"),
        *("mlflow-skinny", "roc-validator", "rocrate"),
    ),
    finish=_add_schemas,
)


PROMPTFOO: Final = NodePackages(
    name="promptfoo",
    packages=("promptfoo@0.121.20",),  # the last one for Node 20
    natives=("@libsql/{platform}@0.5.29",),
)

_PROMPTFOO_ENV: Final = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "NO_PROXY": "127.0.0.1",
}


def require_judges() -> None:
    """Skip a test where the environment is absent."""
    if os.environ.get("SIFTLOG_PROVE"):
        ENVIRONMENT.make()
    if not ENVIRONMENT.is_made():
        pytest.skip("the judges have no environment: make judges")


def require_promptfoo() -> None:
    """Skip a test where promptfoo is absent."""
    if not NodePackages.is_possible():
        pytest.skip("promptfoo needs npm and node, which are not installed")
    if os.environ.get("SIFTLOG_PROVE"):
        PROMPTFOO.make()
    if not PROMPTFOO.is_made():
        pytest.skip("promptfoo is not installed: make judges")


def run_promptfoo(*words: object, cwd: Path) -> None:
    """Run `promptfoo eval` in a folder, in which it keeps its state too.

    Its exit code is that of the assertions, so only its files say that it has ended.
    """
    command = [*PROMPTFOO.command("promptfoo"), "eval", "--no-cache", *words]
    state = {"HOME": str(cwd), "PROMPTFOO_CONFIG_DIR": str(cwd / "promptfoo-state")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **_PROMPTFOO_ENV, **state},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Eval complete" in done.stdout, done.stdout + done.stderr


def run_script(name: str, *words: object, cwd: Path) -> Any:
    """Run a file of `judge_scripts` there; see `run_there`."""
    return run_there((SCRIPTS / name).read_text("utf-8"), *words, cwd=cwd)


def run_there(script: str, *words: object, cwd: Path) -> Any:
    """Run Python there; return the JSON that its last line prints."""
    done = subprocess.run(
        [str(word) for word in (ENVIRONMENT.python, "-c", script, *words)],
        cwd=cwd,
        env={**os.environ, **_ENV, "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def schema(name: str) -> Any:
    """A published schema of Every Eval Ever."""
    return json.loads((ENVIRONMENT.home / SCHEMAS / name).read_text("utf-8"))


if __name__ == "__main__":
    ENVIRONMENT.make()
    if NodePackages.is_possible():
        PROMPTFOO.make()
    else:
        sys.stdout.write("without npm and node, promptfoo judges nothing\n")
