"""The cache as a run holds it: opened or left out, and written in the background."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest

from runner.clients.client import ClientOptions, Received
from runner.clients.wire import encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.engine.answer_cache import ResponseCache, cache_path, response_cache
from runner.job import Task
from runner.messages import Reply, Usage, Vectors
from runner.options import RunOptions, options_from
from store import cache as file
from store.clock import SystemClock

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
