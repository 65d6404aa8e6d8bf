"""Answers from a function, in the way of httpx's `MockTransport`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.tally import Tally
from runner.reply import AnyReply
from runner.wire import encode_answer

Answerer: TypeAlias = Callable[[Call], AnyReply | Awaitable[AnyReply]]
"""Answers a call, at once or later, or raises an `AttemptError`."""


class FunctionClient:
    """A client whose endpoint is a plain function.

    Tests of everything above the client are written with it:

        FunctionClient(lambda call: Reply(text=call.task.key))
    """

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """The function's answer, stored in the form of its kind."""
        with self._tally.attempt():
            reply = self._answer(call)
            if isawaitable(reply):
                reply = await reply
            form, body = encode_answer(reply)
            self._tally.bytes_received += len(body)
            return Received(body=body, form=form, reply=reply)

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Nothing to release."""
