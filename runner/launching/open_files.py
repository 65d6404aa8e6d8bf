"""How many calls at a time the limit of open files leaves room for.

Each call in flight has a connection, which counts as an open file. A shell's limit is
often 1,024 or 256 and can be raised by the process itself up to the hard limit; where
that is low as well (`ulimit -n 64`), fewer calls are made at a time.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Final

from runner.clients.route import is_offline
from runner.errors import UsageError
from runner.options import ModelOptions, RunOptions

WANTED: Final = 1 << 16
"""Open files that are asked for: a machine has as many ports towards an address."""

RESERVED: Final = 24
"""Files that a run opens besides its connections: readers of the log with its WAL and
index, inputs, DNS, the response cache, a scoring. Sixteen were seen at most."""


def with_room(
    options: RunOptions, models: tuple[str, ...], tell: Callable[[str], None]
) -> RunOptions:
    """*options* with no more calls at a time than connections can be open.

    Args:
        options: how calls are sent.
        models: all that are asked.
        tell: hears of a ceiling that was lowered.

    Raises:
        UsageError: there is no room for a single call.
    """
    online = [
        model
        for model in models
        if not is_offline(model) and not options.is_batched(model)
    ]
    if not online:
        return options
    limit = raised_limit()
    free = limit - _open_files() - RESERVED
    each = free // len(online)
    wanted = max(options.of(model).concurrency or 0 for model in online)
    if each >= wanted:
        return options
    cure = f"raise the limit with: ulimit -n {max(1024, 2 * wanted * len(online))}"
    if each < 1:
        raise UsageError(
            f"This process may have {limit} files open (ulimit -n), which leaves room "
            f"for no call: {cure}"
        )
    tell(
        f"At most {each} calls at a time and model, not {wanted}: this process may "
        f"have {limit} files open (ulimit -n), and each call needs one; {cure}"
    )
    capped = {
        model: options.models.get(model, ModelOptions()).model_copy(
            update={"concurrency": min(each, options.of(model).concurrency or each)}
        )
        for model in online
    }
    return options.model_copy(update={"models": {**options.models, **capped}})


def raised_limit() -> int:
    """The limit of open files, raised as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return WANTED
    best = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if best > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (best, hard))
    return max(soft, best)


def _open_files() -> int:
    """Files that are open now."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are not needed
