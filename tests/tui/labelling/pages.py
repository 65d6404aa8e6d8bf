"""The labelling page over items, asked by a client that is no browser."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from jobs.kit.labels.desk import LabelSelection
from runner.labelling import LabelItem
from tests.tui.labelling.desks import desk_over
from tui.labelling.web import HOST, LabelServer
from tui.loopback import listen

TOKEN = "t0ken"  # noqa: S105 - of a test


@dataclass
class Client:
    """Who asks; it says what a page of the server itself would say."""

    url: str
    port: int
    http: aiohttp.ClientSession
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def origin(self) -> str:
        """Of the page."""
        return f"http://{HOST}:{self.port}"

    async def post(self, body: object, **headers: str) -> tuple[int, Any]:
        """Send a body; the status, and the state or sentence that comes back."""
        sent = {"Origin": self.origin, **headers}
        async with self.http.post(f"{self.url}do", json=body, headers=sent) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if is_json else answer.text())

    async def do(self, what: str, author: str = "ann", **more: Any) -> Any:
        """Ask for one thing with an id of its own; the state after it."""
        body = {"author": author, "id": f"{author} {next(self._ids)}", "do": what}
        _, state = await self.post(body | more)
        return state

    async def get(self, url: str, **headers: str) -> tuple[int, str]:
        """Fetch something; the status and the text."""
        async with self.http.get(url, headers=headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def served(
    dataset: Mapping[str, LabelItem],
    folder: Path,
    selection: LabelSelection | None = None,
) -> AsyncIterator[Client]:
    """The page over a desk of items."""
    async with desk_over(dataset, folder, selection) as desk:
        listening = listen(HOST, 0)
        port = listening.getsockname()[1]
        server = LabelServer(desk, "ann", port=port, token=TOKEN)
        runner = web.AppRunner(server.app)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            async with aiohttp.ClientSession() as http:
                yield Client(server.url, port, http)
        finally:
            await runner.cleanup()
            await server.close()
