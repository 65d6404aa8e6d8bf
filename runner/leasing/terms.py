"""For how long something is lent."""

from __future__ import annotations

from typing import Final

TTL_S: Final = 15.0
"""A shard that the broker has not answered for so long sends nothing more. Long enough
for a broker that is started again, and for a machine that swaps; whoever wants a dead
shard's slices waits as long."""

LIFE_S: Final = 0.75
"""Within which lent requests and tokens leave, or come back. All that is lent in a
minute and this may leave within one minute, so a minute's limit is lent over that long:
a second of life costs 1.6 % of the rate. Too short, and what is lent would have ended
when it arrives; the way there and back has to be well below it."""

WINDOW_S: Final = 60.0 + LIFE_S
"""In which no more is lent than a minute's limit."""
