"""The cache as a run holds it: opened or left out, and written in the background.

Another question, another key: whatever may change the answer is in it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.client import ClientOptions, Received, Secret
from runner.clients.wire import encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.clients.wire_shared import skeleton
from runner.engine.answer_cache import (
    AnswerOrigin,
    ResponseCache,
    cache_key,
    cache_path,
    origin_of,
    response_cache,
)
from runner.errors import UsageError
from runner.job import Task
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    Reply,
    Request,
    RerankRequest,
    Schema,
    TextPart,
    Usage,
    Vectors,
)
from runner.options import RunOptions, options_from
from store import cache as file
from store.clock import SystemClock
from tests.replacing import replace

DIRECT = ClientOptions(base_url="http://x")
CLOCK = SystemClock()


def _options(folder: Path, **more: object) -> RunOptions:
    return options_from({"cache": True, "cache_dir": folder, **more})


def _task(key: str, model: str = "m") -> Task:
    return Task(number=1, stage="s", key=key, model=model, replicate=1)


def _received(text: str) -> Received:
    return Received(
        body=encode_reply(text),
        form=OPENAI_CHAT,
        reply=Reply(text=text),
        headers={"x-request-id": "1"},
    )


def _open(
    options: RunOptions, told: list[str], **clients: ClientOptions
) -> AbstractAsyncContextManager[ResponseCache | None]:
    return response_cache(
        options, clients or {"m": DIRECT}, run="r", clock=CLOCK, notify=told.append
    )


def test_what_is_kept_is_there_when_the_run_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[str] = []
        async with _open(_options(tmp_path), told) as cache:
            assert cache is not None
            for n in range(600):
                cache.keep(_task("k"), f"{n}", _received(f"reply {n}"))
                if n % 50 == 0:
                    await asyncio.sleep(0)
        async with _open(_options(tmp_path), told) as cache:
            assert cache is not None
            asked = [(_task("another key"), f"{n}") for n in range(601)]
            *found, missing = await cache.find(asked)
            assert missing is None
            assert found == [_received(f"reply {n}") for n in range(600)]
        with closing(file.connect(cache_path(tmp_path))) as conn:
            (group,) = file.groups(conn)
        assert (group.entries, group.hits) == (600, 600)
        assert group.endpoint == "http://x/v1"
        assert told == []

    asyncio.run(main())


def test_vectors_come_back_as_they_were(tmp_path: Path) -> None:
    async def main() -> None:
        vectors = Vectors.of(
            [[0.5, -2.0], [1.0, 0.25]], Usage(tokens_in=4, tokens_out=0)
        )
        form, body = encode_answer(vectors)
        received = Received(body=body, form=form, reply=vectors)
        async with _open(_options(tmp_path), []) as cache:
            assert cache is not None
            cache.keep(_task("k"), "1", received)
            await cache.flush()
            assert await cache.find([(_task("k"), "1")]) == [received]

    asyncio.run(main())


def test_it_is_written_while_the_run_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with _open(_options(tmp_path), []) as cache:
            assert cache is not None
            cache.keep(_task("k"), "1", _received("reply"))
            with closing(file.connect(cache_path(tmp_path))) as conn:
                for _ in range(10_000):
                    if file.groups(conn):
                        return
                    await asyncio.sleep(0.005)
        pytest.fail("nothing was written")

    asyncio.run(main())


def test_more_than_may_wait_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(_received("reply").body)
    monkeypatch.setattr("runner.engine.answer_cache.WAITING_BYTES", 10 * size)

    async def main() -> None:
        async with _open(_options(tmp_path), []) as cache:
            assert cache is not None
            for n in range(30):
                cache.keep(_task("k"), f"{n}", _received("reply"))
            await cache.flush()
            cache.keep(_task("k"), "later", _received("reply"))
        with closing(file.connect(cache_path(tmp_path))) as conn:
            assert file.groups(conn)[0].entries == 11

    asyncio.run(main())


def test_replicates_and_models_have_answers_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        clients = {"m": DIRECT, "n": DIRECT, "baseline/lexical": ClientOptions()}
        async with _open(_options(tmp_path), [], **clients) as cache:
            assert cache is not None
            assert not cache.serves("baseline/lexical")
            cache.keep(_task("k"), "1", _received("reply"))
            await cache.flush()
            second = Task(number=2, stage="s", key="k", model="m", replicate=2)
            asked = [(_task("k"), "1"), (_task("k", "n"), "1"), (second, "1")]
            assert [found is not None for found in await cache.find(asked)] == [
                True,
                False,
                False,
            ]

    asyncio.run(main())


def test_none_is_opened_where_none_is_wanted_or_could_serve(tmp_path: Path) -> None:
    async def main() -> None:
        folder = tmp_path / "caches"
        async with _open(_options(folder, cache=False), []) as cache:
            assert cache is None
        offline = {"baseline/lexical": ClientOptions()}
        async with _open(_options(folder), [], **offline) as cache:
            assert cache is None
        assert not folder.exists()

    asyncio.run(main())


def test_one_that_cannot_be_made_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "file").touch()
        told: list[str] = []
        async with _open(_options(tmp_path / "file"), told) as cache:
            assert cache is None
        (sentence,) = told
        assert "left out" in sentence
        assert "choose another --cache-dir" in sentence

    asyncio.run(main())


def test_an_error_of_the_run_comes_out_as_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with _open(_options(tmp_path), []):
            raise LookupError("the run's own")

    with pytest.raises(LookupError, match="own"):
        asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems, other folders")
def test_it_lies_among_the_users_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_path(None) == Path("/somewhere/siftlog/cache.db")
    assert cache_path(Path("here")) == Path("here/cache.db")


REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="be brief"),)),
        Message(
            role="user",
            parts=(TextPart(text="the paper"), TextPart(text="the question")),
        ),
    ),
    max_tokens=16,
    temperature=0.0,
    schema=Schema(name="s", json='{"type":"object"}'),
)
ORIGIN = AnswerOrigin(model="m", endpoint="http://x/v1", structured=True)

EMBED = EmbedRequest(texts=("a", "b"), dimensions=8, purpose="query")
RERANK = RerankRequest(query="q", documents=("a", "b"), top_n=1)

OTHER_CHATS: dict[str, tuple[object, ...]] = {
    "messages": (
        REQUEST.messages[:1],
        REQUEST.messages[::-1],
        (replace(REQUEST.messages[0], role="user"), REQUEST.messages[1]),
        (*REQUEST.messages, Message(role="user", parts=(TextPart(text=""),))),
    ),
    "max_tokens": (17,),
    "temperature": (None, 0.1, 1.0),
    "parameters": (
        Parameters(top_p=0.5),
        Parameters(seed=1),
        Parameters(reasoning_effort="low"),
        Parameters(thinking='{"type":"disabled"}'),
        Parameters(service_tier="flex"),
        Parameters(extra_body='{"a":1}'),
        Parameters(extra_headers=(("x-a", "1"),)),
        Parameters(absent=frozenset({"max_output_tokens"})),
    ),
    "schema": (
        None,
        Schema(name="t", json='{"type":"object"}'),
        Schema(name="s", json='{"type":"array"}'),
    ),
}
DERIVED = {"room"}
"""Follows from the model's name, which is in the key."""
OTHERS: dict[Request, dict[str, tuple[object, ...]]] = {
    REQUEST: OTHER_CHATS,
    EMBED: {
        "texts": (("a",), ("b", "a"), ("a", "b", ""), ("ab",)),
        "dimensions": (None, 9),
        "purpose": (None, "document"),
        "parameters": (Parameters(extra_body='{"a":1}'),),
    },
    RERANK: {
        "query": ("", "a"),
        "documents": (("b", "a"), ("a",), ("q", "b")),
        "top_n": (None, 2),
        "parameters": (Parameters(extra_body='{"a":1}'),),
    },
}
OTHER_ORIGINS: dict[str, tuple[Any, ...]] = {
    "model": ("n", "openai/m", ""),
    "endpoint": ("https://x/v1", "http://x:81/v1"),
    "structured": (False,),
    "api": ("responses",),
    "addresses": ((("AZURE_API_VERSION", "1"),), (("AZURE_API_VERSION", "2"),)),
}


def _key(
    request: Request = REQUEST, origin: AnswerOrigin = ORIGIN, replicate: int = 1
) -> bytes:
    sha256 = skeleton(request, origin.model).sha256
    return cache_key(origin, request_sha256=sha256, replicate=replicate)


def test_every_field_of_request_and_origin_changes_the_key() -> None:
    # a field that is added must be thought of here
    assert {type(request) for request in OTHERS} == set(get_args(Request))
    assert {field.name for field in fields(AnswerOrigin)} == set(OTHER_ORIGINS)
    keys = []
    for request, others in OTHERS.items():
        named = {field.name for field in fields(request)}
        assert named - DERIVED == set(others)
        keys.append(_key(request))
        for name, values in others.items():
            changed: Any = [{name: value} for value in values]
            keys += [_key(replace(request, **change)) for change in changed]
    for name, values in OTHER_ORIGINS.items():
        keys += [_key(origin=replace(ORIGIN, **{name: value})) for value in values]
    keys += [_key(replicate=2), _key(replicate=11)]
    assert len(set(keys)) == len(keys)


texts = st.lists(st.text(max_size=8), min_size=1, max_size=4)


@given(texts, texts)
def test_two_questions_share_a_key_only_if_their_parts_are_the_same(
    some: list[str], others: list[str]
) -> None:
    def ask(parts: list[str]) -> bytes:
        message = Message(role="user", parts=tuple(TextPart(text=p) for p in parts))
        return _key(replace(REQUEST, messages=(message,)))

    assert (ask(some) == ask(others)) == (some == others)


def test_the_hint_for_a_providers_own_cache_changes_nothing() -> None:
    hinted = replace(
        REQUEST,
        messages=tuple(
            replace(m, parts=tuple(replace(p, cache=True) for p in m.parts))
            for m in REQUEST.messages
        ),
    )
    assert _key(hinted) == _key()


@pytest.mark.parametrize("model", ["baseline/lexical", "recorded:answers.jsonl#m"])
def test_what_no_endpoint_answers_has_no_origin(model: str) -> None:
    assert origin_of(model, ClientOptions()) is None
    assert origin_of(model, ClientOptions(base_url="http://x")) is None


def test_an_address_counts_as_it_is_used_and_a_key_does_not_count() -> None:
    def origin(base_url: str | None, key: str | None = None) -> AnswerOrigin | None:
        secret = Secret(key) if key else None
        return origin_of("m", ClientOptions(base_url=base_url, api_key=secret))

    assert origin("http://x") == origin("http://x/v1/", "a-key") == ORIGIN
    assert origin("http://y") != ORIGIN
    direct = origin_of("openai/m", ClientOptions())
    assert direct is not None
    assert direct.endpoint == "https://api.openai.com/v1"
    with pytest.raises(UsageError):
        origin("http://me:word@x/v1")


def test_a_providers_origin_holds_the_variables_that_say_where_it_is() -> None:
    def origin(**environment: str) -> AnswerOrigin | None:
        return origin_of("azure/m", ClientOptions(environment=environment))

    plain = origin(AZURE_API_KEY="k")
    assert plain == AnswerOrigin(model="azure/m", endpoint="azure", structured=True)
    named = origin(AZURE_API_KEY="k", AZURE_API_BASE="https://a", AZURE_API_VERSION="1")
    assert named is not None
    assert named.addresses == (
        ("AZURE_API_BASE", "https://a"),
        ("AZURE_API_VERSION", "1"),
    )
    assert "k" not in {value for _, value in named.addresses}


def test_a_schema_that_is_not_sent_makes_another_question() -> None:
    spoken = origin_of("m", ClientOptions(base_url="http://x", structured=False))
    assert spoken == replace(ORIGIN, structured=False)
