"""What a certificate states follows from its frame, also with tokens for keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.stopping.certificate import Library, certificate
from jobs.stopping.certificate_frame import (
    DRAWN,
    FRAMES,
    RELEVANT,
    ScreeningSteps,
    stated,
)
from jobs.stopping.screening_fold import ScreeningFold, drawn_record
from runner.bundle.commitments import RedactionSecret, SaltedCommitter
from runner.bundle.frame import decoded_frame, encoded_frame
from runner.bundle.redaction import Redactor
from store.labels.events import LabelWithdrawn
from tests.jobs.stopping.test_screening_fold import KEYS, SEED, TEXTS, draw, fold, label

NO_LIBRARY = Library(files={}, texts=TEXTS, without_abstract=0)


def redacted(steps: ScreeningSteps) -> ScreeningSteps:
    """The frame as the reader of a bundle has it."""
    secret = RedactionSecret(run="r", scoring=1, key=bytes(32))
    redactor = Redactor(
        commit=SaltedCommitter(secret, b""), part=lambda _: b"", choices=frozenset()
    )
    return decoded_frame(encoded_frame(steps, redactor, ()), FRAMES.frame)


@given(st.data())
def test_any_screening_is_stated_the_same_without_its_keys(data: st.DataObject) -> None:
    events: list[object] = []
    state = fold()
    for _ in range(data.draw(st.integers(0, 20))):
        sort = data.draw(st.sampled_from(["draw", "label", "dispute", "withdraw"]))
        item = data.draw(st.sampled_from(KEYS))
        value = data.draw(st.sampled_from(["include", "exclude", "unclear"]))
        if sort == "draw" and state.unread:
            events.append(draw(len(state.draws) + 1, list(state.unread)))
        elif sort == "withdraw" and events:
            at = data.draw(st.integers(2, len(events) + 1))
            events.append(LabelWithdrawn(author="ann", label=f"ab:{at}"))
        else:
            events.append(label(item, value, "bo" if sort == "dispute" else "ann"))
        state = fold(*events)
    document = certificate(state, NO_LIBRARY, [])
    numbers = stated(redacted(ScreeningSteps.of(state)))
    assert numbers.keys() <= document.keys()
    assert numbers == {name: document[name] for name in numbers}


def test_a_draw_that_the_seed_does_not_give_is_refused() -> None:
    item = drawn_record(SEED, 1, KEYS)
    steps = ScreeningSteps.of(fold(draw(1, KEYS), label(item, "include")))
    assert steps.kind.tolist() == [DRAWN, RELEVANT]
    other = (steps.record + 1) % len(KEYS)
    with pytest.raises(ValueError, match="draw 1 is not the one of seed 3"):
        stated(redacted(replace(steps, record=other)))


def test_label_logs_without_a_plan_have_no_frame() -> None:
    with pytest.raises(ValueError, match="no plan of a screening"):
        ScreeningSteps.of(ScreeningFold("r", TEXTS))
