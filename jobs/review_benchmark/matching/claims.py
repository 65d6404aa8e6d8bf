"""One record for one truth paper: as many truth papers as can be get one.

A maximum bipartite matching, grown record by record along augmenting paths (Kuhn 1955).
A record that has claimed a truth paper never goes without one again, so those that
claim first are served as well as if there were no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from jobs.review_benchmark.matching.rules import Hit, Hits, Method

LEVELS: Sequence[frozenset[Method]] = (
    frozenset({"pmid"}),
    frozenset({"pmid", "doi"}),
    frozenset({"pmid", "doi", "title_fuzzy"}),
)
"""What counts, from the surest on: a title never takes what a PMID could have."""


class Claims:
    """Truth papers and the records that claim them, one by one."""

    def __init__(self, claimable: Sequence[Hits]) -> None:
        wishes: dict[int, list[tuple[int, Hit]]] = {}
        for paper, hits in enumerate(claimable):
            for hit in hits:
                wishes.setdefault(hit.place, []).append((paper, hit))
        for own in wishes.values():
            own.sort(key=lambda wish: (-wish[1].confidence, wish[0]))
        self._wishes: Mapping[int, Sequence[tuple[int, Hit]]] = wishes
        self._holder: dict[int, int] = {}  # the record of each truth paper
        self._held: dict[int, int] = {}  # the truth paper of each record

    def __len__(self) -> int:
        return len(self._holder)

    @property
    def places(self) -> Collection[int]:
        """The records that have a truth paper."""
        return self._held.keys()

    def add(self, place: int, methods: frozenset[Method] = LEVELS[-1]) -> bool:
        """Let one more record claim a truth paper.

        Args:
            place: of the record; one that has a truth paper already keeps it.
            methods: by which it and those that make room for it may be matched.

        Returns:
            Whether one more truth paper is served.
        """
        if place in self._held:
            return False
        came_from: dict[int, int] = {}
        waiting = deque([place])
        while waiting:
            record = waiting.popleft()
            for paper, hit in self._wishes.get(record, ()):
                if paper in came_from or hit.method not in methods:
                    continue
                came_from[paper] = record
                holder = self._holder.get(paper)
                if holder is None:
                    self._hand_over(paper, came_from)
                    return True
                waiting.append(holder)
        return False

    def hits(self) -> Mapping[int, Hit]:
        """The record of each truth paper that has one."""
        return {
            paper: hit
            for paper, place in self._holder.items()
            for wanted, hit in self._wishes[place]
            if wanted == paper
        }

    def _hand_over(self, paper: int, came_from: Mapping[int, int]) -> None:
        """Give a free paper to the record that reached it, and its own one on."""
        at: int | None = paper
        while at is not None:
            record = came_from[at]
            before = self._held.get(record)
            self._holder[at] = record
            self._held[record] = at
            at = before


def claimed(
    claimable: Sequence[Hits], included: Collection[int]
) -> tuple[Hit | None, ...]:
    """The record of each truth paper, where one record may serve one of them only.

    Args:
        claimable: of each truth paper, the records that `any_record` finds.
        included: places of the included records; as many of them as can be are used.
    """
    claims = Claims(claimable)
    places = sorted({hit.place for hits in claimable for hit in hits})
    groups: Iterable[Sequence[int]] = (
        [place for place in places if place in included],
        [place for place in places if place not in included],
    )
    for group in groups:
        for methods in LEVELS:
            for place in group:
                claims.add(place, methods)
    hits = claims.hits()
    return tuple(hits.get(paper) for paper in range(len(claimable)))
