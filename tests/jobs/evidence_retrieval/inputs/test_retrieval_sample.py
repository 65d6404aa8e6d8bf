"""The shipped sample: what is in it, and where each oddity stands."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter

import pytest

from jobs.evidence_retrieval.inputs import SAMPLE, fold_sizes, load, with_sample
from jobs.evidence_retrieval.settings import EvidenceSettings

DATA = load(with_sample(EvidenceSettings.model_validate({})))
TEXTS = {s.uid: s.text for post in DATA.posts for s in post.sentences}
COMMON = ("A.1", "A.2", "A.3")

ODDITIES = {
    "post_13_0": "😀",
    "post_13_1": "|",
    "post_13_2": "=SUM(",
    "post_14_0": "ignore your instructions",
    "post_05_2": "Dr. Ash",
    "post_06_4": "712.50",
    "post_06_2": '"You look well,"',
}
"""Sentences with something that a stage, a file or a terminal could trip over."""


def positives(criterion: str) -> set[str]:
    assert DATA.gold is not None
    return {post for post, found in DATA.gold.evidence if found == criterion}


def test_its_size() -> None:
    sizes = [len(post.sentences) for post in DATA.posts]
    assert (len(sizes), min(sizes), max(sizes), sum(sizes)) == (24, 1, 30, 154)
    assert [c.id for c in DATA.criteria] == ["A.1", "A.2", "A.3", "A.10"]
    assert sum(size > DATA.settings.rerank_window for size in sizes) == 1
    assert sizes[2] == 1


def test_one_criterion_is_rare_and_the_others_hold_for_four_posts_in_ten() -> None:
    assert {c: len(positives(c)) for c in (*COMMON, "A.10")} == {
        "A.1": 9,
        "A.2": 10,
        "A.3": 8,
        "A.10": 3,
    }


def test_one_post_is_unjudged_and_nothing_else_is_noticed() -> None:
    (finding,) = DATA.findings
    assert (finding.code, finding.n, finding.example) == (
        "unjudged_posts",
        1,
        "post_19",
    )


def test_folds_are_small_and_in_some_a_criterion_has_one_class() -> None:
    assert DATA.folds is not None
    assert [size.posts for size in fold_sizes(DATA, DATA.folds)] == [5, 5, 5, 5, 4]
    classes = {
        criterion: Counter(DATA.folds[post] for post in positives(criterion))
        for criterion in (*COMMON, "A.10")
    }
    missing = {c: sorted({*"01234"} - classes[c].keys()) for c in classes}
    assert missing == {"A.1": [], "A.2": [], "A.3": ["4"], "A.10": ["2", "3"]}


@pytest.mark.parametrize(("uid", "part"), ODDITIES.items())
def test_oddities_stand_where_the_index_says(uid: str, part: str) -> None:
    assert part in TEXTS[uid]


def test_a_sentence_runs_from_right_to_left() -> None:
    letters = filter(str.isalpha, TEXTS["post_13_3"])
    assert {unicodedata.bidirectional(letter) for letter in letters} == {"R"}
    assert "post_13" in positives("A.3")


def test_a_sentence_occurs_twice_in_one_post() -> None:
    repeated = [text for text, n in Counter(TEXTS.values()).items() if n > 1]
    assert repeated == ["I phoned them six times."]
    assert TEXTS["post_10_2"] == TEXTS["post_10_3"] == repeated[0]


def test_words_of_a_criterion_are_negated_where_it_does_not_hold() -> None:
    for uid in ("post_04_1", "post_04_2", "post_12_3"):
        assert "miss" in TEXTS[uid]
        assert {"not", "never"} & set(TEXTS[uid].split())
        assert uid.rpartition("_")[0] not in positives("A.3")


def test_every_positive_names_its_sentences_and_some_name_two() -> None:
    assert DATA.gold is not None
    counts = Counter(map(len, DATA.gold.evidence.values()))
    assert set(counts) == {1, 2}


def test_the_recorded_model_answered_every_query_post_and_window() -> None:
    lines = (SAMPLE / "replies" / "rowan-8b.jsonl").read_text().splitlines()
    answered = {(each["stage"], each["key"]) for each in map(json.loads, lines)}
    queries = {
        f"{p.id}/{c.id}": len(p.sentences) for p in DATA.posts for c in DATA.criteria
    }
    assert {key for stage, key in answered if stage == "assess"} == {
        *queries,
        *(post.id for post in DATA.posts),
    }
    assert {key for stage, key in answered if stage == "rerank"} == {
        f"{key}#{window}"
        for key, n in queries.items()
        if n > 1
        for window in range(1 + (n > DATA.settings.rerank_window))
    }
