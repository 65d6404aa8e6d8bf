"""CPU per call of HTTP libraries, plain and encrypted, alone and in a whole run.

Everything runs in turns against one bare server. A library is measured behind the
sender of the client, with its deadlines, bounds and masks; a whole run has the engine
and the durable log too. `pyreqwest` and `uvloop` are left out where they are missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from tests.bench.calls_per_second import ROOT, serving
from tests.bench.row import Row
from tests.bench.siftlog_run import siftlog
from tests.bench.verdict import shown
from tests.runner.clients.tls import server_context

ALONE = ("bare", "protocol", "aiohttp", "httpx", "pyreqwest")
WHOLE = ("protocol", "aiohttp", "pyreqwest", "uvloop-aiohttp")
CONCURRENCY = 64

GAIN = 0.25
"""Share of a whole call that a transport of our own would have to save."""


def measure(quick: bool) -> list[Row]:
    """The rows of this table."""
    rounds, calls = (1, 600) if quick else (6, 2_500)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _, trusted = server_context(Path(folder))
        kept = os.environ.get("SSL_CERT_FILE")
        os.environ["SSL_CERT_FILE"] = str(trusted)
        try:
            for way, certificate in (("plain", None), ("TLS", Path(folder))):
                with serving(latency_ms=0, certificate=certificate) as base_url:
                    rows += _rows(base_url, way, rounds, calls)
        finally:
            os.environ.pop("SSL_CERT_FILE")
            if kept is not None:
                os.environ["SSL_CERT_FILE"] = kept
    return rows


def _rows(base_url: str, way: str, rounds: int, calls: int) -> list[Row]:
    alone: dict[str, list[float]] = {name: [] for name in filter(_is_here, ALONE)}
    whole: dict[str, list[float]] = {name: [] for name in filter(_is_here, WHOLE)}
    for _ in range(rounds):
        for name, figures in alone.items():
            # the pool of httpx looks at all connections for each request
            figures.append(
                _alone(name, base_url, calls // (8 if name == "httpx" else 1))
            )
        for name, figures in whole.items():
            run = siftlog(base_url, calls, CONCURRENCY, over=name)
            figures.append(run.cpu_ms)
    ours = median(whole["aiohttp"])
    saved = 1 - median(whole["protocol"]) / ours
    goal = f"< {GAIN:g}, or ours wins"
    return [
        *(shown(f"{n}, {way}", median(f), "CPU ms/call") for n, f in alone.items()),
        *(
            shown(f"whole run over {n}, {way}", median(f), "CPU ms/call")
            for n, f in whole.items()
        ),
        Row(
            target="CPU ms/call",
            what=f"share of a whole run that a bare protocol saves, {way}",
            value=saved,
            goal=goal,
            met=saved < GAIN,
        ),
    ]


def _is_here(name: str) -> bool:
    package = {"pyreqwest": "pyreqwest", "uvloop-aiohttp": "uvloop"}.get(name)
    return package is None or find_spec(package) is not None


def _alone(name: str, base_url: str, calls: int) -> float:
    words = [sys.executable, "-m", "tests.bench.transports", name, base_url]
    done = subprocess.run(
        [*words, str(calls), str(CONCURRENCY)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(json.loads(done.stdout)["cpu_ms"])
