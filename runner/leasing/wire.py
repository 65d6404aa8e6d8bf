"""How it is said: a line of JSON, a list of messages, within bounds; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from runner.leasing.messages import Down, Said, Up

LONGEST_LINE: Final = 256 * 1024
"""Bytes; control lines are the longest that is ever said, and are far shorter."""

VARIABLE: Final = "SIFTLOG_BROKER_TOKEN"
"""What both sides know and nobody else; it is never written to a file or a log."""

Heard = TypeVar("Heard")

_UP: Final = msgspec.json.Decoder(list[Up])
_DOWN: Final = msgspec.json.Decoder(list[Down])


def line_of(messages: Sequence[Said]) -> bytes:
    """Everything that is to be said now, as one line."""
    return msgspec.json.encode(messages) + b"\n"


def heard_from_shard(line: bytes) -> list[Up]:
    """What a shard said; raise `ValueError` for what is nothing of the kind."""
    return _read(line, _UP)


def heard_from_broker(line: bytes) -> list[Down]:
    """What the broker said; raise `ValueError` for what is nothing of the kind."""
    return _read(line, _DOWN)


def _read(line: bytes, decoder: msgspec.json.Decoder[list[Heard]]) -> list[Heard]:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is no line of a broker's: {error}") from error
