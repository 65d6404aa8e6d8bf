"""How much of an allowed rate is used, and how many requests are refused for it.

The simulated rows run the real scheduler and limiter against `siftlog simulate`'s own
limits on a virtual clock. The real ones send for three minutes over loopback, and the
server's ledger is counted. All figures are those of the worst minute from the second
on, but for the minute in which a limit is halved.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from runner.limiter import Limits
from runner.simulate.fate import Outcome
from runner.simulate.ledger import LedgerLine, read_ledger
from tests.allowing import Minute, Rules, World
from tests.bench.row import Row
from tests.corpus import write_corpus
from tests.processes import simulated, start

RPS = 50
TPM = 600_000
LEAST_USED, MOST_REFUSED = 0.97, 0.005
MINUTES = 3
CEILING = Limits(concurrency=256)
PAPERS, REPLICATES = 130, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A server's limit, and who sends."""

    name: str
    rules: tuple[Rules, ...] = (Rules(rps=RPS),)
    models: tuple[str, ...] = ("a",)
    with_headers: bool = False
    allowed: float = RPS * 60
    counts_tokens: bool = False


CASES = (
    Case(name="no headers"),
    Case(name="headers", with_headers=True),
    Case(
        name="token limit, headers",
        rules=(Rules(tpm=TPM),),
        with_headers=True,
        allowed=TPM,
        counts_tokens=True,
    ),
    Case(
        name="token limit, no headers",
        rules=(Rules(tpm=TPM),),
        allowed=TPM,
        counts_tokens=True,
    ),
    Case(name="two models", models=("a", "b")),
)
HALVING = Case(
    name="from 100/s to 50/s in minute 3",
    rules=(Rules(rps=2 * RPS), Rules(since_s=120, rps=RPS)),
)


def measure(quick: bool) -> list[Row]:
    """Rows of the table; *quick*: simulated only."""
    rows: list[Row] = []
    for case in CASES:
        rows += _rows(case, "simulated", _in_virtual_time(case, 4)[1:])
    halved = _in_virtual_time(HALVING, 5)
    rows += _rows(HALVING, "simulated, minute 3", halved[2:3])
    rows += _rows(HALVING, "simulated, after", halved[3:])
    if not quick:
        for case in CASES:
            rows += _rows(case, "loopback", _for_real(case)[1:])
    return rows


def _rows(case: Case, how: str, minutes: list[Minute]) -> list[Row]:
    used = min(
        (m.tokens if case.counts_tokens else m.served) / case.allowed for m in minutes
    )
    refused = max(m.refused_share for m in minutes)
    what = f"{case.name} ({how})"
    return [
        Row(
            target="limits",
            what=f"{what}: % of the allowed rate",
            value=100 * used,
            goal=f">= {100 * LEAST_USED:g}",
            met=used >= LEAST_USED,
        ),
        Row(
            target="limits",
            what=f"{what}: % refused",
            value=100 * refused,
            goal=f"<= {100 * MOST_REFUSED:g}",
            met=refused <= MOST_REFUSED,
        ),
    ]


def _in_virtual_time(case: Case, minutes: int) -> list[Minute]:
    world = World(
        rules=case.rules,
        models=dict.fromkeys(case.models, CEILING),
        with_headers=case.with_headers,
        tokens=(200, 400),
    )
    return world.run(minutes)


def _for_real(case: Case) -> list[Minute]:
    (rules,) = case.rules
    limit = ("--rps", RPS) if rules.rps is not None else ("--tpm", TPM)
    told = ("--limit-headers",) if case.with_headers else ()
    delay = ("--latency-ms", 200, "--jitter-ms", 200)
    with tempfile.TemporaryDirectory() as name:
        folder, ledger = Path(name), Path(name) / "ledger.jsonl"
        corpus = write_corpus(folder / "corpus", PAPERS)
        job = ("--job", "paper-investigation")
        with simulated(
            *limit, *told, *delay, *job, "--ledger", ledger, cwd=folder
        ) as url:
            models = [word for model in case.models for word in ("--model", model)]
            process = start(
                *("generate", "paper-investigation", "--run-id", "rate", *models),
                *("--base-url", url, "--replicates", REPLICATES, *corpus),
                cwd=folder,
            )
            _send_for(process, MINUTES)
        return _by_minute(read_ledger(ledger))


def _send_for(process: subprocess.Popen[str], minutes: int) -> None:
    """Let a run send for so long from its start, which takes some seconds itself."""
    try:
        process.wait(60 * minutes + 10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
    else:
        raise RuntimeError("the run was too short to be measured")


def _by_minute(lines: list[LedgerLine]) -> list[Minute]:
    begin_ms = min(line.received_ms for line in lines)
    minutes: list[list[LedgerLine]] = [[] for _ in range(MINUTES)]
    for line in lines:
        minute = (line.received_ms - begin_ms) // 60_000
        if minute < MINUTES:
            minutes[minute].append(line)
    return [_minute(found) for found in minutes]


def _minute(lines: list[LedgerLine]) -> Minute:
    served = [line for line in lines if line.outcome is not Outcome.RATE_LIMITED]
    return Minute(
        served=len(served),
        refused=len(lines) - len(served),
        tokens=sum(line.tokens for line in served),
        by_model=Counter(line.model for line in served),
    )
