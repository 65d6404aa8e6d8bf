"""The provider's own bill: tokens of a call, a price list, and exact dollars.

Runs are compared with this bill, so it imports nothing of `runner.money` or
`runner.wire`: a mistake that both sides shared would prove nothing.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from runner.errors import UsageError

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
class Tokens:
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

    def cost(self, tokens: Tokens, tier: str | None = None) -> Decimal:
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
