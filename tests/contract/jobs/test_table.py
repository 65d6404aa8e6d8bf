"""Every installed job is in the table of the contract, and quickly found."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runner.registry import job_names
from tests.contract.jobs.jobs import JOBS

HEAVY = {"litellm", "matplotlib", "numpy", "pandas", "rapidfuzz", "scipy", "sklearn"}
PLANNED_WITH = {"evidence-retrieval": {"numpy"}}
"""What a job needs before it can plan."""


def test_every_job_is_tried() -> None:
    assert JOBS.keys() == {*job_names()}


@pytest.mark.parametrize("name", [name for name in JOBS if name != "treatments"])
def test_finding_a_job_loads_no_heavy_library(name: str) -> None:
    code = f"import sys; from runner.registry import load_job; load_job({name!r}); "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY & {*done.stdout.split()} == PLANNED_WITH.get(name, set())
