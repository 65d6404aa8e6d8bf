"""When shards are placed again, and when not, over any course of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.shards.supervisor import (
    DrainShard,
    KillShard,
    PlacementPhase,
    PlaceShard,
    RestartPolicy,
    RunClosing,
    RunDraining,
    RunStopping,
    ShardDied,
    ShardFinished,
    ShardLost,
    ShardVerdict,
    Supervisor,
    SupervisorAction,
    SupervisorEvent,
    Tick,
)

POLICY = RestartPolicy(fence_s=45, restarts=3, steady_s=30, backoff_s=1, longest_s=3)


def _one() -> Supervisor:
    """One shard, placed at 0."""
    supervisor = Supervisor(1, POLICY)
    assert supervisor.handle(Tick(), 0.0) == [PlaceShard(index=0, is_near=True)]
    return supervisor


def _finished(code: int, said: str = "") -> ShardFinished:
    return ShardFinished(index=0, exit_code=code, last_line=said)


def test_every_shard_is_placed_at_once_and_is_over_when_it_has_finished() -> None:
    supervisor = Supervisor(3, POLICY)
    placed = supervisor.handle(Tick(), 5.0)
    assert placed == [PlaceShard(index=index, is_near=True) for index in range(3)]
    for index, code in enumerate([0, 3, 4]):
        assert not supervisor.is_over
        assert (
            supervisor.handle(
                ShardFinished(index=index, exit_code=code, last_line=""), 6.0
            )
            == []
        )
    assert supervisor.is_over
    assert [shard.verdict for shard in supervisor.shards] == [
        ShardVerdict.DONE,
        ShardVerdict.DONE,
        ShardVerdict.BUDGET,
    ]
    assert supervisor.restarts == 0


def test_a_shard_that_died_is_placed_near_its_log_at_once_and_then_ever_later() -> None:
    supervisor = _one()
    assert supervisor.handle(ShardDied(index=0), 1.0) == [
        PlaceShard(index=0, is_near=True)
    ]
    for pause in (1.0, 2.0):
        assert supervisor.handle(ShardDied(index=0), 2.0) == []
        assert supervisor.handle(Tick(), 1.9 + pause) == []
        [again] = supervisor.handle(Tick(), 2.0 + pause)
        assert again == PlaceShard(index=0, is_near=True)
    supervisor.handle(ShardDied(index=0), 4.5)
    assert supervisor.shards[0].verdict is ShardVerdict.GIVEN_UP


def test_one_that_had_been_at_work_for_long_is_always_placed_again() -> None:
    supervisor = _one()
    for now in range(31, 3100, 31):
        assert supervisor.handle(ShardDied(index=0), now) == [
            PlaceShard(index=0, is_near=True)
        ]


def test_what_a_shard_says_of_itself_twice_it_is_not_asked_for_again() -> None:
    supervisor = _one()
    said = "siftlog: truth.csv cannot be read."
    assert supervisor.handle(_finished(1, said), 100.0) == [
        PlaceShard(index=0, is_near=True)
    ]
    assert supervisor.handle(_finished(1, said), 200.0) == []
    shard = supervisor.shards[0]
    assert (shard.verdict, shard.exit_code, shard.last_line) == (
        ShardVerdict.GIVEN_UP,
        1,
        said,
    )


def test_a_wrong_option_is_wrong_the_first_time() -> None:
    supervisor = _one()
    assert supervisor.handle(_finished(2, "no such option"), 1.0) == []
    assert supervisor.shards[0].verdict is ShardVerdict.GIVEN_UP


def test_a_shard_that_lost_its_lease_goes_on_however_often_it_did() -> None:
    supervisor = _one()
    for now in range(31, 310, 31):
        placed = supervisor.handle(_finished(5, "Interrupted"), now)
        assert placed == [PlaceShard(index=0, is_near=True)]


def test_one_that_is_lost_is_placed_elsewhere_once_nothing_of_it_is_at_work() -> None:
    supervisor = _one()
    assert supervisor.handle(ShardLost(index=0), 10.0) == [KillShard(index=0)]
    assert supervisor.handle(ShardLost(index=0), 20.0) == []
    assert supervisor.handle(Tick(), 54.9) == []
    assert supervisor.handle(Tick(), 55.0) == [PlaceShard(index=0, is_near=False)]


def test_one_that_is_lost_and_then_seen_to_be_dead_is_placed_at_once() -> None:
    supervisor = _one()
    supervisor.handle(ShardLost(index=0), 40.0)
    assert supervisor.handle(ShardDied(index=0), 41.0) == [
        PlaceShard(index=0, is_near=True)
    ]


def test_a_drain_reaches_who_is_at_work_and_nobody_is_placed_after_it() -> None:
    supervisor = Supervisor(3, POLICY)
    supervisor.handle(Tick(), 0.0)
    supervisor.handle(ShardLost(index=1), 1.0)
    drained = supervisor.handle(RunDraining(), 2.0)
    assert drained == [DrainShard(index=0), DrainShard(index=2)]
    assert (
        supervisor.handle(
            ShardFinished(index=0, exit_code=5, last_line="Interrupted"), 3.0
        )
        == []
    )
    assert supervisor.handle(RunStopping(), 4.0) == [KillShard(index=2)]
    assert supervisor.handle(ShardDied(index=2), 4.1) == []
    assert supervisor.is_over
    verdicts = {shard.verdict for shard in supervisor.shards}
    assert verdicts == {ShardVerdict.INTERRUPTED}


def test_shards_that_were_told_by_others_to_end_are_left_to_do_so() -> None:
    supervisor = _one()
    assert supervisor.handle(RunClosing(), 1.0) == []
    assert supervisor.handle(_finished(5, "Interrupted"), 2.0) == []
    assert supervisor.shards[0].verdict is ShardVerdict.INTERRUPTED


def test_one_that_is_lost_while_the_run_ends_is_killed_and_not_waited_for() -> None:
    supervisor = _one()
    supervisor.handle(RunDraining(), 1.0)
    assert supervisor.handle(ShardLost(index=0), 2.0) == [KillShard(index=0)]
    assert supervisor.is_over


SHARDS = 3
_INDEX = st.integers(0, SHARDS - 1)
_EVENTS = st.one_of(
    st.builds(
        ShardFinished,
        index=_INDEX,
        exit_code=st.sampled_from([0, 1, 2, 3, 4, 5]),
        last_line=st.sampled_from(["a", "b"]),
    ),
    st.builds(ShardDied, index=_INDEX),
    st.builds(ShardLost, index=_INDEX),
    st.sampled_from(
        [Tick(), Tick(), Tick(), RunClosing(), RunDraining(), RunStopping()]
    ),
)
_COURSES = st.lists(st.tuples(_EVENTS, st.integers(0, 100)), max_size=40)


@given(_COURSES)
def test_a_shard_is_never_placed_while_another_of_it_may_be_at_work(
    course: list[tuple[SupervisorEvent, int]],
) -> None:
    supervisor = Supervisor(SHARDS, POLICY)
    #: since when nobody knows of a placed shard; None: it is known to be at work
    at_work: dict[int, int | None] = {}
    now = 0
    for event, later in course:
        now += later
        if (
            isinstance(event, ShardFinished | ShardDied | ShardLost)
            and event.index not in at_work
        ):
            continue  # no engine tells of what it was not given
        if isinstance(event, ShardLost):
            if at_work[event.index] is None:
                at_work[event.index] = now
        elif isinstance(event, ShardFinished | ShardDied):
            del at_work[event.index]
        for action in supervisor.handle(event, now):
            if isinstance(action, PlaceShard):
                assert not supervisor.is_ending
                since = at_work.get(action.index, -1000)
                assert since is not None
                assert now >= since + POLICY.fence_s
                at_work[action.index] = None
            else:
                assert action.index in at_work


@given(_COURSES, st.sampled_from([RunDraining(), RunStopping()]))
def test_however_it_went_a_run_that_is_to_end_does_as_soon_as_its_shards_have(
    course: list[tuple[SupervisorEvent, int]], ending: SupervisorEvent
) -> None:
    supervisor = Supervisor(SHARDS, POLICY)
    now = 0
    placed: set[int] = set()

    def handle(event: SupervisorEvent) -> list[SupervisorAction]:
        actions = supervisor.handle(event, now)
        placed.update(a.index for a in actions if isinstance(a, PlaceShard))
        return actions

    for event, later in course:
        now += later
        if (
            not isinstance(event, ShardFinished | ShardDied | ShardLost)
            or event.index in placed
        ):
            handle(event)
    for action in handle(ending):
        assert not isinstance(action, PlaceShard)
        assert supervisor.shards[action.index].phase is PlacementPhase.PLACED
        assert handle(ShardDied(index=action.index)) == []
    assert supervisor.is_over
    assert all(shard.verdict is not None for shard in supervisor.shards)


def test_a_shard_whose_replies_are_of_no_use_is_not_placed_again() -> None:
    supervisor = _one()
    said = "m: 20 of 20 ...; continue anyway with: the same command --stop-if off"
    assert supervisor.handle(_finished(5, said), 100.0) == []
    assert supervisor.shards[0].verdict is ShardVerdict.FUTILE
    # one that was interrupted says something else
    other = _one()
    [again] = other.handle(_finished(5, "Interrupted; continue with"), 100.0)
    assert again == PlaceShard(index=0, is_near=True)
