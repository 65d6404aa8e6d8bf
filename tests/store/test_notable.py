"""Items worth reading: why, in which order, and in flat memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

from runner.scorecard import Verdict
from store.notable import MOST, SHARE, NotableItems, NotableRanking

A, B = "lab/a", "lab/b"


def verdict(
    key: str, model: str, *, right: bool | None = None, **fields: object
) -> Verdict:
    """A verdict on an item; *right* None: not judged."""
    texts = {"value": "yes", "expected": "no", "rule": "read", "stage": "s"}
    return Verdict(
        **{"task": 1, "key": key, "model": model, "correct": right, **texts, **fields}
    )


def ranked(verdicts: Iterable[Verdict]) -> NotableRanking:
    items = NotableItems()
    assert len(list(items.watch(list(verdicts)))) > 0
    return items.ranking()


def reasons(verdicts: Iterable[Verdict]) -> dict[str, tuple[str, ...]]:
    return {item.key: item.reasons for item in ranked(verdicts).items}


def test_each_reason_is_said_in_words_and_the_most_telling_comes_first() -> None:
    verdicts = [
        verdict("fine", A, right=True),
        verdict("fine", B, right=True),
        verdict("unparsed", A, right=False, value="", is_unparsed=True),
        verdict("unparsed", B, right=True),
        verdict("quote", A, right=True, is_grounded=False),
        verdict("quote", B, right=True, is_grounded=True),
        verdict("disagree", A, right=True, label="x"),
        verdict("disagree", B, right=False, label="y"),
        verdict("sure", A, right=False, confidence=0.97),
        verdict("sure", B, right=None),
        verdict("all", A, right=False, label="x"),
        verdict("all", B, right=False, label="y"),
        verdict("same", A, right=False, label="x"),
        verdict("same", B, right=False, label="x"),
    ]
    assert reasons(verdicts) == {
        "same": ("both models are wrong, with the same answer",),
        "all": ("both models are wrong",),
        "sure": ("wrong with a stated confidence of 0.97", "wrong (1 of 2 answers)"),
        "disagree": ("models disagree: 1 right, 1 wrong",),
        "quote": ("quote not in the text (1 of 2 answers)",),
        "unparsed": ("unparsed (1 of 2 answers)",),
    }
    assert list(reasons(verdicts)) == [
        *("same", "all", "sure", "disagree", "quote", "unparsed")
    ]


def test_without_a_truth_different_answers_disagree() -> None:
    assert reasons(
        [
            verdict("agree", A, label="x"),
            verdict("agree", B, label="x"),
            verdict("differ", A, label="x"),
            verdict("differ", B, label="y"),
            # lists of queries are not compared
            verdict("queries", A, value="3 queries"),
            verdict("queries", B, value="4 queries"),
        ]
    ) == {"differ": ("models disagree: 2 different answers",)}


def test_an_unparsed_reply_is_no_wrong_answer() -> None:
    both = [
        verdict("k", model, right=False, value="", is_unparsed=True) for model in (A, B)
    ]
    assert reasons(both) == {"k": ("unparsed (2 of 2 answers)",)}


def test_replicates_of_one_model_can_disagree() -> None:
    verdicts = [verdict("k", A, right=True), verdict("k", A, right=False)]
    assert reasons(verdicts) == {"k": ("replicates disagree: 1 right, 1 wrong",)}


def test_parts_and_stages_of_a_key_are_items_of_their_own() -> None:
    ranking = ranked(
        [
            verdict("k", A, right=False, part="dose"),
            verdict("k", A, right=True, part="age"),
            verdict("k", A, right=False, stage="t"),
        ]
    )
    assert [(i.stage, i.part, len(i.verdicts)) for i in ranking.items] == [
        ("s", "dose", 1),
        ("t", "", 1),
    ]


def test_a_hundred_wrong_answers_leave_places_for_other_reasons() -> None:
    wrong = [verdict(f"w{n}", m, right=False) for n in range(100) for m in (A, B)]
    unparsed = [verdict(f"u{n}", A, is_unparsed=True) for n in range(3)]
    ranking = ranked([*wrong, *unparsed])
    assert len(ranking.items) == MOST
    assert ranking.counts == (("all models wrong", 100), ("unparsed", 3))
    assert {"u0", "u1", "u2"} < {item.key for item in ranking.items}
    # ties: as the plan has them
    assert [item.key for item in ranking.items][:SHARE] == [
        f"w{n}" for n in range(SHARE)
    ]


def test_places_that_no_other_reason_wants_are_filled() -> None:
    ranking = ranked(verdict(f"w{n}", A, right=False) for n in range(30))
    assert len(ranking.items) == MOST


def test_unparsed_replies_are_counted_by_model_and_reason() -> None:
    ranking = ranked(
        [
            verdict("a", A, rule="no_json", is_unparsed=True),
            verdict("b", A, rule="no_json", is_unparsed=True),
            verdict("b", B, rule="empty", is_unparsed=True),
        ]
    )
    assert [(row.model, row.reason, row.replies) for row in ranking.unparsed] == [
        (A, "no_json", 2),
        (B, "empty", 1),
    ]


def test_a_scoring_without_a_verdict_has_no_items() -> None:
    assert NotableItems().ranking() == NotableRanking()


def test_memory_does_not_grow_with_the_verdicts() -> None:
    def peak(n: int) -> int:
        items = NotableItems()
        verdicts = (verdict(f"k{k}", A, right=False, value="v" * 99) for k in range(n))
        tracemalloc.start()
        for _ in items.watch(verdicts):
            pass
        items.ranking()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(60_000) < 1.5 * peak(20_000)
