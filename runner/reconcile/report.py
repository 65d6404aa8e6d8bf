"""Defines the result of a reconciliation: settled calls, named causes, a residual.

The sums are exact in whole pico-dollars:

    billed = logged + settled + named differences + residual

*Logged* is the cost that the log knows. *Settled* is what was billed, as it should be,
for calls whose cost the log does not know. The residual is the part of the bill that no
cause explains; 0 says that every pico-dollar has a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runner.reconcile.attempts import SentCall
from runner.reconcile.causes import DETAILS, Amount, BillCause
from runner.reconcile.usage_file import UsageLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Cost of a call whose cost the log does not know."""

    call: SentCall
    billed_pico: int  #: 0: it has no line, so it was not billed
    row: int | None  #: of the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A part of the bill that differs from the log."""

    cause: BillCause
    amount_pico: int  #: billed beyond what was expected; negative: less
    detail: str
    row: int | None = None  #: of the file; None: it has no line
    call: SentCall | None = None  #: None: the line belongs to none, or is a sum


@dataclass(slots=True, kw_only=True)
class Reconciliation:
    """A usage file compared with the log of a run."""

    form: str
    calls: int
    lines: int
    outside: int = 0  #: lines of other times than the run's, which are not compared
    #: start of the first call and end of the last one; None: no call was sent
    span_us: tuple[int, int] | None = None
    logged_pico: int = 0
    possible_pico: int = 0  #: the most that the log expects beyond that
    billed_pico: int = 0
    settlements: list[Settlement] = field(default_factory=list)
    #: billed for calls without a known cost, where the file has only sums
    settled_sum_pico: int = 0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: limits of the comparison

    def add(
        self, amount: Amount, call: SentCall | None, line: UsageLine | None
    ) -> None:
        """Add a difference."""
        self.differences.append(
            Difference(
                cause=amount.cause,
                amount_pico=amount.pico,
                detail=amount.detail or DETAILS.get(amount.cause, ""),
                row=None if line is None else line.row,
                call=call,
            )
        )

    def settle(self, call: SentCall, billed_pico: int, line: UsageLine | None) -> None:
        """Add what a call cost whose cost the log does not know."""
        row = None if line is None else line.row
        settled = Settlement(call=call, billed_pico=billed_pico, row=row)
        self.settlements.append(settled)

    @property
    def settled_pico(self) -> int:
        """Billed for calls whose cost the log does not know."""
        settled = sum(settlement.billed_pico for settlement in self.settlements)
        return settled + self.settled_sum_pico

    @property
    def named_pico(self) -> int:
        """The sum of all differences with a cause."""
        return sum(
            difference.amount_pico
            for difference in self.differences
            if difference.cause is not BillCause.UNEXPLAINED
        )

    @property
    def residual_pico(self) -> int:
        """The part of the bill that neither log nor causes explain."""
        expected = self.logged_pico + self.settled_pico + self.named_pico
        return self.billed_pico - expected

    @property
    def differs(self) -> bool:
        """Whether the bill is another one than expected, beyond rounding."""
        return bool(self.residual_pico) or any(
            difference.cause is not BillCause.ROUNDING
            for difference in self.differences
        )

    def causes(self) -> Iterator[tuple[BillCause, int, int]]:
        """Yield each cause but the residual's: how often, and the sum."""
        for cause in BillCause:
            amounts = [d.amount_pico for d in self.differences if d.cause is cause]
            if amounts and cause is not BillCause.UNEXPLAINED:
                yield cause, len(amounts), sum(amounts)
