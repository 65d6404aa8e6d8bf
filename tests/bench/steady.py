"""The rate of calls once a run is under way: one rule for floors and siftlog.

Replies of a server with a fixed latency come in waves of that length, so a window that
ends anywhere would count a wave too many or too few. This one begins when a fifth of
the calls is answered and lasts as many whole latencies as end before nine tenths are:
neither the first calls, of which siftlog sends eight and then ever more at a time, nor
the last stragglers, when slots stand empty, are in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

FROM, UPTO = 0.2, 0.9


def steady_per_s(answered_s: Sequence[float], latency_s: float) -> float:
    """Calls a second in the steady part of a run.

    Args:
        answered_s: when each call was answered, ascending.
        latency_s: of the server.
    """
    first = answered_s[int(len(answered_s) * FROM)]
    last = answered_s[int(len(answered_s) * UPTO)]
    waves = int((last - first) / latency_s)
    if not waves:
        raise ValueError("the run was too short to be steady: measure more calls")
    end = first + waves * latency_s
    calls = bisect_left(answered_s, end) - bisect_left(answered_s, first)
    return calls / (end - first)
