"""How a run is split and placed, and how it stands meanwhile."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from runner.leasing.terms import TTL_S
from runner.placing.engine import Name
from store.read.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Into how many shards a run is split, and how these are placed."""

    engine: Name
    shards: int
    address: str | None = None  #: of the engine's cluster
    ttl_s: float = TTL_S  #: for how long a shard may be silent
    local_dir: str | None = None  #: of a disk of each shard's machine; may hold `$NAME`
    ship: str | None = None  #: where the shards carry their logs to
    ship_every_s: float = 5.0  #: how long what is recorded may wait for that
    accept_loss: bool = False  #: shards go on though acknowledged events are missing

    @property
    def words(self) -> str:
        """What is typed to place the run so once more."""
        named = {
            "engine": self.engine,
            "shards": self.shards,
            "address": self.address,
            "local-dir": self.local_dir,
            "ship": self.ship,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return " ".join(
            f"--{name} {shlex.quote(str(value))}" for name, value in given.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How a run that is placed gets on."""

    status: Status | None  #: of the union; None: no shard has written yet
    at_work: int  #: shards that were not silent of late
    shards: int
    restarts: int
    in_flight: int  #: calls


Show: TypeAlias = Callable[[Callable[[], Stand]], AbstractAsyncContextManager[None]]
"""Shows how a run stands, inside an async context."""
