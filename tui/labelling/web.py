"""Labels in the browser: one local page, for one person or several at once.

The server listens on the loopback address. Its address holds a random token, without
which nothing is answered; there is no cookie that another page could send along. Every
request must also name this server as its host, and those that change anything must come
from its own page, so a foreign page can neither read nor label, also where its host
name resolves to this machine.

Each author has a session, and so a label log, of their own. A request carries an id and
the turn that its page shows. One that is sent again after a lost connection gets the
first answer again, and one about an earlier turn changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import signal
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from runner.errors import RunnerError, UsageError
from store.clock import SystemClock
from store.errors import StoreError
from store.labels.writer import check_author
from store.printable import one_line, printable
from tui.labelling.focus import FocusClock
from tui.labelling.view import (
    blindness,
    error_sentence,
    parts,
    progress_words,
    statements,
)
from tui.loopback import listen, matches_host

if TYPE_CHECKING:
    from jobs.kit.labels.desk import LabelDesk
    from jobs.kit.labels.session import LabelSession, Question

HOST: Final = "127.0.0.1"
_FILES: Final = {
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
}
"""Files of the page; it loads nothing else."""
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TOKEN_BYTES: Final = 24
_MOST_BYTES: Final = 1 << 16
"""Most bytes of a request: a typed note or value fits many times."""
_MOST_REPEATS: Final = 1000
"""Answers kept for requests that are sent again; a page has one on its way."""
_GRACE_S: Final = 3.0

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Message from a page."""

    author: str
    id: str  #: unique for each request; the same when it is sent again
    do: Literal["show", "answer", "undo", "skip", "note", "reveal"]
    turn: int = 0  #: that the page shows; not looked at by `show`
    text: str = ""  #: the value of an answer, or the note
    away_s: float = 0.0  #: seconds in which the page was not visible


@dataclass(slots=True)
class _Seat:
    """An author's session, and what its pages were answered."""

    session: LabelSession
    clock: FocusClock
    began_s: float
    since_s: float  #: when the present question was first shown
    contact_s: float  #: when a page last sent a message
    turn: int = 1  #: raised by whatever changes the present question
    answers: OrderedDict[str, tuple[int, bytes]] = field(default_factory=OrderedDict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LabelServer:
    """Answers the pages of a desk; `app` is what is served."""

    def __init__(self, desk: LabelDesk, author: str, *, port: int, token: str) -> None:
        """Create a server that does not listen yet.

        Args:
            desk: opens the sessions.
            author: name that a page proposes.
            port: on which it is served.
            token: in the path of every address.
        """
        self._desk = desk
        self._author = author
        self._port = port
        self._token = token
        self._seats: dict[str, _Seat] = {}
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()
        self.app = web.Application(
            middlewares=[self._guarded], client_max_size=_MOST_BYTES
        )
        self.app.router.add_get("/{token}/{name:.*}", self._file)
        self.app.router.add_post("/{token}/do", self._do)

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self._port}/{self._token}/"

    async def close(self) -> None:
        """Close all sessions."""
        await self._open.aclose()

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Refuse requests of foreign pages, and those without the token."""
        problem = self._refusal(request)
        response: web.StreamResponse
        if problem:
            response = web.Response(status=403, text=f"{problem}\n")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=f"{error.reason}\n")
        response.headers.update(_HEADERS)
        return response

    def _refusal(self, request: web.Request) -> str:
        """Return why a request is refused; empty: it is not."""
        origin = request.headers.get("Origin")
        if not matches_host(request.host, HOST, self._port):
            return "This is no address of the labelling page: open the one printed."
        if request.method != "GET" and origin is None:
            return "Only the labelling page may send labels."
        if origin is not None and not self._is_same_origin(origin):
            return "Another page may not use the labelling page."
        # browsers say where a request comes from; none: typed by a person
        if request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
            return "Another page may not use the labelling page."
        token = request.path.split("/")[1]
        if not compare_digest(token.encode(), self._token.encode()):
            return (
                "The token in the address is missing or of another session: open the "
                "address that siftlog label --web has printed."
            )
        return ""

    def _is_same_origin(self, origin: str) -> bool:
        parts_of = urlsplit(origin)
        return parts_of.scheme == "http" and matches_host(
            parts_of.netloc, HOST, self._port
        )

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = _FILES.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound
        name, content_type = file
        text = Path(__file__).with_name(name).read_text("utf-8")
        return web.Response(text=text, content_type=content_type, charset="utf-8")

    async def _do(self, request: web.Request) -> web.StreamResponse:
        """Carry out what a page asks for, once, and return the state after it."""
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        try:
            message = msgspec.json.decode(await request.read(), type=PageMessage)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise web.HTTPBadRequest from error
        if not message.author:
            return _json(200, _encoded({"author": "", "proposed": self._author}))
        try:
            author = check_author(message.author)
            seat = await self._seat(author)
        except (StoreError, RunnerError, OSError) as error:
            return _json(422, _encoded({"problem": error_sentence(error)}))
        async with seat.lock:
            if message.id not in seat.answers:
                status, state = await self._done(seat, message)
                seat.answers[message.id] = status, _encoded(state)
                if len(seat.answers) > _MOST_REPEATS:
                    seat.answers.popitem(last=False)
            return _json(*seat.answers[message.id])

    async def _seat(self, author: str) -> _Seat:
        """Return the session of an author; opened with their first request."""
        async with self._opening:
            if author not in self._seats:
                clock = FocusClock(SystemClock())
                session = await self._open.enter_async_context(
                    self._desk.session(author, clock)
                )
                now = clock.monotonic()
                self._seats[author] = _Seat(session, clock, now, now, now)
        return self._seats[author]

    async def _done(self, seat: _Seat, message: PageMessage) -> tuple[int, Any]:
        problem, status = "", 200
        if message.do == "show":
            # the page was closed or loaded again: nobody says since when
            seat.clock.exclude(math.inf, since=seat.contact_s)
        elif message.turn != seat.turn:
            status, problem = 409, "Another window of yours was faster: look again."
        else:
            seat.clock.exclude(message.away_s, since=seat.since_s)
            try:
                problem = await self._carry_out(seat.session, message)
            except UsageError as error:
                status, problem = 422, error_sentence(error)
            except (StoreError, RunnerError, OSError) as error:
                status, problem = 503, error_sentence(error)
            else:
                seat.turn += 1
                if message.do in {"answer", "undo", "skip"}:
                    seat.since_s = seat.clock.monotonic()
        seat.contact_s = seat.clock.monotonic()
        return status, _state(seat) | {"problem": problem}

    async def _carry_out(self, session: LabelSession, message: PageMessage) -> str:
        """Change a session; return what a person should know."""
        match message.do:
            case "answer":
                await session.answer(message.text)
            case "undo":
                if not await session.undo():
                    return "Nothing to undo in this session."
            case "skip":
                session.skip()
            case "note":
                session.note(message.text)
            case "reveal":
                await asyncio.to_thread(session.load_replies)
                session.reveal()
            case "show":  # changes nothing
                pass
        return ""


def _state(seat: _Seat) -> dict[str, Any]:
    """Return what a page shows; texts are cleaned, and are no HTML."""
    session, progress = seat.session, seat.session.progress
    question = session.question
    seconds = seat.clock.monotonic() - seat.began_s
    return {
        "author": session.author,
        "turn": seat.turn,
        "progress": progress_words(progress, seconds),
        "done": progress.done,
        "total": progress.total,
        "can_undo": progress.answered > 0,
        "status": one_line(session.status),
        "ending": one_line(session.ending),
        "question": None if question is None else _question(question),
    }


def _question(question: Question) -> dict[str, Any]:
    item, label_field = question.item, question.field
    return {
        "item": one_line(item.key),
        "title": _readable(item.title),
        "text": [
            {"text": _readable(text), "quote": is_quote}
            for text, is_quote in parts(question)
            if text
        ],
        "field": one_line(label_field.name),
        "question": one_line(label_field.question),
        "choices": [
            {"value": choice.value, "label": one_line(choice.value), "key": choice.key}
            for choice in label_field.choices
        ],
        "open": label_field.is_open,
        "statements": [
            {
                "who": one_line(one.who),
                "value": one_line(one.value),
                "reason": one_line(one.reason),
                "probability": one.probability,
            }
            for one in statements(question)
        ],
        "blindness": blindness(question),
        "can_reveal": question.has_hidden_replies,
        "note": question.note,
    }


def _readable(text: str) -> str:
    """Return a text with controls and invisible characters as pictures, uncut."""
    return printable(text, limit=len(text), line=len(text) * 8 + 1)


def _encoded(state: dict[str, Any]) -> bytes:
    # lone surrogates, which UTF-8 cannot hold, are escaped
    return json.dumps(state).encode()


def _json(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


async def label_in_browser(
    desk: LabelDesk, author: str, *, port: int, say: Callable[[str], None]
) -> None:
    """Serve the page until the process is interrupted.

    Args:
        desk: opens the sessions.
        author: name that a page proposes.
        port: of the page; 0: any free one.
        say: receives the address.

    Raises:
        UsageError: the port cannot be listened on.
    """
    try:
        listening = listen(HOST, port)
    except OSError as error:
        raise UsageError(
            f"Port {port} of {HOST} cannot be listened on ({error.strerror}): choose "
            "another with --port, or leave it out."
        ) from error
    server = LabelServer(
        desk,
        author,
        port=listening.getsockname()[1],
        token=secrets.token_urlsafe(_TOKEN_BYTES),
    )
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=_GRACE_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        say(f"{server.url}  (this machine only; end with ctrl-c)")
        await over.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        await runner.cleanup()
        await server.close()
