"""The monitor in a browser: the real command, asked over loopback."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from store.runs import RunFolder
from tests.processes import SIFTLOG, environment, siftlog
from tests.store.logs import COURSE, written
from tui.browser import fitted_page
from tui.loopback import is_loopback, matches_host


@contextmanager
def served(cwd: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A page of the runs in *cwd*; its address, and its process."""
    server = subprocess.Popen(
        [SIFTLOG, "serve", "--port", "0", *words],
        cwd=cwd,
        env=environment(None),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline(), server
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        server.stdout.close()


async def until(socket: aiohttp.ClientWebSocketResponse, text: bytes) -> None:
    """Read what the monitor draws, up to *text*."""
    seen = b""
    while text not in seen:
        message = await socket.receive(30)
        assert message.type is aiohttp.WSMsgType.BINARY
        seen += message.data


async def refused(session: aiohttp.ClientSession, url: str, **headers: str) -> bool:
    """Whether a request with other *headers* is sent away."""
    async with session.get(url, headers=headers) as answer:
        return answer.status == 403


async def browse(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert answer.status == 200
            assert "frame-ancestors" in answer.headers["Content-Security-Policy"]
            page = await answer.text()
            assert f"ws{url[4:]}/ws" in page
            assert "https://" not in page
        for path in ("", "/ws"):
            assert await refused(session, url + path, Host="evil.example")
            assert await refused(session, url + path, Origin="http://evil.example")
            assert await refused(session, url + path, Origin="null")
        where = f"{url}/ws?width=120&height=40"
        async with session.ws_connect(where, headers={"Origin": url}) as socket:
            await until(socket, b"missing")
            for keys, answer in (
                (":", b"a filter, a theme"),
                ("about", b"Versions, terminal"),
                ("\r", b"--read-only  yes"),
            ):
                await socket.send_json(["stdin", keys])
                await until(socket, answer)


def test_a_browser_sees_the_run_read_only_and_nobody_elses_page_does(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    written(folder.log, *COURSE[:-1])
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    with served(tmp_path, "r1") as (line, server):
        url = line.split()[0]
        assert url.startswith("http://127.0.0.1:")
        assert "read-only" in line
        asyncio.run(browse(url))
    assert server.returncode == 0
    kept = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    assert {name: kept[name] for name in before} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "192.0.2.7"), "add --allow-remote if that is meant"),
        (("--host", "0.0.0.0", "--allow-remote"), "Name the one address"),  # noqa: S104
        (("nobody",), "list runs with 'siftlog runs'"),
        (("--theme", "mauve"), "There is no theme 'mauve'"),
        (("--port", "80000"), "There is no port 80000: name one from 1 to 65535, or 0"),
        (("--port", "-1"), "There is no port -1: name one from 1 to 65535, or 0"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = siftlog("serve", *words, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("netloc", "host", "expected"),
    [
        ("127.0.0.1:8177", "127.0.0.1", True),
        ("localhost:8177", "127.0.0.1", True),
        ("[::1]:8177", "localhost", True),
        ("LOCALHOST:8177", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1:80", "127.0.0.1", False),
        ("evil.example:8177", "127.0.0.1", False),
        ("localhost.evil.example:8177", "127.0.0.1", False),
        ("localhost:8177", "192.0.2.7", False),
        ("192.0.2.7:8177", "192.0.2.7", True),
        ("ann@evil.example:8177", "127.0.0.1", False),
        ("127.0.0.1:x", "127.0.0.1", False),
        ("[::1", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_only_our_own_names_are_answered(
    netloc: str, host: str, *, expected: bool
) -> None:
    assert matches_host(netloc, host, 8177) is expected


def test_loopback_is_this_machine_only() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("192.0.2.7", "example.org", "0.0.0.1", "::2")))


def test_the_page_of_a_terminal_chooses_a_font_that_fits_its_window() -> None:
    page = (
        "<html><head><title>t</title></head><body>"
        '<div id="terminal" data-font-size="16"></div><p>after</p></body></html>'
    )
    fit = fitted_page(page)
    head, body = fit.split("</head>")
    assert "width=device-width" in head
    terminal, script, after = (
        body.index(part) for part in ("</div>", "<script>", "<p>after")
    )
    # it runs before the terminal is made, which is when the page has been loaded
    assert terminal < script < after
    assert "82" in body
    assert fitted_page("Open this monitor as ...") == "Open this monitor as ..."
