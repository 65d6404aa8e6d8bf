"""Fixtures for every layer."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.processes import end_started

IS_LONG = "SIFTLOG_PROVE" in os.environ
# The short form takes the same examples each time, so that a failure belongs to the
# change that it is seen on; the long form looks for new ones. A busy machine is slow,
# which is no property of the code.
settings.register_profile(
    "siftlog",
    deadline=None,
    derandomize=not IS_LONG,
    max_examples=100 if IS_LONG else 25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("siftlog")

# each interpreter that a test starts would compile again what it imports
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# what pytest and the libraries keep is never garbage: looking through it costs a tenth
# of a test that makes many objects
gc.set_threshold(50_000, 20, 50)

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


def pytest_collection_finish() -> None:
    """Leave everything imported and collected out of each collection to come."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test() -> Iterator[None]:
    """One that does would be told of in whichever test comes next."""
    yield
    end_started()
