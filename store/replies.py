"""What the replies of a run used, what was wrong with them, and what they left open."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

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
