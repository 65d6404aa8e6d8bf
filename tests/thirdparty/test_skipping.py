"""Absent packages: a skip with the reason at a desk, a failure in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thirdparty import judges

ROOT = Path(__file__).parent.parent.parent
RUN = """
import importlib.util, sys
import pytest
sys.path.insert(0, '.')
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: (
    None if name == {package!r} else real(name, *more)
)
raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", {file!r}]))
"""
"""Runs a test file as if a package were not installed."""


@pytest.mark.parametrize(
    ("package", "file", "ci", "fails"),
    [
        ("xllamacpp", "test_llamacpp.py", "true", True),
        ("llmock", "test_llmock.py", "true", True),
        ("llmock", "test_llmock.py", "", False),
        ("rotel", "test_rotel.py", "true", False),
    ],
)
def test_an_absent_package_is_a_skip_and_in_ci_a_failure(
    package: str, file: str, ci: str, *, fails: bool
) -> None:
    script = RUN.format(package=package, file=f"tests/thirdparty/{file}")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"not installed: {package}" in done.stdout
    if fails:
        assert done.returncode in {
            pytest.ExitCode.INTERRUPTED,
            pytest.ExitCode.TESTS_FAILED,
        }
        assert "error" in done.stdout
    else:
        assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
        assert "1 skipped" in done.stdout


def test_promptfoo_is_a_skip_without_npm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match="needs npm and node, which are no"):
        judges.require_promptfoo()
