"""The rate of calls once a run is under way: one rule for floors and siftlog.

It is taken from when a fifth of the calls is answered until nine tenths are: neither
the first calls, of which siftlog sends eight and then ever more at a time, nor the last
stragglers, when slots stand empty, are in it. Replies of a server with a fixed latency
come in waves, and a window that begins or ends anywhere would hold a wave too many or
too few; so it is begun at each of as many calls as there are slots, one whole wave, and
the mean counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

FROM, UPTO = 0.2, 0.9


def steady_per_s(answered_s: Sequence[float], slots: int) -> float:
    """Calls a second in the steady part of a run.

    Args:
        answered_s: when each call was answered, ascending.
        slots: calls at a time.
    """
    first, last = (int(len(answered_s) * share) for share in (FROM, UPTO))
    calls = last - first - slots
    if calls < slots:
        raise ValueError("the run was too short to be steady: measure more calls")
    window_s = fmean(
        answered_s[begun + calls] - answered_s[begun]
        for begun in range(first, first + slots)
    )
    return calls / window_s
