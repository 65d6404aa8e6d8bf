"""Conclusions of agents beside those of the authors, whatever compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from jobs.review_benchmark.data import Agreement, JudgedSimilarity, Review, Vector
from jobs.review_benchmark.inputs import ConclusionLabel, ReviewDataset
from jobs.review_benchmark.matching import MatchedPapers
from jobs.review_benchmark.rebuilt_reviews import (
    AgentConclusion,
    RebuiltReview,
    ReviewPredictions,
)
from jobs.review_benchmark.results import not_available, verdict_findings
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.summary import verdict_blocks
from jobs.review_benchmark.tables import VERDICTS, verdict_tables
from jobs.review_benchmark.verdicts import (
    ConclusionVerdicts,
    judge_conclusions,
    verdict_metrics,
)
from store.document import as_text
from tests.jobs.review_benchmark.small_review import REVIEW

TOPICS = ("asthma", "burns", "croup", "dementia", "eczema", "fractures")
BOILERPLATE = "The evidence is of low certainty and further trials are needed."


def reviews(*conclusions: str) -> tuple[Review, ...]:
    return tuple(
        replace(REVIEW, id=f"CD{n}", conclusion=conclusion)
        for n, conclusion in enumerate(conclusions, start=1)
    )


def told(
    truths: Sequence[Review],
    said: Mapping[str, Sequence[AgentConclusion]],
    *,
    labels: tuple[ConclusionLabel, ...] = (),
    vectors: Mapping[str, Vector] | None = None,
    imported: bool = False,
    **settings: object,
) -> ConclusionVerdicts:
    """The verdicts of one agent."""
    dataset = ReviewDataset(
        settings=ReviewBenchmarkSettings.model_validate(settings),
        reviews=tuple(truths),
        labels=labels,
    )
    sheet = ReviewPredictions(
        reviews=tuple(truths),
        models=("m",),
        rebuilt=tuple(
            RebuiltReview(
                review=review,
                model="m",
                matched=MatchedPapers(hits=(), serving=(), claimable=()),
                documents={},
                records={},
                included=(),
                candidates=(),
                conclusions=tuple(conclusions),
            )
            for review, conclusions in said.items()
        ),
        imported=imported,
        vectors=vectors or {},
    )
    (found,) = judge_conclusions(dataset, sheet)
    return found


def values(found: ConclusionVerdicts) -> dict[str, float | None]:
    return {
        each.path: each.value
        for each in verdict_metrics(found, ReviewBenchmarkSettings())
    }


def text(said: str) -> tuple[AgentConclusion, ...]:
    return (AgentConclusion(text=said),)


def judged(similarity: float, direction: Agreement = "same") -> AgentConclusion:
    """What a judge makes of a conclusion beside CD1's."""
    likeness = JudgedSimilarity(similarity=similarity, direction=direction)
    return AgentConclusion(text="Said.", judged={"CD1": likeness})


def test_sister_reviews_with_boilerplate_are_named_and_draw_no_line_alone() -> None:
    truths = reviews(
        *(f"{topic.title()} heals." for topic in TOPICS),
        f"Salt for vertigo. {BOILERPLATE}",
        f"Diet for vertigo. {BOILERPLATE}",
    )
    found = told(truths, {own.id: text(own.conclusion) for own in truths})
    assert found.threshold is not None
    # one pair of 28 is alike: the line stays below it, and the reader is told
    assert list(found.similar_reviews) == [("CD7", "CD8")]
    assert found.threshold.value < found.similar_reviews["CD7", "CD8"] < 1
    assert all(found.is_similar(own.id) for own in truths)
    assert "Most similar: CD7 and CD8 (" in as_text(verdict_blocks([found]))
    dataset = ReviewDataset(settings=ReviewBenchmarkSettings(), reviews=truths)
    (finding,) = verdict_findings(dataset, [found])
    assert (finding.n, finding.example) == (1, "CD7 and CD8")


def test_an_agent_that_always_says_the_same_is_told_from_nothing() -> None:
    truths = reviews(*(f"Care of {topic}. {BOILERPLATE}" for topic in TOPICS))
    found = told(truths, {own.id: text(BOILERPLATE) for own in truths})
    assert len(found.mismatched) == 30
    assert found.auroc == 0.5
    assert found.threshold is not None
    assert not any(found.is_similar(own.id) for own in truths)
    assert not any(found.passes(own.id) for own in truths)


def test_a_line_at_nothing_in_common_calls_no_reviews_alike() -> None:
    truths = reviews(*(f"Care of {topic}. {BOILERPLATE}" for topic in TOPICS))
    found = told(truths, {own.id: text("Zebras vanish.") for own in truths})
    assert found.threshold is not None
    assert found.threshold.value == 0
    assert not found.similar_reviews
    assert not any(found.passes(own.id) for own in truths)


def test_what_has_no_conclusion_to_compare_with_is_left_out_and_said() -> None:
    truths = reviews("Walking helps.", "", "Singing helps.")
    said = {
        "CD1": text("Walking helps."),
        "CD2": text("Anything."),
        "CD3": (AgentConclusion(failure="nothing_included"),),
    }
    found = told(truths, said, verdict="tfidf")
    assert found.compared == {"CD1": 1.0}
    assert [match.failure for match in found.matches.values()] == [
        "",
        "no_truth_conclusion",
        "nothing_included",
    ]
    # whoever concludes about a review without a truth is mismatched with others
    assert set(found.mismatched) == {("CD1", "CD3"), ("CD2", "CD1"), ("CD2", "CD3")}
    assert found.threshold is None
    assert found.passes("CD1") is None
    numbers = values(found)
    assert (numbers["verdict.similarity"], numbers["verdict.passed"]) == (1.0, None)
    lines = " ".join(as_text(verdict_blocks([found])).split())
    assert "it takes 20 mismatched pairs, and there are 3" in lines
    table, _ = verdict_tables([found], truths)
    place = VERDICTS.names.index("reason")
    reasons = [row.cells[place] for row in table]
    assert reasons == [None, "no_truth_conclusion", "nothing_included"]


@pytest.mark.parametrize(
    ("conclusions", "similarity", "passes", "opposite"),
    [
        ([judged(0.7)], 0.7, True, 0),
        ([judged(0.6)], 0.6, True, 0),
        ([judged(0.59)], 0.59, False, 0),
        ([judged(1.0, "opposite")], 1.0, False, 1),
        # no similarity passes what the judge does not call the same
        ([judged(1.0, "different")], 1.0, False, 0),
        ([judged(1.0, "unclear")], 1.0, None, 0),
        ([judged(0.1, "unclear")], 0.1, False, 0),
        # of replicates the mean counts, and the direction of half of them
        (
            [judged(0.5), AgentConclusion(failure="no_conclusion"), judged(0.9)],
            0.7,
            True,
            0,
        ),
        ([judged(1.0, "opposite"), judged(1.0)], 1.0, False, 1),
        ([judged(1.0, "opposite"), judged(1.0), judged(1.0)], 1.0, True, 0),
    ],
)
def test_an_opposite_direction_fails_whatever_the_number(
    conclusions: list[AgentConclusion],
    similarity: float,
    passes: bool | None,
    opposite: int,
) -> None:
    truths = reviews("Walking helps.", "Singing helps.", "Rest helps.")
    others = {
        review: [
            AgentConclusion(
                text="Said.", judged={review: JudgedSimilarity(similarity=value)}
            )
        ]
        for review, value in (("CD2", 0.6), ("CD3", 0.1))
    }
    # CD2 and CD3 are labelled, and draw the line at 0.6
    labels = tuple(
        ConclusionLabel(review=review, model="m", similar=review == "CD2")
        for review in others
    )
    found = told(truths, {"CD1": conclusions, **others}, labels=labels, verdict="judge")
    assert found.threshold is not None
    assert found.threshold.value == 0.6
    assert found.matches["CD1"].similarity == pytest.approx(similarity)
    assert found.passes("CD1") is passes
    assert values(found)["verdict.opposite"] == opposite
    said = as_text(verdict_blocks([found]))
    assert ("m concludes the opposite: CD1" in said) == opposite


def test_labels_of_what_the_run_has_not_are_counted() -> None:
    truths = reviews("Walking helps.", "Singing helps.")
    labels = tuple(
        ConclusionLabel(review=review, model=model, similar=True)
        for review, model in (("CD1", "m"), ("CD2", "m"), ("CD1", "other"))
    )
    dataset = ReviewDataset(
        settings=ReviewBenchmarkSettings(), reviews=truths, labels=labels
    )
    found = told(truths, {"CD1": text("Walking helps.")}, labels=labels)
    assert found.threshold is None
    assert [
        (each.code, each.n, each.example) for each in verdict_findings(dataset, [found])
    ] == [("labels_unused", 2, "CD2 of m"), ("labels_of_one_kind", 3, "")]


def test_vectors_are_compared_by_their_direction() -> None:
    truths = reviews("A.", "B.", "C.", "D.")
    vectors = {"CD1": (1.0, 0.0), "CD2": (0.0, 2.0), "CD3": (3.0, 4.0)}
    said = {
        "CD1": [AgentConclusion(text="A.", vector=(5.0, 0.0))],
        "CD2": [AgentConclusion(text="B.", vector=(0.0, -1.0))],
        # of another length than most: no model of one size made both
        "CD3": [AgentConclusion(text="C.", vector=(1.0, 0.0, 0.0))],
        # the authors' own has none
        "CD4": [AgentConclusion(text="D.", vector=(1.0, 0.0))],
    }
    found = told(truths, said, vectors=vectors, verdict="embedding")
    assert found.compared == {"CD1": 1.0, "CD2": -1.0}
    assert found.matches["CD3"].failure == "not_compared"
    assert found.mismatched["CD1", "CD3"] == 0.6
    assert set(found.mismatched) == {
        ("CD1", "CD2"),
        ("CD1", "CD3"),
        ("CD2", "CD1"),
        ("CD2", "CD3"),
        ("CD4", "CD1"),
        ("CD4", "CD2"),
        ("CD4", "CD3"),
    }


def test_nobody_is_asked_about_imported_conclusions() -> None:
    truths = reviews("Walking helps.")
    for verdict in ("judge", "embedding"):
        found = told(truths, {"CD1": text("It helps.")}, imported=True, verdict=verdict)
        assert found.matches["CD1"].failure == "not_compared"
        (missing,) = not_available([found])
        assert "--verdict direction needs no call" in missing
        assert {value for value in values(found).values() if value} == set()


def test_results_without_conclusions_have_no_verdicts_unless_asked_for() -> None:
    truths = reviews("Walking helps.")
    sheet = ReviewPredictions(reviews=truths, models=("m",), rebuilt=(), imported=True)
    for settings, expected in (({}, 0), ({"verdict": "tfidf"}, 1)):
        dataset = ReviewDataset(
            settings=ReviewBenchmarkSettings.model_validate(settings), reviews=truths
        )
        assert len(judge_conclusions(dataset, sheet)) == expected


FIVE = tuple(f"It may help with {topic}." for topic in TOPICS[:5])


def test_a_judge_decides_about_five_reviews() -> None:
    truths = reviews(*FIVE)
    said = {
        own.id: [
            AgentConclusion(
                text=own.conclusion,
                judged={
                    own.id: JudgedSimilarity(similarity=0.9, direction="same"),
                    other.id: JudgedSimilarity(similarity=0.1),
                },
            )
        ]
        for own, other in zip(truths, (*truths[1:], truths[0]), strict=True)
    }
    found = told(truths, said, verdict="judge")
    assert (len(found.mismatched), found.threshold and found.threshold.source) == (
        5,
        "fixed",
    )
    assert [*found.judged.values()] == [True] * 5
    assert "The threshold is fixed, since too few" in as_text(verdict_blocks([found]))
    (definition,) = (
        own.definition
        for own in verdict_metrics(found, ReviewBenchmarkSettings())
        if own.path == "verdict.threshold"
    )
    assert definition.startswith("fixed@1(a value of siftlog's")
    found = told(truths, said, verdict="judge", verdict_threshold=0.95)
    assert (found.threshold and found.threshold.source, [*found.judged.values()]) == (
        "setting",
        [False] * 5,
    )


def test_vectors_decide_about_five_reviews_of_which_three_have_a_conclusion() -> None:
    truths = reviews(*FIVE)
    vectors = {own.id: (1.0, float(place)) for place, own in enumerate(truths)}
    said = {
        own.id: [AgentConclusion(text=own.conclusion, vector=vectors[own.id])]
        for own in truths[:3]
    }
    found = told(truths, said, verdict="embedding", vectors=vectors)
    assert (len(found.mismatched), found.threshold and found.threshold.n) == (12, 22)
    assert found.threshold is not None
    assert found.threshold.source == "borrowed pairs"
    assert [*found.judged.values()] == [True] * 3


def test_vectors_do_not_pass_the_opposite() -> None:
    truths = reviews(*FIVE)
    vectors = {own.id: (1.0, float(place)) for place, own in enumerate(truths)}
    said = {
        own.id: [
            AgentConclusion(
                text=own.conclusion.replace("may help", "does not help"),
                vector=vectors[own.id],
            )
        ]
        for own in truths
    }
    found = told(truths, said, verdict="embedding", vectors=vectors)
    assert all(found.is_similar(own.id) for own in truths)
    assert [*found.judged.values()] == [False] * 5


def test_words_pass_nothing_by_themselves() -> None:
    truths = reviews(
        "The walks are effective for grip strength in older people.",
        *(f"Care of {topic} was studied." for topic in TOPICS),
    )
    opposite = "The walks make little or no difference to grip strength in older people"
    said = {own.id: text(own.conclusion) for own in truths}
    for verdict in (None, "tfidf"):
        found = told(truths, {**said, "CD1": text(opposite)}, verdict=verdict)
        assert all(found.is_similar(own.id) for own in truths)
        # the opposite fails, and where no effect is stated nothing is judged
        assert found.judged == {"CD1": False}
        assert values(found)["verdict.above"] == 7
        assert values(found)["verdict.passed"] == 0


def test_equal_directions_without_a_word_in_common_are_not_judged() -> None:
    truths = reviews("Quince syrup may reduce cough.", *FIVE)
    said = {"CD1": [AgentConclusion(text="Honey soothes.", direction="improves")]}
    found = told(truths, said)
    effect = found.matches["CD1"].effect
    assert effect is not None
    assert (effect.outcome, effect.reason) == ("not judged", "unrelated")
    assert found.judged == {}
    (missing,) = not_available([found])
    assert "no conclusion can be judged by the stated direction" in missing
