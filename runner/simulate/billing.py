"""Bills calls by a price list and keeps the endpoint's own ledger of what it served.

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
"""What a tier costs compared with the standard one (OpenAI's price page: batch and flex
half; priority is 1.75 to 2.5 times, by model)."""

_LETTERS: Final = (string.ascii_letters + " ").encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledTokens:
    """The tokens of one call, each counted in exactly one field."""

    fresh: int = 0  #: of the prompt, neither read from a cache nor written to one
    cached: int = 0  #: of the prompt, read from the cache
    written_5m: int = 0  #: of the prompt, written to the cache for five minutes
    written_1h: int = 0  #: of the prompt, written to the cache for an hour
    visible: int = 0  #: of the answer
    reasoning: int = 0  #: generated before the answer, billed like it

    @property
    def written(self) -> int:
        """All that was written to the cache."""
        return self.written_5m + self.written_1h

    @property
    def prompt(self) -> int:
        """All of the prompt."""
        return self.fresh + self.cached + self.written

    @property
    def out(self) -> int:
        """All that was generated."""
        return self.visible + self.reasoning

    @property
    def total(self) -> int:
        """Prompt and output."""
        return self.prompt + self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Dollars a million tokens."""

    fresh: Decimal = Decimal(0)
    out: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    written_5m: Decimal = Decimal(0)
    written_1h: Decimal = Decimal(0)
    tiers: Mapping[str, Decimal] = field(default_factory=lambda: TIER_FACTORS)

    @classmethod
    def read(cls, text: str, tiers: Mapping[str, Decimal] | None = None) -> PriceList:
        """Reads `IN,OUT[,CACHED[,WRITE[,WRITE_1H]]]`.

        A price that is left out is that of fresh input, that of one-hour writes is
        that of writes.

        Raises:
            UsageError: The text holds anything but two to five prices.
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
        """Exact dollars of a call served in *tier*."""
        at_standard = (
            tokens.fresh * self.fresh
            + tokens.cached * self.cached
            + tokens.written_5m * self.written_5m
            + tokens.written_1h * self.written_1h
            + tokens.out * self.out
        )
        return at_standard / MTOK * self.tiers.get(tier or "", Decimal(1))


def dollars(option: str, text: str) -> Decimal:
    """Reads a number that is at least 0; raise `UsageError` where there is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise UsageError(f"{option} takes a number of at least 0, not {text!r}.")
    return number


def exact(dollars: Decimal) -> str:
    """Writes *dollars* without an exponent and without zeros at the end."""
    text = f"{dollars:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Counts tokens by bytes: prose is cheap, digits and symbols are dear.

    Number tables and SMILES have little more than one byte a token in real
    vocabularies; no vocabulary has less than one.
    """

    letters: float  #: bytes a token, of ASCII letters and spaces
    others: float  #: bytes a token, of everything else

    def count(self, text: str) -> int:
        """Tokens of *text*, at most one a byte."""
        data = text.encode(errors="replace")
        others = len(data.translate(None, _LETTERS))
        return math.ceil((len(data) - others) / self.letters + others / self.others)

    def cut(self, text: str, most: int) -> str:
        """The longest beginning of *text* that has at most *most* tokens."""
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
    """One request, and what became of it."""

    n: int  #: order of arrival, from 1
    request: str  #: SHA-256 of its body, hex
    model: str
    seen: int  #: how often the same body had come before
    outcome: RequestOutcome
    status: int  #: 0: no reply was begun
    received_ms: int  #: wall clock, since 1970-01-01 UTC
    finished_ms: int  #: when this line was written
    authorized: bool  #: whether an authorization header came with it
    tokens: int = 0  #: of prompt and reply, as far as they count against a limit
    path: str = ""  #: below the base URL
    tokens_in: int = 0  #: billed: all of the prompt; this and the following
    tokens_out: int = 0  #: all that was generated
    tokens_cached: int = 0  #: part of tokens_in
    tokens_cache_write: int = 0  #: part of tokens_in
    tokens_cache_write_1h: int = 0  #: part of tokens_cache_write
    tokens_reasoning: int = 0  #: part of tokens_out
    cost_usd: str = "0"  #: exact, as a decimal number
    tells_usage: bool = False  #: whether the reply said what is billed
    finish: str = ""  #: "stop", "length" or "content_filter"; empty: no answer
    tier: str | None = None  #: None: the standard one
    request_id: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    provider: str | None = None


class BatchAct(enum.StrEnum):
    """What was done at a batch endpoint."""

    UPLOADED = "uploaded"
    CREATED = "created"
    CANCELLED = "cancelled"
    LOST = "lost"  #: the reply that told of a new batch did not get out whole
    BILLED = "billed"  #: an item succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One thing that was done; only what is billed has tokens."""

    act: BatchAct
    id: str  #: of the batch, or of the file that was uploaded
    at_ms: int  #: wall clock, since 1970-01-01 UTC
    requests: int = 0  #: of the batch, where it was created or cancelled
    custom_id: str = ""  #: of the item that is billed, as all that follows
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
    tells_usage: bool = False  #: whether the result says what is billed
    finish: str = ""
    tier: str | None = None
    request_id: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What the provider charges for everything in a ledger."""

    requests: int = 0  #: single calls that came, billed or not
    billed: int = 0  #: calls and items of batches that cost something or nothing
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_cache_write: int = 0
    tokens_cache_write_1h: int = 0
    tokens_reasoning: int = 0
    cost_usd: Decimal = Decimal(0)
    reported_usd: Decimal = Decimal(0)
    """The part of it that went out in whole replies with their usage: what a client
    can know to the last digit. The rest it can only bound."""


GENERATED = frozenset(
    {
        RequestOutcome.ANSWERED,
        RequestOutcome.MALFORMED,
        RequestOutcome.DROPPED,
        RequestOutcome.GONE,
    }
)
"""The outcomes of calls that a model may have worked for: these alone are billed."""


def bill(lines: Iterable[LedgerLine], batch_lines: Iterable[BatchLine] = ()) -> Bill:
    """Adds up a ledger: the last line of each call, and the billed items of batches."""
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
        path: the file, which must be new; None: no file.
        keeps: whether `lines`, `batch_lines` and `bill` are to be had from memory.
    """

    def __init__(self, path: Path | None, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._lines: dict[int, LedgerLine] = {}
        self._batch_lines: list[BatchLine] = []
        try:
            # Unbuffered: a line is in the kernel's hands before its reply is.
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
        """What is known at last of each call, in order of arrival."""
        return [line for _, line in sorted(self._lines.items())]

    @property
    def batch_lines(self) -> list[BatchLine]:
        """What was done at the batch endpoints."""
        return list(self._batch_lines)

    def bill(self) -> Bill:
        """What all of it costs so far."""
        return bill(self.lines, self._batch_lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
