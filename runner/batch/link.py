"""Requests to a provider's batch endpoints, and what its refusals mean."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import httpx
import msgspec

from runner.clients.http_refusal import refusal
from runner.clients.http_sender import COMPRESSIONS, HttpSender, Refused
from runner.clients.options import ClientOptions
from runner.errors import AttemptError, MalformedReply
from runner.wire import UNREADABLE

_T = TypeVar("_T")


class Link:
    """The batch endpoints under one address."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], options: ClientOptions
    ) -> None:
        """Speak to *base_url*, which may hold no key, with *headers*, which may."""
        url = httpx.URL(base_url)
        self._base_url = base_url
        self._options = options
        self._headers = {
            "host": url.netloc.decode(),
            "accept": "application/json",
            "accept-encoding": COMPRESSIONS,
            "user-agent": "siftlog",
            **headers,
            **options.headers,
        }
        self._sender = HttpSender(base_url, options, options.keys)

    async def get(
        self, path: str, into: type[_T], query: Mapping[str, str] | None = None
    ) -> _T:
        """What stands at *path*.

        Raises:
            AttemptError: it could not be had.
        """
        return await self._exchange(self._request("GET", path, params=query), into)

    async def post(self, path: str, into: type[_T], content: object = None) -> _T:
        """What comes of sending *content* to *path*, as JSON; None: nothing is sent.

        Raises:
            AttemptError: it was refused, or nobody knows what became of it.
        """
        body = b"" if content is None else msgspec.json.encode(content)
        request = self._request(
            "POST", path, content=body, headers={"content-type": "application/json"}
        )
        return await self._exchange(request, into)

    async def upload(
        self, path: str, into: type[_T], *, name: str, content: bytes
    ) -> _T:
        """What comes of uploading a file of requests.

        Raises:
            AttemptError: as for `post`.
        """
        request = self._request(
            "POST",
            path,
            data={"purpose": "batch"},
            files={"file": (name, content, "application/jsonl")},
        )
        return await self._exchange(request, into)

    async def lines(self, path: str) -> AsyncGenerator[bytes]:
        """The lines that stand at *path*, without the empty ones.

        Raises:
            AttemptError: they could not be had, or not to the end.
        """
        try:
            async with aclosing(self._sender.lines(self._request("GET", path))) as read:
                async for line in read:
                    if line.strip():
                        yield line
        except Refused as error:
            raise self.refusal(error.status, error.body, error.headers) from None

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx.Request:
        request = httpx.Request(
            method,
            self._base_url + path,
            headers={**self._headers, **(headers or {})},
            **content,
        )
        request.read()
        return request

    async def _exchange(self, request: httpx.Request, into: type[_T]) -> _T:
        status, headers, body = await self._sender.send(request)
        if not httpx.codes.is_success(status):
            raise self.refusal(status, body, headers)
        try:
            return msgspec.json.decode(body, type=into)
        except UNREADABLE as error:
            raise MalformedReply(
                f"{self._base_url}: what was said of a batch cannot be read ({error}).",
                body=body,
            ) from error

    def refusal(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> AttemptError:
        """The error that a status other than 200 stands for, of one item or of all."""
        return refusal(
            self._base_url,
            status,
            headers or {},
            body,
            now_us=self._options.clock.now_us(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()
