"""What the replies of a run used, what was wrong with them, and what they left open."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from store.served import PREFIX
from store.spending import dollars
from store.statements import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """What replies left open, or contradicted, of their usage."""

    unknown: int  #: answers without a readable usage; their worst case stays reserved
    doubtful: int  #: answers whose total is smaller than its parts, which were counted
    charged: int  #: answers that said what they cost
    charged_usd: float  #: the sum of that
    differing: int  #: of these answers, those that cost something else by the prices

    @property
    def findings(self) -> tuple[str, ...]:
        """What is not certain of tokens and cost: sentences without their ends."""
        said: list[str] = []
        if self.unknown:
            said.append(
                f"{self.unknown:,} answers came without a readable usage; what they "
                "may cost at most stays reserved"
            )
        if self.doubtful:
            said.append(
                f"{self.doubtful:,} answers gave a total of tokens below the sum of "
                "its parts; the larger figure was counted"
            )
        if self.differing:
            said.append(
                f"{self.differing:,} of {self.charged:,} answers say that they cost "
                "something else than their tokens do by the prices; they say "
                f"{dollars(self.charged_usd)} in sum"
            )
        return tuple(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCount:
    """Tokens of one stage and model over all its replies, refused ones included.

    Answers of the response cache are no replies: they used nothing.
    """

    stage: str
    model: str
    replies: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyShares:
    """Replies and failed tasks of one model, by what was wrong with them.

    A reply may count under several headings. Everything that ever came is counted,
    replies that were asked for again included.
    """

    model: str
    replies: int  #: answers of the response cache included
    truncated: int  #: ended at the output limit
    refused: int  #: by the model
    filtered: int  #: by the provider, with a reply or an error status
    empty: int  #: without any text
    unparsed: int  #: the job's parser could not read them
    failed: int  #: tasks that ended without a reply


def usage_counts(conn: sqlite3.Connection) -> list[UsageCount]:
    """Tokens by stage and model."""
    return [
        UsageCount(
            stage=stage,
            model=model,
            replies=replies,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
        for stage, model, replies, tokens_in, tokens_out in conn.execute(
            SQL["usage"]
        ).fetchall()
    ]


def reply_shares(conn: sqlite3.Connection) -> tuple[ReplyShares, ...]:
    """What was wrong with the replies of each model."""
    return tuple(
        ReplyShares(
            model=model,
            replies=replies,
            truncated=truncated,
            refused=refused,
            filtered=filtered,
            empty=empty,
            unparsed=unparsed,
            failed=failed,
        )
        for (
            model,
            replies,
            truncated,
            refused,
            filtered,
            empty,
            unparsed,
            failed,
        ) in conn.execute(SQL["reply_shares"]).fetchall()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCount:
    """Answers of one model by one field of what served them."""

    model: str  #: as it was asked for
    field: str  #: of `COUNTED`
    answers: Mapping[str, int]
    """By name, the most frequent first; under the empty name those that came after the
    first 200 names of the run."""

    @property
    def is_mixed(self) -> bool:
        """Whether more than one served it."""
        return len(self.answers) > 1

    def __str__(self) -> str:
        """One sentence without its end."""
        shown = [f"{name or 'others'} {n:,}" for name, n in self.answers.items()]
        rest = len(shown) - SHOWN
        if rest > 0:
            shown = [*shown[:SHOWN], f"and {rest:,} more"]
        return f"{self.model}: {len(self.answers):,} {self.field}s ({', '.join(shown)})"


SHOWN: Final = 4
"""Names in a sentence, at most."""


def served_counts(counted: Iterable[tuple[str, str, int]]) -> tuple[ServedCount, ...]:
    """What served a run, by model and field.

    Args:
        counted: words of `served_keys` with the answers that were counted under them.
    """
    names: dict[tuple[str, str], Counter[str]] = {}
    for what, word, n in counted:
        model, _, name = word.partition("\n")
        names.setdefault((model, what.removeprefix(PREFIX)), Counter())[name] += n
    return tuple(
        ServedCount(model=model, field=field, answers=dict(each.most_common()))
        for (model, field), each in sorted(names.items())
    )
