"""Fixtures for every layer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.processes import end_started

# a busy machine is slow, which is no property of the code
settings.register_profile(
    "siftlog", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("siftlog")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real papers and recorded answers; skips where it is absent."""
    folder = Path(
        os.environ.get("SIFTLOG_REALDATA", ROOT.parent / "shared" / "realdata")
    )
    if not folder.is_dir():
        pytest.skip("real data is absent: set SIFTLOG_REALDATA to its folder")
    return folder


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test() -> Iterator[None]:
    """One that does would be told of in whichever test comes next."""
    yield
    end_started()
