"""Keeps the batches of one form, answers their items and bills them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from runner.errors import BadRequest
from runner.simulate.asked import Asked
from runner.simulate.batch.drawing import Order, items, schedule
from runner.simulate.batch.exchange import NOT_FOUND, Refusal
from runner.simulate.batch.state import Batch, Ending, Item, Phase
from runner.simulate.dialect import Trouble
from runner.simulate.ledger import BatchAct, BatchLine, Ledger
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider, billed_fields

CONFLICT: Final = 409


@dataclass(slots=True, kw_only=True)
class Kept:
    """A batch, and the replies to its items that succeeded."""

    id: str
    model: str  #: of its first item
    batch: Batch
    path: str  #: of the single calls that its items are
    replies: dict[str, bytes] = field(default_factory=dict)  #: by custom id
    tokens_in: int = 0  #: of the items that succeeded
    tokens_out: int = 0


class Office:
    """The batches of one form, each known by its id.

    Args:
        prefix: What the ids begin with.
        options: How batches get on, and how many of their items fail.
        provider: Answers and bills the items.
        ledger: Remembers what was done, and what was billed.
    """

    def __init__(
        self,
        prefix: str,
        options: SimulateOptions,
        provider: Provider,
        ledger: Ledger,
    ) -> None:
        self._prefix = prefix
        self._options = options
        self._provider = provider
        self._ledger = ledger
        self._kept: dict[str, Kept] = {}
        self._open: dict[str, Kept] = {}
        self._seen: Counter[str] = Counter()

    def create(
        self,
        orders: Sequence[Order],
        now_us: int,
        reader: Callable[[bytes], Asked],
        path: str,
        *,
        is_sound: bool = True,
    ) -> Kept:
        """A new batch of *orders* to *path*, whose bodies *reader* reads."""
        number = len(self._kept)
        times = schedule(self._options, number, now_us)
        accept = partial(self._accept, reader, path)
        found = items(self._options, orders, times, self._seen, accept)
        kept = Kept(
            id=f"{self._prefix}{fresh(self._options.seed, number, now_us)}",
            model=next((item.asked.model for item in found if item.asked), ""),
            batch=Batch(times, found, is_sound=is_sound),
            path=path,
        )
        self._kept[kept.id] = self._open[kept.id] = kept
        self._note(BatchAct.CREATED, kept, now_us, requests=len(found))
        return kept

    def _accept(
        self, reader: Callable[[bytes], Asked], path: str, body: bytes
    ) -> Asked:
        """The request in *body*; raise `BadRequest` where a single call would fail."""
        asked = reader(self._provider.heeded(path, body))
        digest = hashlib.sha256(body).hexdigest()
        row = self._provider.row(digest, 0)
        trouble = self._provider.refused(row, asked, path)
        if trouble is None:
            draft = self._provider.draft(row, asked, digest)
            trouble = draft if isinstance(draft, Trouble) else None
        if trouble is not None:
            raise BadRequest(trouble.message or row.body(trouble).decode())
        return asked

    def has_room(self, more: int) -> bool:
        """Whether *more* items may wait in batches beside those that do."""
        most = self._options.batch_queue
        waiting = (
            each.batch.total - len(each.batch.ended) for each in self._open.values()
        )
        return most is None or sum(waiting) + more <= most

    def find(self, batch_id: str, now_us: int) -> Kept:
        """The batch of that id; a `Refusal` where none is shown."""
        kept = self._kept.get(batch_id)
        if kept is None or not self._is_shown(kept, now_us):
            raise Refusal(
                f"There is no batch with the id {batch_id}.", status=NOT_FOUND
            )
        return kept

    def newest(self, now_us: int) -> list[str]:
        """The ids of all batches that are shown, the last one first."""
        return [
            kept.id
            for kept in reversed(self._kept.values())
            if self._is_shown(kept, now_us)
        ]

    def _is_shown(self, kept: Kept, now_us: int) -> bool:
        """Whether whoever looks is told of a batch: not at once, if that is set."""
        shown_us = kept.batch.entered[Phase.VALIDATING] + int(
            self._options.batch_lag_seconds * 1e6
        )
        return now_us >= shown_us

    def cancel(self, batch_id: str, now_us: int) -> Kept:
        """Ask a batch to stop; a `Refusal` where it is beyond that."""
        kept = self.find(batch_id, now_us)
        if not kept.batch.cancel(now_us):
            raise Refusal(
                f"A batch that is {kept.batch.phase} cannot be cancelled.",
                status=CONFLICT,
            )
        self._note(BatchAct.CANCELLED, kept, now_us, requests=kept.batch.total)
        return kept

    def advance(self, now_us: int) -> list[Kept]:
        """Get on with all batches; those that came to their end."""
        for kept in self._open.values():
            for item in kept.batch.advance(now_us):
                if item.ending is Ending.SUCCEEDED:
                    self._succeed(kept, item)
        done = [kept for kept in self._open.values() if kept.batch.phase.is_terminal]
        for kept in done:
            del self._open[kept.id]
        return done

    def _succeed(self, kept: Kept, item: Item) -> None:
        asked = item.asked
        if asked is None:
            raise AssertionError("what is no request cannot be answered")
        row = self._provider.row(item.digest, 0)
        draft = self._provider.draft(row, asked, item.digest)
        if isinstance(draft, Trouble):
            raise AssertionError("what was accepted is answered")  # noqa: TRY004
        reply = self._provider.reply(
            row, asked, item.digest, kept.path, draft, is_batch=True
        )
        kept.replies[item.custom_id] = reply.body
        kept.tokens_in += reply.served.tokens.prompt
        kept.tokens_out += reply.served.tokens.out
        self._ledger.write(
            BatchLine(
                act=BatchAct.BILLED,
                id=kept.id,
                at_ms=item.due_us // 1000,
                custom_id=item.custom_id,
                request=item.digest,
                model=asked.model,
                half_price=True,
                **billed_fields(reply),
            )
        )

    def _note(self, act: BatchAct, kept: Kept, now_us: int, *, requests: int) -> None:
        self._ledger.write(
            BatchLine(act=act, id=kept.id, at_ms=now_us // 1000, requests=requests)
        )


def fresh(seed: int, number: int, now_us: int) -> str:
    """An id that neither this server nor an earlier one with its seed gave before."""
    return hashlib.sha256(f"{seed} {number} {now_us}".encode()).hexdigest()[:24]
