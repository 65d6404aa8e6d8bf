"""tests.runner.simulate.test_model

The simulated endpoint embeds and ranks, with the same faults, limits and books.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jsonschema
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
from runner.simulate.model import DIMENSIONS, fitting, plain_text, ranking, vectors
from runner.simulate.options import Chance, RequestOutcome, SimulateOptions
from runner.simulate.provider import Provider
from runner.simulate.replies import ReplyDraft
from runner.simulate.requests import READERS, SimulatedRequest
from runner.simulate.server import running
from tests.ledgers import read_ledger
from tests.runner.toy_jobs import PanelJob

leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "enum": ["a", "b", "c", "d"]},
        {"const": 7},
        {"type": "integer"},
        {"type": "integer", "minimum": -3, "maximum": -1},
        {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6},
        {"type": "number"},
        {"type": "number", "minimum": 2, "maximum": 2},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-3},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
    ]
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["n", "value", "reason"])
    return st.one_of(
        st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties),
                "additionalProperties": False,
            },
            st.dictionaries(names, inner),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda items, least, more: {
                "type": "array",
                "items": items,
                "minItems": least,
                "maxItems": least + more,
            },
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(
            lambda branches: {"anyOf": branches},
            st.lists(inner, min_size=1, max_size=3),
        ),
    )


@given(st.recursive(leaves, grown, max_leaves=8), st.text(), st.integers())
def test_a_value_fits_its_schema_and_comes_out_the_same_again(
    schema: dict[str, Any], text: str, seed: int
) -> None:
    value = fitting(schema, text, Chance(seed))
    jsonschema.validate(value, schema)
    assert fitting(schema, text, Chance(seed)) == value


@given(st.integers())
def test_a_schema_that_refers_to_itself_comes_to_an_end(seed: int) -> None:
    schema = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["next", "children"],
            }
        },
        "$ref": "#/$defs/node",
    }
    jsonschema.validate(fitting(schema, "", Chance(seed)), schema)


def test_strings_are_words_of_the_text_that_hold_a_digit() -> None:
    text = "Carriers of rs9923231 and CYP2C9*3 (p = 0.03), see HLA-B*58:01."
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 4}
    words = {word for n in range(50) for word in fitting(schema, text, Chance(n))}
    assert words == {"rs9923231", "CYP2C9*3", "0.03", "HLA-B*58:01"}


@pytest.mark.parametrize(
    ("text", "word"), [("", "nothing"), ("...", "nothing"), ("plain words", "plain")]
)
def test_a_text_without_digits_still_gives_a_word(text: str, word: str) -> None:
    assert fitting({"type": "string"}, text, Chance(1)) == word


@given(st.text(), st.integers())
def test_plain_text_is_made_of_any_text(text: str, seed: int) -> None:
    assert plain_text(text, Chance(seed)).startswith("The text speaks of ")


QUERY = {
    "type": "object",
    "properties": {
        "all_of": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
        },
        "none_of": {"type": "array", "items": {"type": "string"}},
    },
}


@given(st.integers(0, 10_000))
def test_a_query_is_made_of_the_words_of_the_question(seed: int) -> None:
    text = (
        "At most 8 groups. Data stands in <paper-0a1b2c3d>.\n"
        "<review-5da1dc61>\nQuestion: Does walking help those with asthma?\n"
        "</review-5da1dc61>\n\n<search-d453f969>\nQueries: 6\n</search-d453f969>\n"
    )
    schema = {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"$ref": "#/$defs/Q"}}},
        "$defs": {"Q": QUERY},
    }
    found = fitting(schema, text, Chance(seed))
    jsonschema.validate(found, schema)
    assert found["queries"]
    for query in found["queries"]:
        # an exclusion of the same words would leave nothing to find
        assert query["none_of"] == []
        assert 1 <= len(query["all_of"]) <= 2
        for group in query["all_of"]:
            assert group
            assert set(group) <= {"walking", "help", "asthma"}
            assert len(set(group)) == len(group)


def test_a_query_without_a_word_of_the_question_has_some_word() -> None:
    assert fitting(QUERY, "8", Chance(1))["all_of"][0] == ["8"]


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
