"""What a shard holds of its run's limits and money, and whether it may go on at all.

Sans-IO: `hear` takes what the broker says, `says` gives what is to be said to it, both
with the time of this process. The lease on the shard itself is its fence: without an
answer of the broker's to something that was sent less than a TTL ago, nothing may be
sent (`holds`). It runs from when the question was sent, the broker's own account from
when it heard it, which is later: so the shard is the first to think itself dead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from runner.leasing.allowance import Allowance
from runner.leasing.messages import (
    Bye,
    Down,
    Figures,
    Hello,
    Lease,
    Line,
    Money,
    NoMoney,
    Raised,
    Refused,
    Renew,
    Renewed,
    Said,
    Short,
    Waits,
    Welcome,
)
from runner.leasing.share import LeasedGate, Share
from runner.limits.gate import Pausable

DUE: Final = 1 / 3
"""Of a TTL, after which the lease is renewed: two questions may be lost."""
EARLY: Final = 1 / 5
"""Of a TTL before it is due, from when on it is renewed with whatever else is said: so
a busy shard never has to say that alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who takes part: one process of one shard."""

    run_id: str
    process: str  #: a name that no other process ever has
    shard: str  #: i/n
    slices: str  #: as `store.slices.Slices` writes them
    log: str  #: hex
    recorded_pico: int = 0  #: what the log says earlier processes spent, or may have


class Holder:
    """One process's part; the `runner.limits.gate.Lender` of its endpoints."""

    def __init__(
        self,
        identity: Identity,
        *,
        token: str,
        wake: Callable[[], None],
        on_line: Callable[[bytes], None],
    ) -> None:
        """Nothing is held yet.

        Args:
            identity: who this process is.
            token: what the broker knows it by.
            wake: called where something is to be said.
            on_line: takes a line for the shard's control file.
        """
        self.identity = identity
        self.allowance = Allowance(wake)
        self.refused: Refused | None = None
        self._token = token
        self._wake = wake
        self._on_line = on_line
        self._endpoints: dict[str, Pausable] = {}
        self._shares: dict[tuple[str, str], Share] = {}
        self._waits: list[Waits] = []
        self._ttl_s = math.nan
        self._offset_s = math.nan  #: this clock less the broker's, at the least
        self._asked_at: float | None = None  #: when what is not answered was sent
        self._held_from = -math.inf  #: when what was answered last was sent

    # -- what the engine asks ----------------------------------------------------

    def holds(self, now: float) -> bool:
        """Whether calls may be sent."""
        return now < self.holds_until

    @property
    def holds_until(self) -> float:
        """Until when calls may be sent, as things stand."""
        return (
            self._held_from + self._ttl_s if self._held_from > -math.inf else -math.inf
        )

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[LeasedGate, LeasedGate]:
        """A model's gates for requests and for tokens."""
        share = Share(endpoint.name, model, self._wake, rpm=rpm, tpm=tpm)
        self._shares[endpoint.name, model] = share
        self._endpoints[endpoint.name] = endpoint
        return share.gates

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """An endpoint asked to be left alone, which concerns the others too."""
        self._waits.append(Waits(endpoint=endpoint, for_s=until - now))
        self._wake()

    # -- with the broker -----------------------------------------------------------

    def connected(self, now: float) -> Hello:
        """What is said first on a new connection; what was asked before is lost."""
        self._asked_at = now
        self.refused = None
        self.allowance.reconnected()
        for share in self._shares.values():
            share.reconnected()
        own = self.identity
        return Hello(
            token=self._token,
            run_id=own.run_id,
            process=own.process,
            shard=own.shard,
            slices=own.slices,
            log=own.log,
            recorded_pico=own.recorded_pico,
            granted_pico=self.allowance.granted_pico,
        )

    def hear(self, message: Down, now: float) -> None:
        """The broker says something."""
        match message:
            case Welcome():
                self._ttl_s = message.ttl_s
                self._answered(message.now)
            case Renewed():
                self._answered(message.now)
            case Refused():
                self.refused = message
            case Lease():
                share = self._shares.get((message.endpoint, message.model))
                if share is not None:
                    share.lend(message, message.until + self._offset_s)
            case Waits():
                endpoint = self._endpoints.get(message.endpoint)
                if endpoint is not None:
                    endpoint.pause(now + message.for_s)
            case Money() | NoMoney() | Short() | Raised():
                self.allowance.hear(message)
            case Line():
                self._on_line(message.line)
            case _:
                assert_never(message)

    def _answered(self, broker_now: float) -> None:
        """What was sent last is answered; it was heard no earlier than it was sent."""
        if self._asked_at is not None:
            self._held_from = self._asked_at
            self._offset_s = self._asked_at - broker_now
            self._asked_at = None

    def says(self, now: float, figures: Callable[[], Figures]) -> list[Said]:
        """What is to be said now; nothing, mostly."""
        is_due = self._is_answered and now >= self._renews_at
        said: list[Said] = [*self._waits]
        self._waits = []
        for share in self._shares.values():
            said += share.says(now, is_due=is_due)
        said += self.allowance.says(now)
        early_at = self._renews_at - EARLY * self._ttl_s
        if is_due or (said and self._is_answered and now >= early_at):
            self._asked_at = now
            said.append(Renew(figures=figures()))
        return said

    def bye(self) -> Bye:
        """What is said last."""
        return Bye(spent_pico=self.allowance.spent_pico)

    @property
    def _is_answered(self) -> bool:
        return self._asked_at is None

    @property
    def _renews_at(self) -> float:
        return self._held_from + DUE * self._ttl_s

    def wake_at(self) -> float:
        """When to ask `says` again, at the latest."""
        renews_at = self._renews_at if self._is_answered else self.holds_until
        back_at = self.allowance.gives_back_at
        return min([renews_at, back_at, *(x.expires_at for x in self._shares.values())])
