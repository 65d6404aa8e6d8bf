"""The money of one run, lent to its shards; sans-IO, in whole pico-dollars.

What is lent counts as spent until it is given back, or until the shard's end is known:
so all of them together never pass the budget, whatever gets lost. Where the rest is too
little for somebody's next call, all are asked for what they do not need at once; the
call is refused for good only once not even all that could come back would pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runner.leasing.messages import AskMoney, Hello


@dataclass(slots=True, kw_only=True)
class _Account:
    log: str
    recorded: int  #: in it, before this process
    granted: int  #: lent, less what was given back
    spent: int = 0  #: as it said last

    @property
    def open(self) -> int:
        """What may come back yet."""
        return max(0, self.granted - self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """The answer to one shard that asked."""

    process: str
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

    def join(self, hello: Hello) -> None:
        """A process is there; an earlier broker may have lent it something already.

        What the one before it has spent stands in the log that it goes on with.
        """
        if hello.process in self._accounts:
            return
        for process, account in list(self._accounts.items()):
            if account.log == hello.log:
                self.closed(process, hello.recorded_pico - account.recorded)
        self._accounts[hello.process] = _Account(
            log=hello.log, recorded=hello.recorded_pico, granted=hello.granted_pico
        )

    def ask(self, process: str, ask: AskMoney) -> int | None:
        """What is lent at once; None: `lend` will say."""
        left = self.cap_pico - self.taken_pico
        if ask.need_pico > left or (ask.need_pico and self.is_short):
            self._asks[process] = ask.need_pico
            return None
        # nobody may have so much that the others soon have to wait for it to come back
        ahead = 0 if self.is_short else left // (2 * len(self._accounts))
        pico = max(ask.need_pico, min(ask.want_pico, ahead))
        self._accounts[process].granted += pico
        return pico

    def back(self, process: str, back_pico: int, spent_pico: int) -> None:
        """Money that is not needed comes back, and what was spent becomes known."""
        account = self._accounts[process]
        account.granted = max(0, account.granted - back_pico)
        self.spent(process, spent_pico)

    def spent(self, process: str, spent_pico: int) -> None:
        """A shard says what it has spent so far."""
        account = self._accounts[process]
        account.spent = max(account.spent, spent_pico)

    def lost(self, process: str) -> None:
        """A shard is silent: what it was lent may have been spent."""
        self._asks.pop(process, None)
        account = self._accounts[process]
        account.spent = max(account.spent, account.granted)

    def closed(self, process: str, spent_pico: int) -> None:
        """A shard has ended, and what it has spent is known for good."""
        self._asks.pop(process, None)
        self._spent += spent_pico
        del self._accounts[process]

    def add(self, pico: int) -> None:
        """Raise the budget."""
        self.cap_pico += pico

    def lend(self) -> Iterator[Loan]:
        """What those that wait can be told now, the first of them first."""
        for process, need in list(self._asks.items()):
            left = self.cap_pico - self.taken_pico
            coming = sum(each.open for each in self._accounts.values())
            if need <= left:
                self._accounts[process].granted += need
            elif need <= left + coming:
                return
            del self._asks[process]
            yield Loan(process=process, pico=need if need <= left else None)
