"""Candidates for aliases: by spelling, by value, in an order that is fixed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.candidates import (
    AliasCandidate,
    PaperMismatch,
    PredictionExample,
    alias_candidates,
    draft_targets,
    near_names,
    review_candidates,
    similarity,
)


def mismatch(
    predicted: str, missed: str, refno: str = "P1", **hits: dict[tuple[str, str], int]
) -> PaperMismatch:
    return PaperMismatch(
        refno=refno,
        predicted=frozenset(predicted.split()),
        missed=frozenset(missed.split()),
        **hits,
    )


def found(*papers: PaperMismatch, k: int = 3) -> tuple[AliasCandidate, ...]:
    return alias_candidates([list(near_names(paper, k)) for paper in papers])


def pairs(made: tuple[AliasCandidate, ...]) -> list[tuple[str, str]]:
    return [(each.pred_name, each.gt_name) for each in made]


def test_each_wrong_name_has_its_most_similar_targets_and_ties_go_by_name() -> None:
    made = found(mismatch("abcd", "abzz zzab abcz abcy zzzz"), k=3)
    assert pairs(made) == [("abcd", "abcy"), ("abcd", "abcz"), ("abcd", "abzz")]
    assert [each.rank for each in made] == [1, 2, 3]
    assert {each.clash for each in made} == {3}


def test_pairs_of_most_papers_come_first_and_then_the_most_similar() -> None:
    made = found(
        mismatch("ab xy", "abc", "P1"),
        mismatch("xy", "abc", "P2"),
        mismatch("qa", "abc", "P3"),
    )
    assert pairs(made) == [("xy", "abc"), ("ab", "abc"), ("qa", "abc")]
    assert [each.count for each in made] == [2, 1, 1]


def test_a_pair_that_values_speak_for_joins_with_the_rank_that_it_has() -> None:
    hits = {("abcd", "zzzz"): 2, ("abcd", "abcz"): 1}
    paper = mismatch("abcd", "abcz abzz zzzz", value_hits=hits)
    made = found(paper, k=1)
    assert [(each.gt_name, each.rank, each.value_hits) for each in made] == [
        ("abcz", 1, 1),
        ("zzzz", 3, 2),
    ]
    assert pairs(review_candidates([near_names(paper, 1)], k=1, top=9)) == [
        ("abcd", "abcz")
    ]


def test_a_paper_without_wrong_or_without_missed_names_has_no_candidates() -> None:
    assert found(mismatch("", "a"), mismatch("a", "")) == ()


def test_a_right_name_is_looked_at_and_never_drafted_unless_all_are_kept() -> None:
    papers = [list(near_names(mismatch("T1 a", "T1 T2"), 3))]
    reviewed = review_candidates(papers, k=3, top=200, canonical={"T1", "T2"})
    assert ("T1", "T1") in pairs(reviewed)
    assert draft_targets(reviewed) == {"a": "T1"}
    assert draft_targets(reviewed, "keep") == {"T1": "T1", "a": "T1"}


def test_the_draft_has_the_first_target_of_the_rows_that_are_looked_at() -> None:
    papers = [list(near_names(mismatch("b a", "a1 b1 c1"), 3))]
    assert draft_targets(review_candidates(papers, k=3, top=2)) == {
        "a": "a1",
        "b": "b1",
    }
    assert list(draft_targets(review_candidates(papers, k=3, top=200))) == ["a", "b"]


def test_examples_are_three_at_most_and_belong_to_the_predicted_name() -> None:
    stated = {"a": [PredictionExample(value=str(n)) for n in range(5)]}
    (made,) = alias_candidates([near_names(mismatch("a", "b"), 3)], examples=stated)
    assert [example.value for example in made.examples] == ["0", "1", "2"]


WORDS = st.frozensets(st.text(alphabet="abcİ ", min_size=1, max_size=6), max_size=9)


@settings(max_examples=60)
@given(WORDS, WORDS, st.integers(1, 4), st.data())
def test_what_is_found_is_what_sorting_every_pair_finds(
    predicted: frozenset[str], missed: frozenset[str], k: int, data: st.DataObject
) -> None:
    hits = {}
    if predicted and missed:
        pair = st.tuples(
            st.sampled_from(sorted(predicted)), st.sampled_from(sorted(missed))
        )
        hits = data.draw(st.dictionaries(pair, st.integers(0, 2), max_size=4))
    paper = PaperMismatch(
        refno="P1", predicted=predicted, missed=missed, value_hits=hits
    )
    wanted = []
    for name in sorted(predicted):
        ranked = sorted(missed, key=lambda gt: (-similarity(name, gt), gt))
        wanted += [
            (name, gt, rank, similarity(name, gt), hits.get((name, gt), 0))
            for rank, gt in enumerate(ranked, start=1)
            if rank <= k or hits.get((name, gt))
        ]
    seen = [
        (n.pred_name, n.gt_name, n.rank, n.similarity, n.value_hits)
        for n in near_names(paper, k)
    ]
    assert seen == wanted
