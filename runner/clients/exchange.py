"""What one attempt sends and gets while a library believes it speaks HTTP itself.

The library's requests arrive here as they would at a socket, and each goes out once:
a second one that is paid for would stand in no log. What came of the last one is kept:
that, and not what the library makes of it, says how the attempt ended.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx

from runner.clients.http_sender import COMPRESSIONS, HttpSender
from runner.clients.tally import Tally
from runner.errors import AttemptError


class Exchange:
    """The requests of one attempt, and the last reply."""

    def __init__(
        self, sender_for: Callable[[httpx.URL], HttpSender], tally: Tally
    ) -> None:
        """Send through what *sender_for* gives; count bytes in *tally*."""
        self._sender_for = sender_for
        self._tally = tally
        self._posted: set[httpx.URL] = set()
        self.endpoint = ""  #: where the last request went
        self.status: int | None = None  #: of the last reply; None: there was none
        self.headers: dict[str, str] = {}  #: those that matter
        self.body = b""
        self.failure: AttemptError | None = None  #: why no reply came

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send *request* in this attempt and keep what comes of it.

        Sending the same again is not possible: what came the first time comes again.
        """
        if request.method == "POST":
            if request.url in self._posted:
                return self._reply(request)
            self._posted.add(request.url)
        self.endpoint = str(request.url.copy_with(query=None))
        self._tally.bytes_sent += len(await request.aread())
        self.status, self.headers, self.body = None, {}, b""
        request.headers["accept-encoding"] = COMPRESSIONS
        try:
            sender = self._sender_for(request.url)
            self.status, self.headers, self.body = await sender.send(request)
            self._tally.bytes_received += len(self.body)
        except AttemptError as error:
            self.failure = error
        return self._reply(request)

    def _reply(self, request: httpx.Request) -> httpx.Response:
        """What the library gets to see.

        Never an exception: it would meet that with another try.
        """
        return httpx.Response(
            httpx.codes.BAD_GATEWAY if self.status is None else self.status,
            headers={
                **self.headers,
                # SDKs hand out as text what does not call itself JSON, and a body that
                # is none is then taken for an answer
                "content-type": "application/json",
                # OpenAI's SDK obeys this; litellm does not pass it `max_retries` for
                # all providers
                "x-should-retry": "false",
            },
            content=self.body,
            request=request,
        )
