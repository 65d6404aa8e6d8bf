"""Bills calls by a price list and keeps the endpoint's ledger of served calls.

Runs are compared with this bill, so it imports nothing of `runner.money` or
`runner.clients`: a shared bug would go undetected.

A request gets its line before the first byte of its reply is sent. If the client
disconnects before the last byte, a second line with the same `n` is added: the last
line of a request counts. Keys are never written, only whether there was one.

The batch endpoints write lines of another kind to the same file: their operations and
every billed item. `bill` sums the cost of both.
"""

from __future__ import annotations

import enum
import math
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import msgspec

from runner.errors import UsageError
from runner.simulate.options import RequestOutcome

MTOK: Final = Decimal(1_000_000)

TIER_FACTORS: Final[Mapping[str, Decimal]] = {
    "batch": Decimal("0.5"),
    "flex": Decimal("0.5"),
    "priority": Decimal(2),
}
"""Price factors of tiers relative to the standard one (OpenAI's price page: batch and
flex half; priority 1.75 to 2.5, by model)."""

_LETTERS: Final = (string.ascii_letters + " ").encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledTokens:
    """The tokens of one call, each counted in exactly one field."""

    fresh: int = 0  #: prompt tokens, neither read from nor written to a cache
    cached: int = 0  #: prompt tokens read from the cache
    written_5m: int = 0  #: prompt tokens written to the cache for five minutes
    written_1h: int = 0  #: prompt tokens written to the cache for an hour
    visible: int = 0  #: tokens of the answer
    reasoning: int = 0  #: tokens before the answer, billed like it

    @property
    def written(self) -> int:
        """All tokens written to the cache."""
        return self.written_5m + self.written_1h

    @property
    def prompt(self) -> int:
        """All prompt tokens."""
        return self.fresh + self.cached + self.written

    @property
    def out(self) -> int:
        """All generated tokens."""
        return self.visible + self.reasoning

    @property
    def total(self) -> int:
        """Prompt and output."""
        return self.prompt + self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Dollars per million tokens."""

    fresh: Decimal = Decimal(0)
    out: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    written_5m: Decimal = Decimal(0)
    written_1h: Decimal = Decimal(0)
    tiers: Mapping[str, Decimal] = field(default_factory=lambda: TIER_FACTORS)

    @classmethod
    def read(cls, text: str, tiers: Mapping[str, Decimal] | None = None) -> PriceList:
        """Parse `IN,OUT[,CACHED[,WRITE[,WRITE_1H]]]`.

        A missing price defaults to that of fresh input, for one-hour writes to that of
        writes.

        Raises:
            UsageError: The text does not have two to five prices.
        """
        try:
            prices = [Decimal(part.strip()) for part in text.split(",")]
        except InvalidOperation:
            prices = []
        if not 2 <= len(prices) <= 5 or any(  # noqa: PLR2004 - the fields of the list
            not price.is_finite() or price < 0 for price in prices
        ):
            raise UsageError(
                f"--bill-price takes IN,OUT[,CACHED[,WRITE[,WRITE_1H]]] in dollars a "
                f"million tokens, not {text!r}."
            )
        fresh, out, *rest = prices
        cached, written, hour = [*rest, *[None] * 3][:3]
        written = fresh if written is None else written
        return cls(
            fresh=fresh,
            out=out,
            cached=fresh if cached is None else cached,
            written_5m=written,
            written_1h=written if hour is None else hour,
            tiers=TIER_FACTORS if tiers is None else tiers,
        )

    def cost(self, tokens: BilledTokens, tier: str | None = None) -> Decimal:
        """Return the exact price in dollars of a call served in *tier*."""
        at_standard = (
            tokens.fresh * self.fresh
            + tokens.cached * self.cached
            + tokens.written_5m * self.written_5m
            + tokens.written_1h * self.written_1h
            + tokens.out * self.out
        )
        return at_standard / MTOK * self.tiers.get(tier or "", Decimal(1))


def dollars(option: str, text: str) -> Decimal:
    """Parse a non-negative number; raise `UsageError` otherwise."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise UsageError(f"{option} takes a number of at least 0, not {text!r}.")
    return number


def exact(dollars: Decimal) -> str:
    """Format *dollars* without an exponent and without trailing zeros."""
    text = f"{dollars:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Counts tokens by bytes: cheap for prose, expensive for digits and symbols.

    Number tables and SMILES have little more than one byte per token in real
    vocabularies; none has less than one.
    """

    letters: float  #: bytes per token, of ASCII letters and spaces
    others: float  #: bytes per token, of everything else

    def count(self, text: str) -> int:
        """Count the tokens of *text*, at most one per byte."""
        data = text.encode(errors="replace")
        others = len(data.translate(None, _LETTERS))
        return math.ceil((len(data) - others) / self.letters + others / self.others)

    def cut(self, text: str, most: int) -> str:
        """Return the longest prefix of *text* with at most *most* tokens."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(text[:middle]) <= most:
                low = middle
            else:
                high = middle - 1
        return text[:low]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One request and its outcome."""

    n: int  #: order of arrival, from 1
    request: str  #: SHA-256 of its body, hex
    model: str
    seen: int  #: how often the same body was received before
    outcome: RequestOutcome
    status: int  #: 0: no reply was started
    received_ms: int  #: wall clock, since 1970-01-01 UTC
    finished_ms: int  #: when this line was written
    authorized: bool  #: whether it had an authorization header
    tokens: int = 0  #: tokens of prompt and reply that count against a limit
    path: str = ""  #: relative to the base URL
    tokens_in: int = 0  #: all prompt tokens; this and the following are billed
    tokens_out: int = 0  #: all generated tokens
    tokens_cached: int = 0  #: part of tokens_in
    tokens_cache_write: int = 0  #: part of tokens_in
    tokens_cache_write_1h: int = 0  #: part of tokens_cache_write
    tokens_reasoning: int = 0  #: part of tokens_out
    cost_usd: str = "0"  #: exact, as a decimal number
    tells_usage: bool = False  #: whether the reply reported usage
    finish: str = ""  #: "stop", "length" or "content_filter"; empty: no answer
    tier: str | None = None  #: None: the standard one
    request_id: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    provider: str | None = None


class BatchAct(enum.StrEnum):
    """An operation at a batch endpoint."""

    UPLOADED = "uploaded"
    CREATED = "created"
    CANCELLED = "cancelled"
    LOST = "lost"  #: the reply about a new batch was not delivered
    BILLED = "billed"  #: an item succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One operation; only billed items have tokens."""

    act: BatchAct
    id: str  #: id of the batch or of the uploaded file
    at_ms: int  #: wall clock, since 1970-01-01 UTC
    requests: int = 0  #: number of requests, if the batch was created or cancelled
    custom_id: str = ""  #: custom id of the billed item; the rest is about that item
    request: str = ""  #: SHA-256 of its body, hex
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    half_price: bool = False
    tokens_cached: int = 0  #: part of tokens_in
    tokens_cache_write: int = 0  #: part of tokens_in
    tokens_cache_write_1h: int = 0  #: part of tokens_cache_write
    tokens_reasoning: int = 0  #: part of tokens_out
    cost_usd: str = "0"  #: exact, as a decimal number
    tells_usage: bool = False  #: whether the result reported usage
    finish: str = ""
    tier: str | None = None
    request_id: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The provider's charge for everything in a ledger."""

    requests: int = 0  #: single calls, billed or not
    billed: int = 0  #: billed calls and batch items, free ones included
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_cache_write: int = 0
    tokens_cache_write_1h: int = 0
    tokens_reasoning: int = 0
    cost_usd: Decimal = Decimal(0)
    reported_usd: Decimal = Decimal(0)
    """The part delivered in complete replies with usage: a client can know it exactly.
    It can only bound the rest."""


GENERATED = frozenset(
    {
        RequestOutcome.ANSWERED,
        RequestOutcome.MALFORMED,
        RequestOutcome.DROPPED,
        RequestOutcome.GONE,
    }
)
"""Outcomes after which a model may have worked: only these are billed."""


def bill(lines: Iterable[LedgerLine], batch_lines: Iterable[BatchLine] = ()) -> Bill:
    """Sum a ledger: the last line of each call, and billed batch items."""
    calls = list(lines)
    items = [item for item in batch_lines if item.act is BatchAct.BILLED]
    billed: list[LedgerLine | BatchLine] = [
        *(line for line in calls if line.outcome in GENERATED and line.finish),
        *items,
    ]
    reported: list[LedgerLine | BatchLine] = [
        *(line for line in calls if line.outcome is RequestOutcome.ANSWERED),
        *items,
    ]
    return Bill(
        requests=len(calls),
        billed=len(billed),
        tokens_in=sum(line.tokens_in for line in billed),
        tokens_out=sum(line.tokens_out for line in billed),
        tokens_cached=sum(line.tokens_cached for line in billed),
        tokens_cache_write=sum(line.tokens_cache_write for line in billed),
        tokens_cache_write_1h=sum(line.tokens_cache_write_1h for line in billed),
        tokens_reasoning=sum(line.tokens_reasoning for line in billed),
        cost_usd=_sum(billed),
        reported_usd=_sum(line for line in reported if line.tells_usage),
    )


def _sum(lines: Iterable[LedgerLine | BatchLine]) -> Decimal:
    return sum((Decimal(line.cost_usd) for line in lines), Decimal(0))


class Ledger:
    """Writes a ledger to a file, keeps it in memory, or neither.

    Args:
        path: a new file; None: no file.
    """

    def __init__(self, path: Path | None, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._lines: dict[int, LedgerLine] = {}
        self._batch_lines: list[BatchLine] = []
        try:
            # Unbuffered: a line is written before its reply is sent.
            self._file = None if path is None else path.open("xb", buffering=0)
        except FileExistsError:
            raise UsageError(
                f"The ledger {path} exists already; move it away or name another."
            ) from None
        except OSError as error:
            raise UsageError(
                f"The ledger {path} cannot be written: {error.strerror}."
            ) from None

    def write(self, line: LedgerLine | BatchLine) -> None:
        """Add *line*."""
        if self._keeps and isinstance(line, LedgerLine):
            self._lines[line.n] = line
        elif self._keeps and isinstance(line, BatchLine):
            self._batch_lines.append(line)
        if self._file is not None:
            self._file.write(msgspec.json.encode(line) + b"\n")

    @property
    def lines(self) -> list[LedgerLine]:
        """Return the last line of each call, in order of arrival."""
        return [line for _, line in sorted(self._lines.items())]

    @property
    def batch_lines(self) -> list[BatchLine]:
        """Return the operations at the batch endpoints."""
        return list(self._batch_lines)

    def bill(self) -> Bill:
        """Return the bill so far."""
        return bill(self.lines, self._batch_lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
