"""Runs drawn at random: dialect, prices, budget, faults, kills and resumes.

Each seed draws one run, carries it out as forked processes of the shipped command, and
compares what siftlog recorded with the endpoint's own ledger at every kill and at the
end. `python -m tests.conformance.random_runs 17` replays a seed; `0-999` runs a range.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from runner.simulate.billing import Bill, LedgerLine
from runner.simulate.dialects import DIALECTS
from runner.simulate.options import RequestOutcome
from runner.simulate.server import Simulated
from store.events import AttemptAnswered
from store.task import PICO_PER_USD, pico
from tests.conformance.commands import finish, run, runs_on, start
from tests.conformance.logs import Calls, calls_in
from tests.dialects import dialect
from tests.processes import status

JOB: Final = "paper-investigation"
KEY: Final = "sk-loopback-0123456789abcdefghij"
RUN: Final = "drawn"
CALLS_A_PAPER: Final = 20
TOKENS_IN, TOKENS_OUT = 1_500, 400
"""Of a usual call: budgets are drawn around what all calls cost at that size."""

TIERED: Final = "openai/gpt-5-mini"
TIERED_PRICE: Final = "0.25,2,0.025,0.25"
TIER_FACTORS: Final = {"flex": Decimal("0.5"), "priority": Decimal("1.8")}
"""The price of a model that the table has in tiers, as its provider bills it."""

BILL_TIERS: Final = {**TIER_FACTORS, "batch": Decimal("0.5")}
"""Price factors of the endpoint."""

UNBOUNDED: Final = {"xai": "openai/grok-4", "gemini-openai": "openai/gemini-2.5-flash"}
"""Models whose name says that the limit of the output does not bound reasoning."""

MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
"""Where runs are kept: `kill -9` loses nothing that a process has written, so no disk
is waited for."""

ENDS: Final = frozenset({0, 3, 4})
"""Done; done with failed tasks; out of money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One run, drawn by its seed."""

    seed: int
    dialect: str
    model: str
    prices: str  #: in, out, cached, written; dollars a million tokens
    tier: str | None
    budget: float | None
    raises: tuple[float, ...]  #: added to the budget when it is spent
    kills: tuple[int, ...]  #: lines of the ledger at which the process is killed
    papers: int
    concurrency: int
    served: dict[str, Any]  #: options of the endpoint

    @property
    def replay(self) -> str:
        """The command that carries out this run again."""
        return f"python -m tests.conformance.random_runs {self.seed}"


def draw(seed: int) -> Drawn:
    """The run of a seed; dialects take turns, all else is by chance."""
    names = sorted(DIALECTS)
    chance = random.Random(seed)
    name = names[seed % len(names)]
    model, tier = "openai/sim-1", None
    if name in UNBOUNDED and chance.random() < 0.4:
        model = UNBOUNDED[name]
    price_in = round(10 ** chance.uniform(-1.3, 1.2), 3)
    price_out = round(price_in * chance.uniform(1, 8), 3)
    cached = round(price_in * chance.uniform(0.1, 1), 3)
    written = round(price_in * chance.uniform(1, 1.5), 3)
    prices = f"{price_in},{price_out},{cached},{written}"
    if DIALECTS[name].tiers and chance.random() < 0.5:
        asked = sorted({*DIALECTS[name].tiers} & {*TIER_FACTORS})
        tier = "auto" if name == "anthropic" else chance.choice(asked)
        model, prices = TIERED, TIERED_PRICE
        price_in, price_out = 0.25, 2.0
    papers = chance.choice((1, 1, 1, 2))
    call = (TOKENS_IN * price_in + TOKENS_OUT * price_out) * 1e-6
    whole = papers * CALLS_A_PAPER * call
    budget = None
    if chance.random() < 0.8:
        budget = round(whole * 10 ** chance.uniform(-1.5, 1.5), 6)
    raises = [
        whole * chance.uniform(0.1, 3) for _ in range(chance.choice((0, 0, 1, 2)))
    ]
    kills = sorted(
        chance.randint(1, papers * CALLS_A_PAPER - 5)
        for _ in range(chance.choice((0, 0, 1, 2, 3)))
    )
    is_calm = chance.random() < 0.3
    served: dict[str, Any] = {
        "seed": chance.randint(0, 10**6),
        "latency_ms": chance.choice((0, 2, 10)),
        "jitter_ms": chance.choice((0, 5, 20)),
        "reasoning": chance.choice((None, None, 100, 3_000, 12_000)),
        "cache_least": chance.choice((None, 1, 200)),
        "bytes_per_token": chance.choice(
            (None, 1.0, 1.4, round(chance.uniform(1, 5), 2))
        ),
    }
    for fault in ("rate_429", "rate_5xx", "rate_malformed", "rate_drop", "rate_refuse"):
        rate = chance.choice((0, 0, 0.02, 0.1))
        served[fault] = 0 if is_calm else rate
    return Drawn(
        seed=seed,
        dialect=name,
        model=model,
        prices=prices,
        tier=tier,
        budget=budget,
        raises=tuple(round(each, 6) for each in raises),
        kills=tuple(kills),
        papers=papers,
        concurrency=chance.choice((1, 2, 4, 8, 16)),
        served=served,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run showed."""

    seed: int
    dialect: str
    kills: int
    raises: int
    exit_code: int
    answers: int
    equal: int  #: answers whose cost equals the ledger's line of the same request
    is_compared: bool  #: whether the sum of `status` was compared with the bill
    billed_usd: Decimal
    budget_usd: Decimal | None
    took_s: float
    replay: str
    broken: str = ""


class RandomRun:
    """Carries out one drawn run in a folder of its own."""

    def __init__(self, drawn: Drawn, folder: Path) -> None:
        self.drawn = drawn
        self.folder = folder
        self.budget = None if drawn.budget is None else Decimal(str(drawn.budget))
        self.kills = self.raised = 0
        self.answered: dict[int, int] = {}  #: attempts of tasks known to be answered
        self.is_compared = False

    def words(self, url: str) -> tuple[str, ...]:
        """The command that starts the run."""
        drawn = self.drawn
        config = self.folder / "config.toml"
        lines = [f'[models."{drawn.model}"]']
        if drawn.tier is not None:
            lines.append(f'service_tier = "{drawn.tier}"')
        else:
            names = ("in", "out", "cached", "cache_write")
            prices = zip(names, drawn.prices.split(","), strict=True)
            lines += [f"usd_per_mtok_{name} = {price}" for name, price in prices]
        config.write_text("\n".join(lines) + "\n")
        more = ["--api=responses"] if drawn.dialect == "responses" else []
        if drawn.budget is not None:
            more.append(f"--budget={drawn.budget:f}")
        return (
            *("run", JOB, f"--config={config}", f"--run-id={RUN}", "--no-score"),
            *(f"--model={drawn.model}", f"--base-url={url}", "--drop-refused"),
            *("--api-key-env=LOOPBACK_KEY", f"--limit={drawn.papers}"),
            *(f"--concurrency={drawn.concurrency}", "--stop-if=off", *more),
        )

    def carry_out(self) -> Result:
        """Run it to its end, with kills on the way; raise `AssertionError`."""
        drawn, began = self.drawn, time.perf_counter()
        options = {
            **drawn.served,
            "job": JOB,
            "bill_price": drawn.prices,
            "bill_tiers": BILL_TIERS,
        }
        with dialect(drawn.dialect, **options) as endpoint:
            words = self.words(endpoint.base_url)
            for lines in drawn.kills:
                was_killed = self._kill(endpoint, words, lines)
                words = ("resume", RUN, "--no-score")
                if not was_killed:
                    break
            raises = list(drawn.raises if self.budget is not None else ())
            while True:
                code = self._run(*words)
                assert code in ENDS, f"exit {code}"
                calls = self._check(endpoint)
                if code != 4 or not raises:
                    break
                self.raised += 1
                assert self.budget is not None
                self.budget += Decimal(str(raises.pop(0)))
                words = ("resume", RUN, "--no-score", f"--budget={self.budget:f}")
            equal = self._answers(calls, endpoint.ledger.lines)
            bill = endpoint.ledger.bill()
            self._sums(calls, bill)
            self.look_back(endpoint)
        return Result(
            seed=drawn.seed,
            dialect=drawn.dialect,
            kills=self.kills,
            raises=self.raised,
            exit_code=code,
            answers=len(calls.answered),
            equal=equal,
            is_compared=self.is_compared,
            billed_usd=bill.cost_usd,
            budget_usd=self.budget,
            took_s=time.perf_counter() - began,
            replay=drawn.replay,
        )

    def look_back(self, endpoint: Simulated) -> None:
        """Check what else is of interest at the end; here nothing."""

    def _run(self, *words: str) -> int:
        return run(*words, cwd=self.folder, env={"LOOPBACK_KEY": KEY})

    def _kill(self, endpoint: Simulated, words: Sequence[str], lines: int) -> bool:
        """Kill the process once the ledger has that many lines; False: it had ended."""
        process = start(*words, cwd=self.folder, env={"LOOPBACK_KEY": KEY})
        while len(endpoint.ledger.lines) < lines and runs_on(process, 0.002):
            pass
        if process.poll() is not None:
            assert finish(process) in ENDS, f"exit {process.returncode}"
            self._check(endpoint)
            return False
        process.kill()
        finish(process)
        self.kills += 1
        if (self.folder / "runs" / RUN / "log.db").exists():
            self._check(endpoint)
        return True

    def _check(self, endpoint: Simulated) -> Calls:
        """What holds at any moment in which no process of the run is alive."""
        bill = endpoint.ledger.bill()
        calls = calls_in(self.folder / "runs" / RUN)
        if self.budget is not None:
            assert bill.cost_usd <= self.budget, (
                f"billed ${bill.cost_usd} of ${self.budget}"
            )
        most = Decimal(calls.cost_pico + calls.possible_pico) / PICO_PER_USD
        assert bill.cost_usd <= most, f"billed ${bill.cost_usd}, at most ${most} shown"
        again = [
            task
            for task, count in self.answered.items()
            if calls.attempts[task] != count
        ]
        assert not again, f"answered tasks {again} were asked again"
        self.answered = {task: calls.attempts[task] for task in calls.tasks_answered}
        return calls

    def _answers(self, calls: Calls, lines: Sequence[LedgerLine]) -> int:
        """Compare each answer with its line of the ledger; how many were equal."""
        answered = [line for line in lines if line.outcome is RequestOutcome.ANSWERED]
        by_id = {line.request_id: line for line in answered if line.request_id}
        rest: list[AttemptAnswered] = []
        equal = 0
        for answer in calls.answered:
            found = answer.served and answer.served.request_id
            line = by_id.get(found) if found else None
            if line is None:
                rest.append(answer)
            elif line.tells_usage:
                assert _of_answer(answer) == _of_line(line), (answer, line)
                equal += 1
            else:
                assert answer.cost_usd is None, (answer, line)
        # without an id, by what was counted: as many answers as lines of each kind
        theirs = Counter(_of_line(line) for line in answered if line.tells_usage)
        theirs -= Counter(
            _of_answer(a) for a in calls.answered if a not in rest and a.tokens_in
        )
        ours = Counter(_of_answer(a) for a in rest if a.cost_usd is not None)
        assert ours <= theirs, f"answers without such a line: {ours - theirs}"
        return equal + ours.total()

    def _sums(self, calls: Calls, bill: Bill) -> None:
        shown = status(self.folder, RUN)["cost_usd"]
        assert pico(shown) == calls.cost_pico, "status shows another sum than the log"
        told = int(bill.reported_usd * PICO_PER_USD)
        assert calls.cost_pico <= told, f"shown ${shown}, told ${bill.reported_usd}"
        if not self.kills:
            assert calls.cost_pico == told, f"shown ${shown}, told ${bill.reported_usd}"
            self.is_compared = True

    def said(self) -> str:
        """The end of what the commands printed."""
        files = (self.folder / name for name in ("out.txt", "err.txt"))
        return "".join(file.read_text()[-1500:] for file in files if file.exists())


def _of_answer(answer: AttemptAnswered) -> tuple[int | None, ...]:
    cost = None if answer.cost_usd is None else pico(answer.cost_usd)
    return answer.tokens_in, answer.tokens_out, cost


def _of_line(line: LedgerLine) -> tuple[int | None, ...]:
    return line.tokens_in, line.tokens_out, int(Decimal(line.cost_usd) * PICO_PER_USD)


def carry_out(seed: int) -> Result:
    """The run of a seed in a temporary folder; what broke is in the result."""
    drawn = draw(seed)
    with tempfile.TemporaryDirectory(prefix="random-run-", dir=MEMORY) as folder:
        random_run = RandomRun(drawn, Path(folder))
        try:
            return random_run.carry_out()
        except Exception as error:  # noqa: BLE001 - a broken seed must not end the rest
            where = "".join(traceback.format_exception(error)[-2:])
            return Result(
                seed=seed,
                dialect=drawn.dialect,
                kills=random_run.kills,
                raises=random_run.raised,
                exit_code=-1,
                answers=0,
                equal=0,
                is_compared=False,
                billed_usd=Decimal(0),
                budget_usd=random_run.budget,
                took_s=0.0,
                replay=drawn.replay,
                broken=f"{drawn}\n{where}\n{random_run.said()}",
            )


def carry_out_all(seeds: Sequence[int], processes: int) -> Iterator[Result]:
    """The runs of *seeds*, so many at a time, as they end."""
    if processes == 1:
        yield from map(carry_out, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        runs = [pool.submit(carry_out, seed) for seed in seeds]
        yield from (run.result() for run in as_completed(runs))


def figures(results: Sequence[Result], took_s: float) -> str:
    """The sums of many runs, for people."""
    capped = [each for each in results if each.budget_usd is not None]
    ends = Counter(each.exit_code for each in results)
    return (
        f"{len(results)} runs in {took_s:.0f} s, "
        f"{len({each.dialect for each in results})} dialects, "
        f"{sum(each.kills for each in results)} kills, "
        f"{sum(each.raises for each in results)} raised budgets; "
        f"exit codes {dict(sorted(ends.items()))}\n"
        f"with a budget: {len(capped)} runs billed "
        f"${sum(each.billed_usd for each in capped):f} of "
        f"${sum(each.budget_usd or 0 for each in capped):f}\n"
        f"{sum(each.equal for each in results)} of "
        f"{sum(each.answers for each in results)} answers equal to their line; "
        f"{sum(each.is_compared for each in results)} sums equal to the bill\n"
        f"broken: {sorted(each.seed for each in results if each.broken)}"
    )


class SeedResult(Protocol):
    """What carrying out a seed gives."""

    @property
    def replay(self) -> str:
        """How it is carried out again."""
        ...

    @property
    def broken(self) -> str:
        """What went wrong; empty: nothing."""
        ...


SeedResultT = TypeVar("SeedResultT", bound=SeedResult)


def carry_out_words(
    words: Sequence[str],
    carry_out_all: Callable[[Sequence[int], int], Iterator[SeedResultT]],
    figures: Callable[[Sequence[SeedResultT], float], str],
) -> int:
    """Carry out the seeds that are named; 1 where one is broken."""
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    began, results = time.perf_counter(), list[SeedResultT]()
    for result in carry_out_all(seeds, int(os.environ.get("PROCESSES", "1"))):
        results.append(result)
        if result.broken:
            print(f"broken: {result.replay}\n{result.broken}\n", flush=True)
        if len(results) % 50 == 0:
            print(figures(results, time.perf_counter() - began), flush=True)
    print(figures(results, time.perf_counter() - began))
    return any(result.broken for result in results)


if __name__ == "__main__":
    sys.exit(carry_out_words(sys.argv[1:], carry_out_all, figures))
