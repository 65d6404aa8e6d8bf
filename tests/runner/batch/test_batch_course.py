"""The course of a batch: whatever happens, it is not sent where it may be already."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.batch.batch import (
    BATCH_TRANSITIONS,
    BatchedAttempt,
    BatchEvent,
    BatchStage,
    batch_key,
    item_id,
    run_tag,
    stage_after,
)
from runner.run.endpoints import tag_of
from store.runs import RunFolder

LONGEST = 64
"""Most characters of an item's id at Anthropic."""

NEXT: dict[BatchStage, list[BatchEvent]] = defaultdict(list)
for stage_, happening_ in BATCH_TRANSITIONS:
    NEXT[stage_].append(happening_)

ASKED = st.builds(
    BatchedAttempt,
    st.integers(1, 10**9),
    st.integers(1, 99),
    st.text("0123456789abcdef", min_size=64, max_size=64),
)


@st.composite
def _courses(draw: st.DrawFn) -> list[tuple[BatchStage, BatchEvent]]:
    """A course from the beginning on, as far as it is followed."""
    stage, course = BatchStage.GATHERING, []
    for _ in range(30):
        if stage.is_final:
            break
        happening = draw(st.sampled_from(NEXT[stage]))
        course.append((stage, happening))
        stage = stage_after(stage, happening)
    return [*course, (stage, BatchEvent.RECORDED)]


@given(_courses())
def test_a_batch_is_sent_only_where_the_provider_cannot_have_it(
    course: list[tuple[BatchStage, BatchEvent]],
) -> None:
    was_sent = False
    for stage, happening in course:
        assert not (was_sent and stage in {BatchStage.GATHERING, BatchStage.PREPARED})
        was_sent = was_sent or happening in {
            BatchEvent.CREATED,
            BatchEvent.UNSURE,
            BatchEvent.LISTED,
        }


@given(_courses())
def test_results_are_read_of_a_batch_that_has_an_id(
    course: list[tuple[BatchStage, BatchEvent]],
) -> None:
    has_id = False
    for stage, happening in course:
        assert has_id or stage not in {
            BatchStage.OPEN,
            BatchStage.ENDED,
            BatchStage.COLLECTED,
        }
        has_id = has_id or happening in {BatchEvent.CREATED, BatchEvent.LISTED}


def test_every_stage_can_be_left_or_is_final_and_every_happening_has_a_place() -> None:
    assert set(NEXT) == {stage for stage in BatchStage if not stage.is_final}
    assert {happening for _, happening in BATCH_TRANSITIONS} == set(BatchEvent)
    reached = {BatchStage.GATHERING, *BATCH_TRANSITIONS.values()}
    assert reached == set(BatchStage)


def test_what_cannot_happen_is_a_bug() -> None:
    with pytest.raises(KeyError):
        stage_after(BatchStage.COLLECTED, BatchEvent.CREATED)


@given(st.text(), ASKED)
def test_an_item_says_whose_it_is_in_letters_that_providers_take(
    run: str, asked: BatchedAttempt
) -> None:
    tag = run_tag(run)
    key = batch_key(tag, "m", [asked], 1)
    name = item_id(key, asked)
    assert name.startswith(f"{key}-")
    assert key.startswith(f"{tag}-")
    assert len(name) <= LONGEST
    assert name.replace("-", "").isalnum()
    assert name.isascii()
    # whatever attempt it was that asked
    assert item_id(key, asked._replace(attempt=asked.attempt + 1)) == name


@given(st.lists(ASKED, min_size=1, max_size=4), st.data())
def test_another_batch_has_another_key(
    asked: list[BatchedAttempt], data: st.DataObject
) -> None:
    changed = list(asked)
    at = data.draw(st.integers(0, len(asked) - 1))
    field = data.draw(st.sampled_from(["task", "attempt"]))
    changed[at] = asked[at]._replace(**{field: getattr(asked[at], field) + 1})
    key = batch_key("t", "m", asked, 1)
    assert batch_key("t", "m", asked, 1) == key
    others = [("m", changed, 1), ("n", asked, 1), ("m", asked, 2)]
    assert all(batch_key("t", *other) != key for other in others)


def test_shards_and_runs_have_tags_of_their_own() -> None:
    folders = [RunFolder(Path("r1")), RunFolder(Path("r1"), "-1-of-2")]
    tags = {tag_of(folder) for folder in (*folders, RunFolder(Path("r2")))}
    assert len(tags) == 3
