"""The fold of a screening: pure, honest about draws, and equal to the stop rule."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.stop_rule import RecallStopRule, RecordDrawn, RecordLabelled
from jobs.stopping.screening_fold import (
    DESIGN,
    ScreeningFold,
    drawn_record,
    in_order,
)
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelWithdrawn,
    ScreeningPlanned,
)
from store.labels.fold import EventId, LabelEntry
from tests.jobs.stopping.libraries import RUN, screened, site

RECORDS = 12
TEXTS = {f"k{number:02}": f"{number:064}" for number in range(RECORDS)}
KEYS = sorted(TEXTS)
SEED = 3

PLAN = ScreeningPlanned(
    author="ann",
    run=RUN,
    target=0.5,
    alpha=0.2,
    seed=SEED,
    records=RECORDS,
    population_sha256="",
    library=[],
    order="random",
    order_sha256="",
    models=[],
    run_seq=1,
    run_head="",
)


def draw(position: int, unread: list[str], item: str | None = None) -> ItemDrawn:
    return ItemDrawn(
        author="ann",
        item=item or drawn_record(SEED, position, unread),
        design=DESIGN,
        probability=1 / len(unread),
        seed=SEED,
        position=position,
        expected=1.0,
        population=len(unread),
        population_sha256="",
        run=RUN,
    )


def label(item: str, value: str = "exclude", author: str = "ann") -> LabelRecorded:
    return LabelRecorded(author=author, item=item, value=value, text_sha256=TEXTS[item])


def fold(*events: object) -> ScreeningFold:
    return ScreeningFold(RUN, TEXTS).receive_all(
        LabelEntry(number, EventId("ab", number), event)  # type: ignore[arg-type]
        for number, event in enumerate([PLAN, *events], 1)
    )


def test_the_draw_of_a_plan_is_uniform_enough_and_a_function_of_seed_and_place() -> (
    None
):
    counts = dict.fromkeys(KEYS, 0)
    for seed in range(6000):
        counts[drawn_record(seed, 1, KEYS)] += 1
    assert all(400 < count < 600 for count in counts.values())
    assert drawn_record(SEED, 1, KEYS) == drawn_record(SEED, 1, KEYS)


def test_a_draw_that_the_seed_does_not_give_is_listed_and_counts_as_read() -> None:
    right = drawn_record(SEED, 1, KEYS)
    wrong = next(key for key in KEYS if key != right)
    state = fold(draw(1, KEYS, wrong), label(wrong))
    assert state.irregular == ["ab:2"]
    assert state.status is not None
    assert (state.status.draws, state.status.read) == (0, 1)
    stale = fold(label(KEYS[0]), draw(1, KEYS))  # drawn before the label was seen
    assert stale.irregular == ["ab:3"]


@pytest.mark.parametrize(
    ("events", "relevance"),
    [
        ([label("k01", "unclear")], {"k01": True}),
        ([label("k01"), label("k01", "include")], {"k01": True}),
        ([label("k01"), label("k01", "include", "bo")], {}),
        (
            [
                label("k01"),
                label("k01", "include", "bo"),
                Adjudicated(author="cy", item="k01", value="exclude", considered=[]),
            ],
            {"k01": False},
        ),
        ([label("k01"), LabelWithdrawn(author="ann", label="ab:2")], {}),
        ([label("k01"), LabelWithdrawn(author="bo", label="ab:2")], {"k01": False}),
        ([LabelWithdrawn(author="ann", label="ab:3"), label("k01")], {}),
        ([LabelRecorded(author="a", item="k01", value="x", text_sha256="0")], {}),
        ([LabelRecorded(author="a", item="k01", field="f", value="x")], {}),
        ([LabelRecorded(author="a", item="other", value="x")], {}),
    ],
)
def test_a_record_counts_as_its_gold_value(
    events: list[object], relevance: dict[str, bool]
) -> None:
    state = fold(*events)
    assert dict(state.relevance) == relevance
    assert state.status is not None
    assert state.status.read == len(relevance)


@given(st.data())
def test_it_feeds_the_stop_rule_what_was_drawn_and_labelled(
    data: st.DataObject,
) -> None:
    rule = RecallStopRule(records=RECORDS, target=PLAN.target, alpha=PLAN.alpha)
    unread, events, draws = list(KEYS), [], 0
    for _ in range(data.draw(st.integers(0, RECORDS))):
        if data.draw(st.booleans()):
            draws += 1
            events.append(draw(draws, unread))
            record = events[-1].item
            rule.receive(RecordDrawn(record=record, unread=len(unread)))
        else:
            record = data.draw(st.sampled_from(unread))
        unread.remove(record)
        is_relevant = data.draw(st.booleans())
        events.append(label(record, "include" if is_relevant else "exclude"))
        rule.receive(RecordLabelled(record=record, is_relevant=is_relevant))
    state = fold(*events)
    assert state.status == rule.status
    assert list(state.unread) == unread
    assert not state.irregular


def test_people_at_once_share_the_work_and_the_state_is_that_of_the_logs(
    tmp_path: Path,
) -> None:
    made = site(tmp_path)
    state = asyncio.run(screened(made, ("ann", "bo", "cy")))
    assert state.fold.authors == {"ann", "bo", "cy"}
    assert not state.fold.irregular
    assert state.fold.status is not None
    assert state.fold.status.should_stop
    again = ScreeningFold(RUN, made.library.hashes.texts)
    again.receive_all(in_order(state.folder.entries))
    assert again.status == state.fold.status
    found = sum(state.fold.relevance.values()) / len(made.relevant)
    assert found >= state.fold.status.recall
    labels = [e for e in state.folder.entries if isinstance(e.event, LabelRecorded)]
    # a draw alone may choose what another has on the screen
    assert len(labels) <= state.fold.status.read + state.fold.status.draws
    assert not list(made.labels.glob(".open*"))


def test_a_draw_is_recorded_before_its_record_is_shown_and_goes_with_its_label(
    tmp_path: Path,
) -> None:
    state = asyncio.run(screened(site(tmp_path)))
    drawn = {
        str(entry.id): (place, entry.event)
        for place, entry in enumerate(in_order(state.folder.entries))
        if isinstance(entry.event, ItemDrawn)
    }
    assert drawn
    labelled = 0
    for place, entry in enumerate(in_order(state.folder.entries)):
        event = entry.event
        if isinstance(event, LabelRecorded) and event.draw:
            before, draw_event = drawn[event.draw]
            assert before < place
            assert draw_event.item == event.item
            assert event.probability == draw_event.probability
            labelled += 1
    assert labelled == len(drawn)
