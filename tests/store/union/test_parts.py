"""Where a run stands as a whole, by where its parts stand."""

from __future__ import annotations

from store.events import LimitObserved
from store.fold_state import RunState
from store.slices import Slices
from store.union.parts import PartState, limits_of, whole_state
from tests.replacing import replace
from tests.store.samples import ASIDE

LIMIT = next(event for event in ASIDE if isinstance(event, LimitObserved))


def _half(
    index: int, phase: str, limit: LimitObserved = LIMIT, **of: object
) -> PartState:
    state = replace(RunState(), phase=phase, **of)  # type: ignore[arg-type]
    return PartState(
        log=bytes([index]),
        slices=Slices.of(index, 2),
        state=state,
        limits={"m": (limit, index)},
    )


def test_a_run_is_paused_when_all_that_work_are() -> None:
    held = _half(0, "run_started", paused_by="a person")
    free = _half(1, "run_started")
    assert whole_state([held, free], 0).paused_by is None
    also = _half(1, "run_started", paused_by="a person")
    assert whole_state([held, also], 0).paused_by == "a person"
    assert whole_state([held, _half(1, "run_finished")], 0).paused_by == "a person"


def test_a_plan_is_at_its_end_when_that_of_every_slice_is() -> None:
    parts = [_half(i, "run_finished", exhausted=True, phase_us=5 - i) for i in (0, 1)]
    assert not whole_state(parts[:1], 0).exhausted
    assert whole_state(parts, 0).exhausted
    assert whole_state(parts, 0).phase_us == 5


def test_limits_add_up_over_those_at_work_and_one_without_frees_all() -> None:
    limit = replace(LIMIT, rpm=60.0, tpm=None)
    parts = [_half(0, "run_started", limit), _half(1, "run_resumed", limit)]
    held, at_us = limits_of(parts)["m"]
    assert (held.rpm, held.tpm, at_us) == (120.0, None, 1)
    ended = [parts[0], _half(1, "run_finished", limit)]
    assert limits_of(ended)["m"][0].rpm == 60.0
    free = [parts[0], _half(1, "run_started", replace(limit, rpm=None, tpm=9.0))]
    assert limits_of(free)["m"][0].rpm is None
