"""What batches and their items are called: made from what they hold, and nothing else.

A provider keeps a batch's key with the batch, or, where it keeps nothing of ours, in
the ids of the items, which begin with it. A process that finds a batch again thus knows
whose it is, and what is in it, without having been there when it was made.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

LONGEST: Final = 64
"""Characters of an item's id (Anthropic; of [A-Za-z0-9_-])."""


class Asked(NamedTuple):
    """An attempt that is to go into a batch."""

    task: int
    attempt: int
    request: str  #: hash of what is asked, hex


def run_tag(run_id: str) -> str:
    """The beginning of the keys of all batches of a run."""
    return f"siftlog-{_digest([run_id], size=4)}"


def batch_key(tag: str, model: str, asked: Iterable[Asked], prepared_us: int) -> str:
    """The key of the batch of a run that asks this, and was prepared then.

    Attempts count: what is asked again after a batch expired is another batch. So does
    the time: a log that begins anew, after one was lost, counts attempts anew.
    """
    words = (f"{each.task} {each.attempt} {each.request}" for each in asked)
    return f"{tag}-{_digest([model, str(prepared_us), *words], size=8)}"


def item_id(key: str, asked: Asked) -> str:
    """What a task is called in a batch.

    >>> item_id("siftlog-0a1b2c3d-0123456789abcdef", Asked(7, 2, "feed" * 16))
    'siftlog-0a1b2c3d-0123456789abcdef-7-feedfeedfeedfeed'
    """
    return f"{key}-{asked.task}-{digest_of(asked.request)}"


def digest_of(request: str) -> str:
    """What an item's id tells of the hash of what it asks: its first 64 bits."""
    return request[:16]


def key_of(item: str) -> str:
    """The key that an item's id begins with."""
    return item.rsplit("-", 2)[0]


def request_of(item: str) -> str:
    """What an item's id tells of what it asks; see `digest_of`."""
    return item.rsplit("-", 1)[-1]


def _digest(words: Iterable[str], *, size: int) -> str:
    digest = blake2b(digest_size=size)
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()
