"""The rules by which a truth paper gets its record."""

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.data import AgentRecord, TruthPaper
from jobs.review_benchmark.lookup import RecordListPool
from jobs.review_benchmark.matching import (
    MatchedPapers,
    Matching,
    MatchingRules,
    Normaliser,
    RecordHit,
    lookup_keys,
    match_papers,
)

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
