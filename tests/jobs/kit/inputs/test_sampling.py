"""Samples of `--limit`: shares, nesting and independence of order; in all five jobs."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval import inputs as evidence
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.paper_investigation import inputs as investigation
from jobs.paper_investigation.settings import InvestigationSettings
from jobs.property_extraction import inputs as properties
from jobs.property_extraction.settings import PropertySettings
from jobs.screening import inputs as screening
from jobs.screening.settings import ScreeningSettings
from tests.commands import command

Item = tuple[str, str, int]  # kind, review, number

ITEMS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("uvw"), st.integers(0, 10_000)),
    min_size=1,
    max_size=120,
    unique=True,
)


def drawn(items: Iterable[Item], limit: int) -> tuple[Item, ...]:
    return draw_sample(
        items,
        limit,
        key=repr,
        strata=(lambda item: item[0], lambda item: item[1]),
    )


@given(ITEMS, st.integers(1, 120))
def test_each_kind_keeps_its_share_rounded_up(items: list[Item], limit: int) -> None:
    sizes = Counter(kind for kind, _, _ in items)
    kept = Counter(kind for kind, _, _ in drawn(items, limit))
    assert kept.total() == min(limit, len(items))
    if limit >= len(sizes):
        assert kept.keys() == sizes.keys()
    # one share t fits all kinds: ceil(t * n) of n, but for those that tie at t
    lowest = max((kept[kind] - 1) / sizes[kind] for kind in sizes)
    highest = min((kept[kind]) / sizes[kind] for kind in sizes)
    assert lowest <= highest + 1e-12


@given(ITEMS, st.integers(1, 60), st.integers(0, 60))
def test_a_larger_limit_contains_a_smaller_one(
    items: list[Item], limit: int, more: int
) -> None:
    assert set(drawn(items, limit)) <= set(drawn(items, limit + more))


@given(ITEMS, st.integers(0, 120), st.randoms(use_true_random=False))
def test_the_draw_depends_on_no_order_and_keeps_that_of_the_items(
    items: list[Item], limit: int, chance: random.Random
) -> None:
    kept = drawn(items, limit)
    assert list(kept) == [item for item in items if item in set(kept)]
    shuffled = items[:]
    chance.shuffle(shuffled)
    assert set(drawn(shuffled, limit)) == set(kept)


def test_finer_strata_keep_their_share_inside_a_kind() -> None:
    items = [("a", "u", i) for i in range(300)] + [("a", "v", i) for i in range(100)]
    kept = Counter(review for _, review, _ in drawn(items, 40))
    assert kept == {"u": 30, "v": 10}


def test_many_small_strata_do_not_crowd_out_a_large_one() -> None:
    items = [("a", "u", i) for i in range(100)]
    items += [("a", f"single{i}", i) for i in range(100)]
    kept = Counter(review == "u" for _, review, _ in drawn(items, 50))
    assert 20 <= kept[True] <= 30


FIXED = [6, 14, 19, 23, 27, 28]
"""What a draw gave once; another result would be another sample for users."""


def test_the_draw_is_the_same_on_every_machine() -> None:
    items = [("ab"[i % 2], "uvw"[i % 3], i) for i in range(30)]
    assert [number for _, _, number in drawn(items, 6)] == FIXED


def test_a_sample_is_reported_and_a_whole_set_is_not() -> None:
    noticed = InputFindings()
    report_sample(noticed, "ab", "ab", "record")
    assert not noticed.findings()
    report_sample(noticed, "ab", "abcd", "record", "kind")
    (finding,) = noticed.findings()
    assert finding.message.startswith("A sample of 2 of 4 records (--limit)")


def test_screening_keeps_kinds_and_reviews() -> None:
    def kinds(limit: int) -> Counter[str]:
        settings = screening.with_sample(ScreeningSettings(limit=limit))
        drawn = screening.load(settings).validation_set
        assert drawn is not None
        return Counter(record.kind for record in drawn.records)

    whole, some = kinds(0), kinds(60)
    assert some.total() == 60
    for kind, n in whole.items():
        assert abs(some[kind] - 60 * n / whole.total()) <= 1, kind


def test_evidence_retrieval_keeps_folds() -> None:
    def folds(limit: int) -> Counter[str]:
        settings = evidence.with_sample(EvidenceSettings(limit=limit))
        data = evidence.load(settings)
        assert data.folds is not None
        return Counter(data.folds[post.id] for post in data.posts)

    assert folds(12).keys() == folds(0).keys()
    assert max(folds(12).values()) - min(folds(12).values()) <= 1


def test_evidence_retrieval_assigns_folds_before_it_samples() -> None:
    sample = evidence.with_sample(EvidenceSettings())
    assigned = sample.model_copy(update={"folds": None, "n_folds": 4})
    limited = evidence.load(assigned.model_copy(update={"limit": 6}))
    larger = evidence.load(assigned.model_copy(update={"limit": 20}))
    assert limited.folds is not None
    assert larger.folds is not None
    assert all(
        limited.folds[post.id] == larger.folds[post.id] for post in limited.posts
    )
    assert len({limited.folds[post.id] for post in limited.posts}) == 4


def test_paper_investigation_keeps_pipelines_in_mode_questions() -> None:
    def pipelines(limit: int) -> Counter[str]:
        named = InvestigationSettings(mode="questions", limit=limit)
        data = investigation.load(investigation.with_sample(named))
        every = (own for group in data.questions.values() for own in group)
        return Counter(question.pipeline for question in every)

    whole, some = pipelines(0), pipelines(20)
    assert some.total() == 20
    assert some.keys() == whole.keys()
    for pipeline, n in whole.items():
        assert abs(some[pipeline] - 20 * n / whole.total()) <= 1, pipeline


def test_property_extraction_scores_the_truth_of_the_sample_alone() -> None:
    named = PropertySettings(limit=2)
    data = properties.load(properties.with_sample(named))
    whole = properties.load(properties.with_sample(PropertySettings()))
    assert len({row.refno for row in data.truth} | set(data.papers)) == 2
    assert data.canonical == whole.canonical


@pytest.mark.parametrize(
    ("job", "limit", "total"),
    [
        ("screening", 12, "375 records"),
        ("evidence-retrieval", 7, "24 posts"),
        ("paper-investigation", 3, "10 papers"),
        ("review-benchmark", 2, "5 reviews"),
        ("property-extraction", 2, "5 papers"),
    ],
)
def test_every_summary_says_how_large_the_sample_is(
    job: str, limit: int, total: str, tmp_path: Path
) -> None:
    done = command(
        *("run", job, "--run-id", "r", "--runs-dir", tmp_path, "--no-report"),
        *("--limit", limit, "--model", "baseline/lexical"),
    )
    assert done.code == 0, done.err
    said = f"A sample of {limit} of {total} (--limit)"
    assert said in done.err
    assert said in " ".join(done.out.split())
    card = json.loads((tmp_path / "r" / "scores" / "1" / "scorecard.json").read_text())
    assert [own["code"] for own in card["findings"]].count("sample") == 1
