"""The last word of a log that has come to its end: nothing of it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from store.errors import CorruptLog
from store.segments.place import Place
from store.shard import Shard

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


def finished(place: Place) -> list[Done]:
    """The logs that have come to an end, each with its last word.

    Raises:
        PlaceAway: the place cannot be read.
        CorruptLog: one of the files holds something else.
    """
    last: dict[str, Done] = {}
    for name in place.names(_FOLDER):
        data = place.get(name)
        if data is None or not name.endswith(".json"):
            continue
        try:
            done = msgspec.json.decode(data, type=Done)
        except msgspec.DecodeError as error:
            raise CorruptLog(
                f"{place.address}/{name} does not say which log came to its end "
                f"({error}): delete it, and finish that shard once more"
            ) from error
        last[done.log] = done  # names ascend, and so do ends
    return list(last.values())
