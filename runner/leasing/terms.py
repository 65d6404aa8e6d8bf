"""For how long something is lent."""

from __future__ import annotations

from typing import Final

TTL_S: Final = 15.0
"""A shard that the broker has not answered for so long sends nothing more. Long enough
for a broker that is started again, and for a machine that swaps; whoever wants a dead
shard's slices waits as long."""

LIFE_S: Final = 1.0
"""Within which lent requests and tokens leave, or come back. All that is lent in a
minute and this may leave within one minute, so the limit is lent over 61 s: each second
more of life would cost 1.6 % of the rate."""

WINDOW_S: Final = 60.0 + LIFE_S
"""In which no more is lent than a minute's limit."""
