"""Runs drawn at random, each billed by the simulated endpoint with misbillings.

The runs are those of `tests.conformance.random_runs`: any dialect, faults, kills,
resumes, budgets; some use batches. `python -m tests.runner.reconcile.billed_runs 17`
replays a seed; `0-999` runs a range.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from runner.reconcile.attempts import CallOutcome, SentCall, sent_calls
from runner.reconcile.causes import BillCause
from runner.reconcile.compare import reconcile
from runner.reconcile.report import Reconciliation
from runner.reconcile.usage_file import read_usage
from runner.roles import recorded_options
from runner.simulate.billing import BatchLine, LedgerLine, PriceList
from runner.simulate.server import Simulated
from store.read.status import run_started
from store.runs import RunFolder
from tests.conformance.logs import Calls
from tests.conformance.random_runs import (
    BILL_TIERS,
    MEMORY,
    RUN,
    TIERED,
    Drawn,
    RandomRun,
    carry_out_words,
    draw,
)
from tests.runner.reconcile.invoices import (
    FORMS,
    Charged,
    Invoice,
    Misbiller,
    charged_lines,
    write_invoice,
)

BATCHED: Final = ("openai", "litellm-proxy")
"""Dialects with batches, which every seventh run uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What one run showed."""

    seed: int
    kinds: dict[str, int]  #: misbillings that were injected, by kind
    calls: int = 0
    settled: int = 0  #: calls of unknown cost
    broken: str = ""

    @property
    def replay(self) -> str:
        """How it is carried out again."""
        return f"seed {self.seed}"


class BilledRun(RandomRun):
    """Carries out a drawn run and reconciles it with an invoice of each form."""

    def __init__(self, drawn: Drawn, folder: Path) -> None:
        super().__init__(drawn, folder)
        self.chance = random.Random(f"invoice {drawn.seed}")
        self.batches = drawn.seed % 7 == 3
        self.injected: Counter[str] = Counter()
        self.calls = self.settled = 0

    def words(self, url: str) -> tuple[str, ...]:
        """The command that starts the run."""
        more = ("--batch", "--batch-poll-s=0.05") if self.batches else ()
        return (*super().words(url), *more)

    def _answers(self, calls: Calls, lines: Sequence[LedgerLine]) -> int:
        return 0 if self.batches else super()._answers(calls, lines)

    def look_back(self, endpoint: Simulated) -> None:
        """Write invoices and compare the run with each of them."""
        folder, ledger = RunFolder(self.folder / "runs" / RUN), endpoint.ledger
        with folder.open_reader() as reader:
            calls = sent_calls(reader)
            lines = [*ledger.lines, *ledger.batch_lines]
            charged = charged_lines(
                ledger.lines, ledger.batch_lines, _Known(calls, lines)
            )
            options = recorded_options(folder.config, run_started(reader))
            for form in FORMS:
                invoice = self._invoice(form, charged, ledger.lines)
                if not invoice.rows:
                    continue
                report = reconcile(reader, options, read_usage(invoice.path))
                _check(invoice, report, calls)
                self.injected.update(each.kind for each in invoice.injected)
                self.calls, self.settled = report.calls, len(report.settlements)

    def _invoice(
        self, form: str, charged: Sequence[Charged], lines: Sequence[LedgerLine]
    ) -> Invoice:
        misbiller = Misbiller(
            self.chance,
            PriceList.read(self.drawn.prices, tiers=BILL_TIERS),
            share=self.chance.choice((0.0, 0.1, 0.4)),
            priority=Decimal("1.8") if self.drawn.model == TIERED else Decimal(2),
            states_tier=form == "plain",
        )
        # the log of a killed process may not have the refusal
        refusals = () if self.kills else lines
        return write_invoice(
            self.folder / "invoice", form, charged, refusals, misbiller
        )


class _Known:
    """Whether the log surely has a line's reply with its usage."""

    def __init__(
        self, calls: Sequence[SentCall], lines: Sequence[LedgerLine | BatchLine]
    ) -> None:
        answered = [call for call in calls if call.outcome is CallOutcome.ANSWERED]
        self._ids = {call.request_id for call in answered}
        self._calls = Counter(
            (call.usage.tokens_in, call.usage.tokens_out)
            for call in answered
            if call.usage is not None
        )
        self._lines = Counter((line.tokens_in, line.tokens_out) for line in lines)

    def __call__(self, line: LedgerLine | BatchLine) -> bool:
        counts = (line.tokens_in, line.tokens_out)
        is_single = self._calls[counts] == self._lines[counts] == 1
        return line.tells_usage and (line.request_id in self._ids or is_single)


def _check(invoice: Invoice, report: Reconciliation, calls: Sequence[SentCall]) -> None:
    """Residual 0, every misbilling named, no other name; all else settled."""
    assert report.residual_pico == 0, f"residual {report.residual_pico}"
    injected = Counter((each.kind, each.pico) for each in invoice.injected)
    named = Counter((d.cause.value, d.amount_pico) for d in report.differences)
    assert named == injected, f"named {named - injected}, not named {injected - named}"
    by_row = {each.row: each.kind for each in invoice.injected}
    rows = {
        d.row: d.cause.value
        for d in report.differences
        if d.cause
        is not BillCause.DOUBLE  # either of two equal lines is the second one
    }
    assert rows.items() <= by_row.items(), (rows, by_row)
    assert report.billed_pico == invoice.pico
    unknown = [call for call in calls if call.cost_pico is None]
    assert len(report.settlements) == len(unknown)
    rightly = invoice.pico - sum(each.pico for each in invoice.injected)
    assert report.logged_pico + report.settled_pico == rightly


def billed_draw(seed: int) -> Drawn:
    """The run of a seed; some have what few dialects have: batches, cache writes."""
    drawn = draw(seed)
    served = {**drawn.served, "rate_5xx": max(drawn.served["rate_5xx"], 0.05)}
    match seed % 7:
        case 3:
            calm = {k: 0 if k.startswith("rate_") else v for k, v in served.items()}
            return replace(
                drawn,
                dialect=BATCHED[seed % 2],
                tier=None,
                model="openai/sim-1",
                served=calm,
                kills=(),  # a batch whose creation is in doubt is waited for
            )
        case 5:
            served |= {"cache_least": 1, "reasoning": 300}
            return replace(
                drawn,
                dialect="openrouter",
                tier=None,
                model="openai/sim-1",
                served=served,
            )
        case _:
            return replace(drawn, served=served)


def carry_out(seed: int) -> Billed:
    """The run of a seed in a temporary folder; what broke is in the result."""
    drawn = billed_draw(seed)
    with tempfile.TemporaryDirectory(prefix="billed-run-", dir=MEMORY) as folder:
        run = BilledRun(drawn, Path(folder))
        try:
            run.carry_out()
        except Exception as error:  # noqa: BLE001 - a broken seed must not end the rest
            where = "".join(traceback.format_exception(error)[-3:])
            return Billed(seed=seed, kinds={}, broken=f"{where}\n{run.said()}")
    return Billed(
        seed=seed, kinds=dict(run.injected), calls=run.calls, settled=run.settled
    )


def carry_out_all(seeds: Sequence[int], processes: int) -> Iterator[Billed]:
    """The runs of *seeds*, so many at a time, as they end."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(carry_out, seed) for seed in seeds]
        yield from (run.result() for run in as_completed(runs))


def figures(results: Sequence[Billed], took_s: float) -> str:
    """The sums of many runs, for people."""
    kinds = sum((Counter(each.kinds) for each in results), Counter[str]())
    return (
        f"{len(results)} runs in {took_s:.0f} s, "
        f"{sum(each.calls for each in results):,} calls, "
        f"{sum(each.settled for each in results):,} settled; "
        f"injected {dict(kinds)}; "
        f"broken {sorted(each.seed for each in results if each.broken)}"
    )


if __name__ == "__main__":
    sys.exit(carry_out_words(sys.argv[1:], carry_out_all, figures))
