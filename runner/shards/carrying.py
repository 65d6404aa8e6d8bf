"""A shard's log on its way to a place, from its first event to its last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

from runner.control.ending import Ended
from runner.engine.beside import beside
from runner.engine.driver import Driver
from runner.launching.shell import Shell
from runner.shards.agreeing import check_place
from runner.shards.part import Part
from store.clock import Clock
from store.errors import PlaceAway, Unshipped
from store.runs import RunFolder, add_place
from store.segments.place import Place
from store.segments.shipping import Shipper

PATIENCE_S = 60.0
"""For a place that is away when all else is done, or before anything is: a file server
changes over to its second head meanwhile, and a cluster that ends the job does not wait
any longer."""

LOOK_S = 1.0
"""Between two attempts; and so long it takes until a second Ctrl-C is heard."""


async def reach(place: Place, run_id: str, clock: Clock, *, patient: bool) -> None:
    """See that a place takes a run's logs, before anything is paid for.

    Args:
        place: where a shard's log is to be carried.
        run_id: its run.
        clock: says when to look again.
        patient: whether one that is away is waited for: a person who has mistyped it
            wants to know at once, and who starts shards anew would give this one up.

    Raises:
        PlaceAway: it takes nothing.
        UsageError: it holds the logs of another run.
    """
    until = clock.monotonic() + (PATIENCE_S if patient else 0.0)
    while True:
        try:
            await asyncio.to_thread(check_place, place, run_id)
        except PlaceAway:
            if clock.monotonic() >= until:
                raise
        else:
            return
        await clock.sleep_until(clock.monotonic() + LOOK_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Carries what is recorded while the driver works."""

    shipper: Shipper
    driver: Driver
    shell: Shell
    folder: RunFolder
    address: str

    async def carry(self) -> None:
        """Carry on; the driver drains once more waits than may be lost."""
        try:
            await self.shipper.run()
        except Unshipped as error:
            self.shell.tell(f"{error}.")
            self.driver.drain()

    async def conclude(self, ended: Ended) -> Ended:
        """Carry the rest, once the log's last event is in it.

        A place that is away is waited for: the disk may be gone with this process.

        Returns:
            How the work came out: not finished while some of it lies here alone.
        """
        clock = self.shell.clock
        until = clock.monotonic() + PATIENCE_S
        while not (is_carried := await self._carry_rest(ended)):
            if self.driver.is_stopping or clock.monotonic() >= until:
                break
            await clock.sleep_until(clock.monotonic() + LOOK_S)
        if is_carried:
            return ended
        left = self.shipper.statistics().unshipped_bytes
        why = (
            f"The last {left:,} bytes of {self.folder.log} were not carried to "
            f"{self.address}: keep the file, and start the shard again once the place "
            "takes them."
        )
        if ended.why is not None:
            self.shell.tell(ended.why)
        outcome = "drained" if ended.outcome == "finished" else ended.outcome
        return Ended(outcome=outcome, why=why)

    async def _carry_rest(self, ended: Ended) -> bool:
        """Carry all there is, and that it is all; False: the place is away."""
        if ended.outcome == "finished":
            return await self.shipper.finish()
        return await self.shipper.flush()


@asynccontextmanager
async def carrying(
    folder: RunFolder, part: Part | None, driver: Driver, shell: Shell
) -> AsyncIterator[Carrier | None]:
    """Carry a log beside the body, where that was asked for.

    Args:
        folder: of the log, which is open for writing.
        part: the shard; None: the run is not split.
        driver: is told where there is no going on.
        shell: clock and words.

    Raises:
        PlaceAway: the place cannot be looked at.
    """
    if part is None or part.shipping is None:
        yield None
        return
    place = part.shipping.place
    async with Shipper.following(
        folder.log,
        place,
        clock=shell.clock,
        tell=lambda said: shell.tell(f"{said}."),
        siftlog_version=version("siftlog"),
        shard=part.shard,
        every_s=part.shipping.every_s,
    ) as shipper:
        carrier = Carrier(
            shipper=shipper,
            driver=driver,
            shell=shell,
            folder=folder,
            address=place.address,
        )
        add_place(folder.places, place.address)
        async with beside(driver.guard(carrier.carry)):
            yield carrier
