"""A job's own offline answers, through the path of every other client."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.function import FunctionClient
from runner.job import Job
from runner.reply import AnyReply, Reply


class BaselineClient:
    """Asks `job.baseline`, which sees the request and nothing else.

    A baseline searches whole papers in pure Python: 10 ms and more for each.
    It runs in one thread, so that heartbeats, commits and signals go on meanwhile; a
    second thread would only fight over the interpreter.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="baseline")
        self._client = FunctionClient(self._answer)

    async def call(self, call: Call) -> Received:
        """The baseline's answer."""
        return await self._client.call(call)

    async def _answer(self, call: Call) -> AnyReply:
        answer = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._job.baseline, call.request
        )
        return Reply(text=answer) if isinstance(answer, str) else answer

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self._client.statistics()

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
