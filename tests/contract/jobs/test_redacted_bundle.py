"""The metrics of every job follow from the frame of its redacted bundle alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.commands import command
from tests.contract.jobs.jobs import JobCase, SampleRuns
from tests.plugging import ROOT


def test_all_metrics_come_out_of_a_redacted_bundle(
    case: JobCase,
    sample_runs: SampleRuns,
    installed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the process that computes them again finds the example job there
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), str(ROOT)]))
    file = tmp_path / "redacted.siftlog.zip"
    done = sample_runs.of(case).command("bundle", "--redact", "--out", file)
    assert done.code == 0, done.err
    report = json.loads(command("verify", file, "--json").out)
    assert (report["sound"], report["rebuilt"]) == (True, True)
    redacted = report["redacted"]
    assert redacted["recomputed"] == redacted["metrics"] > 0
