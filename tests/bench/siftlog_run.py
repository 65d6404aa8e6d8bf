"""`siftlog generate` as a child process: its calls per second and CPU per call.

A run of few calls is measured beside the long one, and its CPU taken off, so that
starting Python and reading settings do not count as calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from store.database import open_reader
from store.read.status import status
from store.read.tasks import events
from store.tables import last_seq
from tests.bench.floor_prompts import SENTENCE
from tests.bench.steady import steady_per_s
from tests.processes import SIFTLOG


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a floor or a run was measured to do."""

    calls_per_s: float
    cpu_ms: float  #: of the calling process, per call
    steady_per_s: float = 0.0  #: calls, see `steady`; 0: not measured


def siftlog(
    base_url: str, calls: int, concurrency: int, *, over: str | None = None
) -> Figures:
    """Everything on: durable log, projections, limiter, parsing.

    *over* names another transport than the usual one (`transports.py`).
    """
    few_cpu_s, _ = _run(base_url, concurrency, concurrency, over)
    cpu_s, times = _run(base_url, calls, concurrency, over)
    return Figures(
        calls_per_s=calls / times.seconds,
        cpu_ms=(cpu_s - few_cpu_s) / (calls - concurrency) * 1000,
        steady_per_s=steady_per_s(times.answered_s, concurrency),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """When things happened, as the log has it."""

    seconds: float  #: from the first call to the last event
    answered_s: list[float]


def _run(
    base_url: str, calls: int, concurrency: int, over: str | None
) -> tuple[float, _Times]:
    """CPU seconds of the process, and the times in its log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = papers(folder, calls)
        words = command("generate", folder, base_url, made, concurrency)
        if over is not None:
            words = [sys.executable, "-m", "tests.bench.transports", over, *words[1:]]
        with subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None
            said = process.stderr.read().decode()
            _, code, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(code)
        if process.returncode != 0:
            raise RuntimeError(f"siftlog ended with {process.returncode}: {said}")
        times = _times(folder / "bench" / "log.db", calls)
        return usage.ru_utime + usage.ru_stime, times


def command(
    verb: str,
    folder: Path,
    base_url: str,
    inputs: tuple[Path, Path],
    concurrency: int,
) -> list[str]:
    """The words that start the run `bench` in *folder* on what `papers` made."""
    bench, texts = inputs
    return [
        *(str(SIFTLOG), verb, "paper-investigation", "--json"),
        *("--base-url", base_url, "--model", "openai/bench"),
        *("--concurrency", str(concurrency)),
        *("--price", "0.15,0.60", "--budget", "1000000"),
        *("--set", "mode=extract", "--set", "structured=off"),
        *("--set", f"bench={bench}", "--set", f"papers={texts}"),
        *("--runs-dir", str(folder), "--run-id", "bench"),
    ]


def papers(folder: Path, count: int) -> tuple[Path, Path]:
    """Invented papers whose prompts have 2 KB, as those of the floors."""
    bench, papers = folder / "bench.jsonl", folder / "papers.jsonl"
    with bench.open("w") as truths, papers.open("w") as texts:
        for number in range(1, count + 1):
            truth = {"pmcid": f"PMC{number}", "variants": [f"rs{number}"]}
            text = {"pmcid": f"PMC{number}", "text": f"Paper {number}. " + SENTENCE * 6}
            truths.write(json.dumps(truth) + "\n")
            texts.write(json.dumps(text) + "\n")
    return bench, papers


def _times(log: Path, calls: int) -> _Times:
    with open_reader(log) as reader:
        answered = status(reader).attempts.answered
        if answered != calls:
            raise RuntimeError(f"{answered} of {calls} calls were answered")
        (first,) = events(reader, kinds=["attempt_started"], limit=1)
        (last,) = events(reader, after=last_seq(reader) - 1)
        answers = events(reader, kinds=["attempt_answered"], limit=calls)
    return _Times(
        seconds=(last.ts_us - first.ts_us) / 1e6,
        answered_s=[answer.ts_us / 1e6 for answer in answers],
    )
