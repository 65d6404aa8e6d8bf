"""Runs of the jobs' samples that promises share: each is made once a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.jobs.jobs import JOBS, JobCase, SampleRuns
from tests.jobs.conftest import _scorecards_have_words  # noqa: F401 - checks them here
from tests.plugging import plugged


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that installs the example job where it is on the path."""
    folder = tmp_path_factory.mktemp("installed")
    plugged(folder, treatments="tests.jobs.kit.sixth_job:job")
    return folder


@pytest.fixture(autouse=True)
def _settled(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example job; wherever the tests run, runs are the same."""
    monkeypatch.syspath_prepend(installed)
    monkeypatch.setenv("SIFTLOG_STOP_IF", "off")
    monkeypatch.setenv("SIFTLOG_ALLOW_UNKNOWN_PRICE", "1")


@pytest.fixture(scope="session")
def sample_runs(tmp_path_factory: pytest.TempPathFactory) -> SampleRuns:
    """The scored run of each job's sample."""
    return SampleRuns(tmp_path_factory.mktemp("samples"))


@pytest.fixture(params=JOBS)
def case(request: pytest.FixtureRequest) -> JobCase:
    """Each job in turn."""
    return JOBS[request.param]
