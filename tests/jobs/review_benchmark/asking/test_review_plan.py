"""What is searched, scored and concluded, and what is skipped and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.plan import conclusion, follow_up, plan, planned_stages
from jobs.review_benchmark.requests import documents_from_context
from runner.job import Answer, TaskSpec
from tests.jobs.review_benchmark.small_review import REVIEW, answer, data, stocked


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stocked(tmp_path_factory.mktemp("papers") / "papers.db")


WALKING = '{"queries": [{"label": "w", "all_of": [["walking"]], "none_of": []}]}'


def candidates(dataset: ReviewDataset, said: str = WALKING) -> list[TaskSpec]:
    """What follows a search plan."""
    (spec,) = plan(dataset)
    return list(follow_up(dataset, (answer(dataset, spec, said),)))


def concluded(
    dataset: ReviewDataset, scores: Sequence[float | str | None]
) -> tuple[str | None, list[int]]:
    """Skip and papers of the conclusion, after these scores of the candidates."""
    group = tuple(
        answer(
            dataset, spec, None if score is None else f'{{"score": {score}}}', number
        )
        for number, (spec, score) in enumerate(
            zip(candidates(dataset), scores, strict=True), start=1
        )
    )
    (spec,) = follow_up(dataset, group)
    assert spec.stage == "conclude"
    return spec.skip, documents_from_context(spec.context)


def test_a_plan_leads_to_candidates_best_first_and_these_to_a_conclusion(
    papers: Path,
) -> None:
    with data(papers) as dataset:
        assert [(s.stage, s.key, s.skip) for s in plan(dataset)] == [
            ("plan", "CD7", None)
        ]
        assert planned_stages(dataset) == {"plan", "score", "conclude"}
        found = candidates(dataset)
        assert [(s.stage, s.key, s.skip, s.group) for s in found] == [
            ("score", "CD7:3", None, "CD7"),
            ("score", "CD7:1", None, "CD7"),
            ("score", "CD7:2", None, "CD7"),
        ]
        # best first, and ties as they were found
        assert concluded(dataset, [3.0, 4, 3]) == (None, [1, 3, 2])
        assert concluded(dataset, [2.9, 4, "4/10"]) == (None, [1])


def test_whether_the_unscored_are_included_is_a_setting(papers: Path) -> None:
    with data(papers, unscored="include", threshold=4, conclude_papers=2) as dataset:
        assert concluded(dataset, [3, None, "true"]) == (None, [1, 2])
        assert concluded(dataset, [4, None, 5]) == (None, [2, 3])


def test_other_papers_make_another_conclusion(papers: Path) -> None:
    def key(scores: Sequence[float], threshold: float) -> str:
        with data(papers, threshold=threshold) as dataset:
            group = tuple(
                answer(dataset, spec, f'{{"score": {score}}}')
                for spec, score in zip(candidates(dataset), scores, strict=True)
            )
            (spec,) = follow_up(dataset, group)
            return spec.key

    assert key([5, 4, 2], 3) == key([5, 4, 2], 2.5) != key([5, 4, 2], 2)
    assert key([5, 4, 2], 4.5) != key([5, 4, 2], 3)


def test_a_paper_that_is_gone_is_in_no_conclusion(papers: Path) -> None:
    with data(papers, conclude_papers=2) as dataset:
        spec = conclusion(dataset, REVIEW, {99: 5.0, 1: 4.0, 98: 4.0, 2: 3.0, 3: 3.0})
        assert spec is not None
        assert documents_from_context(spec.context) == [1, 2]


@pytest.mark.parametrize(
    "said", ["I cannot.", "", '{"queries": [{"all_of": [["?"]]}]}']
)
def test_a_plan_of_no_use_is_replaced_by_the_fixed_one(papers: Path, said: str) -> None:
    with data(papers) as dataset:
        # both words of the population and of the intervention; then any of them
        found = [spec.key for spec in candidates(dataset, said)]
        assert sorted(found) == ["CD7:1", "CD7:2", "CD7:3"]
        assert found[0] == "CD7:2"
    with data(papers, queries=1) as dataset:
        assert [spec.key for spec in candidates(dataset, said)] == ["CD7:2"]


def test_what_cannot_be_asked_is_skipped_with_its_reason(papers: Path) -> None:
    nothing = '{"queries": [["flying"], {"all_of": [["flying"]]}]}'
    for said, settings, expected in (
        (nothing, {}, [("score", "no_candidates")]),
        (
            WALKING,
            {"max_prompt_tokens": 10},
            [("score", "too_long")] * 3 + [("conclude", "nothing_included")],
        ),
    ):
        with data(papers) as dataset:
            changed = replace(
                dataset, settings=dataset.settings.model_copy(update=settings)
            )
            (spec,) = plan(dataset)
            found = list(follow_up(changed, (answer(dataset, spec, said),)))
            assert [(each.stage, each.skip) for each in found] == expected
            assert [each.skip for each in plan(changed)] == [
                "too_long" if settings else None
            ]


def test_a_conclusion_needs_papers_and_one_of_the_review_to_compare(
    papers: Path,
) -> None:
    with data(papers) as dataset:
        assert concluded(dataset, [1, 1, None]) == ("nothing_included", [])
    silent = replace(REVIEW, id="CD8", conclusion="")
    with data(papers, reviews=(silent,)) as dataset:
        assert planned_stages(dataset) == {"plan", "score"}
        assert list(follow_up(dataset, _scored(dataset, silent.id))) == []
    with data(papers, reviews=(REVIEW, silent)) as dataset:
        (spec,) = follow_up(dataset, _scored(dataset, silent.id))
        assert spec.skip == "no_truth_conclusion"
    with data(papers, verdict="off") as dataset:
        assert planned_stages(dataset) == {"plan", "score"}
        assert list(follow_up(dataset, _scored(dataset, REVIEW.id))) == []


def _scored(dataset: ReviewDataset, review: str) -> tuple[Answer, ...]:
    spec = TaskSpec(stage="score", key=f"{review}:1")
    return (answer(dataset, spec, '{"score": 5}'),)


class Blank(PaperDatabase):
    """An index that knows words of papers that have none."""

    def paper(self, number: int) -> DatabasePaper | None:
        return DatabasePaper(id=number, pmid="12", title=" ")


def test_a_paper_without_any_text_is_not_asked_about(papers: Path) -> None:
    with data(papers) as known, closing(Blank(papers)) as database:
        skips = [spec.skip for spec in candidates(replace(known, database=database))]
        assert skips == ["no_text"] * 3 + ["nothing_included"]
