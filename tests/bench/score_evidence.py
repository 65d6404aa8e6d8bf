"""Importing evidence rankings with scoring, report and figures: CPU of both models.

The rankings are real ones of two models, read from the folder of real data; without
that folder there are no rows. Each import is a process of its own. Packages that were
installed without bytecode are compiled in each of them, two fifths of the time.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.processes import SIFTLOG

ROOT = Path(__file__).resolve().parents[2]
RUNS = ("baseline_default_val", "bge_m3_rrf_top20")
TARGET = "evidence"


def measure(quick: bool) -> list[Row]:
    """Seconds of CPU of each model and of both, from file to report."""
    del quick
    data = Path(os.environ.get("SIFTLOG_REALDATA", ROOT.parent / "shared/realdata"))
    files = [data / "evidence_pipeline" / run / "per_query.csv" for run in RUNS]
    if not all(file.is_file() for file in files):
        return []
    with tempfile.TemporaryDirectory() as name:
        seconds = [_imported(Path(name), file) for file in files]
    what = "import + score + report"
    return [
        *(
            shown(f"{what}, {run}, s", cpu_s, TARGET)
            for run, cpu_s in zip(RUNS, seconds, strict=True)
        ),
        most(TARGET, f"{what}, both models, s", sum(seconds), 4),
    ]


def _imported(cwd: Path, file: Path) -> float:
    process = subprocess.Popen(
        [SIFTLOG, "import", "evidence-retrieval", "--per-query", str(file)],
        cwd=cwd,
        stdout=subprocess.DEVNULL,
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"the import of {file} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
