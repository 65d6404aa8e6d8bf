"""What earlier processes of a run leave to whoever places its shards next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.control.listen import waiting
from runner.control.standing import KINDS, LimitsChange, standing
from store.control import ALL
from store.database import open_reader
from store.read.tasks import events
from store.read.usage import Spending, spending
from store.runs import RunFolder

NOTHING_SPENT = Spending(
    spent_pico=0, possible_pico=0, in_flight_pico=0, cap_pico=None, is_whole=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A run, as it stands before it goes on."""

    money: Spending = NOTHING_SPENT
    limits: Sequence[LimitsChange] = ()  #: that were asked for, in order
    waiting: frozenset[str] = frozenset()  #: requests without an answer, by id


def past_of(folder: RunFolder) -> Past:
    """What the union of a run knows; nothing, of a run that begins."""
    if not folder.log.exists():
        return Past()
    with open_reader(folder.log) as reader:
        return Past(
            money=spending(reader),
            limits=standing(events(reader, limit=ALL, kinds=KINDS)),
            waiting=frozenset(request.id for request in waiting(folder)),
        )
