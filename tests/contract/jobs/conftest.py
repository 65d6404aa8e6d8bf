"""Runs of the jobs' samples that promises share: each is made once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

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
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    return SampleRuns(
        shared=shared / "shared-samples", folder=tmp_path_factory.mktemp("samples")
    )


@pytest.fixture
def one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws figures as SVG alone: their PNG comes from the same canvas."""
    draw_one_format(monkeypatch)


def draw_one_format(patch: pytest.MonkeyPatch) -> None:
    """Leave PNG files of figures empty, which takes half as long."""
    save = Figure.savefig

    def savefig(self: Figure, fname: Path, **options: Any) -> None:
        if options["format"] == "png":
            fname.touch()
        else:
            save(self, fname, **options)

    patch.setattr(Figure, "savefig", savefig)


@pytest.fixture(params=JOBS)
def case(request: pytest.FixtureRequest) -> JobCase:
    """Each job in turn."""
    return JOBS[request.param]
