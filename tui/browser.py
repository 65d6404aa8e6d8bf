"""Serves the monitor in a browser: a page that runs `siftlog watch` per visitor.

Every connection is a separate process, without login: anyone who can reach the port
sees all runs. So it listens on this machine only by default, and answers only requests
for the address it was started with, so that foreign pages can neither read nor control
it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from tui.loopback import matches_host

_VIEWPORT = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>html, body { margin: 0; }</style>"
)
"""Phones would lay the page out for a desk's width, and show a part of it."""
_FIT = """<script>
(() => {
  const terminal = document.getElementById("terminal");
  if (new URLSearchParams(location.search).has("fontsize")) return;
  const context = document.createElement("canvas").getContext("2d");
  context.font = "100px 'Roboto Mono', Monaco, 'Courier New', monospace";
  const cell = context.measureText("M".repeat(10)).width / 1000;
  const size = Math.min(16, innerWidth / (cell * COLUMNS), innerHeight / (1.2 * LINES));
  terminal.dataset.fontSize = Math.max(6, Math.floor(size * 10) / 10);
})();
</script>"""
"""Chooses the largest font, up to the usual one, in which screens fit the window."""
_COLUMNS, _LINES = 82, 25
"""Cells that a screen needs, and one or two for the page's edge."""

_WEB_FONT = re.compile(r'<link[^>]+href="https://fonts\.[^>]*>')
"""A font of the page's template from another server, which would learn of the visit."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_GRACE_S = 3.0
"""Time for processes to end on request."""


class BrowserPage(Server):
    """Serves one command to browsers."""

    def __init__(
        self,
        command: str,
        listening: socket.socket,
        host: str,
        say: Callable[[str], None],
    ) -> None:
        """Create a page that is not served yet.

        Args:
            command: shell command for each connection.
            listening: the listening socket.
            host: host name in the URL.
            say: receives the URL.
        """
        port = listening.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{port}"
        super().__init__(command, host, port, title="siftlog", public_url=url)
        self._listening = listening
        self._say = say
        origins = f"'self' {url} ws://{name}:{port}"
        self._policy = (
            f"default-src {origins} data:; script-src {origins} 'unsafe-inline'; "
            f"style-src {origins} 'unsafe-inline'; frame-ancestors 'none'"
        )

    async def on_startup(self, app: web.Application) -> None:
        """Report the URL."""
        del app
        self._say(self.public_url)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._refuse_foreign)
        return app

    @web.middleware
    async def _refuse_foreign(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Refuse requests from other pages, or for other host names."""
        origin = request.headers.get("Origin")
        is_same_site = matches_host(request.host, self.host, self.port) and (
            origin is None
            or matches_host(urlsplit(origin).netloc, self.host, self.port)
        )
        if not is_same_site:
            return web.Response(
                status=403, text=f"Open this monitor as {self.public_url}\n"
            )
        response = await handler(request)
        if not response.prepared:
            if isinstance(response, web.Response) and response.text:
                response.text = fitted_page(response.text)
            response.headers["Content-Security-Policy"] = self._policy
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def run(self) -> None:
        """Serve until interrupted."""
        web.run_app(
            self._make_app(),
            sock=self._listening,
            print=None,
            access_log=None,
            shutdown_timeout=_GRACE_S,
        )


def fitted_page(page: str) -> str:
    """Return the page of a terminal with a font that fits the window of its browser.

    Nothing is loaded from other servers.

    Other texts are unchanged.
    """
    terminal = page.find('id="terminal"')
    if terminal < 0:
        return page
    end = page.index("</div>", terminal) + len("</div>")
    fit = _FIT.replace("COLUMNS", str(_COLUMNS)).replace("LINES", str(_LINES))
    page = _WEB_FONT.sub("", page[:end] + fit + page[end:])
    return page.replace("<head>", f"<head>{_VIEWPORT}", 1)
