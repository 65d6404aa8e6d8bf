"""Defines the messages between shards and the broker, as lines of JSON.

Amounts of money are whole pico-dollars, times are seconds of the broker's clock. A line
holds a bounded list of messages, because the number of round trips matters more than
their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class LeaseMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="is"):
    """Base of all messages; `is` has the tag of the class."""


class ShardProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a shard."""

    final: int = 0  #: tasks
    in_flight: int = 0  #: calls
    spent_pico: Count = 0  #: by this process, with what may be billed
    phase: str = "starting"  #: "starting", "working", "draining"


class Hello(LeaseMessage, frozen=True, kw_only=True, tag="hello"):
    """A shard's process starts, or reconnects."""

    token: str
    run_id: str
    process: str  #: unique name of the process
    shard: str  #: i/n
    slices: str  #: as `store.slices.Slices` formats them
    log: str  #: its log, which has one writer at a time
    recorded_pico: Count  #: possible spending of earlier processes
    granted_pico: Count  #: money lent to this process so far, minus returns


class RenewLease(LeaseMessage, frozen=True, kw_only=True, tag="renew"):
    """Renews the lease; without an answer to this, nothing more may be sent."""

    figures: ShardProgress


class RequestCredit(LeaseMessage, frozen=True, kw_only=True, tag="ask"):
    """Requests credit for one model; 0: there is no limit of that kind."""

    endpoint: str
    model: str
    requests: Count = 0  #: how many would be used
    tokens: Count = 0  #: how many would be used
    tokens_least: Count = 0  #: what the next request needs


class ReturnCredit(LeaseMessage, frozen=True, kw_only=True, tag="back"):
    """Returns unused credit; negative: more was used than lent."""

    endpoint: str
    model: str
    requests: int = 0
    tokens: int = 0


class HeaderLimitSeen(LeaseMessage, frozen=True, kw_only=True, tag="told"):
    """A limit in an endpoint's headers."""

    endpoint: str
    model: str
    kind: Literal["requests", "tokens"]
    per_minute: Annotated[float, msgspec.Meta(gt=0)]
    remaining: float | None = None


class EndpointPaused(LeaseMessage, frozen=True, kw_only=True, tag="waits"):
    """A pause that an endpoint asked for; sent in both directions."""

    endpoint: str
    for_s: Annotated[float, msgspec.Meta(ge=0)]


class RequestMoney(LeaseMessage, frozen=True, kw_only=True, tag="ask_money"):
    """Requests money for calls."""

    need_pico: Count  #: minimum for the next call; 0: only in advance
    want_pico: Count


class ReturnMoney(LeaseMessage, frozen=True, kw_only=True, tag="money_back"):
    """Returns unneeded money and reports spending."""

    back_pico: Count
    spent_pico: Count


class Goodbye(LeaseMessage, frozen=True, kw_only=True, tag="bye"):
    """A shard's process ends, and reports its total spending."""

    spent_pico: Count


class Welcome(LeaseMessage, frozen=True, kw_only=True, tag="welcome"):
    """Admits a shard, or confirms a reconnect."""

    now: float
    ttl_s: float


class ShardRefused(LeaseMessage, frozen=True, kw_only=True, tag="refused"):
    """Refuses a shard."""

    why: str
    for_s: float  #: seconds until it may retry; 0: never


class LeaseRenewed(LeaseMessage, frozen=True, kw_only=True, tag="renewed"):
    """Grants another TTL from the time at which `RenewLease` was sent."""

    now: float


class CreditLease(LeaseMessage, frozen=True, kw_only=True, tag="lease"):
    """Lends requests and tokens until a time."""

    endpoint: str
    model: str
    requests: int
    tokens: int
    until: float


class MoneyLease(LeaseMessage, frozen=True, kw_only=True, tag="money"):
    """Lends money; 0: from now on only what a call needs is lent."""

    pico: int


class MoneyExhausted(LeaseMessage, frozen=True, kw_only=True, tag="no_money"):
    """The requested money will never be available, with all calls counted."""

    cap_pico: int
    taken_pico: int


class MoneyShort(LeaseMessage, frozen=True, kw_only=True, tag="short"):
    """Whether money is short: unneeded money must then be returned."""

    is_short: bool


class BudgetRaised(LeaseMessage, frozen=True, kw_only=True, tag="raised"):
    """The budget was raised: refused requests may be repeated."""


class ControlLine(LeaseMessage, frozen=True, kw_only=True, tag="line"):
    """A line for the shard's control file."""

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
"""Messages from a shard."""

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
"""Messages from the broker."""


LONGEST_LINE: Final = 256 * 1024
"""Maximum bytes of a line; control lines are the longest, and far shorter."""

VARIABLE: Final = "SIFTLOG_BROKER_TOKEN"
"""Shared secret of both sides; it is never written to a file or a log."""

MessageT = TypeVar("MessageT")

_UP: Final = msgspec.json.Decoder(list[ShardMessage])
_DOWN: Final = msgspec.json.Decoder(list[BrokerMessage])


def encode_messages_line(messages: Sequence[LeaseMessage]) -> bytes:
    """Encode all pending messages as one line."""
    return msgspec.json.encode(messages) + b"\n"


def decode_from_shard(line: bytes) -> list[ShardMessage]:
    """Decode a shard's messages; raise `ValueError` if they are invalid."""
    return _read(line, _UP)


def decode_from_broker(line: bytes) -> list[BrokerMessage]:
    """Decode the broker's messages; raise `ValueError` if they are invalid."""
    return _read(line, _DOWN)


def _read(line: bytes, decoder: msgspec.json.Decoder[list[MessageT]]) -> list[MessageT]:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is no line of a broker's: {error}") from error


TTL_S: Final = 15.0
"""A shard without an answer of the broker for this long sends nothing more. Long enough
for a restart of the broker and for a machine that swaps; another process waits as long
for a dead shard's slices."""

LIFE_S: Final = 0.75
"""Lent requests and tokens are used or returned within this time. All credit lent in a
minute plus this may be used within one minute, so the limit per minute is lent over
that long: a second of life costs 1.6 % of the rate. It must be well above the round
trip, or leases would have expired on arrival."""

WINDOW_S: Final = 60.0 + LIFE_S
"""Window in which at most the limit of a minute is lent."""
