"""How a shard's process comes to take part: what its log and its environment say."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial

from runner.errors import UsageError
from runner.launching.shell import Shell
from runner.leasing.holder import Holder, Identity
from runner.leasing.lessee import Lessee
from runner.leasing.wire import VARIABLE
from runner.shards.part import Part
from store.control import forward_command
from store.database import open_reader
from store.read.usage import spending
from store.runs import RunFolder
from store.union.source import LocalLogSource


def lessee_of(folder: RunFolder, part: Part | None, shell: Shell) -> Lessee | None:
    """What a process holds for its shard, not yet connected; None: it has no broker.

    Args:
        folder: the shard's; its log is open for writing.
        part: which part of the run it does; None: all.
        shell: what surrounds the process.

    Raises:
        UsageError: there is no such address, or no token.
    """
    if part is None or shell.broker is None:
        return None
    shard, address = part.shard, shell.broker
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--broker {address}: write it as HOST:PORT.")
    token = shell.environment.get(VARIABLE)
    if not token:
        raise UsageError(
            f"--broker needs {VARIABLE} in the environment: siftlog run --engine sets "
            "it for the shards that it starts."
        )
    with open_reader(folder.log) as reader:
        log = LocalLogSource(reader).identity.log
        money = spending(reader)
    wake = asyncio.Event()
    holder = Holder(
        Identity(
            run_id=folder.run_id,
            process=secrets.token_hex(8),
            shard=str(shard),
            slices=shard.slices,
            log=log.hex(),
            recorded_pico=money.spent_pico + money.possible_pico,
        ),
        token=token,
        wake=wake.set,
        on_line=partial(forward_command, folder),
    )
    return Lessee(
        holder,
        (host, int(port)),
        clock=shell.clock,
        wake=wake,
        tell=shell.tell,
    )
