"""OpenAI's batch endpoints: a file of requests goes in, files of results come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from runner.simulate.asked import READERS
from runner.simulate.batch.exchange import (
    Answer,
    Asking,
    Handler,
    Refusal,
    encoded,
    joined,
    read,
)
from runner.simulate.batch.files import File, Files
from runner.simulate.batch.office import Kept, Office
from runner.simulate.batch.openai_lines import (
    TOO_MANY_WAITING,
    Problem,
    error_body,
    error_lines,
    output_lines,
    read_orders,
)
from runner.simulate.batch.paging import page
from runner.simulate.batch.state import Ending, Phase
from runner.simulate.ledger import BatchAct, BatchLine, Ledger
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider

ENDPOINTS: Final = {
    f"/v1{path}": READERS[path]
    for path in ("/chat/completions", "/embeddings", "/responses")
}
"""What batches can be for, and what reads their bodies."""

WINDOW_S: Final = 24 * 60 * 60

_MOST_TAGS, _LONGEST_NAME, _LONGEST_VALUE = 16, 64, 512
"""Of a batch's metadata (API reference, "Create batch")."""


class _Wanted(msgspec.Struct):
    input_file_id: str
    endpoint: str
    completion_window: str
    metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bought:
    """What is known of a batch beside its course."""

    wanted: _Wanted
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    """The ids of the files that an ended batch left."""

    output: str | None = None
    error: str | None = None


class OpenAIForm:
    """The files and batches of OpenAI's form."""

    def __init__(
        self, options: SimulateOptions, provider: Provider, ledger: Ledger
    ) -> None:
        self._files = Files(options.seed)
        self._office = Office("batch_", options, provider, ledger)
        self._ledger = ledger
        self._bought: dict[str, _Bought] = {}
        self._results: dict[str, _Results] = {}
        self.routes: Mapping[tuple[str, str], Handler] = {
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
        # no key is asked for, as with single calls
        self.headers: Mapping[tuple[str, ...], int] = {}

    def advance(self, now_us: int) -> None:
        """Get on with all batches, and write the results of those that ended."""
        for kept in self._office.advance(now_us):
            self._results[kept.id] = _Results(
                output=self._file_results(kept, "output", output_lines(kept)),
                error=self._file_results(kept, "error", error_lines(kept)),
            )

    def complaint(self, refusal: Refusal) -> bytes:
        """The body that tells of *refusal*."""
        return encoded(error_body(refusal.status, str(refusal), refusal.param))

    def _upload(self, asking: Asking) -> Answer:
        """`POST /files`: a form with the file and its purpose."""
        file, purpose = asking.fields.get("file"), asking.fields.get("purpose")
        if file is None:
            raise Refusal("There is no file in the form.", param="file")
        if purpose is None or purpose.content != b"batch":
            raise Refusal("Only files for batches are kept.", param="purpose")
        kept = self._files.add(file.name, file.content, asking.now_us, purpose="batch")
        self._ledger.write(
            BatchLine(act=BatchAct.UPLOADED, id=kept.id, at_ms=asking.now_us // 1000)
        )
        return Answer(body=encoded(kept.described()))

    def _list_files(self, asking: Asking) -> Answer:
        ids = self._files.newest(asking.query.get("purpose"))
        part = page(ids, asking, after="after", most=10_000, usual=10_000)
        found = [self._files.find(each).described() for each in part.ids]
        return Answer(body=part.body(found, object="list"))

    def _file(self, _asking: Asking, file_id: str) -> Answer:
        return Answer(body=encoded(self._files.find(file_id).described()))

    def _delete(self, _asking: Asking, file_id: str) -> Answer:
        self._files.delete(file_id)
        return Answer(body=encoded({"id": file_id, "object": "file", "deleted": True}))

    def _content(self, _asking: Asking, file_id: str) -> Answer:
        return Answer(body=self._files.find(file_id).content, is_download=True)

    def _create(self, asking: Asking) -> Answer:
        """`POST /batches`: what is wrong with the file shows only later."""
        wanted = read(asking.body, _Wanted)
        file = self._checked(wanted)
        orders, problems = read_orders(file.content, wanted.endpoint)
        if not self._office.has_room(len(orders)):
            problems = [TOO_MANY_WAITING]
        kept = self._office.create(
            [] if problems else orders,
            asking.now_us,
            ENDPOINTS[wanted.endpoint],
            wanted.endpoint.removeprefix("/v1"),
            is_sound=not problems,
        )
        self._bought[kept.id] = _Bought(wanted=wanted, problems=tuple(problems))
        return Answer(body=encoded(self._described(kept)), created=kept.id)

    def _checked(self, wanted: _Wanted) -> File:
        """The file of a batch that may be created."""
        if wanted.endpoint not in ENDPOINTS:
            known = ", ".join(ENDPOINTS)
            raise Refusal(f"The endpoint is none of {known}.", param="endpoint")
        if wanted.completion_window != "24h":
            raise Refusal("The only window is 24h.", param="completion_window")
        tags = wanted.metadata or {}
        if len(tags) > _MOST_TAGS or any(
            len(name) > _LONGEST_NAME or len(value) > _LONGEST_VALUE
            for name, value in tags.items()
        ):
            raise Refusal(
                f"Metadata are at most {_MOST_TAGS} pairs, names of at most "
                f"{_LONGEST_NAME} and values of at most {_LONGEST_VALUE} characters.",
                param="metadata",
            )
        file = self._files.find(wanted.input_file_id)
        if file.purpose != "batch":
            raise Refusal("The file is not for batches.", param="input_file_id")
        return file

    def _list(self, asking: Asking) -> Answer:
        part = page(self._office.newest(asking.now_us), asking, after="after", most=100)
        found = [
            self._described(self._office.find(each, asking.now_us)) for each in part.ids
        ]
        return Answer(body=part.body(found, object="list"))

    def _batch(self, asking: Asking, batch_id: str) -> Answer:
        return Answer(
            body=encoded(self._described(self._office.find(batch_id, asking.now_us)))
        )

    def _cancel(self, asking: Asking, batch_id: str) -> Answer:
        kept = self._office.cancel(batch_id, asking.now_us)
        return Answer(body=encoded(self._described(kept)))

    def _file_results(
        self, kept: Kept, kind: str, lines: list[Mapping[str, Any]]
    ) -> str | None:
        """Keep *lines* as a file of results; OpenAI makes no empty one."""
        if not lines:
            return None
        return self._files.add(
            f"{kept.id}_{kind}.jsonl",
            joined(lines),
            kept.batch.entered[kept.batch.phase],
            purpose="batch_output",
        ).id

    def _described(self, kept: Kept) -> dict[str, Any]:
        """A batch as OpenAI tells of it.

        What expired or was cancelled counts neither as completed nor as failed.
        """
        batch, bought = kept.batch, self._bought[kept.id]
        results = self._results.get(kept.id, _Results())
        moments = {
            phase: moment_us // 1_000_000 for phase, moment_us in batch.entered.items()
        }
        created_at = moments[Phase.VALIDATING]
        return {
            "id": kept.id,
            "object": "batch",
            "endpoint": bought.wanted.endpoint,
            "model": kept.model or None,
            "errors": _errors(bought.problems) if batch.phase is Phase.FAILED else None,
            "input_file_id": bought.wanted.input_file_id,
            "completion_window": bought.wanted.completion_window,
            "status": batch.phase,
            "output_file_id": results.output,
            "error_file_id": results.error,
            "created_at": created_at,
            "expires_at": created_at + WINDOW_S,
            **{
                f"{phase}_at": moments.get(phase)
                for phase in Phase
                if phase is not Phase.VALIDATING
            },
            "request_counts": {
                "total": batch.total if Phase.IN_PROGRESS in moments else 0,
                "completed": batch.count(Ending.SUCCEEDED),
                "failed": batch.count(Ending.ERRORED),
            },
            "usage": _usage(kept) if batch.phase.is_terminal else None,
            "metadata": bought.wanted.metadata,
        }


def _errors(problems: tuple[Problem, ...]) -> dict[str, Any]:
    return {"object": "list", "data": [asdict(problem) for problem in problems]}


def _usage(kept: Kept) -> dict[str, Any]:
    return {
        "input_tokens": kept.tokens_in,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": kept.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": kept.tokens_in + kept.tokens_out,
    }
