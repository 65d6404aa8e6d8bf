"""Keeps parsed replies beside a run, so that the next scoring parses none again.

`RUN/parsed/NAME` holds the results of one parser, in the order in which a scoring reads
answers. It is a cache: deleting it changes nothing but the time of the next scoring.

It is used if its key is that of the scoring: the parser's source, the part of the data
set that it reads, and a link of the log's hash chain, which stands for the bytes of all
replies before it. Each page also names the events of its replies. A page that does not
match, is damaged or missing is parsed again, and the file is then replaced as a whole.
Two scorings at a time write a file each, and the last one stays.
"""

from __future__ import annotations

import os
import struct
import tempfile
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import msgspec
import zstandard

from runner.job import ReplyParser
from runner.job_faults import PARSER_ERROR

FOLDER: Final = "parsed"
"""Name of the folder in a run."""

_FORM: Final = 1
_LENGTH: Final = struct.Struct("<I")


class PageKey(msgspec.Struct, frozen=True, array_like=True):
    """Identity of the results in a file, besides the events that its pages name."""

    form: int
    parser: str  #: hash of the parser's source and of what it reads
    last_seq: int  #: replies up to this event may be stored
    link: bytes  #: of the log's hash chain at that event


def page_key(parser_hash: str, last_seq: int, link: bytes) -> PageKey:
    """Return the key of results that may be stored now."""
    return PageKey(form=_FORM, parser=parser_hash, last_seq=last_seq, link=link)


class _Page(msgspec.Struct, array_like=True):
    seqs: bytes  #: events of the replies, as packed integers
    values: msgspec.Raw


class ParsedReplies:
    """The results of one parser, read and written page by page in one pass.

    Args:
        folder: of the results.
        parser: whose results they are.
        key: of the results that may be stored.
        link_at: returns the link of the log's chain at an event, None if none ends
            there: a file of an earlier state of the same log is valid.
        writes: False: read only.
    """

    def __init__(
        self,
        folder: Path,
        parser: ReplyParser[Any],
        key: PageKey,
        link_at: Callable[[int], bytes | None],
        *,
        writes: bool,
    ) -> None:
        self._path = folder / parser.name
        self._key = key
        self._writes = writes
        self._values: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(
            list[parser.result | None]  # type: ignore[name-defined]
        )
        self._pages = msgspec.msgpack.Decoder(_Page)
        self._encode = msgspec.msgpack.Encoder().encode
        self._compress = zstandard.ZstdCompressor(level=1, write_checksum=True).compress
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._source = self._opened(link_at)
        self._valid_bytes = (
            self._source.tell() if self._source else 0
        )  #: bytes still valid
        self._draft: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._source is not None:
            if kind is None and self._draft is None and self._source.read(1):
                self._begin()  # pages follow that this log no longer has
            self._source.close()
        if self._draft is not None:
            with suppress(OSError):
                self._draft.close()
                if kind is None:
                    os.replace(self._draft.name, self._path)  # noqa: PTH105
                else:
                    os.unlink(self._draft.name)  # noqa: PTH108

    def page(self, seqs: Sequence[int], parse: Callable[[], list[Any]]) -> list[Any]:
        """Return the results of the next page of replies.

        Args:
            seqs: events of the replies.
            parse: parses them; called if no stored page has exactly these replies.
        """
        names = self._names(seqs)
        frame = self._next_frame()
        values = None if frame is None else self._stored(frame, names)
        if values is not None and frame is not None:
            if self._draft is None:
                self._valid_bytes += _LENGTH.size + len(frame)
            else:
                self._write(frame)
            return values
        if self._draft is None and self._writes:
            self._begin()
        values = parse()
        if self._draft is not None:
            self._write(self._frame(seqs, names, values))
        return values

    def _opened(self, link_at: Callable[[int], bytes | None]) -> BinaryIO | None:
        """Open the stored file after its key; None if it is missing or another's."""
        try:
            source = self._path.open("rb")
        except OSError:
            return None
        self._source = source
        self._bytes = os.fstat(source.fileno()).st_size
        frame = self._next_frame()
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            stored = msgspec.msgpack.decode(frame or b"", type=PageKey)
            if self._fits(stored) and link_at(stored.last_seq) == stored.link:
                return source
        source.close()
        return None

    def _fits(self, stored: PageKey) -> bool:
        """Return whether results with this key are those of the parser."""
        return (stored.form, stored.parser) == (self._key.form, self._key.parser) and (
            stored.last_seq <= self._key.last_seq
        )

    @staticmethod
    def _names(seqs: Sequence[int]) -> bytes:
        return array("q", seqs).tobytes()

    def _next_frame(self) -> bytes | None:
        if self._source is None:
            return None
        try:
            head = self._source.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return None
            (length,) = _LENGTH.unpack(head)
            frame = self._source.read(min(length, self._bytes))
        except OSError:
            return None
        return frame if len(frame) == length else None

    def _stored(self, frame: bytes, names: bytes) -> list[Any] | None:
        """Return the results in a frame; None unless they are of these replies."""
        try:
            page = self._pages.decode(self._decompress(frame))
            return self._values.decode(page.values) if page.seqs == names else None
        except (
            zstandard.ZstdError,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            MemoryError,
        ):
            return None

    def _frame(self, seqs: Sequence[int], names: bytes, values: list[Any]) -> bytes:
        """Return the frame of a page; an empty one if it must be parsed each time."""
        is_stable = all(seq <= self._key.last_seq for seq in seqs)
        encoded = self._encode(values)
        # exceptions in parsers are counted anew by each scoring
        if not is_stable or PARSER_ERROR.encode() in encoded:
            names, encoded = b"", self._encode([])
        page = _Page(seqs=names, values=msgspec.Raw(encoded))
        return self._compress(self._encode(page))

    def _begin(self) -> None:
        """Begin a new file with the pages of the stored one that were valid."""
        if not self._writes:
            return
        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            number, name = tempfile.mkstemp(prefix=".", dir=self._path.parent)
            os.close(number)
            self._draft = Path(name).open("wb")  # noqa: SIM115 - closed by __exit__
            self._write(self._encode(self._key))
            if self._source is not None:
                at = self._source.tell()
                self._source.seek(0)
                self._next_frame()
                pages = self._source.tell()
                left = self._valid_bytes - pages
                while left and (block := self._source.read(min(left, 1 << 20))):
                    self._draft.write(block)
                    left -= len(block)
                self._source.seek(at)

    def _write(self, frame: bytes) -> None:
        """Append a frame; give up the new file if the disk refuses it."""
        draft = self._draft
        if draft is None:
            return
        try:
            draft.write(_LENGTH.pack(len(frame)))
            draft.write(frame)
        except OSError:
            self._writes, self._draft = False, None
            with suppress(OSError):
                draft.close()
                os.unlink(draft.name)  # noqa: PTH108
