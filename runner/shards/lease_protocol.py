"""Defines the messages between shards and the broker, as lines of JSON.

Amounts of money are whole pico-dollars, times seconds of the broker's own clock. A line
holds a bounded list of messages, because the number of round trips matters more than
their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class LeaseMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="is"):
    """Anything that is said; the class's name in small letters stands in `is`."""


class ShardProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How a shard gets on."""

    final: int = 0  #: tasks
    in_flight: int = 0  #: calls
    spent_pico: Count = 0  #: by this process, with what may be billed
    phase: str = "starting"  #: "starting", "working", "draining"


class Hello(LeaseMessage, frozen=True, kw_only=True, tag="hello"):
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


class RenewLease(LeaseMessage, frozen=True, kw_only=True, tag="renew"):
    """It goes on; nothing may be sent that is not followed by an answer to this."""

    figures: ShardProgress


class RequestCredit(LeaseMessage, frozen=True, kw_only=True, tag="ask"):
    """Requests and tokens of one model's; 0: there is no limit of that kind."""

    endpoint: str
    model: str
    requests: Count = 0  #: how many would be used
    tokens: Count = 0  #: how many would be used
    tokens_least: Count = 0  #: what the next request needs


class ReturnCredit(LeaseMessage, frozen=True, kw_only=True, tag="back"):
    """What was lent and is not used; negative: more was used than was lent."""

    endpoint: str
    model: str
    requests: int = 0
    tokens: int = 0


class HeaderLimitSeen(LeaseMessage, frozen=True, kw_only=True, tag="told"):
    """A limit that an endpoint tells in its headers."""

    endpoint: str
    model: str
    kind: Literal["requests", "tokens"]
    per_minute: Annotated[float, msgspec.Meta(gt=0)]
    remaining: float | None = None


class EndpointPaused(LeaseMessage, frozen=True, kw_only=True, tag="waits"):
    """An endpoint asked to be left alone for so long; said both ways."""

    endpoint: str
    for_s: Annotated[float, msgspec.Meta(ge=0)]


class RequestMoney(LeaseMessage, frozen=True, kw_only=True, tag="ask_money"):
    """Money for calls."""

    need_pico: Count  #: without which no call can be sent; 0: it only looks ahead
    want_pico: Count


class ReturnMoney(LeaseMessage, frozen=True, kw_only=True, tag="money_back"):
    """Money that was lent and is not needed, and what was spent so far."""

    back_pico: Count
    spent_pico: Count


class Goodbye(LeaseMessage, frozen=True, kw_only=True, tag="bye"):
    """A shard's process ends by itself, and says what it has spent in all."""

    spent_pico: Count


class Welcome(LeaseMessage, frozen=True, kw_only=True, tag="welcome"):
    """A shard may begin, or go on."""

    now: float
    ttl_s: float


class ShardRefused(LeaseMessage, frozen=True, kw_only=True, tag="refused"):
    """A shard may not begin."""

    why: str
    for_s: float  #: it may ask again then; 0: never


class LeaseRenewed(LeaseMessage, frozen=True, kw_only=True, tag="renewed"):
    """Another TTL from the moment at which `RenewLease` was sent."""

    now: float


class CreditLease(LeaseMessage, frozen=True, kw_only=True, tag="lease"):
    """So many requests and tokens may leave until then."""

    endpoint: str
    model: str
    requests: int
    tokens: int
    until: float


class MoneyLease(LeaseMessage, frozen=True, kw_only=True, tag="money"):
    """So much more may be spent; 0: no more than what is needed is lent any more."""

    pico: int


class MoneyExhausted(LeaseMessage, frozen=True, kw_only=True, tag="no_money"):
    """What is needed will never be there; all calls of all shards counted."""

    cap_pico: int
    taken_pico: int


class MoneyShort(LeaseMessage, frozen=True, kw_only=True, tag="short"):
    """Whether money is short: what is not needed at once is to be given back."""

    is_short: bool


class BudgetRaised(LeaseMessage, frozen=True, kw_only=True, tag="raised"):
    """The budget was raised: what was refused may be asked again."""


class ControlLine(LeaseMessage, frozen=True, kw_only=True, tag="line"):
    """A line for the shard's own control file."""

    line: bytes


ShardMessage: TypeAlias = (
    Hello
    | RenewLease
    | RequestCredit
    | ReturnCredit
    | HeaderLimitSeen
    | EndpointPaused
    | RequestMoney
    | ReturnMoney
    | Goodbye
)
"""From a shard."""

BrokerMessage: TypeAlias = (
    Welcome
    | ShardRefused
    | LeaseRenewed
    | CreditLease
    | EndpointPaused
    | MoneyLease
    | MoneyExhausted
    | MoneyShort
    | BudgetRaised
    | ControlLine
)
"""From the broker."""


LONGEST_LINE: Final = 256 * 1024
"""Bytes; control lines are the longest that is ever said, and are far shorter."""

VARIABLE: Final = "SIFTLOG_BROKER_TOKEN"
"""What both sides know and nobody else; it is never written to a file or a log."""

MessageT = TypeVar("MessageT")

_UP: Final = msgspec.json.Decoder(list[ShardMessage])
_DOWN: Final = msgspec.json.Decoder(list[BrokerMessage])


def encode_messages_line(messages: Sequence[LeaseMessage]) -> bytes:
    """Everything that is to be said now, as one line."""
    return msgspec.json.encode(messages) + b"\n"


def decode_from_shard(line: bytes) -> list[ShardMessage]:
    """What a shard said; raise `ValueError` for what is nothing of the kind."""
    return _read(line, _UP)


def decode_from_broker(line: bytes) -> list[BrokerMessage]:
    """What the broker said; raise `ValueError` for what is nothing of the kind."""
    return _read(line, _DOWN)


def _read(line: bytes, decoder: msgspec.json.Decoder[list[MessageT]]) -> list[MessageT]:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is no line of a broker's: {error}") from error


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
