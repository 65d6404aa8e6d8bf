"""Fixtures for every layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
