"""Runs that older siftlogs wrote open with every command that looks at a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.cli.main import exit_code
from tests.golden.runs import OLD, recorded

RUNS = (*OLD, "older")
COMMANDS = ("events {}", "status {}", "tasks {}", "show {} 1", "watch {} --plain")


@pytest.mark.parametrize("run", RUNS)
def test_an_old_run_opens_with_every_command(
    run: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, data in recorded().items():
        if name.startswith(f"runs/{run}/"):
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        assert exit_code(command.format(run).split()) == 0, command
        said = capsys.readouterr()
        assert said.out, command
        assert "Error" not in said.err, command
