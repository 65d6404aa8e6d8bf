"""The money of one run, lent to its shards; sans-IO, in whole pico-dollars.

What is lent counts as spent until it is given back, or until the shard's end is known:
so all of them together never pass the budget, whatever gets lost. Where the rest is too
little for somebody's next call, all are asked for what they do not need at once; the
call is refused for good only once not even all that could come back would pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runner.leasing.messages import AskMoney


@dataclass(slots=True, kw_only=True)
class _Account:
    granted: int  #: lent, less what was given back
    spent: int = 0  #: as it said last

    @property
    def open(self) -> int:
        """What may come back yet."""
        return max(0, self.granted - self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """The answer to one shard that asked."""

    writer: str
    pico: int | None  #: None: never


class Purse:
    """The budget, what of it is lent, and who waits for some."""

    def __init__(self, cap_pico: int, spent_pico: int) -> None:
        """A budget of which earlier processes have spent, or may have, so much."""
        self.cap_pico = cap_pico
        self._spent = spent_pico
        self._accounts: dict[str, _Account] = {}
        self._asks: dict[str, int] = {}

    @property
    def taken_pico(self) -> int:
        """Spent, or lent."""
        return self._spent + sum(each.granted for each in self._accounts.values())

    @property
    def is_short(self) -> bool:
        """Whether somebody waits for money."""
        return bool(self._asks)

    def join(self, writer: str, granted_pico: int) -> None:
        """A shard is there that an earlier broker may have lent so much."""
        if writer not in self._accounts:
            self._accounts[writer] = _Account(granted=granted_pico)

    def ask(self, writer: str, ask: AskMoney) -> int | None:
        """What is lent at once; None: `lend` will say."""
        left = self.cap_pico - self.taken_pico
        if ask.need_pico > left or (ask.need_pico and self.is_short):
            self._asks[writer] = ask.need_pico
            return None
        # nobody may have so much that the others soon have to wait for it to come back
        ahead = 0 if self.is_short else left // (2 * len(self._accounts))
        pico = max(ask.need_pico, min(ask.want_pico, ahead))
        self._accounts[writer].granted += pico
        return pico

    def back(self, writer: str, back_pico: int, spent_pico: int) -> None:
        """Money that is not needed comes back, and what was spent becomes known."""
        account = self._accounts[writer]
        account.granted = max(0, account.granted - back_pico)
        account.spent = spent_pico

    def spent(self, writer: str, spent_pico: int) -> None:
        """A shard says what it has spent so far."""
        self._accounts[writer].spent = spent_pico

    def lost(self, writer: str) -> None:
        """A shard is silent: what it was lent may have been spent."""
        self._asks.pop(writer, None)
        account = self._accounts[writer]
        account.spent = max(account.spent, account.granted)

    def closed(self, writer: str, spent_pico: int) -> None:
        """A shard has ended, and what it has spent is known for good."""
        self._asks.pop(writer, None)
        self._spent += spent_pico
        del self._accounts[writer]

    def add(self, pico: int) -> None:
        """Raise the budget."""
        self.cap_pico += pico

    def lend(self) -> Iterator[Loan]:
        """What those that wait can be told now, the first of them first."""
        for writer, need in list(self._asks.items()):
            left = self.cap_pico - self.taken_pico
            coming = sum(each.open for each in self._accounts.values())
            if need <= left:
                self._accounts[writer].granted += need
            elif need <= left + coming:
                return
            del self._asks[writer]
            yield Loan(writer=writer, pico=need if need <= left else None)
