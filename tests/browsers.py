"""A real browser without a window, driven over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"none of {', '.join(NAMES)} is installed"
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-extensions"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
"""It asks nobody but this machine."""
START_S = 30.0


class Page:
    """A tab of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol."""
        number = next(self._ids)
        await self._socket.send_json(
            {"id": number, "method": method, "params": parameters}
        )
        while True:
            answer = await self._socket.receive_json(timeout=START_S)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def look(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = await self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        for _ in range(1000):
            if await self.look(f"Boolean({expression})"):
                return
            await asyncio.sleep(0.01)
        text = await self.look("document.body.innerText")
        pytest.fail(f"it does not get there: {expression}\n{text}")

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def press(self, key: str) -> None:
        """Press and release a key."""
        named = {"Enter": ("\r", 13), "Escape": ("", 27), "Backspace": ("", 8)}
        text, code = named.get(key, (key, ord(key.upper()[0])))
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    async def resize(self, width: int, height: int, *, is_touch: bool = False) -> None:
        """Give the window another size."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=is_touch,
        )
        await self.call("Emulation.setTouchEmulationEnabled", enabled=is_touch)

    async def picture(self, path: Path) -> None:
        """Write a PNG of the window."""
        answer = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))


@asynccontextmanager
async def browsing(folder: Path, pages: int = 1) -> AsyncIterator[list[Page]]:
    """A browser with a fresh profile in *folder*, and some of its tabs."""
    assert BROWSER is not None
    profile = folder / "profile"
    process = subprocess.Popen(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        env={**os.environ, "HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = await _port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            tabs = []
            for _ in range(pages):
                new = f"http://127.0.0.1:{port}/json/new?about:blank"
                async with session.put(new) as answer:
                    tab = await answer.json()
                socket = await session.ws_connect(
                    tab["webSocketDebuggerUrl"], max_msg_size=0
                )
                tabs.append(Page(socket))
                await tabs[-1].call("Page.enable")
            yield tabs
    finally:
        process.kill()
        process.wait(20)


async def _port(file: Path) -> int:
    for _ in range(round(START_S / 0.05)):
        port = _printed_port(file)
        if port is not None:
            return port
        await asyncio.sleep(0.05)
    pytest.fail("the browser does not start")


def _printed_port(file: Path) -> int | None:
    text = file.read_text() if file.exists() else ""
    return int(text.split()[0]) if "\n" in text else None
