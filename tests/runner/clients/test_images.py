"""Images of pages reach each form of endpoint, and the log stores each one once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.inputs.pdf import page_images
from runner.clients import Call, ClientOptions, Secret, open_client
from runner.clients.litellm_client import messages
from runner.clients.wire import encode_messages
from runner.clients.wire_openai import encode_chat, encode_responses
from runner.clients.wire_shared import skeleton
from runner.job import Task
from runner.messages import ChatRequest, ImagePart, Message, Part, TextPart
from runner.money.tokens import (
    image_counter,
    image_tokens,
    prompt_tokens,
    usual_prompt,
    worst_prompt,
)
from runner.simulate.anthropic_messages import read_message
from runner.simulate.options import SimulateOptions
from runner.simulate.requests import read_request, read_responses
from runner.simulate.server import running
from store.read.tasks import part_text
from tests.pdf_pages import pdf

TEXT = "Which plots were watered? "


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImagePart, ...]:
    path = tmp_path_factory.mktemp("images") / "a.pdf"
    path.write_bytes(pdf(["There were 40 plots.", "They were watered."]))
    return page_images(path)


def chat(*parts: Part) -> ChatRequest:
    return ChatRequest(messages=(Message(role="user", parts=parts),), max_tokens=10)


def test_pages_become_images_of_the_size_that_the_resolution_gives(
    pages: tuple[ImagePart, ...], tmp_path: Path
) -> None:
    assert [(page.width, page.height) for page in pages] == [(992, 1404)] * 2
    assert ImagePart.from_uri(pages[0].uri) == pages[0]
    path = tmp_path / "b.pdf"
    path.write_bytes(pdf(["One.", "Two.", "Three."]))
    (image,) = page_images(path, first=2, last=2, dpi=60)
    assert (image.width, image.height) == (496, 702)


@pytest.mark.parametrize("uri", ["", "https://x/y.png", "data:image/png;base64,AAAA"])
def test_what_is_no_png_is_no_image(uri: str) -> None:
    with pytest.raises(ValueError, match="PNG"):
        ImagePart.from_uri(uri)


def test_each_form_has_text_and_images_in_their_order(
    pages: tuple[ImagePart, ...],
) -> None:
    first, second = pages
    request = chat(TextPart(text=TEXT), first, TextPart(text="So?"), second)
    body: Any = json.loads(encode_chat(request, "x"))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": TEXT},
        {"type": "image_url", "image_url": {"url": first.uri}},
        {"type": "text", "text": "So?"},
        {"type": "image_url", "image_url": {"url": second.uri}},
    ]
    body = json.loads(encode_responses(request, "x"))
    assert [part["type"] for part in body["input"][0]["content"]] == [
        *("input_text", "input_image") * 2
    ]
    body = json.loads(encode_messages(request, "x"))
    blocks = body["messages"][0]["content"]
    assert [block["type"] for block in blocks] == [*("text", "image") * 2]
    assert blocks[1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": first.base64,
    }
    for decoded in (
        read_request(encode_chat(request, "x")),
        read_responses(encode_responses(request, "x")),
        read_message(encode_messages(request, "x")),
    ):
        assert isinstance(decoded.request, ChatRequest)
        assert decoded.request.messages[-1].images == pages


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "gemini/gemini-2.5"])
def test_litellm_gets_images_as_urls(pages: tuple[ImagePart, ...], model: str) -> None:
    message = chat(TextPart(text=TEXT, cache=True), replace(pages[0], cache=True))
    (body,) = messages([("user", message.messages[0])], model)
    text, image = body["content"]
    assert (text["type"], image["image_url"]["url"]) == ("text", pages[0].uri)
    is_claude = "claude" in model
    assert ("cache_control" in text, "cache_control" in image) == (is_claude,) * 2


def test_an_image_is_stored_once_by_its_hash(pages: tuple[ImagePart, ...]) -> None:
    first, second = pages
    one = skeleton(chat(TextPart(text=TEXT), first, first), "m")
    two = skeleton(chat(TextPart(text=TEXT), second), "m")
    assert len(one.blobs) == 2
    assert one.sha256 != two.sha256
    assert first.uri.encode() in {stored.data for stored in one.blobs}
    # the body names hashes, whatever the size of the image
    assert len(one.body) < 600


def test_people_see_the_size_and_the_hash_of_an_image(
    pages: tuple[ImagePart, ...],
) -> None:
    stored = skeleton(chat(TextPart(text=TEXT), pages[0]), "m").blobs
    text, image = (part_text(blob.sha256, blob.data) for blob in stored)
    assert text == TEXT
    assert re.fullmatch(r"\n\[image of \d+ kB, [0-9a-f]{12}\]", image)


def test_images_count_in_every_estimate_of_tokens(pages: tuple[ImagePart, ...]) -> None:
    plain, seeing = chat(TextPart(text=TEXT)), chat(TextPart(text=TEXT), *pages)
    # 992 x 1404 is scaled to 768 x 1087: 2 x 3 tiles
    assert image_tokens(pages[0]) == 85 + 6 * 170
    for estimate in (prompt_tokens, usual_prompt):
        assert estimate(seeing) - estimate(plain) == 2 * 1105
    assert worst_prompt(seeing) - worst_prompt(plain) == 2 * 6404
    assert image_counter("openai/gpt-4o-mini")(pages[0]) == 2833 + 6 * 5667


@pytest.mark.asyncio
async def test_a_simulated_endpoint_receives_and_bills_the_images(
    pages: tuple[ImagePart, ...],
) -> None:
    billed = []
    async with running(SimulateOptions()) as base_url:
        key = Secret("sk-canary-0123456789")
        client = open_client("openai/x", ClientOptions(base_url=base_url, api_key=key))
        for parts in ((), pages):
            task = Task(number=1, stage="s", key="k", model="openai/x", replicate=1)
            request = chat(TextPart(text=TEXT), *parts)
            received = await client.call(Call(task=task, request=request))
            assert received.reply.usage is not None
            billed.append(received.reply.usage.tokens_in)
        await client.close()
    assert billed[1] - billed[0] == 2 * 1105
