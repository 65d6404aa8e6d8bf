"""A shard's credit of one model: how much it asks for, and what it gives back."""

from __future__ import annotations

from runner.limits.rate_limits import Quota
from runner.shards.lease_protocol import (
    CreditLease,
    HeaderLimitSeen,
    LeaseMessage,
    RequestCredit,
    ReturnCredit,
)
from runner.shards.lease_shares import CreditShare

NOW, LATER = 0.0, 100.0


def _share(*, rpm: float | None = 600.0, tpm: float | None = None) -> CreditShare:
    return CreditShare("e", "m", lambda: None, rpm=rpm, tpm=tpm)


def _lend(
    share: CreditShare, requests: int, tokens: int = 0, until: float = LATER
) -> None:
    lease = CreditLease(
        endpoint="e", model="m", requests=requests, tokens=tokens, until=0.0
    )
    share.lend(lease, until)


def _send(
    share: CreditShare, calls: int, tokens: float = 0.0, now: float = NOW
) -> None:
    for _ in range(calls):
        for gate, amount in zip(share.gates, (1.0, tokens), strict=True):
            if gate.bucket is not None:
                assert gate.bucket.ready_at(now, amount) == now
                gate.bucket.take(now, amount)


def _wait(share: CreditShare, tokens: float = 0.0, now: float = NOW) -> None:
    """Want to send what there is no credit for."""
    requests, of_tokens = share.gates
    if requests.bucket is not None:
        assert requests.bucket.ready_at(now, 1.0) > now
    if of_tokens.bucket is not None:
        assert of_tokens.bucket.ready_at(now, tokens) > now


def _says(
    share: CreditShare, now: float = NOW, *, is_due: bool = False
) -> list[LeaseMessage]:
    return share.says(now, is_due=is_due)


def _ask(requests: int, tokens: int = 0, least: int = 0) -> RequestCredit:
    return RequestCredit(
        endpoint="e", model="m", requests=requests, tokens=tokens, tokens_least=least
    )


def test_twice_as_much_is_asked_for_while_all_of_it_is_used() -> None:
    share = _share()
    asked = []
    for lent in (1, 2, 4, 8):
        _wait(share)
        asked += _says(share)
        _lend(share, lent)
        _send(share, lent)
    assert asked == [_ask(1), _ask(2), _ask(4), _ask(8)]


def test_one_question_at_a_time_but_on_a_new_connection() -> None:
    share = _share()
    _wait(share)
    assert _says(share) == [_ask(1)]
    _wait(share)
    assert _says(share) == []
    share.reconnected()
    assert _says(share) == [_ask(1)]


def test_the_next_lease_is_asked_for_when_a_fast_one_is_half_used() -> None:
    share = _share()
    _wait(share)
    _says(share)
    _lend(share, 10)
    _send(share, 4)
    assert _says(share) == []
    _send(share, 1)
    assert _says(share) == [_ask(10)]


def test_what_is_not_used_in_time_goes_back_and_less_is_asked_for() -> None:
    share = _share()
    _wait(share)
    _says(share)
    _lend(share, 10, until=1.0)
    _send(share, 3)
    assert share.expires_at == 1.0
    assert _says(share, 1.0) == [ReturnCredit(endpoint="e", model="m", requests=7)]
    _wait(share, now=1.0)
    assert _says(share, 1.0) == [_ask(3)]


def test_credit_that_has_run_out_is_never_used() -> None:
    share = _share()
    _lend(share, 10, until=1.0)
    _wait(share, now=1.0)


def test_tokens_are_asked_for_by_what_calls_take_and_what_the_next_one_needs() -> None:
    share = _share(rpm=None, tpm=60_000.0)
    _wait(share, tokens=900.0)
    assert _says(share) == [_ask(0, tokens=900, least=900)]
    _lend(share, 0, tokens=900)
    _send(share, 1, tokens=900.0)
    _wait(share, tokens=500.0)
    assert _says(share) == [_ask(0, tokens=1800, least=500)]


def test_what_a_call_did_not_need_goes_back_with_what_is_said_anyway() -> None:
    share = _share(rpm=None, tpm=60_000.0)
    _lend(share, 0, tokens=1000)
    _send(share, 1, tokens=900.0)
    bucket = share.gates[1].bucket
    assert bucket is not None
    bucket.give_back(650.0)
    assert _says(share) == []
    assert _says(share, is_due=True) == [
        ReturnCredit(endpoint="e", model="m", tokens=650)
    ]


def test_a_limit_that_the_endpoint_tells_is_the_brokers_to_keep_and_told_once() -> None:
    share = _share(rpm=None)
    for _ in range(2):
        share.gates[0].apply_quota(NOW, Quota(per_minute=500.0, remaining=20.0))
    told = HeaderLimitSeen(
        endpoint="e", model="m", kind="requests", per_minute=500.0, remaining=20.0
    )
    assert _says(share) == [told]
    bucket = share.gates[0].bucket
    assert bucket is not None
    assert bucket.per_minute == 500.0
    _wait(share)
    assert _says(share) == [_ask(1)]


def test_a_limit_that_a_person_lifts_is_asked_for_no_more() -> None:
    share = _share()
    requests, _ = share.gates
    requests.set(NOW, None)
    assert requests.bucket is None
