"""What a shard holds, by a broker's clock and by its own."""

from __future__ import annotations

import math

import pytest

from runner.shards.lease_client import LeaseHolder, ProcessIdentity
from runner.shards.lease_protocol import (
    CreditLease,
    LeaseRenewed,
    ShardProgress,
    Welcome,
)
from runner.shards.lease_shares import LeasedCredit

IDENTITY = ProcessIdentity(run_id="r", process="p", shard="0/1", slices="0", log="ab")
TTL_S = 15.0


class Endpoint:
    """What is left alone when it asks for that."""

    name = "e"

    def pause(self, until: float) -> None:
        del until


def _holder() -> tuple[LeaseHolder, LeasedCredit]:
    lines: list[bytes] = []
    holder = LeaseHolder(IDENTITY, token="", wake=lambda: None, on_line=lines.append)
    requests, _ = holder.gates(Endpoint(), "m", rpm=60.0, tpm=None)
    assert requests.bucket is not None
    return holder, requests.bucket


@pytest.mark.parametrize("broker_s", [-500.0, 0.0, 1e6])
def test_a_lease_ends_when_the_broker_says_by_whatever_clock(broker_s: float) -> None:
    """And an answer that was long on its way makes it shorter, never longer."""
    holder, credit = _holder()
    holder.connected(100.0)
    holder.receive(Welcome(now=broker_s, ttl_s=TTL_S), 100.4)
    lease = CreditLease(
        endpoint="e", model="m", requests=3, tokens=0, until=broker_s + 0.75
    )
    holder.receive(lease, 100.5)
    assert credit.expires_at == pytest.approx(100.75)
    assert credit.ready_at(100.74, 3) == 100.74
    assert credit.ready_at(100.76, 1) == math.inf


def test_the_fence_counts_from_when_the_question_was_sent() -> None:
    holder, _ = _holder()
    assert not holder.holds(0.0)
    holder.connected(100.0)
    holder.receive(Welcome(now=0.0, ttl_s=TTL_S), 103.0)
    assert holder.holds(100.0 + TTL_S - 0.01)
    assert not holder.holds(100.0 + TTL_S)
    assert holder.says(107.0, ShardProgress)
    # a second answer to one question is none
    holder.receive(LeaseRenewed(now=1.0), 109.0)
    holder.receive(LeaseRenewed(now=2.0), 120.0)
    assert holder.holds_until == 107.0 + TTL_S
