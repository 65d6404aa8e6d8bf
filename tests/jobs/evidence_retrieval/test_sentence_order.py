"""Rerank calls: what they list, window by window, and the order that they end in.

Windows over a pool: which, in what order, and what they leave behind.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.parsing import Ordering
from jobs.evidence_retrieval.plan import follow_up, plan, read_rerank
from jobs.evidence_retrieval.sentence_order import (
    assessed_order,
    final_order,
    listing,
    local_order,
    moved,
    spans,
)
from runner.job import Task, TaskSpec
from runner.messages import Reply
from tests.jobs.evidence_retrieval.asked import answered, data, reason, task
from tests.jobs.evidence_retrieval.asked import task_of as of

SLEEP = ("Fine.", "I lie awake at night.", "No sleep at night.", "My job is bad.")


def follow(dataset: EvidenceDataset, asked: Task, parsed: object) -> list[TaskSpec]:
    return list(follow_up(dataset, answered(asked, Reply(text="{}"), parsed)))


LONG = {"p": tuple(f"sentence number {n}" for n in range(35))}


def windowed(**settings: Any) -> EvidenceDataset:
    return data(LONG, {"A": "number"}, tasks=("rerank",), **settings)


def backwards(n: int) -> str:
    return json.dumps({"ranking": list(range(n, 0, -1))})


def walk(dataset: EvidenceDataset, first: Task) -> list[tuple[Task, object]]:
    """All windows of a query whose answers turn the list around."""
    found: list[tuple[Task, object]] = []
    asked: Task | None = first
    while asked is not None:
        places = listing(dataset, asked).indices
        parsed = read_rerank(dataset, asked, Reply(text=backwards(len(places))))
        found.append((asked, parsed))
        specs = follow(dataset, asked, parsed)
        asked = of(specs[0], first.replicate) if specs else None
    return found


def test_windows_hand_the_order_on_to_the_front() -> None:
    dataset = windowed(order="document", first_stage="document")
    (spec,) = plan(dataset)
    answers = walk(dataset, of(spec))
    assert [asked.key for asked, _ in answers] == ["p/A#0", "p/A#1", "p/A#2"]
    order = list(range(35))
    for start in (15, 5, 0):
        order[start : start + 20] = reversed(order[start : start + 20])
    assert final_order(dataset, answers) == tuple(order)
    assert final_order(dataset, reversed(answers)) == tuple(order)
    assert final_order(dataset, answers[:2]) is None


@pytest.mark.parametrize(("n", "calls"), [(1, 1), (20, 1), (21, 2), (35, 3), (200, 19)])
def test_pools_of_any_size_end_in_a_permutation(n: int, calls: int) -> None:
    dataset = data({"p": [f"s{i}" for i in range(n)]}, {"A": "x"}, tasks=("rerank",))
    answers = walk(dataset, task("rerank", "p/A#0"))
    assert len(answers) == calls
    order = final_order(dataset, answers)
    assert order is not None
    assert sorted(order) == list(range(n))


def test_a_window_that_cannot_be_read_ends_the_chain_counted() -> None:
    dataset = windowed()
    (spec,) = plan(dataset)
    few = read_rerank(dataset, of(spec), Reply(text='{"ranking": [1, 2]}'))
    assert reason(few) == "incomplete_ranking"
    (skipped,) = follow(dataset, of(spec), few)
    assert (skipped.key, skipped.skip) == ("p/A#1", "unparsed_parent")
    assert final_order(dataset, [(of(spec), few)]) is None


def test_only_the_best_are_candidates_and_the_rest_stays_below() -> None:
    dataset = windowed(rerank_depth=4, first_stage="document")
    (spec,) = plan(dataset)
    answers = walk(dataset, of(spec))
    assert listing(dataset, answers[0][0]).indices == (0, 1, 2, 3)
    assert final_order(dataset, answers) == (3, 2, 1, 0, *range(4, 35))


def test_the_first_replicate_has_the_set_order_and_later_ones_are_shuffled() -> None:
    post, criterion = windowed().query("p/A")
    orders = {}
    for order in ("first_stage", "document", "shuffled"):
        dataset = windowed(order=order, rerank_depth=20)
        for replicate in (1, 2, 3):
            listed = listing(dataset, task("rerank", "p/A#0", replicate))
            orders[order, replicate] = listed.indices
    assert orders["first_stage", 1] == local_order(windowed(), post, criterion)[:20]
    assert orders["document", 1] == tuple(sorted(orders["first_stage", 1]))
    assert len({orders["shuffled", n] for n in (1, 2, 3)}) == 3
    for n in (2, 3):
        same = {orders[order, n] for order in ("first_stage", "document", "shuffled")}
        assert len(same) == 1
    assert {tuple(sorted(each)) for each in orders.values()} == {tuple(range(20))}


def test_the_same_candidates_are_shuffled_the_same_way_whatever_the_first_stage() -> (
    None
):
    asked = task("rerank", "b/A.1#0", replicate=2)
    lexical, in_post = (
        listing(data({"b": SLEEP}, first_stage=stage), asked).indices
        for stage in ("bm25", "document")
    )
    assert lexical == in_post


def test_a_later_window_is_listed_as_the_one_before_left_it() -> None:
    dataset = windowed(order="shuffled")
    answers = walk(dataset, task("rerank", "p/A#0", replicate=2))
    (first, parsed), (second, _), *_ = answers
    assert isinstance(parsed, Ordering)
    assert listing(dataset, second).order == listing(dataset, first).after(parsed)


def test_words_may_be_weighed_over_all_posts() -> None:
    posts = {"p": ("sleep sleep", "work"), "q": ("sleep", "sleep", "sleep", "no")}
    orders = []
    for idf in ("pool", "dataset"):
        dataset = data(posts, {"A": "sleep work"}, idf=idf)
        orders.append(local_order(dataset, *dataset.query("p/A")))
    assert orders == [(0, 1), (1, 0)]


relevances = st.dictionaries(
    st.integers(min_value=0, max_value=3), st.integers(min_value=0, max_value=100)
)


@given(relevances)
def test_every_assessment_orders_the_whole_pool(relevance: dict[int, int]) -> None:
    dataset = data({"b": SLEEP})
    post, criterion = dataset.query("b/A.1")
    order = assessed_order(dataset, post, criterion, relevance)
    assert sorted(order) == [0, 1, 2, 3]
    rates = [relevance.get(place, 0) for place in order]
    assert rates == sorted(rates, reverse=True)


def test_ties_and_unlisted_sentences_go_by_their_words_then_by_place() -> None:
    dataset = data({"b": SLEEP})
    post, criterion = dataset.query("b/A.1")
    lexically = local_order(dataset, post, criterion)
    assert assessed_order(dataset, post, criterion, {}) == lexically
    rest = [place for place in lexically if place != 0]
    assert assessed_order(dataset, post, criterion, {0: 5}) == (0, *rest)
    assert lexically[-1] == 3  # with nothing in common, as sentence 0, and after it


@pytest.mark.parametrize(
    ("n", "starts"),
    [
        (1, [0]),
        (19, [0]),
        (20, [0]),
        (21, [1, 0]),
        (30, [10, 0]),
        (35, [15, 5, 0]),
        (200, [*range(180, -1, -10)]),
    ],
)
def test_windows_go_from_the_end_to_the_front(n: int, starts: list[int]) -> None:
    found = spans(n, 20, 10)
    assert [span.start for span in found] == starts
    assert {len(span) for span in found} == {min(n, 20)}


sizes = st.integers(min_value=2, max_value=25)


@given(st.integers(min_value=1, max_value=250), sizes, st.data())
def test_windows_cover_the_pool_and_overlap(
    n: int, size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(min_value=1, max_value=size))
    found = spans(n, size, stride)
    assert {place for span in found for place in span} == set(range(n))
    for later, sooner in pairwise(found):
        assert sooner.start < later.start <= sooner.start + stride


@given(st.permutations(range(12)), st.data())
def test_an_order_stays_a_permutation_and_moves_inside_the_window_only(
    order: list[int], data: st.DataObject
) -> None:
    span = data.draw(st.sampled_from(spans(12, 5, 3)))
    places = data.draw(st.permutations(range(len(span))))
    found = moved(order, span, places)
    assert sorted(found) == list(range(12))
    assert found[: span.start] == tuple(order[: span.start])
    assert found[span.stop :] == tuple(order[span.stop :])
    assert [found[span.start + i] for i in range(5)] == [
        order[span.start + place] for place in places
    ]


def test_the_best_of_the_end_arrives_at_the_front() -> None:
    """With a perfect reader, windows of 4 by 2 bring the two best to the top."""
    order: tuple[int, ...] = tuple(range(9))
    worth = {8: 100, 7: 99}
    for span in spans(9, 4, 2):
        window = order[span.start : span.stop]
        by_worth = sorted(range(4), key=lambda at: -worth.get(window[at], 0))
        order = moved(order, span, by_worth)
    assert order[:2] == (8, 7)
