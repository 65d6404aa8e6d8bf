"""What shards and their broker say to each other.

Amounts of money are whole pico-dollars, times seconds of the broker's own clock. A
shard says several things at once where it can (`wire.py`): what counts is how often it
has to ask, not how much.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Said(msgspec.Struct, frozen=True, kw_only=True, tag_field="is"):
    """Anything that is said; the class's name in small letters stands in `is`."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How a shard gets on."""

    final: int = 0  #: tasks
    in_flight: int = 0  #: calls
    spent_pico: Count = 0  #: by this process, with what may be billed
    phase: str = "starting"  #: "starting", "working", "draining"


class Hello(Said, frozen=True, kw_only=True, tag="hello"):
    """A shard's process takes up its part, or is back after a broken connection."""

    token: str
    run_id: str
    process: str  #: its name, which no other process ever has
    shard: str  #: i/n
    slices: str  #: as `store.slices.Slices` writes them
    log: str  #: the log that it writes; one process at a time does
    recorded_pico: Count  #: what that log says earlier processes spent, or may have
    granted_pico: (
        Count  #: money that this process was ever lent, less what it gave back
    )


class Renew(Said, frozen=True, kw_only=True, tag="renew"):
    """It goes on; nothing may be sent that is not followed by an answer to this."""

    figures: Figures


class Ask(Said, frozen=True, kw_only=True, tag="ask"):
    """Requests and tokens of one model's; 0: there is no limit of that kind."""

    endpoint: str
    model: str
    requests: Count = 0  #: how many would be used
    tokens: Count = 0  #: how many would be used
    tokens_least: Count = 0  #: what the next request needs


class Back(Said, frozen=True, kw_only=True, tag="back"):
    """What was lent and is not used; negative: more was used than was lent."""

    endpoint: str
    model: str
    requests: int = 0
    tokens: int = 0


class Told(Said, frozen=True, kw_only=True, tag="told"):
    """A limit that an endpoint tells in its headers."""

    endpoint: str
    model: str
    kind: Literal["requests", "tokens"]
    per_minute: Annotated[float, msgspec.Meta(gt=0)]
    remaining: float | None = None


class Waits(Said, frozen=True, kw_only=True, tag="waits"):
    """An endpoint asked to be left alone for so long; said both ways."""

    endpoint: str
    for_s: Annotated[float, msgspec.Meta(ge=0)]


class AskMoney(Said, frozen=True, kw_only=True, tag="ask_money"):
    """Money for calls."""

    need_pico: Count  #: without which no call can be sent; 0: it only looks ahead
    want_pico: Count


class MoneyBack(Said, frozen=True, kw_only=True, tag="money_back"):
    """Money that was lent and is not needed, and what was spent so far."""

    back_pico: Count
    spent_pico: Count


class Bye(Said, frozen=True, kw_only=True, tag="bye"):
    """A shard's process ends by itself, and says what it has spent in all."""

    spent_pico: Count


class Welcome(Said, frozen=True, kw_only=True, tag="welcome"):
    """A shard may begin, or go on."""

    now: float
    ttl_s: float


class Refused(Said, frozen=True, kw_only=True, tag="refused"):
    """A shard may not begin."""

    why: str
    for_s: float  #: it may ask again then; 0: never


class Renewed(Said, frozen=True, kw_only=True, tag="renewed"):
    """Another TTL from the moment at which `Renew` was sent."""

    now: float


class Lease(Said, frozen=True, kw_only=True, tag="lease"):
    """So many requests and tokens may leave until then."""

    endpoint: str
    model: str
    requests: int
    tokens: int
    until: float


class Money(Said, frozen=True, kw_only=True, tag="money"):
    """So much more may be spent; 0: no more than what is needed is lent any more."""

    pico: int


class NoMoney(Said, frozen=True, kw_only=True, tag="no_money"):
    """What is needed will never be there; all calls of all shards counted."""

    cap_pico: int
    taken_pico: int


class Short(Said, frozen=True, kw_only=True, tag="short"):
    """Whether money is short: what is not needed at once is to be given back."""

    is_short: bool


class Raised(Said, frozen=True, kw_only=True, tag="raised"):
    """The budget was raised: what was refused may be asked again."""


class Line(Said, frozen=True, kw_only=True, tag="line"):
    """A line for the shard's own control file."""

    line: bytes


Up: TypeAlias = Hello | Renew | Ask | Back | Told | Waits | AskMoney | MoneyBack | Bye
"""From a shard."""

Down: TypeAlias = (
    Welcome
    | Refused
    | Renewed
    | Lease
    | Waits
    | Money
    | NoMoney
    | Short
    | Raised
    | Line
)
"""From the broker."""
