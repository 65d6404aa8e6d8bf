"""Answers that compare a conclusion: used, missed, or about another one.

What a model plans becomes words to search, never syntax.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark import plan
from jobs.review_benchmark.data import SearchQuery, expression
from jobs.review_benchmark.database.reader import SCHEMA, SQL
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.rebuilt_reviews import AgentConclusion
from jobs.review_benchmark.requests import conclusion_from_context
from jobs.review_benchmark.search import fuse_rankings
from jobs.review_benchmark.search_replies import TruthVectors, read_comparisons
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.job import Answer, TaskSpec
from runner.messages import Vectors
from tests.jobs.review_benchmark.small_review import REVIEW, answer, task
from tests.replacing import replace

REVIEWS = tuple(replace(REVIEW, id=f"CD{n}", conclusion=f"No. {n}.") for n in range(4))
SAID = AgentConclusion(text="It helps.")
VERDICTS: Mapping[str, str | None] = {
    "same": '{"similarity": 90, "direction": "same"}',
    "unread": "Quite alike.",
    "failed": None,
}


def data(verdict: str) -> ReviewDataset:
    settings = {"verdict": verdict, "null_pairs": 3}
    return ReviewDataset(
        settings=ReviewBenchmarkSettings.model_validate(settings), reviews=REVIEWS
    )


def asked(dataset: ReviewDataset, said: str = SAID.text) -> list[TaskSpec]:
    return list(plan.comparison_tasks(dataset, REVIEWS[0], said, "m/x"))


@given(
    st.lists(st.sampled_from(["none", *VERDICTS]), min_size=4, max_size=4),
    st.integers(0, 4),
)
def test_each_answer_of_a_judge_is_used_once_or_counted(
    given_: list[str], others: int
) -> None:
    dataset = data("judge")
    specs = asked(dataset)
    family = [
        answer(dataset, spec, VERDICTS[kind])
        for spec, kind in zip(specs, given_, strict=True)
        if kind != "none"
    ]
    earlier = asked(dataset, "It harms.")[:others]
    family += [answer(dataset, spec, VERDICTS["same"]) for spec in earlier]
    found = read_comparisons(dataset, REVIEWS[0], "m/x", SAID, family)
    assert (found.missing, found.stale) == (given_.count("none"), others)
    assert set(found.concluded.judged) == {
        conclusion_from_context(spec.context).truth
        for spec, kind in zip(specs, given_, strict=True)
        if kind == "same"
    }
    # what is said of its own authors alone is why there is no verdict
    reasons = {"none": "open", "unread": "no_similarity", "failed": "server_error"}
    assert found.concluded.failure == reasons.get(given_[0], "")


def test_without_a_conclusion_every_comparison_is_of_another_one() -> None:
    dataset = data("judge")
    family = [answer(dataset, spec, VERDICTS["same"]) for spec in asked(dataset)]
    nothing = AgentConclusion(failure="nothing_included")
    found = read_comparisons(dataset, REVIEWS[0], "m/x", nothing, family)
    assert (found.concluded, found.missing, found.stale) == (nothing, 0, 4)


def test_vectors_are_taken_from_whoever_has_a_readable_one() -> None:
    dataset = data("embedding")
    (spec,) = asked(dataset)
    own = vector(spec, [1.0, 2.0])
    assert read_comparisons(
        dataset, REVIEWS[0], "m/x", SAID, [own]
    ).concluded.vector == (
        1.0,
        2.0,
    )
    truths = TruthVectors(dataset=dataset, replicates=2)
    first, second, *_ = plan.truth_vectors(dataset)
    for each in (
        vector(first, []),
        vector(first, [3.0]),
        vector(second, [4.0]),
        vector(second, [5.0]),
        vector(replace(first, key="CD0#earlier"), [6.0]),
    ):
        truths.add([each])
    assert truths.vectors == {"CD0": (3.0,), "CD1": (4.0,)}
    # four truths twice, of which four answers are there
    assert (truths.missing, truths.stale) == (4, 1)


def vector(spec: TaskSpec, numbers: list[float]) -> Answer:
    return Answer(task=task(spec), reply=Vectors.of([numbers]))


terms = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [
                '"',
                "*",
                "a*",
                "NEAR(a b)",
                "title: x",
                "-x",
                'un"balanced',
                "^a",
                "(",
                "+",
            ]
        ),
    ),
    max_size=4,
)


def test_groups_are_joined_by_and_synonyms_by_or() -> None:
    query = SearchQuery(
        label="x",
        all_of=(("oxybutynin",), ("once daily", "controlled release")),
        none_of=("children",),
    )
    assert expression(query) == (
        '((("oxybutynin") AND ("once daily" OR "controlled release")) NOT ("children"))'
    )


@pytest.mark.parametrize(
    ("term", "quoted"),
    [
        ('the "best" care', '"the ""best"" care"'),
        ("randomi*", '"randomi"*'),
        ("*", ""),
        ("- ?", ""),
        ("one two three four five six seven eight nine", None),
    ],
)
def test_a_term_is_a_phrase_of_at_most_eight_words(
    term: str, quoted: str | None
) -> None:
    found = expression(SearchQuery(label="x", all_of=((term,),)))
    if quoted is None:
        assert "eight" in found
        assert "nine" not in found
    else:
        assert found == (f"(({quoted}))" if quoted else "")


@given(st.lists(terms, max_size=10), terms)
def test_whatever_a_model_says_can_be_searched(
    groups: list[list[str]], none_of: list[str]
) -> None:
    query = SearchQuery(
        label="x", all_of=tuple(map(tuple, groups)), none_of=tuple(none_of)
    )
    asked = expression(query)
    if asked:
        connection = sqlite3.connect(":memory:")
        connection.executescript(SCHEMA)
        assert connection.execute(SQL["n_hits"], (asked,)).fetchone() == (0,)
        connection.close()


def test_ranks_are_fused_and_ties_go_by_id() -> None:
    assert fuse_rankings([[5, 3], [3, 5], [9]]) == [3, 5, 9]
    assert fuse_rankings([[9], [5, 3], [3, 5]]) == [3, 5, 9]
    assert fuse_rankings([]) == []
