"""Lists the forms of other tools' files, and recognises a file by its content.

A form is a row of `FORMS`: its name for `--format`, what is recognised, and its reader.
The keys of the first object of a file decide; names of files do not.
"""

from __future__ import annotations

import pickle
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final
from zipfile import is_zipfile

from runner.errors import DatasetError, UsageError
from runner.imports import (
    batches,
    every_eval_ever,
    inspect_logs,
    langfuse,
    lm_eval,
    plain_lines,
    promptfoo,
)
from runner.imports.json_stream import first_keys
from runner.imports.records import ForeignPrompt, ForeignReply, opened

ARCHIVE: Final = "zip"
"""Stands for the keys of an archive, which is no JSON."""

LIST: Final = "[]"
"""Stands beside the keys of the first object of a list, which no other form is in."""


PLAIN: Final = "plain"
"""The form of JSON lines that no tool defines."""


PROGRESS_REPLIES: Final = 100
"""Replies between two messages of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignForm:
    """A form of files."""

    title: str  #: the tool and what the file is
    keys: tuple[frozenset[str], ...]
    """Keys of the first object; a file has all of one of these sets."""
    read: Callable[[Path], Iterator[ForeignReply]] | None = None
    """Reads its replies; None: it has none."""
    prompts: Callable[[Path], Iterator[ForeignPrompt]] | None = None
    """Reads its prompts, of which another file has the replies."""
    needs: str = ""  #: what else names the model of a reply, in words

    def fits(self, keys: Collection[str]) -> bool:
        """Return whether a file whose first object has *keys* is in this form."""
        return any(
            wanted.issubset(keys) and (LIST in wanted) == (LIST in keys)
            for wanted in self.keys
        )


def _of(*keys: str) -> frozenset[str]:
    return frozenset(keys)


FORMS: Final[Mapping[str, ForeignForm]] = {
    "inspect": ForeignForm(
        title="inspect_ai log, .eval",
        keys=(_of(ARCHIVE),),
        read=inspect_logs.read_archive,
    ),
    "inspect-json": ForeignForm(
        title="inspect_ai log, .json",
        keys=(_of("version", "status", "eval"), _of("eval", "samples")),
        read=inspect_logs.read_json,
    ),
    "openai-batch": ForeignForm(
        title="OpenAI batch, results or errors",
        keys=(_of("custom_id", "response"), _of("custom_id", "error")),
        read=batches.read_openai,
        needs=", or name the file of requests too",
    ),
    "openai-batch-requests": ForeignForm(
        title="OpenAI batch, requests",
        keys=(_of("custom_id", "method", "url", "body"),),
        prompts=batches.read_requests,
    ),
    "anthropic-batch": ForeignForm(
        title="Anthropic batch, results",
        keys=(_of("custom_id", "result"),),
        read=batches.read_anthropic,
        needs=", or name the file of requests too",
    ),
    "anthropic-batch-requests": ForeignForm(
        title="Anthropic batch, requests, one a line",
        keys=(_of("custom_id", "params"),),
        prompts=batches.read_requests,
    ),
    "anthropic-batch-body": ForeignForm(
        title="Anthropic batch, requests, one object",
        keys=(_of("requests"),),
        prompts=batches.read_request_list,
    ),
    "lm-eval": ForeignForm(
        title="lm-evaluation-harness, samples_*.jsonl",
        keys=(_of("doc_id", "doc", "resps"),),
        read=lm_eval.read,
        needs=", or copy its results_*.json beside it",
    ),
    "promptfoo": ForeignForm(
        title="promptfoo results, .json",
        keys=(_of("evalId", "results"),),
        read=promptfoo.read_json,
    ),
    "promptfoo-lines": ForeignForm(
        title="promptfoo results, .jsonl",
        keys=(_of("promptIdx", "testIdx"),),
        read=promptfoo.read_lines,
    ),
    "every-eval-ever": ForeignForm(
        title="Every Eval Ever, instance records",
        keys=(_of("schema_version", "model_id", "sample_id", "evaluation"),),
        read=every_eval_ever.read,
    ),
    "langfuse": ForeignForm(
        title="Langfuse observations, one a line",
        keys=(_of("trace_id", "start_time", "type"), _of("traceId", "startTime")),
        read=langfuse.read_lines,
    ),
    "langfuse-list": ForeignForm(
        title="Langfuse observations, a list",
        keys=(_of(LIST, "traceId", "startTime"), _of(LIST, "trace_id", "start_time")),
        read=langfuse.read_list,
    ),
    "langfuse-api": ForeignForm(
        title="Langfuse observations, answer of the API",
        keys=(_of("data", "meta"),),
        read=langfuse.read_answer,
    ),
    PLAIN: ForeignForm(
        title="JSON lines with prompt or id, reply, model",
        keys=(
            # without a reply, for an error that names what is missing
            *(_of(prompt) for prompt in plain_lines.NAMES["prompt"]),
            *(
                _of(item, reply)
                for item in plain_lines.NAMES["item"]
                for reply in (*plain_lines.NAMES["reply"], *plain_lines.NAMES["error"])
            ),
        ),
        read=plain_lines.read,
    ),
}
"""In the order in which they are tried."""


def recognised(path: Path, *, plain: bool = True) -> str | None:
    """Return the name of a file's form; None if it is in none.

    Args:
        path: the file.
        plain: recognise plain JSON lines too, whose keys have common names.

    Raises:
        DatasetError: the file cannot be read.
    """
    keys = _keys(path)
    return next(
        (
            name
            for name, form in FORMS.items()
            if form.fits(keys) and (plain or name != PLAIN)
        ),
        None,
    )


def _keys(path: Path) -> Sequence[str]:
    with opened(path) as file:
        keys = first_keys(file, path.name)
    return keys or ([ARCHIVE] if _is_archive(path) else [])


def _is_archive(path: Path) -> bool:
    """Return whether a file is an archive, or the beginning of one."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" or is_zipfile(file)


class _Prompts:
    """Prompts by item, in a temporary file: requests of a batch can be many."""

    def __init__(self, file: IO[bytes], prompts: Iterable[ForeignPrompt]) -> None:
        self._file = file
        self._places: dict[str, tuple[int, int]] = {}
        for prompt in prompts:
            packed = pickle.dumps(prompt, pickle.HIGHEST_PROTOCOL)
            self._places[prompt.item] = (self._file.tell(), len(packed))
            self._file.write(packed)

    def joined(self, reply: ForeignReply) -> ForeignReply:
        """Return a reply with its prompt, and with the model that was asked for."""
        prompt = self._take(reply.item)
        if prompt is None:
            return reply
        return replace(
            reply,
            model=prompt.model,
            messages=prompt.messages,
            dropped=(*reply.dropped, *prompt.dropped),
        )

    def left(self) -> Iterator[ForeignReply]:
        """Yield the prompts without a reply, as failed calls."""
        for item in list(self._places):
            yield self.joined(ForeignReply(item=item, model="", error="no_result"))

    def _take(self, item: str) -> ForeignPrompt | None:
        place = self._places.pop(item, None)
        if place is None:
            return None
        self._file.seek(place[0])
        prompt: ForeignPrompt = pickle.loads(self._file.read(place[1]))  # noqa: S301 - written above
        return prompt


def read_files(
    paths: Sequence[Path], form: str | None = None, model: str | None = None
) -> Iterator[tuple[Path, ForeignReply]]:
    """Yield the replies in files, file by file, each with its file.

    Prompts of files of requests are joined to the replies of the others.

    Args:
        paths: the files.
        form: of all of them, a name in `FORMS`; None: each by its content.
        model: of replies whose file does not name one.

    Raises:
        DatasetError: a file is in no known form, or damaged.
        UsageError: there is no such form, a reply has no model, or no file has replies.
    """
    if form is not None and form not in FORMS:
        raise UsageError(
            f"There is no format {form!r}; choose one of {', '.join(FORMS)}."
        )
    named = [(path, FORMS[form or _form_of(path)]) for path in paths]
    if named and not any(of.read for _, of in named):
        raise UsageError(
            f"{named[0][0].name} has requests without replies; name the file of results"
            " beside it."
        )
    with TemporaryFile(buffering=1 << 20) as file:
        prompts = _Prompts(
            file,
            (prompt for path, of in named if of.prompts for prompt in of.prompts(path)),
        )
        for path, of in named:
            for reply in map(prompts.joined, of.read(path) if of.read else ()):
                if not reply.model and not model:
                    raise UsageError(
                        f"{path.name} names no model for {reply.item!r}; add --model "
                        f"NAME{of.needs}."
                    )
                yield path, reply if reply.model else replace(reply, model=model or "")
        for reply in prompts.left():
            yield paths[0], reply


def with_progress(
    replies: Iterable[tuple[Path, ForeignReply]], progress: Callable[[str], None]
) -> Iterator[tuple[Path, ForeignReply]]:
    """Yield what `read_files` does, and show how many replies have been read."""
    for count, (file, reply) in enumerate(replies, 1):
        if count % PROGRESS_REPLIES == 0:
            progress(f"{file.name}: {count:,} replies read")
        yield file, reply


def _form_of(path: Path) -> str:
    """Return the name of a file's form.

    Raises:
        DatasetError: it is in none.
    """
    name = recognised(path)
    if name is None:
        raise DatasetError(
            f"{path.name}: fits no known format ({', '.join(FORMS)}; see "
            "docs/imports.md, or force one with --format)."
        )
    return name
