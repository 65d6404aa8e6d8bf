"""What goes wrong between a client and the batch endpoints, in both forms."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from runner.simulate.billing import BatchAct
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.ledgers import read_batch_ledger, read_ledger
from tests.processes import simulated

pytestmark = pytest.mark.asyncio

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
BATCHES = "/messages/batches"


def client(base_url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=base_url, headers=HEADERS, trust_env=False)


@asynccontextmanager
async def stand(folder: Path, **values: Any) -> AsyncIterator[httpx.AsyncClient]:
    options = SimulateOptions(ledger=folder / "ledger.jsonl", **values)
    async with (
        running(options) as base_url,
        client(base_url) as http,
    ):
        yield http


def wanted(custom_id: str) -> dict[str, Any]:
    said = {"role": "user", "content": f"What of {custom_id}?"}
    params = {"model": "claude-x", "max_tokens": 9, "messages": [said]}
    return {"requests": [{"custom_id": custom_id, "params": params}]}


async def outcome(http: httpx.AsyncClient, custom_id: str) -> str:
    """What creating a batch of one item came to."""
    try:
        reply = await http.post(BATCHES, json=wanted(custom_id))
    except httpx.TransportError as error:
        return type(error).__name__
    try:
        return str(reply.json().get("id", reply.status_code))
    except ValueError:
        return "unreadable"


async def listed(http: httpx.AsyncClient) -> list[str]:
    reply = await http.get(BATCHES, params={"limit": 1000})
    return [batch["id"] for batch in reply.json()["data"]]


async def test_a_batch_whose_creation_was_lost_is_there_and_billed(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, batch_lost_create_rate=0.5) as http:
        told = [await outcome(http, f"q{n}") for n in range(30)]
        there = await listed(http)
    lines = read_batch_ledger(tmp_path / "ledger.jsonl")
    acts = Counter(line.act for line in lines)
    lost = {line.id for line in lines if line.act is BatchAct.LOST}
    heard = {each for each in told if each.startswith("msgbatch_")}
    assert set(told) - heard == {"RemoteProtocolError"}
    assert 5 < len(lost) < 25
    assert heard | lost == set(there)
    assert heard & lost == set()
    assert acts[BatchAct.CREATED] == acts[BatchAct.BILLED] == len(there) == 30


async def test_a_batch_outlives_the_client_that_never_heard_of_it(
    tmp_path: Path,
) -> None:
    words = ("--batch-lost-create-rate", 1, "--batch-seconds", 0.01)
    with simulated(*words, cwd=tmp_path) as url:
        async with client(url) as http:
            assert await outcome(http, "q1") == "RemoteProtocolError"
        async with client(url) as http:
            (batch_id,) = await listed(http)
            while not (
                results := await http.get(f"{BATCHES}/{batch_id}/results")
            ).is_success:
                pass
    assert results.json()["custom_id"] == "q1"


async def test_what_is_refused_or_never_answered_was_not_done(tmp_path: Path) -> None:
    async with stand(tmp_path, rate_429=0.4, rate_5xx=0.4) as http:
        told = [await outcome(http, f"q{n}") for n in range(30)]
    lines = read_batch_ledger(tmp_path / "ledger.jsonl")
    created = [line.id for line in lines if line.act is BatchAct.CREATED]
    assert created == [each for each in told if each.startswith("msgbatch_")]
    assert {"429", "529"} < {each for each in told if each not in created}


async def test_a_request_that_hangs_was_not_heard(tmp_path: Path) -> None:
    async with stand(tmp_path, rate_hang=1.0) as http:
        http.timeout = 0.1
        assert await outcome(http, "q1") == "ReadTimeout"
    assert read_batch_ledger(tmp_path / "ledger.jsonl") == []


@pytest.mark.parametrize("path", ["/v1/files", "/v1/messages/batches"])
async def test_a_client_that_dies_while_it_sends_leaves_nothing_behind(
    path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n"
        "content-type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc'
    )
    async with stand(tmp_path) as http:
        port = http.base_url.port
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await listed(http), (await http.get("/files")).json()["data"]) == (
            [],
            [],
        )
    assert read_batch_ledger(tmp_path / "ledger.jsonl") == []
    assert caplog.records == []


async def test_a_spoiled_or_broken_reply_leaves_the_batch_behind(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, rate_malformed=0.5, rate_drop=0.5) as http:
        told = [await outcome(http, f"q{n}") for n in range(20)]
    lines = read_batch_ledger(tmp_path / "ledger.jsonl")
    assert not any(each.startswith("msgbatch_") for each in told)
    for act in (BatchAct.CREATED, BatchAct.LOST, BatchAct.BILLED):
        assert sum(line.act is act for line in lines) == 20
    # lines of batches are no lines of calls
    assert read_ledger(tmp_path / "ledger.jsonl") == []


async def test_faults_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    rates = {"rate_429": 0.3, "rate_5xx": 0.2, "batch_lost_create_rate": 0.2}
    told = []
    for seed in (1, 1, 2):
        folder = tmp_path / str(len(told))
        folder.mkdir()
        async with stand(folder, seed=seed, **rates) as http:
            found = [await outcome(http, f"q{n}") for n in range(25)]
        told.append(["new" if "msgbatch_" in each else each for each in found])
    assert told[0] == told[1] != told[2]


async def test_a_download_may_end_anywhere_and_is_whole_another_time(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, rate_malformed=0.5, seed=3) as http:
        requests = [wanted(f"q{n}")["requests"][0] for n in range(9)]
        while "id" not in (
            batch := _json(await http.post(BATCHES, json={"requests": requests}))
        ):
            pass
        found = [
            (await http.get(f"{BATCHES}/{batch['id']}/results")).content
            for _ in range(12)
        ]
    whole = max(found, key=len)
    assert [json.loads(line)["custom_id"] for line in whole.splitlines()]
    assert all(whole.startswith(each) for each in found)
    assert len(set(found)) > 3


def _json(reply: httpx.Response) -> dict[str, Any]:
    try:
        return dict(reply.json())
    except ValueError:
        return {}


async def test_a_form_that_is_none_is_turned_away(tmp_path: Path) -> None:
    async with stand(tmp_path) as http:
        for content in (b"", b"--other\r\n", b"--b\r\nno header"):
            reply = await http.post(
                "/files",
                content=content,
                headers={"content-type": "multipart/form-data; boundary=b"},
            )
            assert reply.status_code == 400
            assert "no file in the form" in reply.json()["error"]["message"]
