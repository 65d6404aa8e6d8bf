"""Simulates OpenAI's batch endpoints with their files of requests and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import msgspec

from runner.simulate.batches import (
    BatchOffice,
    BatchOrder,
    BatchPhase,
    ItemEnding,
    SimulatedItem,
    StoredBatch,
    fresh,
)
from runner.simulate.billing import BatchAct, BatchLine, Ledger
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider
from runner.simulate.requests import (
    NOT_FOUND,
    READERS,
    BatchHandler,
    BatchRefusal,
    BatchRequest,
    BatchResponse,
    encoded,
    joined,
    page,
    read,
)

LONGEST_ID: Final = 64
"""Maximum characters of a custom id, of either provider."""

MOST_REQUESTS: Final = 50_000
"""Maximum requests per file (API reference, "Create batch")."""

MOST_BYTES: Final = 200_000_000
"""Maximum bytes per file (API reference, "Create batch")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProblem:
    """An error in an input file, in the format of a batch's `errors`."""

    code: str
    message: str
    line: int | None = None  #: line number, from 1
    param: str | None = None


TOO_MANY_WAITING: Final = LineProblem(
    code="token_limit_exceeded",
    message="Too much waits in other batches; try again when some have ended.",
)
"""OpenAI limits queued tokens, the simulation queued items."""


class _Model(msgspec.Struct):
    model: str


class _Line(msgspec.Struct):
    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


def read_orders(
    content: bytes, endpoint: str
) -> tuple[list[BatchOrder], list[LineProblem]]:
    """Parse the requests of an input file; return them and its errors."""
    if len(content) > MOST_BYTES:
        return [], [
            LineProblem(
                code="file_too_large",
                message=f"The file is larger than {MOST_BYTES} bytes.",
            )
        ]
    lines = [
        (number, line)
        for number, line in enumerate(content.split(b"\n"), start=1)
        if line.strip()
    ]
    if not lines:
        return [], [LineProblem(code="empty_file", message="The file has no lines.")]
    if len(lines) > MOST_REQUESTS:
        return [], [
            LineProblem(
                code="too_many_tasks",
                message=f"The file has more than {MOST_REQUESTS} requests.",
            )
        ]
    orders: dict[str, BatchOrder] = {}
    problems: list[LineProblem] = []
    model = ""
    for number, raw in lines:
        try:
            line = msgspec.json.decode(raw, type=_Line)
            line_model = msgspec.json.decode(line.body, type=_Model).model
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(
                LineProblem(code="invalid_json_line", message=f"{error}.", line=number)
            )
            continue
        model = model or line_model
        is_duplicate = line.custom_id in orders
        problems += (
            LineProblem(code=code, message=message, line=number, param=param)
            for is_broken, code, param, message in _rules(
                line,
                line_model,
                endpoint=endpoint,
                model=model,
                is_duplicate=is_duplicate,
            )
            if is_broken
        )
        orders[line.custom_id] = BatchOrder.of(line.custom_id, bytes(line.body))
    return list(orders.values()), problems


def _rules(
    line: _Line, line_model: str, *, endpoint: str, model: str, is_duplicate: bool
) -> tuple[tuple[bool, str, str, str], ...]:
    """Return rules of a line: whether it is violated, code, field, and message."""
    return (
        (
            not 1 <= len(line.custom_id) <= LONGEST_ID,
            "invalid_custom_id",
            "custom_id",
            f"A custom_id has 1 to {LONGEST_ID} characters.",
        ),
        (
            is_duplicate,
            "duplicate_custom_id",
            "custom_id",
            f"The custom_id {line.custom_id} stands in another line too.",
        ),
        (line.method != "POST", "invalid_method", "method", "The method is not POST."),
        (
            line.url != endpoint,
            "url_mismatch",
            "url",
            f"The batch is for {endpoint}, not for {line.url}.",
        ),
        (
            line_model != model,
            "model_mismatch",
            "body.model",
            f"The batch asks {model}, and nothing of {line_model}.",
        ),
    )


def output_lines(stored_batch: StoredBatch) -> list[Mapping[str, Any]]:
    """Return successful results, in the order of completion."""
    return [
        _line(stored_batch, item, response=_response(item, msgspec.Raw(reply)))
        for item in stored_batch.batch.ended
        if item.ending is ItemEnding.SUCCEEDED
        for reply in (stored_batch.replies[item.custom_id],)
    ]


def error_lines(stored_batch: StoredBatch) -> list[Mapping[str, Any]]:
    """Return results without an answer, with errors."""
    return [
        _line(stored_batch, item, response=_failed(item))
        if item.ending is ItemEnding.ERRORED
        else _line(stored_batch, item, error=_UNDONE[item.ending])
        for item in stored_batch.batch.ended
        if item.ending is not ItemEnding.SUCCEEDED
    ]


def _line(
    stored_batch: StoredBatch,
    item: SimulatedItem,
    *,
    response: Mapping[str, Any] | None = None,
    error: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    return {
        "id": f"batch_req_{stored_batch.id[-8:]}{item.digest[:16]}",
        "custom_id": item.custom_id,
        "response": response,
        "error": error,
    }


def _response(item: SimulatedItem, body: object) -> Mapping[str, Any]:
    return {
        "status_code": item.status,
        "request_id": f"req_{item.digest[:24]}",
        "body": body,
    }


def _failed(item: SimulatedItem) -> Mapping[str, Any]:
    return _response(item, error_body(item.status, item.problem))


def error_body(
    status: int, message: str, param: str | None = None
) -> Mapping[str, Any]:
    """Return the body of an error with *status*."""
    return {
        "error": {
            "message": message,
            "type": "server_error" if status >= _SERVER else "invalid_request_error",
            "param": param,
            "code": "rate_limit_exceeded" if status == _TOO_MANY else None,
        }
    }


_TOO_MANY, _SERVER = 429, 500

_UNDONE: Final[Mapping[ItemEnding, Mapping[str, str]]] = {
    ItemEnding.EXPIRED: {
        "code": "batch_expired",
        "message": "The completion window closed before this request was done.",
    },
    ItemEnding.CANCELED: {
        "code": "batch_cancelled",
        "message": "The batch was cancelled before this request was done.",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """An uploaded or generated file."""

    id: str
    name: str
    purpose: Literal["batch", "batch_output"]
    created_us: int
    content: bytes

    def described(self) -> dict[str, Any]:
        """Return OpenAI's description of the file."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_us // 1_000_000,
            "expires_at": None,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class StoredFiles:
    """All files by id."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._files: dict[str, StoredFile] = {}
        self._created_n = 0

    def add(
        self,
        name: str,
        content: bytes,
        now_us: int,
        *,
        purpose: Literal["batch", "batch_output"],
    ) -> StoredFile:
        """Store a new file."""
        file = StoredFile(
            id=f"file-{fresh(self._seed, self._created_n, now_us)}",
            name=name,
            purpose=purpose,
            created_us=now_us,
            content=content,
        )
        self._created_n += 1
        self._files[file.id] = file
        return file

    def find(self, file_id: str) -> StoredFile:
        """Return a file by id; raise `BatchRefusal` if there is none."""
        try:
            return self._files[file_id]
        except KeyError:
            raise BatchRefusal(
                f"There is no file with the id {file_id}.", status=NOT_FOUND
            ) from None

    def newest(self, purpose: str | None) -> list[str]:
        """Return the ids of all files, or of one purpose, newest first."""
        return [
            file.id
            for file in reversed(self._files.values())
            if purpose in {None, file.purpose}
        ]

    def delete(self, file_id: str) -> None:
        """Delete a file; raise `BatchRefusal` if there is none."""
        del self._files[self.find(file_id).id]


ENDPOINTS: Final = {
    f"/v1{path}": READERS[path]
    for path in ("/chat/completions", "/embeddings", "/responses")
}
"""Supported batch endpoints, and the parsers of their bodies."""

WINDOW_S: Final = 24 * 60 * 60

_MOST_TAGS, _LONGEST_NAME, _LONGEST_VALUE = 16, 64, 512
"""Limits of a batch's metadata (API reference, "Create batch")."""


class _CreateParams(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bought:
    """Data of a batch besides its progress."""

    params: _CreateParams
    problems: tuple[LineProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    """Ids of the files of an ended batch."""

    output: str | None = None
    error: str | None = None


class OpenAIForm:
    """Files and batches in OpenAI's format."""

    def __init__(
        self, options: SimulateOptions, provider: Provider, ledger: Ledger
    ) -> None:
        self._files = StoredFiles(options.seed)
        self._office = BatchOffice("batch_", options, provider, ledger)
        self._ledger = ledger
        self._bought: dict[str, _Bought] = {}
        self._results: dict[str, _Results] = {}
        self.routes: Mapping[tuple[str, str], BatchHandler] = {
            ("POST", "/files"): self._upload,
            ("GET", "/files"): self._list_files,
            ("GET", "/files/*"): self._file,
            ("DELETE", "/files/*"): self._delete,
            ("GET", "/files/*/content"): self._content,
            ("POST", "/batches"): self._create,
            ("GET", "/batches"): self._list,
            ("GET", "/batches/*"): self._batch,
            ("POST", "/batches/*/cancel"): self._cancel,
        }
        # no key is required, as with single calls
        self.headers: Mapping[tuple[str, ...], int] = {}

    def advance(self, now_us: int) -> None:
        """Advance all batches, and write the results of those that ended."""
        for stored_batch in self._office.advance(now_us):
            self._results[stored_batch.id] = _Results(
                output=self._file_results(
                    stored_batch, "output", output_lines(stored_batch)
                ),
                error=self._file_results(
                    stored_batch, "error", error_lines(stored_batch)
                ),
            )

    def complaint(self, refusal: BatchRefusal) -> bytes:
        """Return the body of a *refusal*."""
        return encoded(error_body(refusal.status, str(refusal), refusal.param))

    def _upload(self, batch_request: BatchRequest) -> BatchResponse:
        """Handle `POST /files`: a form with the file and its purpose."""
        file, purpose = (
            batch_request.fields.get("file"),
            batch_request.fields.get("purpose"),
        )
        if file is None:
            raise BatchRefusal("There is no file in the form.", param="file")
        if purpose is None or purpose.content != b"batch":
            raise BatchRefusal("Only files for batches are kept.", param="purpose")
        stored_file = self._files.add(
            file.name, file.content, batch_request.now_us, purpose="batch"
        )
        self._ledger.write(
            BatchLine(
                act=BatchAct.UPLOADED,
                id=stored_file.id,
                at_ms=batch_request.now_us // 1000,
            )
        )
        return BatchResponse(body=encoded(stored_file.described()))

    def _list_files(self, batch_request: BatchRequest) -> BatchResponse:
        ids = self._files.newest(batch_request.query.get("purpose"))
        part = page(ids, batch_request, after="after", most=10_000, usual=10_000)
        files = [self._files.find(file_id).described() for file_id in part.ids]
        return BatchResponse(body=part.body(files, object="list"))

    def _file(self, _batch_request: BatchRequest, file_id: str) -> BatchResponse:
        return BatchResponse(body=encoded(self._files.find(file_id).described()))

    def _delete(self, _batch_request: BatchRequest, file_id: str) -> BatchResponse:
        self._files.delete(file_id)
        return BatchResponse(
            body=encoded({"id": file_id, "object": "file", "deleted": True})
        )

    def _content(self, _batch_request: BatchRequest, file_id: str) -> BatchResponse:
        return BatchResponse(body=self._files.find(file_id).content, is_download=True)

    def _create(self, batch_request: BatchRequest) -> BatchResponse:
        """Handle `POST /batches`: errors in the file show only later."""
        params = read(batch_request.body, _CreateParams)
        file = self._checked(params)
        orders, problems = read_orders(file.content, params.endpoint)
        if not self._office.has_room(len(orders)):
            problems = [TOO_MANY_WAITING]
        stored_batch = self._office.create(
            [] if problems else orders,
            batch_request.now_us,
            ENDPOINTS[params.endpoint],
            params.endpoint.removeprefix("/v1"),
            is_sound=not problems,
        )
        self._bought[stored_batch.id] = _Bought(params=params, problems=tuple(problems))
        return BatchResponse(
            body=encoded(self._described(stored_batch)), created=stored_batch.id
        )

    def _checked(self, params: _CreateParams) -> StoredFile:
        """Return the input file of a valid request."""
        if params.endpoint not in ENDPOINTS:
            endpoints = ", ".join(ENDPOINTS)
            raise BatchRefusal(
                f"The endpoint is none of {endpoints}.", param="endpoint"
            )
        if params.completion_window != "24h":
            raise BatchRefusal("The only window is 24h.", param="completion_window")
        tags = params.metadata or {}
        if len(tags) > _MOST_TAGS or any(
            len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE
            for name, value in tags.items()
        ):
            raise BatchRefusal(
                f"Metadata are at most {_MOST_TAGS} pairs, names of at most "
                f"{_LONGEST_NAME} and values of at most {_LONGEST_VALUE} characters.",
                param="metadata",
            )
        file = self._files.find(params.input_file_id)
        if file.purpose != "batch":
            raise BatchRefusal("The file is not for batches.", param="input_file_id")
        return file

    def _list(self, batch_request: BatchRequest) -> BatchResponse:
        part = page(
            self._office.newest(batch_request.now_us),
            batch_request,
            after="after",
            most=100,
        )
        batches = [
            self._described(self._office.find(batch_id, batch_request.now_us))
            for batch_id in part.ids
        ]
        return BatchResponse(body=part.body(batches, object="list"))

    def _batch(self, batch_request: BatchRequest, batch_id: str) -> BatchResponse:
        return BatchResponse(
            body=encoded(
                self._described(self._office.find(batch_id, batch_request.now_us))
            )
        )

    def _cancel(self, batch_request: BatchRequest, batch_id: str) -> BatchResponse:
        stored_batch = self._office.cancel(batch_id, batch_request.now_us)
        return BatchResponse(body=encoded(self._described(stored_batch)))

    def _file_results(
        self, stored_batch: StoredBatch, kind: str, lines: list[Mapping[str, Any]]
    ) -> str | None:
        """Store *lines* as a file of results; OpenAI creates no empty one."""
        if not lines:
            return None
        return self._files.add(
            f"{stored_batch.id}_{kind}.jsonl",
            joined(lines),
            stored_batch.batch.entered[stored_batch.batch.phase],
            purpose="batch_output",
        ).id

    def _described(self, stored_batch: StoredBatch) -> dict[str, Any]:
        """Describe a batch as OpenAI does.

        Expired and cancelled items count neither as completed nor as failed.
        """
        batch, bought = stored_batch.batch, self._bought[stored_batch.id]
        results = self._results.get(stored_batch.id, _Results())
        moments = {
            phase: entered_us // 1_000_000
            for phase, entered_us in batch.entered.items()
        }
        created_at = moments[BatchPhase.VALIDATING]
        return {
            "id": stored_batch.id,
            "object": "batch",
            "endpoint": bought.params.endpoint,
            "model": stored_batch.model or None,
            "errors": _errors(bought.problems)
            if batch.phase is BatchPhase.FAILED
            else None,
            "input_file_id": bought.params.input_file_id,
            "completion_window": bought.params.completion_window,
            "status": batch.phase,
            "output_file_id": results.output,
            "error_file_id": results.error,
            "created_at": created_at,
            "expires_at": created_at + WINDOW_S,
            **{
                f"{phase}_at": moments.get(phase)
                for phase in BatchPhase
                if phase is not BatchPhase.VALIDATING
            },
            "request_counts": {
                "total": batch.total if BatchPhase.IN_PROGRESS in moments else 0,
                "completed": batch.count(ItemEnding.SUCCEEDED),
                "failed": batch.count(ItemEnding.ERRORED),
            },
            "usage": _usage(stored_batch) if batch.phase.is_terminal else None,
            "metadata": bought.params.metadata,
        }


def _errors(problems: tuple[LineProblem, ...]) -> dict[str, Any]:
    return {"object": "list", "data": [asdict(problem) for problem in problems]}


def _usage(stored_batch: StoredBatch) -> dict[str, Any]:
    return {
        "input_tokens": stored_batch.tokens_in,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": stored_batch.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": stored_batch.tokens_in + stored_batch.tokens_out,
    }
