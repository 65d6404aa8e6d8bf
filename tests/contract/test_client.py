"""What every model client promises, whatever is behind it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from runner.clients import Call, ClientOptions, ModelClient, open_client
from runner.clients.fallbacks import Fallbacks
from runner.clients.offline import FunctionClient
from runner.clients.wire import decode_reply
from runner.errors import (
    AttemptError,
    BadRequest,
    FormRefused,
    OptionRefused,
    UsageError,
)
from runner.job import Job, Task
from runner.messages import (
    AnyReply,
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    Ranking,
    Reply,
    RerankRequest,
    TextPart,
    Vectors,
)
from runner.model_terms import ModelTerms
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.runner.toy_jobs import PanelJob
from tests.wire_forms import (
    DEEPSEEK,
    REASONING_ITEM,
    openai_response,
    response_message,
    response_text,
)
from tests.wire_server import Heard, Said, WireServer, saying

pytestmark = pytest.mark.asyncio

Opener: TypeAlias = Callable[[Path], AbstractAsyncContextManager[ModelClient]]
KEYS = [f"PMC{n}" for n in range(1, 9)]


def call(key: str) -> Call:
    return Call(
        task=Task(number=1, stage="extract", key=key, model="m", replicate=1),
        request=ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text=f"What of {key}?"),)),),
            max_tokens=10,
        ),
    )


def embed(key: str) -> Call:
    return replace(call(key), request=EmbedRequest(texts=(key, "What of it?")))


def rank(key: str) -> Call:
    request = RerankRequest(query=key, documents=("What of it?", key))
    return replace(call(key), request=request)


def answer(call: Call) -> AnyReply:
    if call.task.key not in KEYS:
        raise BadRequest("no such key")
    said = PanelJob().baseline(call.request)
    return Reply(text=said) if isinstance(said, str) else said


@asynccontextmanager
async def function(_folder: Path) -> AsyncIterator[ModelClient]:
    yield FunctionClient(answer)


@asynccontextmanager
async def baseline(_folder: Path) -> AsyncIterator[ModelClient]:
    client = open_client("baseline/lexical", ClientOptions(job=cast("Job", PanelJob())))
    yield client
    await client.close()


@asynccontextmanager
async def recorded_file(folder: Path) -> AsyncIterator[ModelClient]:
    path = folder / "answers.jsonl"
    path.write_text(
        "".join(json.dumps({"key": key, "response": key}) + "\n" for key in KEYS)
    )
    client = open_client(f"recorded:{path}", ClientOptions())
    yield client
    await client.close()


@asynccontextmanager
async def openai_compatible(_folder: Path) -> AsyncIterator[ModelClient]:
    async with running(SimulateOptions()) as base_url:
        client = open_client("openai/x", ClientOptions(base_url=base_url))
        yield client
        await client.close()


@asynccontextmanager
async def openai_compatible_failing(_folder: Path) -> AsyncIterator[ModelClient]:
    async with running(SimulateOptions(rate_5xx=1.0)) as base_url:
        client = open_client("openai/x", ClientOptions(base_url=base_url))
        yield client
        await client.close()


def respond(heard: Heard) -> Said:
    """An endpoint that takes chats at `/responses` alone."""
    if heard.path != "/v1/responses":
        return Said(body={"error": {"message": "no such path"}}, status=404)
    asked = heard.body["input"][-1]["content"]
    part = response_text(f"I have read: {asked}")
    return Said(body=openai_response(REASONING_ITEM, response_message(part)))


@asynccontextmanager
async def openai_responses(_folder: Path) -> AsyncIterator[ModelClient]:
    async with saying(respond) as server:
        options = ClientOptions(base_url=server.url, api="responses")
        client = open_client("openai/x", options)
        yield client
        await client.close()


@asynccontextmanager
async def openai_responses_failing(_folder: Path) -> AsyncIterator[ModelClient]:
    error = {"code": "server_error", "message": "try again"}
    failed = openai_response(status="failed", error=error, usage=None)
    async with saying(Said(body=failed)) as server:
        options = ClientOptions(base_url=server.url, api="responses")
        client = open_client("openai/x", options)
        yield client
        await client.close()


@asynccontextmanager
async def through_litellm(
    _folder: Path, *, rate_5xx: float = 0.0
) -> AsyncIterator[ModelClient]:
    async with running(SimulateOptions(rate_5xx=rate_5xx)) as base_url:
        environment = {"NVIDIA_NIM_API_KEY": "none", "NVIDIA_NIM_API_BASE": base_url}
        client = open_client("nvidia_nim/x", ClientOptions(environment=environment))
        yield client
        await client.close()


def through_litellm_failing(folder: Path) -> AbstractAsyncContextManager[ModelClient]:
    return through_litellm(folder, rate_5xx=1.0)


CLIENTS: list[Opener] = [
    function,
    baseline,
    recorded_file,
    openai_compatible,
    openai_responses,
    through_litellm,
]
KINDS: list[Opener] = [function, baseline, openai_compatible]
"""Those that serve every kind; what litellm does stands in a test of its own, and a
recording answers what was recorded."""
FAILING: list[Opener] = [
    function,
    recorded_file,
    openai_compatible_failing,
    openai_responses_failing,
    through_litellm_failing,
]


@pytest.fixture(autouse=True)
def _no_address_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: value for name, value in os.environ.items() if "_API_" not in name}
    monkeypatch.setattr(os, "environ", kept)


@pytest.mark.parametrize("opened", CLIENTS)
async def test_the_stored_body_reads_back_as_the_reply(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened(tmp_path) as client:
        received = await client.call(call("PMC1"))
    assert decode_reply(received.form, received.body) == received.reply
    assert received.reply.text
    assert received.status == 200


@pytest.mark.parametrize("opened", CLIENTS)
async def test_calls_at_the_same_time_get_an_answer_each_to_their_own_question(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened(tmp_path) as client:
        alone = [(await client.call(call(key))).reply for key in KEYS]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(client.call(call(key))) for key in KEYS]
        figures = client.statistics()
    assert [task.result().reply for task in tasks] == alone
    assert len({reply.text for reply in alone}) > 1
    assert figures.answered == 2 * len(KEYS)
    assert (figures.failed, figures.in_flight) == (0, 0)
    assert figures.bytes_received > 0


@pytest.mark.parametrize("opened", KINDS)
async def test_vectors_and_scores_come_one_a_text_and_read_back_the_same(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened(tmp_path) as client:
        embedded = await client.call(embed("PMC1"))
        ranked = await client.call(rank("PMC1"))
        again = await client.call(embed("PMC1"))
    for received in (embedded, ranked):
        assert decode_reply(received.form, received.body) == received.reply
    assert isinstance(embedded.reply, Vectors)
    assert len(embedded.reply.packed) == 2
    assert len(set(embedded.reply.packed)) == 2
    assert embedded.reply == again.reply
    assert isinstance(ranked.reply, Ranking)
    assert {each.index for each in ranked.reply.results} == {0, 1}


@pytest.mark.parametrize("opened", FAILING)
async def test_a_failed_attempt_raises_one_of_our_errors_and_is_counted(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened(tmp_path) as client:
        with pytest.raises(AttemptError):
            await client.call(call("PMC99"))
        figures = client.statistics()
    assert (figures.answered, figures.failed, figures.in_flight) == (0, 1, 0)


@pytest.mark.parametrize("opened", CLIENTS)
async def test_a_client_that_was_never_used_closes(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened(tmp_path) as client:
        assert client.statistics().in_flight == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("baseline/lexical", "inside a job's run"),
        ("anthropic/claude", "ANTHROPIC_API_KEY"),
        ("nowhere/x", "--base-url"),
        ("gpt-x", "--base-url"),
    ],
)
async def test_a_model_that_nothing_serves_says_what_to_do(
    model: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        open_client(model, ClientOptions())


@asynccontextmanager
async def refusing(
    opener: str, terms: ModelTerms
) -> AsyncIterator[tuple[WireServer, ModelClient, Fallbacks]]:
    """A client of one kind at an endpoint that takes no seed and no temperature."""

    def answer(heard: Heard) -> Said:
        for name in ("temperature", "seed"):
            if name in heard.body:
                said = {"message": f"Unsupported parameter: '{name}' is not supported"}
                return Said(body={"error": said}, status=400)
        return Said(body=DEEPSEEK.reply("yes"))

    async with saying(answer) as wire:
        if opener == "direct":
            model, options = "openai/x", ClientOptions(base_url=wire.url)
        else:
            environment = {
                "NVIDIA_NIM_API_KEY": "none",
                "NVIDIA_NIM_API_BASE": f"{wire.url}/v1",
            }
            model, options = "nvidia_nim/x", ClientOptions(environment=environment)
        ladder = Fallbacks("an endpoint", model, terms=terms)
        headers = {"x-title": "a study"}
        client = open_client(model, replace(options, ladder=ladder, headers=headers))
        yield wire, client, ladder
        await client.close()


ONLINE = ("direct", "litellm")


@pytest.mark.parametrize("opener", ONLINE)
async def test_a_default_that_is_refused_is_left_out_and_recorded(opener: str) -> None:
    async with refusing(opener, ModelTerms()) as (wire, client, ladder):
        with pytest.raises(FormRefused):
            await client.call(call(KEYS[0]))
        for key in KEYS[1:]:
            await client.call(call(key))
    assert ["temperature" in heard.body for heard in wire.heard] == [True] + [False] * 7
    (fact,) = ladder.take_facts()
    assert (fact.name, fact.instead, fact.how) == ("temperature", None, "refused")
    assert {heard.headers["x-title"] for heard in wire.heard} == {"a study"}


@pytest.mark.parametrize("opener", ONLINE)
async def test_an_option_that_is_refused_stops_with_the_endpoints_words(
    opener: str,
) -> None:
    given = Parameters(seed=7, extra_body='{"chat_template_kwargs":{"a":false}}')
    terms = ModelTerms(parameters=given, explicit=given.names)
    made = call(KEYS[0])
    assert isinstance(made.request, ChatRequest)
    request = replace(made.request, parameters=given, temperature=None)
    async with refusing(opener, terms) as (wire, client, ladder):
        with pytest.raises(OptionRefused, match="'seed' is not supported"):
            await client.call(replace(made, request=request))
    (heard,) = wire.heard
    assert heard.body["chat_template_kwargs"] == {"a": False}
    assert not ladder.take_facts()
