"""Answers that exist already, in a file or in another run, through the usual path.

Where several models answered, the name goes on with `#` and the one that is meant:
`recorded:answers.jsonl#openai/gpt-x`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.options import ClientOptions
from runner.clients.recordings import RecordedFile, RecordedRun, Recording
from runner.clients.tally import Tally
from runner.errors import BadRequest
from runner.reply import AnyReply, Ranking, Reply, Vectors
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.wire import decode_reply
from store.runs import resolve

REPLIES: Final[Mapping[type[Request], type[AnyReply]]] = {
    ChatRequest: Reply,
    EmbedRequest: Vectors,
    RerankRequest: Ranking,
}
"""From the kind of a request to that of its reply."""


class RecordedClient:
    """Answers from a recording; a task that it does not hold is a bad request."""

    def __init__(self, name: str, recording: Recording) -> None:
        self._name = name
        self._recording = recording
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """The recorded answer.

        Raises:
            BadRequest: There is none.
        """
        with self._tally.attempt():
            found = self._recording.find(call.task)
            if found is None:
                task = call.task
                raise BadRequest(
                    f"{self._name} holds no answer to {task.stage} {task.key} "
                    f"(replicate {task.replicate}); ask a model for it."
                )
            form, body = found
            self._tally.bytes_received += len(body)
            reply = decode_reply(form, body)
            if not isinstance(reply, REPLIES[type(call.request)]):
                raise BadRequest(
                    f"What {self._name} holds for {call.task.stage} {call.task.key} is "
                    "no reply of that kind; name a run that asked the same, since a "
                    "file of recordings has texts only."
                )
            return Received(body=body, form=form, reply=reply)

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Release the recording."""
        self._recording.close()


def open_recorded(name: str, options: ClientOptions) -> RecordedClient:
    """The client for what stands behind `recorded:`, a file's or a run's name.

    Raises:
        DatasetError: A line of the file cannot be used.
        StoreError: No run has that name, or its log cannot be read.
        UsageError: Several models answered, and none or another one is asked for.
    """
    source, _, model = name.partition("#")
    path = Path(source)
    if path.is_file() or path.suffix == ".jsonl":
        return RecordedClient(name, RecordedFile(path, model or None))
    log = resolve(options.runs_dir, source).log
    return RecordedClient(name, RecordedRun(log, source, model or None))
