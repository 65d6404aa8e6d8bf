"""One record for one truth paper: as many as can be, and the included ones first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.metrics import match_values
from jobs.review_benchmark.matching import (
    Method,
    RecordHit,
    RecordHits,
    one_to_one_hits,
)

PAPERS, RECORDS = 6, 6

METHODS: tuple[Method, ...] = ("pmid", "doi", "title_fuzzy")

hits = st.builds(
    RecordHit,
    place=st.integers(0, RECORDS - 1),
    method=st.sampled_from(METHODS),
    confidence=st.sampled_from([0.85, 0.9, 1.0]),
)
graphs = st.lists(
    st.lists(hits, max_size=RECORDS, unique_by=lambda hit: hit.index).map(tuple),
    max_size=PAPERS,
)


@given(graphs, st.sets(st.integers(0, RECORDS - 1)))
def test_as_many_papers_as_can_be_have_a_record_and_included_ones_are_used_first(
    graph: list[RecordHits], included: set[int]
) -> None:
    found = one_to_one_hits(graph, included)
    places = [hit.index for hit in found if hit is not None]
    assert len(set(places)) == len(places)
    assert all(hit is None or hit in own for hit, own in zip(found, graph, strict=True))
    assert len(places) == _most(graph, set(range(RECORDS)))
    assert sum(place in included for place in places) == _most(graph, included)


def test_a_title_does_not_take_what_a_pmid_could_have() -> None:
    by_title = RecordHit(index=0, method="title_fuzzy", confidence=1.0)
    other = RecordHit(index=1, method="title_fuzzy", confidence=0.9)
    by_pmid = RecordHit(index=0, method="pmid", confidence=1.0)
    assert one_to_one_hits([(by_title, other), (by_pmid,)], {0, 1}) == (other, by_pmid)
    assert one_to_one_hits([(by_title,), (by_pmid,)], {0}) == (None, by_pmid)


def test_a_chain_of_papers_moves_on_to_make_room() -> None:
    length = 2_000

    def could_be(place: int) -> RecordHit:
        return RecordHit(index=place, method="title_fuzzy", confidence=0.9)

    # each record goes to its first wish until the last one has nothing else
    graph = [(could_be(at), could_be(at + 1)) for at in range(length)]
    assert None not in one_to_one_hits(graph, {length})


def _most(graph: list[RecordHits], places: set[int]) -> int:
    """The size of a largest matching with some of the records."""
    known = [{hit.index for hit in own} & places for own in graph]
    return len(match_values(known, sorted(places), lambda own, place: place in own))
