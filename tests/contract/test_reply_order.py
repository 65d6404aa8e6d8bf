"""The order in which every job asks for the fields of a reply, on the wire.

Models fill an object in the order of its schema, so a reason that comes after its
decision explains nothing. The order is looked up in the bytes that an endpoint gets.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from jobs.evidence_retrieval import prompts
from jobs.kit.testing import MemoryAnswers
from runner.batch.client import open_endpoint
from runner.cli.main import exit_code
from runner.clients import Call, ClientOptions, open_client
from runner.clients.wire_shared import Shape, Structure
from runner.errors import AttemptError
from runner.job import Task
from runner.messages import AnyReply, ChatRequest, Reply
from runner.registry import load_job
from tests.replacing import replace
from tests.runner.clients.litellm_provider import talking
from tests.wire_forms import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    Provider,
    batches_at,
    openai_response,
    response_message,
    response_text,
)
from tests.wire_server import Heard, Said, saying

REVIEW: Final = Path("jobs/review_benchmark/sample/extraction/review.txt").resolve()

SETTINGS: Final[Mapping[str, tuple[Mapping[str, Any], ...]]] = {
    "paper-investigation": ({}, {"batch_questions": True}),
    "evidence-retrieval": ({"tasks": ("assess", "rerank")}, {"batch": "post"}),
    "screening": (
        {"criteria_source": "llm", "stages": ("title", "abstract", "fulltext")},
    ),
    "review-benchmark": (
        {"verdict": "judge"},
        {"scale": "0-1", "threshold": 0.3},
        {"extract": REVIEW, "with_excluded": True},
        {"extract": "without headings"},
    ),
    "property-extraction": (
        {"requote": True},
        {"names": "listed"},
        {"properties": "rubric"},
        {"mode": "verify"},
        {"mode": "verify", "verify": "choice"},
    ),
}
"""Settings under which a job's samples reach every stage that asks a chat."""

_SCREENED = (
    ("criteria", "reason", "reason_code", "decision", "p_include"),
    ("criterion", "met"),
)
_EVIDENCE = ("n", "relevance")
_STUDY = ("p_value", "significance")
_VALUE = ("material", "condition", "quote", "value", "unit")
_REFERENCE = [
    "cochrane_ref_id",
    "quote",
    "authors",
    "title",
    "year",
    "journal",
    "doi",
    "pmid",
]

ORDERS: Final[Mapping[tuple[str, str], frozenset[tuple[str, ...]]]] = {
    (job, stage): frozenset(tuple(order) for order in orders)
    for job, stages in {
        "paper-investigation": {
            "extract": [["variants"]],
            "question": [["answer"], _STUDY],
            "batch": [["answers"], ["n", "answer"], ["n", *_STUDY]],
        },
        "evidence-retrieval": {
            "assess": [
                ["sentences", "evidence_probability"],
                ["criteria"],
                ["id", "sentences", "evidence_probability"],
                _EVIDENCE,
            ],
            "rerank": [["ranking"]],
        },
        "screening": {
            "criteria": [
                ["question", "pico", "inclusion", "exclusion"],
                ["population", "intervention", "comparison", "outcome"],
            ],
            "title": _SCREENED,
            "abstract": _SCREENED,
            "fulltext": _SCREENED,
        },
        "review-benchmark": {
            "plan": [["rationale", "queries"], ["label", "all_of", "none_of"]],
            "score": [["rationale", "score"]],
            "conclude": [["conclusion", "direction", "certainty"]],
            "judge": [["rationale", "direction", "similarity"]],
            "x.places": [["places"], ["section", "begin", "end"]],
            "x.meta": [
                [
                    *("cochrane_id", "title", "research_question", "pico"),
                    *("inclusion_criteria", "exclusion_criteria"),
                    *("authors_conclusion", "date_range"),
                ],
                ["population", "intervention", "comparison", "outcome"],
            ],
            "x.refs": [["references"], _REFERENCE],
            "x.excluded": [["references"], [*_REFERENCE, "reason"]],
        },
        "property-extraction": {
            "extract": [
                ["properties"],
                ["property", *_VALUE],
                ["property", "label", *_VALUE],
            ],
            "requote": [["rows"], ["id", "quote", "withdraw"]],
            "verify": [["reason", "is_match"], ["reason", "target"]],
        },
    }.items()
    for stage, orders in stages.items()
}
"""The fields of each object that a stage asks for, in the order of the answer."""


Asked: TypeAlias = Mapping[str, Mapping[str, tuple[ChatRequest, ...]]]
"""Chats by job and stage, one for each schema."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """What the jobs ask about their samples, under all `SETTINGS`."""
    plain = tmp_path_factory.mktemp("review") / "plain.txt"
    plain.write_text("A review\n\nOf something.\n")
    return {name: _asked_by(name, plain) for name in SETTINGS}


def _asked_by(name: str, plain: Path) -> Mapping[str, tuple[ChatRequest, ...]]:
    job = load_job(name)
    found: dict[str, dict[str, ChatRequest]] = {}
    for values in SETTINGS[name]:
        own = {
            key: plain if key == "extract" and not isinstance(each, Path) else each
            for key, each in values.items()
        }
        settings = job.with_sample(job.Settings(**own))
        dataset = job.load(settings)

        def answer(task: Task) -> str | AnyReply:
            request = job.request(dataset, task)  # noqa: B023 - called in this turn
            if isinstance(request, ChatRequest) and request.schema is not None:
                found.setdefault(task.stage, {})[request.schema.json] = request
            said = job.baseline(request)
            if not isinstance(said, str):
                return said
            _check_order(said, ORDERS[name, task.stage])
            # no quote of this stands in a paper, so that it is asked for again
            return Reply(text=_QUOTE.sub('"quote": "No paper says so."', said))

        MemoryAnswers.of_run(job, dataset, answer)
    return {stage: tuple(own.values()) for stage, own in found.items()}


def _check_order(said: str, orders: Iterable[tuple[str, ...]]) -> None:
    """The fields of a baseline's answer stand in a declared order."""

    def check(fields: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in fields]
        known = [order for order in orders if set(names) <= set(order)]
        assert any(names == [n for n in order if n in names] for order in known), names
        return dict(fields)

    if said.startswith("{"):
        json.loads(said, object_pairs_hook=check)


def _requests(asked: Asked) -> Iterator[ChatRequest]:
    for stages in asked.values():
        for own in stages.values():
            yield from own


def _orders(node: object) -> Iterator[tuple[str, ...]]:
    """The fields of every object in a schema, in the order of its text."""
    if isinstance(node, list):
        for each in node:
            yield from _orders(each)
    elif isinstance(node, dict):
        fields = node.get("properties")
        if isinstance(fields, dict):
            yield tuple(fields)
            assert node.get("required", list(fields)) == list(fields)
            assert node.get("propertyOrdering", list(fields)) == list(fields)
            node = {**node, "properties": list(fields.values())}
        for each in node.values():
            yield from _orders(each)


@pytest.mark.parametrize(("name", "stage"), ORDERS)
def test_every_stage_asks_for_reasons_before_decisions(
    asked: Asked, name: str, stage: str
) -> None:
    chats = asked[name][stage]
    schemas = [json.loads(each.schema.json) for each in chats if each.schema]
    assert {order for each in schemas for order in _orders(each)} == ORDERS[name, stage]


def test_no_stage_that_asks_a_chat_is_left_out(asked: Asked) -> None:
    for name in SETTINGS:
        chats = {each.name for each in load_job(name).stages} - {"embed", "rerank_api"}
        assert set(asked[name]) == chats - IMPORTED, name


_QUOTE: Final = re.compile(r'"quote": "(?:[^"\\]|\\.)*"')

IMPORTED: Final = frozenset({"given", "result", "rows"})
"""Stages that hold what an import brought and are never asked."""

_FIELD: Final = re.compile(r'"([a-z_]+)"(?=:)')


@pytest.mark.parametrize(("name", "stage"), ORDERS)
def test_the_prompt_shows_the_fields_in_the_order_of_the_schema(
    asked: Asked, name: str, stage: str
) -> None:
    for request in asked[name][stage]:
        assert request.schema is not None
        text = "".join(each.text for each in request.messages)
        shown = _FIELD.findall(text[text.rindex("Answer with one JSON object") :])
        for order in _orders(json.loads(request.schema.json)):
            places = [shown.index(field) for field in order]
            assert places == sorted(places), (order, shown)


def _body(heard: Heard) -> Iterator[tuple[str, ...]]:
    """The orders in a body, whatever form it has; a file of a batch is lines."""
    text = heard.raw.decode()
    if heard.headers["content-type"].startswith("multipart/"):
        lines = [line for line in text.splitlines() if line.startswith("{")]
        assert lines
    else:
        lines = [text]
    for line in lines:
        yield from _orders(json.loads(line))


def _wanted(request: ChatRequest) -> set[tuple[str, ...]]:
    assert request.schema is not None
    found = set(_orders(json.loads(request.schema.json)))
    assert any(found <= orders for orders in ORDERS.values())
    return found


def _call(request: ChatRequest) -> Call:
    task = Task(number=1, stage="s", key="k", model="m", replicate=1)
    return Call(task=task, request=request)


def _chat(_heard: Heard) -> Said:
    return Said(body=DEEPSEEK.reply("{}"))


def _response(_heard: Heard) -> Said:
    return Said(body=openai_response(response_message(response_text("{}"))))


def _refusal(words: str) -> Said:
    return Said(status=400, body={"error": {"message": f"response_format: {words}"}})


@pytest.mark.asyncio
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    "refusals",
    [
        (),
        ("strict is not supported",),
        ("the schema has keywords that are not supported: minimum",),
    ],
    ids=["strict", "loose", "plain"],
)
async def test_an_endpoint_of_openais_form_gets_the_declared_order(
    asked: Asked, api: str, refusals: tuple[str, ...]
) -> None:
    speech = _chat if api == "chat" else _response
    for request in _requests(asked):
        said = [_refusal(words) for words in refusals]
        async with saying(*said, speech) as wire:
            options = ClientOptions(base_url=wire.url, api=api)  # type: ignore[arg-type]
            client = open_client("openai/m", options)
            for _ in refusals:
                with suppress(AttemptError):
                    await client.call(_call(request))
            await client.call(_call(request))
            await client.close()
        assert len(wire.heard) == 1 + len(refusals)
        for heard in wire.heard:
            assert set(_body(heard)) == _wanted(request)


@pytest.mark.asyncio
@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI, DEEPSEEK], ids=repr)
async def test_a_provider_behind_litellm_gets_the_declared_order(
    asked: Asked, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {name: own for name, own in os.environ.items() if "_API_" not in name}
    monkeypatch.setattr(os, "environ", kept)
    replies = Said(body=provider.reply("{}"))
    async with talking(provider, replies) as (wire, client):
        for request in _requests(asked):
            wire.heard.clear()
            with suppress(AttemptError):
                await client.call(_call(request))
            (heard,) = wire.heard
            assert _wanted(request) <= set(_body(heard))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("form", "options", "shape"),
    [
        ("openai", {}, Shape()),
        ("openai", {"api": "responses"}, Shape()),
        ("anthropic", {}, Shape()),
        ("anthropic", {}, Shape(plain_schema=True)),
        ("anthropic", {}, Shape(structure=Structure.OBJECT)),
    ],
)
async def test_a_batch_carries_the_declared_order(
    asked: Asked, form: str, options: dict[str, Any], shape: Shape
) -> None:
    requests = tuple(_requests(asked))
    async with saying(Said(body={"id": "b-1"})) as wire:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, wire.url, **options))
        bodies = [endpoint.encode(each, shape) for each in requests]
        items = [(f"k-{n}", body) for n, body in enumerate(bodies)]
        file = await endpoint.upload("k", items)
        await endpoint.create("k", items, file)
        await endpoint.close()
    sent = {order for heard in wire.heard for order in _body(heard)}
    assert sent == {order for each in requests for order in _wanted(each)}


def test_a_log_of_another_order_is_read_and_the_change_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIFTLOG_NO_REPORT", "1")
    words = ("run", "evidence-retrieval", "--run-id", "r", "--no-score")
    with monkeypatch.context() as before:
        given = json.loads(prompts.ASSESS.json)
        alphabetical = json.dumps(given, sort_keys=True, separators=(",", ":"))
        before.setattr(prompts, "ASSESS", replace(prompts.ASSESS, json=alphabetical))
        assert exit_code(words) == 0
    assert exit_code(("score", "r")) == 0
    assert exit_code(("explain", "r", "post_01/A.1")) == 0
    assert exit_code(("verify", "r")) == 0
    capsys.readouterr()
    assert exit_code(("resume", "r")) == 1
    assert "would now send another request" in capsys.readouterr().err
    assert exit_code(("resume", "r", "--accept-changes")) == 0
