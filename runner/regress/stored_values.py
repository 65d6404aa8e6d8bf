"""Compares the parsed replies that a scoring left in `parsed/` with those of today.

They are the only record of a parsed value: events say no more than why a reply could
not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import zstandard

from runner.job import ReplyParser
from runner.score.log_answers import ParsedFolder
from runner.score.parsed_replies import PageKey, ParsedReplies


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A reply from which today's parser reads another value."""

    seq: int  #: of the reply
    stored: object  #: plain values
    now: object


@dataclass(frozen=True, slots=True)
class ComparedFolder(ParsedFolder):
    """The folder of a run: every reply is parsed again and compared with it."""

    writes: bool = False
    changes: list[ChangedValue] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)  #: values compared, by page

    def open(
        self,
        parser: ReplyParser[Any],
        key: PageKey,
        link_at: Callable[[int], bytes | None],
    ) -> ParsedReplies:
        """Open the results of a parser for comparison."""
        return _ComparedReplies(self, parser, key, link_at)


class _ComparedReplies(ParsedReplies):
    """The results of a parser by any code, beside those of today."""

    def __init__(
        self,
        folder: ComparedFolder,
        parser: ReplyParser[Any],
        key: PageKey,
        link_at: Callable[[int], bytes | None],
    ) -> None:
        self._folder = folder
        super().__init__(folder.path, parser, key, link_at, writes=False)

    def _fits(self, stored: PageKey) -> bool:
        """Return whether results are of the same replies."""
        return (stored.form, stored.last_seq) == (self._key.form, self._key.last_seq)

    def page(self, seqs: Sequence[int], parse: Callable[[], list[Any]]) -> list[Any]:
        values = parse()
        if (frame := self._next_frame()) is not None:
            # a page that is damaged, or was not kept, is no record
            with suppress(zstandard.ZstdError, msgspec.MsgspecError, MemoryError):
                self._compare(seqs, values, frame)
        return values

    def _compare(self, seqs: Sequence[int], values: list[Any], frame: bytes) -> None:
        page = self._pages.decode(self._decompress(frame))
        if page.seqs != self._names(seqs):
            return
        self._folder.pages.append(len(values))
        encoded = self._encode(values)
        if encoded == bytes(page.values):
            return
        # the parser's type may be another one today: plain values are compared
        sides = map(msgspec.msgpack.decode, (page.values, encoded))
        for seq, stored, now in zip(seqs, *sides, strict=True):
            if stored != now:
                self._folder.changes.append(ChangedValue(seq, stored, now))
