"""Loads the prompts of other tools' files, one for each of their samples.

Prompts of a large log do not fit into memory: they are read once, into a temporary file
from which a prompt is read again when it is needed.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field

from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel, RowSource
from jobs.kit.questions import Questions, QuestionSettings
from jobs.kit.text_format import plural
from runner.errors import DatasetError
from runner.imports.forms import read_files, with_progress
from runner.imports.records import ForeignReply, item_key
from runner.messages import Message
from runner.scorecard import Finding

SAMPLE: Final = Path(str(files("jobs.replies") / "sample" / "replies.jsonl"))

CACHED_PROMPTS: Final = 64
"""Prompts in memory; several replies and their verdicts are about each."""


class ReplySettings(QuestionSettings):
    """Settings of replies."""

    rows: tuple[Path, ...] = Field(  # type: ignore[assignment] # several files
        (),
        description="logs or result files of other tools, with prompts",
        json_schema_extra={"commas": False},
    )
    form: str = Field(
        "", description="their format; default: recognised from the contents"
    )
    item: str = Field(
        "", description="field that names the item; default: the id of the sample"
    )
    match: Literal["includes", "exact"] = Field(
        "includes", description="a reply is right if it includes the target, or is it"
    )
    # a file of another tool names its fields itself
    map: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc] # no setting here
    max_output_tokens: int = Field(2048, ge=1, description="longest reply, in tokens")


class PromptRow(RowModel):
    """A prompt with its right answer."""

    id: cells.Text
    prompt: cells.Text  #: texts of its messages
    target: cells.Text | None = None
    match: cells.Text = "includes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """A prompt as it was sent."""

    row: PromptRow
    messages: tuple[Message, ...]


class PromptRows(Mapping[str, PromptRow]):
    """The prompts by item, in the order of the files."""

    def __init__(
        self, replies: Iterable[tuple[Path, ForeignReply]], settings: ReplySettings
    ) -> None:
        """Store the first prompt of each item, and count those that differ."""
        self._settings = settings
        self._file = tempfile.TemporaryFile(buffering=1 << 20)  # noqa: SIM115 - as long as the data set
        weakref.finalize(self, self._file.close)
        self._places: dict[str, tuple[int, int]] = {}
        self._hashes: dict[str, int] = {}
        self.other_prompts = 0  #: replies to a prompt other than the first of the item
        self.without_prompt = 0  #: items whose file has no prompt
        for _, reply in replies:
            self._add(item_key(reply, settings.item), reply)
        self._file.flush()
        self._cached = lru_cache(maxsize=CACHED_PROMPTS)(self._read)

    def _add(self, key: str, reply: ForeignReply) -> None:
        known = self._hashes.get(key)
        if known is not None:
            self.other_prompts += known != hash(reply.messages)
            return
        if self._settings.limit and len(self._places) == self._settings.limit:
            return
        text = "\n\n".join(message.text for message in reply.messages)
        self.without_prompt += not text
        row = PromptRow.validated(
            RowSource(file="the prompts"),
            len(self._places) + 1,
            {
                "id": key,
                "prompt": text,
                "target": reply.target,
                "match": self._settings.match,
            },
        )
        prompt = SentPrompt(row=row, messages=reply.messages)
        packed = pickle.dumps(prompt, pickle.HIGHEST_PROTOCOL)
        self._hashes[key] = hash(reply.messages)
        self._places[key] = (self._file.tell(), len(packed))
        self._file.write(packed)

    def _read(self, key: str) -> SentPrompt:
        start, size = self._places[key]
        # no shared position: several threads and processes may read
        prompt: SentPrompt = pickle.loads(os.pread(self._file.fileno(), size, start))  # noqa: S301 - written above
        return prompt

    def messages(self, key: str) -> tuple[Message, ...]:
        """Return the messages of an item; raise `KeyError` if there is none."""
        return self._cached(key).messages

    def __getitem__(self, key: str) -> PromptRow:
        """Return an item; raise `KeyError` if there is none."""
        return self._cached(key).row

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyData(Questions):
    """The prompts of a run."""

    settings: ReplySettings
    rows: PromptRows


def load(
    settings: ReplySettings, progress: Callable[[str], None] = lambda _: None
) -> ReplyData:
    """Read the prompts of all files.

    Args:
        settings: the files, and how they are read.
        progress: receives how many replies have been read.

    Raises:
        DatasetError: a file is damaged or in no known form, or none has a sample.
        UsageError: there is no such form.
    """
    # the model of a reply does not matter here
    replies = read_files(settings.rows, settings.form or None, model="any")
    rows = PromptRows(with_progress(replies, progress), settings)
    if not rows:
        names = ", ".join(path.name for path in settings.rows)
        raise DatasetError(f"{names}: there are no replies in it (name another file).")
    return ReplyData(settings=settings, rows=rows, findings=tuple(_findings(rows)))


def _findings(rows: PromptRows) -> Iterator[Finding]:
    if rows.other_prompts:
        yield Finding(
            code="other_prompts",
            severity="warn",
            where="rows",
            message=f"{plural(rows.other_prompts, 'reply', 'replies')} to another "
            "prompt than the first of the item, which is the one that is kept",
            n=rows.other_prompts,
        )
    if rows.without_prompt:
        yield Finding(
            code="no_prompt",
            severity="info",
            where="rows",
            message=f"{plural(rows.without_prompt, 'item')} without a prompt in the "
            "files",
            n=rows.without_prompt,
        )
