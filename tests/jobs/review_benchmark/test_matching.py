"""One record for one truth paper: as many as can be, and the included ones first.

Normal forms of identifiers and titles. The rules by which a truth paper gets its
record.
"""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.metrics import match_values
from jobs.review_benchmark.data import AgentRecord, TruthPaper
from jobs.review_benchmark.lookup import RecordListPool
from jobs.review_benchmark.matching import (
    MatchedPapers,
    Matching,
    MatchingRules,
    Method,
    Normaliser,
    RecordHit,
    RecordHits,
    lookup_keys,
    match_papers,
    one_to_one_hits,
    pmid_of,
)

PAPERS, RECORDS = 6, 6

METHODS: tuple[Method, ...] = ("pmid", "doi", "title_fuzzy")

hits = st.builds(
    RecordHit,
    index=st.integers(0, RECORDS - 1),
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


@pytest.mark.parametrize(
    ("text", "pmid"),
    [
        ("12345678", "12345678"),
        (" PMID:00012 ", "12"),
        ("PMID: 00123", "123"),
        ("123.0", "123"),
        ("0", ""),
        ("000", ""),
        ("PMC123", ""),
        (" pmc99", ""),
        ("none", ""),
        ("", ""),
        ("٣٤", ""),  # digits, but not ASCII ones
    ],
)
def test_a_pmid_is_the_first_run_of_ascii_digits(text: str, pmid: str) -> None:
    assert pmid_of(text) == pmid


@pytest.mark.parametrize(
    "text",
    [
        "10.1000/ABC",
        "  10.1000/abc ",
        "https://doi.org/10.1000/abc",
        "HTTP://DOI.ORG/10.1000/abc",
        "https://dx.doi.org/10.1000/abc",
        "dx.doi.org/10.1000/abc",
        "doi.org/ 10.1000/abc",
        "DOI: 10.1000/abc",
        "doi:10.1000/abc",
    ],
)
def test_a_doi_loses_its_resolver_and_its_capitals(text: str) -> None:
    assert Normaliser().doi(text) == "10.1000/abc"


def test_what_follows_a_doi_belongs_to_it() -> None:
    assert Normaliser().doi("10.1000/abc.") == "10.1000/abc."


def test_only_one_prefix_is_taken_from_a_doi() -> None:
    assert Normaliser().doi("doi:https://doi.org/10.1/x") == "https://doi.org/10.1/x"


def test_the_old_resolver_stays_where_it_is_asked_to() -> None:
    kept = Normaliser(strip_dx=False)
    assert kept.doi("https://dx.doi.org/10.1/X") == "https://dx.doi.org/10.1/x"
    assert kept.doi("https://doi.org/10.1/X") == "10.1/x"


@pytest.mark.parametrize(
    ("text", "blank", "deleted"),
    [
        ("Once-daily  Dosing:\ta trial.", "once daily dosing a trial", None),
        ("Élan in the élite", "élan in the élite", None),
        ("...?!", "", ""),
        ("IL-6/TNF", "il 6 tnf", "il6tnf"),
        ("snake_case stays", "snake_case stays", "snake_case stays"),
    ],
)
def test_marks_in_a_title_become_blanks_or_go(
    text: str, blank: str, deleted: str | None
) -> None:
    assert Normaliser().title(text) == blank
    if deleted is not None:
        assert Normaliser(punctuation="delete").title(text) == deleted


@given(st.text(), st.sampled_from(["blank", "delete"]))
def test_a_normal_title_is_normal_already(text: str, mark: str) -> None:
    normal = Normaliser(punctuation="blank" if mark == "blank" else "delete")
    # some letters have a lower case of two characters, one of them a mark
    once = normal.title(normal.title(text))
    assert normal.title(once) == once


LONG = "a randomised trial of timed voiding in older women with urge incontinence"


def test_a_pmid_counts_before_a_doi_that_comes_earlier() -> None:
    paper = TruthPaper(pmid="7", doi="10.1/a")
    records = [
        AgentRecord(document="1", doi="10.1/A"),
        AgentRecord(document="2", pmid="PMID 7"),
    ]
    assert _hit(paper, records) == RecordHit(index=1, method="pmid", confidence=1.0)
    found = _hit(paper, records, "single-pass")
    assert found == RecordHit(index=0, method="doi", confidence=1.0)


def test_of_one_record_the_pmid_counts() -> None:
    paper = TruthPaper(pmid="7", doi="10.1/a")
    record = AgentRecord(document="1", pmid="7", doi="10.1/a")
    found = _hit(paper, [record], "single-pass")
    assert found == RecordHit(index=0, method="pmid", confidence=1.0)


def test_the_likest_title_counts_and_of_equals_the_first() -> None:
    paper = TruthPaper(title=LONG)
    worse = AgentRecord(document="1", title=LONG.replace("older", "young"))
    best = AgentRecord(document="2", title=LONG.upper())
    records = [worse, best, best]
    assert _hit(paper, records) == RecordHit(
        index=1, method="title_fuzzy", confidence=1.0
    )
    single = _hit(paper, records, "single-pass")
    assert single is not None
    assert single.index == 0
    assert 0.85 <= single.confidence < 1.0


def test_an_exact_hit_replaces_a_title_found_before_it() -> None:
    paper = TruthPaper(title=LONG, doi="10.1/a")
    records = [
        AgentRecord(document="1", title=LONG),
        AgentRecord(document="2", doi="10.1/a"),
    ]
    found = _hit(paper, records, "single-pass")
    assert found == RecordHit(index=1, method="doi", confidence=1.0)


def test_papers_without_anything_in_common_have_no_record() -> None:
    paper = TruthPaper(title="...", pmid="0", doi=" ")
    assert _hit(paper, [AgentRecord(document="1", title="?!")]) is None


titles = st.text(alphabet="ab ", max_size=8)
ids = st.sampled_from(["", "1", "2"])
papers = st.builds(TruthPaper, pmid=ids, doi=ids, title=titles)
rows = st.lists(
    st.builds(AgentRecord, document=st.just("x"), pmid=ids, doi=ids, title=titles),
    max_size=8,
)


@given(papers, rows)
def test_both_rules_find_what_going_through_the_records_finds(
    paper: TruthPaper, records: list[AgentRecord]
) -> None:
    assert _hit(paper, records, "whole-list") == _whole_list(paper, records)
    assert _hit(paper, records, "single-pass") == _single_pass(paper, records)


def _ratio(paper: TruthPaper, record: AgentRecord) -> float:
    """As the specification has it; 0 where a title is missing."""
    truth, title = Normaliser().title(paper.title), Normaliser().title(record.title)
    if not truth or not title:
        return 0.0
    return SequenceMatcher(None, truth, title).ratio()


def _whole_list(paper: TruthPaper, records: list[AgentRecord]) -> RecordHit | None:
    for place, record in enumerate(records):
        if paper.pmid and record.pmid == paper.pmid:
            return RecordHit(index=place, method="pmid", confidence=1.0)
    for place, record in enumerate(records):
        if paper.doi and record.doi == paper.doi:
            return RecordHit(index=place, method="doi", confidence=1.0)
    ratios = [_ratio(paper, record) for record in records]
    best = max(ratios, default=0.0)
    if best < 0.85:
        return None
    return RecordHit(index=ratios.index(best), method="title_fuzzy", confidence=best)


def _single_pass(paper: TruthPaper, records: list[AgentRecord]) -> RecordHit | None:
    kept: RecordHit | None = None
    for place, record in enumerate(records):
        if paper.pmid and record.pmid == paper.pmid:
            return RecordHit(index=place, method="pmid", confidence=1.0)
        if paper.doi and record.doi == paper.doi:
            return RecordHit(index=place, method="doi", confidence=1.0)
        ratio = _ratio(paper, record)
        if kept is None and ratio >= 0.85:
            kept = RecordHit(index=place, method="title_fuzzy", confidence=ratio)
    return kept


def test_two_truth_papers_may_have_one_record_unless_claims_are_unique() -> None:
    papers = [TruthPaper(title=LONG), TruthPaper(pmid="7")]
    records = [AgentRecord(document="1", pmid="7", title=LONG)]
    hits = _matched(papers, records, MatchingRules()).hits
    assert [hit and hit.index for hit in hits] == [0, 0]
    hits = _matched(papers, records, MatchingRules(unique_claims=True)).hits
    assert [hit and hit.index for hit in hits] == [None, 0]


def _hit(
    paper: TruthPaper, records: list[AgentRecord], matching: Matching = "whole-list"
) -> RecordHit | None:
    (found,) = _matched([paper], records, MatchingRules(matching=matching)).hits
    return found


def _matched(
    papers: list[TruthPaper], records: list[AgentRecord], rules: MatchingRules
) -> MatchedPapers:
    pool = RecordListPool.of(
        records, Normaliser(), cutoff=rules.title_cutoff, autojunk=rules.autojunk
    )
    sought = [lookup_keys(paper, rules.normal) for paper in papers]
    return match_papers(sought, [pool] * len(papers), rules, range(len(records)))
