"""The labelling page: who may ask, what is answered once, and that nobody is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from jobs.kit.labels.desk import LabelSelection
from store.labels.folder import read_labels
from tests.browsers import browsing, needs_browser
from tests.tui.labelling.desks import SCRIPT, hostile, items
from tests.tui.labelling.pages import Client, served

SHOW = {"author": "ann", "id": "x", "do": "show"}


def test_only_the_page_itself_is_answered(tmp_path: Path) -> None:
    async def ask() -> None:
        async with served(items(2), tmp_path) as client:
            status, page = await client.get(client.url)
            assert status == 200
            assert "page.js" in page
            origin = client.origin
            for headers in (
                {"Host": "evil.example"},
                {"Host": f"evil.example:{client.port}"},
                {"Host": f"127.0.0.1.evil.example:{client.port}"},
                {"Host": "127.0.0.1"},
                {"Origin": "http://evil.example"},
                {"Origin": "null"},
                {"Origin": f"https://127.0.0.1:{client.port}"},
                {"Origin": f"http://127.0.0.1:{client.port + 1}"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"},
            ):
                assert (await client.get(client.url, **headers))[0] == 403, headers
                assert (await client.post(SHOW, **headers))[0] == 403, headers
            for path in ("/", "/page.js", "/wrong/", "/wrong/page.js", "/t0ken2/"):
                status, text = await client.get(f"{origin}{path}")
                assert (status, "token" in text) == (403, True), path
            # a request without an origin is of no page
            async with client.http.post(f"{client.url}do", json=SHOW) as answer:
                assert answer.status == 403
            form = {"Content-Type": "text/plain"}
            assert (await client.post(SHOW, **form))[0] == 415
            assert (await client.get(f"{client.url}../../etc/passwd"))[0] in {403, 404}
            assert (await client.get(f"{client.url}web.py"))[0] == 404

    asyncio.run(ask())
    assert not list(tmp_path.iterdir())


def test_every_answer_forbids_scripts_of_others_frames_and_stores(
    tmp_path: Path,
) -> None:
    async def ask() -> None:
        async with (
            served(items(1), tmp_path) as client,
            client.http.get(client.url) as answer,
            client.http.get(client.origin) as refused,
        ):
            for headers in (answer.headers, refused.headers):
                policy = headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert headers["Cache-Control"] == "no-store"
                assert headers["Referrer-Policy"] == "no-referrer"
                assert not any(name.startswith("Access-Control") for name in headers)
                assert "Set-Cookie" not in headers

    asyncio.run(ask())


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        SHOW | {"do": "delete"},
        SHOW | {"turn": "1"},
        SHOW | {"more": 1},
        SHOW | {"author": 5},
    ],
)
def test_what_no_page_sends_is_refused(tmp_path: Path, body: object) -> None:
    async def ask() -> None:
        async with served(items(1), tmp_path) as client:
            assert (await client.post(body))[0] == 400

    asyncio.run(ask())


def test_a_session_is_blind_until_replies_are_asked_for(tmp_path: Path) -> None:
    async def ask() -> None:
        async with served(items(3), tmp_path) as client:
            state = await client.do("show")
            assert "secret" not in json.dumps(state)
            assert state["question"]["can_reveal"]
            state = await client.do("answer", turn=state["turn"], text="include")
            state = await client.do("note", turn=state["turn"], text="why")
            state = await client.do("reveal", turn=state["turn"])
            assert "secret reason of item-00002" in json.dumps(state)
            marked = [one for one in state["question"]["text"] if one["quote"]]
            assert marked == [{"text": "We enrolled 2 adults", "quote": True}]
            state = await client.do("answer", turn=state["turn"], text="exclude")
            state = await client.do("skip", turn=state["turn"])
            state = await client.do("undo", turn=state["turn"])
            assert state["question"]["item"] == "item-00002"
            refused = await client.do("answer", turn=state["turn"], text="<b>")
            assert "is no value" in refused["problem"]
            assert refused["question"] == state["question"]

    asyncio.run(ask())
    labels = read_labels(tmp_path)
    blind, assisted = (label.event for label in labels.labels)
    assert (blind.is_blind, assisted.is_blind) == (True, False)
    assert assisted.reason == "why"
    assert [label.is_withdrawn for label in labels.labels] == [False, True]


def test_a_request_that_is_sent_again_counts_once(tmp_path: Path) -> None:
    async def ask() -> None:
        async with served(items(9), tmp_path) as client:
            turn = (await client.do("show"))["turn"]
            answer = {
                "author": "ann",
                "id": "same",
                "do": "answer",
                "turn": turn,
                "text": "include",
            }
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(client.post(answer)) for _ in range(5)]
            assert all(one.result() == sent[0].result() for one in sent)
            # and one about a question that is gone changes nothing
            status, state = await client.post(answer | {"id": "other"})
            assert status == 409
            assert state["question"]["item"] == "item-00002"

    asyncio.run(ask())
    assert len(read_labels(tmp_path).labels) == 1


def test_people_at_once_never_overwrite_each_other(tmp_path: Path) -> None:
    count = 25
    texts = {"ann": "include", "bob": "exclude", "cy": "unclear"}

    async def label(client: Client, author: str) -> None:
        state = await client.do("show", author)
        while state["question"] is not None:
            state = await client.do(
                "answer", author, turn=state["turn"], text=texts[author]
            )

    async def ask() -> None:
        async with (
            served(items(count), tmp_path) as client,
            asyncio.TaskGroup() as group,
        ):
            for author in texts:
                group.create_task(label(client, author))

    asyncio.run(ask())
    labels = read_labels(tmp_path)
    for author, text in texts.items():
        of_author = labels.labelled_by(author).values()
        assert [one.event.value for one in of_author] == [text] * count
    assert len(list(tmp_path.glob("*.db"))) == len(texts)


def test_hostile_text_is_data_and_shows_what_hides(tmp_path: Path) -> None:
    async def ask() -> None:
        async with served(hostile(), tmp_path) as client:
            state = await client.do("show")
            text = "".join(one["text"] for one in state["question"]["text"])
            assert SCRIPT in text
            everything = json.dumps(state, ensure_ascii=False)
            for character in ("\x1b", "\x07", "\u202e", "\u200b", "\u2066", "\\u001b"):
                assert character not in everything
            for author in ("a\x1bb", "x" * 101, " "):
                assert (
                    "no name of an author"
                    in (await client.do("show", author))["problem"]
                )

    asyncio.run(ask())


@needs_browser
@pytest.mark.timeout(120)
def test_a_browser_labels_by_keys_and_by_touch(tmp_path: Path) -> None:
    async def browse() -> None:
        async with (
            served(items(6), tmp_path / "labels") as client,
            browsing(tmp_path, pages=2) as (ann, bob),
        ):
            await ann.open(client.url)
            await ann.until(
                "author.value === 'ann'".replace("author", "byId('author')")
            )
            await ann.press("Enter")
            await ann.until("state && state.question")
            assert "secret" not in await ann.look("document.body.innerText")
            await ann.press("i")
            await ann.until("byId('key').textContent === 'item-00002'")
            for key in ("r", "/", *"iz", "Enter"):
                await ann.press(key)
                await ann.until("!isBusy")
            text = await ann.look("document.body.innerText")
            assert "secret reason of item-00002" in text
            assert "note: iz" in text
            assert await ann.look("document.querySelector('mark').textContent") == (
                "We enrolled 2 adults"
            )
            for key in ("e", "z", "u", "s"):
                await ann.press(key)
                await ann.until("!isBusy")
            assert await ann.look("byId('key').textContent") == "item-00004"
            # another person, on a tablet, by touch
            await bob.resize(390, 844, is_touch=True)
            await bob.open(client.url)
            await bob.until("!byId('who').hidden")
            await bob.look("byId('author').value = 'bob', byId('who').requestSubmit()")
            await bob.until("state && state.question")
            sizes = await bob.look(
                "[...document.querySelectorAll('footer button')].map("
                "b => b.getBoundingClientRect()).filter(b => b.height)"
                ".map(b => [b.width, b.height, b.right, b.bottom])"
            )
            assert len(sizes) == 7
            for width, height, right, bottom in sizes:
                assert width >= 48
                assert height >= 48
                assert right <= 390
                assert bottom <= 844
            await bob.look("byId('choices').children[1].click()")
            await bob.until("byId('key').textContent === 'item-00002'")
            # the author is kept when the page is loaded again
            await ann.open(client.url)
            await ann.until("state && state.author === 'ann'")
            assert await ann.look("byId('key').textContent") == "item-00004"

    asyncio.run(browse())
    labels = read_labels(tmp_path / "labels")
    found = [
        (one.event.author, one.event.item, one.event.value, one.event.reason)
        for one in labels.current.values()
    ]
    assert found == [
        ("ann", "item-00001", "include", ""),
        ("ann", "item-00002", "unclear", ""),
        ("bob", "item-00001", "exclude", ""),
    ]


@needs_browser
@pytest.mark.timeout(120)
def test_a_browser_runs_nothing_of_a_hostile_text(tmp_path: Path) -> None:
    async def browse() -> None:
        selection = LabelSelection(is_assisted=True)
        async with (
            served(hostile(), tmp_path / "labels", selection) as client,
            browsing(tmp_path) as (page,),
        ):
            await page.open(client.url)
            await page.until("!byId('who').hidden")
            await page.press("Enter")
            await page.until("state && state.question")
            assert await page.look("document.title") == "siftlog label"
            assert await page.look("document.images.length") == 0
            assert await page.look("document.scripts.length") == 1
            assert SCRIPT in await page.look("byId('text').textContent")
            # a script that is put into the page is refused by its policy
            await page.look(
                "document.body.append(Object.assign(document.createElement('script'),"
                " {textContent: 'document.title = 1'}))"
            )
            assert await page.look("document.title") == "siftlog label"
            # a page of another origin sends what ours would send
            turn = await page.look("state.turn")
            await page.open("about:blank")
            body = json.dumps(SHOW | {"do": "answer", "turn": turn, "text": "include"})
            for mode in ("cors", "no-cors"):
                reached = await page.look(
                    f"fetch({client.url!r} + 'do', {{method: 'POST', mode: {mode!r}, "
                    f"body: {body!r}}}).then(a => a.type, () => 'refused')"
                )
                assert reached in {"refused", "opaque"}

    asyncio.run(browse())
    assert not read_labels(tmp_path / "labels").labels
