"""How much of an allowed rate is used, and how many requests are refused for it.

The simulated rows run the real scheduler and limiter against `siftlog simulate`'s own
limits on a virtual clock. The real ones send for some minutes over loopback, and the
server's ledger is counted. The figures are those of the worst minute from the second
on, the minute in which a limit changes among them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.limits.limiter import Limits
from runner.simulate.billing import LedgerLine
from runner.simulate.options import RequestOutcome
from tests.allowing import Minute, Rules, World
from tests.bench.row import Row
from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import simulated, start

RPS = 50
TPM = 600_000
LEAST_USED, MOST_REFUSED = 0.97, 0.005
CONCURRENCY = 256
FREE_CONCURRENCY, FREE_LATENCY_S = 64, (1.0, 2.0)
PAPERS, REPLICATES = 130, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A server's limit, and who sends."""

    name: str
    rules: tuple[Rules, ...] = (Rules(rps=RPS),)
    models: tuple[str, ...] = ("a",)
    with_headers: bool = False
    chance: float = 0.0
    concurrency: int = CONCURRENCY
    latency_s: tuple[float, float] = (0.2, 0.4)
    minutes: int = 3
    counts_tokens: bool = False

    def allowed(self, minute: int) -> float:
        """Requests or tokens in a minute, the first being 0."""
        rules = [r for r in self.rules if r.since_s <= 60 * minute][-1]
        if rules.rps is None and rules.tpm is None:
            return 60 * self.concurrency / (sum(self.latency_s) / 2)
        return rules.tpm or 60 * (rules.rps or 0)


CASES = (
    Case(name="no headers"),
    Case(name="headers", with_headers=True),
    Case(
        name="token limit, headers",
        rules=(Rules(tpm=TPM),),
        with_headers=True,
        counts_tokens=True,
    ),
    Case(
        name="token limit, no headers",
        rules=(Rules(tpm=TPM),),
        counts_tokens=True,
    ),
    Case(name="two models", models=("a", "b")),
    Case(
        name="from 100/s to 50/s after two minutes",
        rules=(Rules(rps=2 * RPS), Rules(since_s=120, rps=RPS)),
        minutes=4,
    ),
    Case(
        name="from 25/s to 50/s after two minutes",
        rules=(Rules(rps=RPS / 2), Rules(since_s=120, rps=RPS)),
        minutes=5,
    ),
    Case(
        name="5 % refused by chance, no limit",
        rules=(Rules(),),
        chance=0.05,
        concurrency=FREE_CONCURRENCY,
        latency_s=FREE_LATENCY_S,
    ),
)


def measure(quick: bool) -> list[Row]:
    """Rows of the table; *quick*: simulated only."""
    rows: list[Row] = []
    for case in CASES:
        rows += _rows(case, "simulated", _in_virtual_time(case))
        if not quick:
            rows += _rows(case, "loopback", _for_real(case))
    return rows


def by_minute(case: Case, minutes: list[Minute]) -> list[tuple[float, float]]:
    """Share of what is allowed that was used, and share refused, each minute."""
    return [
        (
            (m.tokens if case.counts_tokens else m.served) / case.allowed(number),
            m.refused_share,
        )
        for number, m in enumerate(minutes)
    ]


def _rows(case: Case, how: str, minutes: list[Minute]) -> list[Row]:
    shares = by_minute(case, minutes)
    text = ", ".join(f"{100 * used:.1f}/{100 * share:.2f}" for used, share in shares)
    used = min(used for used, _ in shares[1:])
    refused = max(refused for _, refused in shares[1:]) - case.chance
    what = f"{case.name} ({how}; by minute {text})"
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
            what=f"{case.name} ({how}): % refused, less those by chance",
            value=100 * refused,
            goal=f"<= {100 * MOST_REFUSED:g}",
            met=refused <= MOST_REFUSED,
        ),
    ]


def _in_virtual_time(case: Case) -> list[Minute]:
    world = World(
        rules=case.rules,
        models=dict.fromkeys(case.models, Limits(concurrency=case.concurrency)),
        with_headers=case.with_headers,
        tokens=(200, 400),
        chance=case.chance,
        latency_s=case.latency_s,
    )
    return world.run(case.minutes)


def _simulate_options(case: Case) -> Iterator[object]:
    first, *later = case.rules
    if first.rps is not None:
        yield from ("--rps", first.rps)
    if first.tpm is not None:
        yield from ("--tpm", first.tpm)
    for rules in later:
        yield from ("--rps-after", rules.since_s, rules.rps)
    if case.with_headers:
        yield "--limit-headers"
    least, most = case.latency_s
    yield from ("--latency-ms", 1000 * least, "--jitter-ms", 1000 * (most - least))
    yield from ("--rate-429", case.chance, "--job", "paper-investigation")


def _for_real(case: Case) -> list[Minute]:
    with tempfile.TemporaryDirectory() as name:
        folder, ledger = Path(name), Path(name) / "ledger.jsonl"
        corpus = write_corpus(folder / "corpus", PAPERS)
        options = _simulate_options(case)
        with simulated(*options, "--ledger", ledger, cwd=folder) as url:
            models = [word for model in case.models for word in ("--model", model)]
            process = start(
                *("generate", "paper-investigation", "--run-id", "rate", *models),
                *("--base-url", url, "--replicates", REPLICATES, *corpus),
                *("--concurrency", case.concurrency),
                cwd=folder,
            )
            _send_for(process, case.minutes)
        return _by_minute(read_ledger(ledger), case.minutes)


def _send_for(process: subprocess.Popen[str], minutes: int) -> None:
    """Let a run send for so long from its start, which takes some seconds itself."""
    try:
        process.wait(60 * minutes + 10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
    else:
        raise RuntimeError("the run was too short to be measured")


def _by_minute(lines: list[LedgerLine], count: int) -> list[Minute]:
    begin_ms = min(line.received_ms for line in lines)
    minutes: list[list[LedgerLine]] = [[] for _ in range(count)]
    for line in lines:
        minute = (line.received_ms - begin_ms) // 60_000
        if minute < count:
            minutes[minute].append(line)
    return [_minute(found) for found in minutes]


def _minute(lines: list[LedgerLine]) -> Minute:
    served = [line for line in lines if line.outcome is not RequestOutcome.RATE_LIMITED]
    return Minute(
        served=len(served),
        refused=len(lines) - len(served),
        tokens=sum(line.tokens for line in served),
        by_model=Counter(line.model for line in served),
    )
