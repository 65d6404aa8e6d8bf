"""Drafts from the other papers: as if each paper was left out and all done anew."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.mismatch.candidates import Mismatch, draft, near, review
from jobs.property_extraction.mismatch.crossfit import crossfitted

NAMES = st.frozensets(st.sampled_from(["a", "ab", "abc", "b", "cb", "T1"]), max_size=5)
PAPERS = st.dictionaries(
    st.sampled_from(["P1", "P2", "P3", "P4"]), st.tuples(NAMES, NAMES), max_size=4
)


@given(PAPERS, st.integers(1, 3), st.integers(1, 6))
def test_each_paper_has_the_draft_of_the_others(
    papers: dict[str, tuple[frozenset[str], frozenset[str]]], k: int, top: int
) -> None:
    found = {
        refno: list(near(Mismatch(refno=refno, predicted=own[0], missed=own[1]), k))
        for refno, own in papers.items()
    }
    made = defaultdict(dict)
    for entry in crossfitted(found, k=k, top=top, canonical={"T1"}).entries:
        assert entry.is_draft
        made[entry.refno][entry.pred_name] = entry.gt_name
    for refno in papers:
        others = [found[other] for other in papers if other != refno]
        assert made[refno] == draft(review(others, k, top, {"T1"}))
