"""The simulated endpoint embeds and ranks, with the same faults, limits and books."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.clients import Call, ClientOptions, ModelClient, open_client
from runner.clients.wire import (
    OPENAI_EMBEDDINGS,
    RERANK,
    decode_reply,
    encode_embed,
    encode_rerank,
)
from runner.job import Job, Task
from runner.messages import EmbedRequest, Ranking, Request, RerankRequest, Vectors
from runner.simulate.billing import LedgerLine
from runner.simulate.model import DIMENSIONS, ranking, vectors
from runner.simulate.options import RequestOutcome, SimulateOptions
from runner.simulate.provider import Provider
from runner.simulate.replies import ReplyDraft
from runner.simulate.requests import READERS, SimulatedRequest
from runner.simulate.server import running
from tests.ledgers import read_ledger
from tests.runner.toy_jobs import PanelJob

EMBED = EmbedRequest(texts=("cannot sleep at night", "sleep is bad", "fine"))
ASK = RerankRequest(query="sleep sad", documents=("fine", "sad sleep", "sleep"))


def call(request: Request) -> Call:
    task = Task(number=1, stage="s", key="k", model="openai/x", replicate=1)
    return Call(task=task, request=request)


@asynccontextmanager
async def stand(
    folder: Path, **values: object
) -> AsyncIterator[tuple[ModelClient, Path]]:
    options = replace(SimulateOptions(ledger=folder / "ledger.jsonl"), **values)
    async with running(options) as base_url:
        client = open_client("openai/x", ClientOptions(base_url=base_url))
        yield client, options.ledger
        await client.close()


def cosine(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.asyncio
async def test_texts_that_share_words_are_near_and_the_same_every_time(
    tmp_path: Path,
) -> None:
    replies = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        async with stand(tmp_path / name, seed=seed) as (client, path):
            replies.append((await client.call(call(EMBED))).reply)
        (line,) = read_ledger(path)
        assert line.outcome is RequestOutcome.ANSWERED
        assert line.tokens == replies[-1].usage.tokens_in > 0
    assert replies[0] == replies[1] != replies[2]
    rows = replies[0].numbers()
    assert {len(row) for row in rows} == {DIMENSIONS}
    assert all(math.isclose(cosine(row, row), 1.0, rel_tol=1e-6) for row in rows)


@pytest.mark.asyncio
async def test_documents_with_the_querys_words_come_first(tmp_path: Path) -> None:
    async with stand(tmp_path) as (client, path):
        found = (await client.call(call(ASK))).reply
        best = (await client.call(call(replace(ASK, top_n=1)))).reply
    assert [each.index for each in found.results] == [1, 2, 0]
    assert best.results == found.results[:1]
    assert [line.tokens for line in read_ledger(path)] == [found.usage.tokens_in] * 2


@pytest.mark.asyncio
@pytest.mark.parametrize("request_", [EMBED, ASK])
@pytest.mark.parametrize(
    ("fault", "errors", "outcome"),
    [
        ("rate_429", (e.RateLimited,), RequestOutcome.RATE_LIMITED),
        ("rate_5xx", (e.ServerError, e.Overloaded), RequestOutcome.SERVER_ERROR),
        ("rate_malformed", (e.MalformedReply,), RequestOutcome.MALFORMED),
        ("rate_drop", (e.ConnectionLost,), RequestOutcome.DROPPED),
    ],
)
async def test_each_fault_reaches_the_client_as_what_it_is(
    request_: Request,
    fault: str,
    errors: tuple[type[e.AttemptError], ...],
    outcome: RequestOutcome,
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, **{fault: 1.0}) as (client, path):
        for _ in range(10):
            with pytest.raises(errors):
                await client.call(call(request_))
    assert [line.outcome for line in read_ledger(path)] == [outcome] * 10


@pytest.mark.asyncio
async def test_a_limit_on_tokens_counts_what_is_embedded(tmp_path: Path) -> None:
    long = EmbedRequest(texts=("word " * 800,))  # 1,000 tokens, by the length
    async with stand(tmp_path, tpm=2500.0) as (client, path):
        seen: list[str] = []
        for _ in range(4):
            try:
                await client.call(call(long))
                seen.append("answered")
            except e.RateLimited:
                seen.append("refused")
    assert seen == ["answered", "answered", "refused", "refused"]
    booked: list[LedgerLine] = read_ledger(path)
    assert [line.tokens > 1000 for line in booked] == [True, True, False, False]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embeddings", b"{}"),
        ("/embeddings", b'{"model":"x","input":[7]}'),
        ("/rerank", b'{"model":"x","query":"q"}'),
        ("/rerank", b"\xff"),
    ],
)
def test_what_is_no_request_is_refused(path: str, body: bytes) -> None:
    with pytest.raises(e.BadRequest, match="request"):
        READERS[path](body)


texts = st.lists(st.text(st.characters(codec="utf-8")), min_size=1).map(tuple)


@given(st.builds(EmbedRequest, texts=texts, dimensions=st.none() | st.integers(1, 8)))
def test_any_texts_get_a_vector_each_of_the_length_asked_for(
    request: EmbedRequest,
) -> None:
    found = vectors(request, 0).numbers()
    assert [len(row) for row in found] == [request.dimensions or DIMENSIONS] * len(
        request.texts
    )
    assert all(math.isclose(cosine(row, row), 1.0, rel_tol=1e-5) for row in found)


@given(
    st.builds(
        RerankRequest,
        query=st.text(),
        documents=texts,
        top_n=st.none() | st.integers(1, 5),
    )
)
def test_any_documents_are_ranked_once_each(request: RerankRequest) -> None:
    found = ranking(request, 0).results
    count = len(request.documents)
    assert len(found) == min(count, request.top_n or count)
    assert len({each.index for each in found}) == len(found)
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("packed", [True, False])
@given(texts)
def test_requests_read_back_as_they_were_written(
    packed: bool, found: tuple[str, ...]
) -> None:
    embed = EmbedRequest(texts=found, dimensions=3)
    asked = READERS["/embeddings"](encode_embed(embed, "x", packed=packed))
    assert (asked.model, asked.request, asked.packed) == ("x", embed, packed)
    rerank = RerankRequest(query=found[0], documents=found, top_n=2)
    assert READERS["/rerank"](encode_rerank(rerank, "x")).request == rerank


def test_a_jobs_baseline_embeds_and_ranks_and_some_of_it_is_spoiled() -> None:
    provider = Provider(SimulateOptions(), cast("Job", PanelJob()))
    row = provider.dialect
    kinds: Counter[str] = Counter()
    for n in range(300):
        for request, form in (
            (EmbedRequest(texts=(f"a{n}", "b")), OPENAI_EMBEDDINGS),
            (RerankRequest(query=f"a{n}", documents=("b", "c")), RERANK),
        ):
            asked = SimulatedRequest(
                model="x", request=request, tokens=1, packed=n % 2 == 0
            )
            draft = provider.draft(row, asked, str(n))
            assert isinstance(draft, ReplyDraft)
            path = "/embeddings" if form is OPENAI_EMBEDDINGS else "/rerank"
            reply = provider.reply(row, asked, str(n), path, draft)
            found = decode_reply(form, reply.body)
            mine = PanelJob().baseline(request)
            if isinstance(found, Vectors):
                kinds["vectors", found.packed == mine.packed] += 1
            if isinstance(found, Ranking):
                kinds["ranking", found.results == mine.results] += 1
    assert kinds["vectors", True] > kinds["vectors", False] > 0
    assert kinds["ranking", True] > kinds["ranking", False] > 0
