"""The last word of a log that has come to its end: nothing of it is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from store.segments.place import Place
from store.shard import Shard
from store.verify import silent

_FOLDER: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A log that was carried whole, as far as it went."""

    log: str  #: its id, in hex
    run_id: str
    shard: Shard | None  #: what it planned; None: a whole run
    last_seq: int
    link: str  #: of its last commit, in hex

    @property
    def name(self) -> str:
        """Where it is kept: a log that was taken up again ends more than once."""
        return f"{_FOLDER}/{self.log}-{self.last_seq:012}.json"

    def encoded(self) -> bytes:
        """As it is kept."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


def finished(place: Place, tell: Callable[[str], None] = silent) -> list[Done]:
    """The logs that have come to an end, each with its last word.

    Args:
        place: where they are kept.
        tell: hears of each file that cannot be read, and is passed over.

    Raises:
        PlaceAway: the place cannot be read.
    """
    last: dict[str, Done] = {}
    for name in place.names(_FOLDER):
        data = place.get(name)
        if data is None or not name.endswith(".json"):
            continue
        try:
            done = msgspec.json.decode(data, type=Done)
        except msgspec.DecodeError as error:
            tell(
                f"{place.address}/{name} does not say which log came to its end "
                f"({error}): delete it, and start that shard once more"
            )
            continue
        last[done.log] = done  # names ascend, and so do ends
    return list(last.values())
