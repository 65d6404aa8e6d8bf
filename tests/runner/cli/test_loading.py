"""Commands load no library that they do not use: most of a short one is imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import sys
from runner.cli.main import exit_code
code = exit_code(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""

CALLS = {"httpx", "aiohttp", "httpx_aiohttp", "litellm", "openai", "requests"}
SCIENCE = {"numpy", "scipy", "pandas", "sklearn", "matplotlib", "pyarrow"}
SCREEN = {"textual", "rich", "jobs.kit.report.page"}
DATA = {"pydantic", "pypdfium2", "fsspec", "xlsxwriter"}
METADATA = {"importlib.metadata", "email"}
"""Slow to import; `runner.installed` reads the same."""


def loaded(*words: str, cwd: Path) -> set[str]:
    """Return the modules that a process has loaded when the command ends."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], cwd=cwd, capture_output=True, check=True
    )
    return set(done.stderr.decode().splitlines()[-1].split())


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A folder with an offline run, and what making it has loaded."""
    cwd = tmp_path_factory.mktemp("generated")
    words = ("generate", "screening", "--limit=8", "--run-id=r", "--no-cache")
    return cwd, loaded(*words, cwd=cwd)


def test_help_loads_neither_store_nor_libraries(tmp_path: Path) -> None:
    modules = loaded("--help", cwd=tmp_path)
    unused = CALLS | SCIENCE | SCREEN | DATA | METADATA
    assert not modules & (unused | {"msgspec", "asyncio", "sqlite3", "store.events"})


def test_json_is_printed_without_its_types(generated: tuple[Path, set[str]]) -> None:
    modules = loaded("status", "r", "--json", cwd=generated[0])
    assert "runner.cli.console" in modules
    assert not {name for name in modules if name.startswith("runner.cli.json_")}


def test_status_loads_no_engine_and_no_job(generated: tuple[Path, set[str]]) -> None:
    modules = loaded("status", "r", cwd=generated[0])
    unused = CALLS | SCIENCE | SCREEN | DATA | METADATA
    assert not modules & (unused | {"asyncio", "runner.job", "runner.engine.driver"})
    assert not {name for name in modules if name.startswith("jobs.")}


def test_an_offline_run_loads_no_client_and_nothing_that_scores(
    generated: tuple[Path, set[str]],
) -> None:
    unused = CALLS | SCIENCE | SCREEN
    assert not generated[1] & (unused | {"jobs.screening.score", "pypdfium2"})
