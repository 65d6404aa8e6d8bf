"""Declares the job replies: prompts of other tools, and whether replies are right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from jobs.kit.inputs.rows import RowModel
from jobs.kit.job import Deferred
from jobs.kit.questions import QuestionJob, Value
from jobs.kit.text_format import plural
from jobs.replies.data import SAMPLE, PromptRow, ReplyData, ReplySettings, load
from runner.errors import UsageError
from runner.job import InputFile, Task
from runner.messages import ChatRequest, ParseFailure

EXCERPT: int = 200
"""Characters of a reply that a verdict shows."""


@dataclass(frozen=True, slots=True)
class NormalText:
    """The text of a reply, in lower case and without repeated spaces.

    >>> str(NormalText.of("  The answer   is 42. "))
    'the answer is 42.'
    """

    text: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Normalise a text: Unicode NFKC, case, spaces."""
        folded = unicodedata.normalize("NFKC", text).casefold()
        return cls(" ".join(folded.split()))

    def __str__(self) -> str:
        return self.text[:EXCERPT]


@dataclass(frozen=True, slots=True)
class RightAnswer(NormalText):
    """The right answer, and how a reply is compared with it.

    Punctuation at its ends does not count.

    >>> reply = NormalText.of("It is 42.")
    >>> [RightAnswer.of(text).matches(reply) for text in ("42", "4", "it is 42")]
    [True, False, True]
    """

    match: str = "includes"  #: or "exact"

    def matches(self, reply: NormalText) -> bool:
        """Return whether a reply is right."""
        words = _bare(self.text) or self.text
        if self.match == "exact":
            return _bare(reply.text) == words
        pattern = rf"(?<!\w){re.escape(words)}(?!\w)"
        return re.search(pattern, reply.text) is not None


def _bare(text: str) -> str:
    return re.sub(r"^\W+|\W+$", "", text)


class Replies(QuestionJob):
    """Are the replies of other tools, or of models to the same prompts, right?"""

    name = "replies"
    version = "1"
    Settings = ReplySettings
    everyday = ("rows", "form", "item", "match", "limit")
    holds_foreign = True

    Row: ClassVar[type[RowModel]] = PromptRow
    question = "The prompt as it was sent."
    show = ("prompt",)
    truth = "target"

    labelling = None  # type: ignore[assignment] # of replies: a target is a part of one
    load = staticmethod(load)  # type: ignore[assignment] # of files in other forms
    load_with_progress = load

    def with_sample(self, settings: ReplySettings) -> ReplySettings:
        """Use the shipped sample if no file is named."""
        if settings.rows:
            return settings
        return settings.model_copy(update={"rows": (SAMPLE,)})

    def require(self, settings: ReplySettings) -> None:
        """Raise `UsageError` without a file."""
        if not settings.rows:
            raise UsageError("No file is named: give --rows FILE.")

    def inputs(self, settings: ReplySettings) -> tuple[InputFile, ...]:
        """The files."""
        return tuple(InputFile(setting="rows", path=path) for path in settings.rows)

    def request(self, dataset: ReplyData, task: Task) -> ChatRequest:  # type: ignore[override] # its own data
        """The messages as they were sent."""
        settings = dataset.settings
        return ChatRequest(
            messages=dataset.rows.messages(task.key),
            max_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
        )

    def baseline(self, request: ChatRequest) -> str:
        """The last line of the prompt: a floor to compare with."""
        return self.offline({"prompt": request.messages[-1].text})

    def offline(self, texts: dict[str, str]) -> str:
        """Repeat the last line of the prompt."""
        return (texts["prompt"].strip().splitlines() or [""])[-1]

    def read(self, text: str) -> Value | ParseFailure | None:
        """The text; None if it is blank."""
        return NormalText.of(text) if text.strip() else None

    def truth_of(self, row: RowModel) -> Value | None:
        """The target of a prompt."""
        if not isinstance(row, PromptRow) or not (row.target or "").strip():
            return None
        return replace(RightAnswer.of(row.target or ""), match=row.match)

    def is_right(self, value: Value, truth: Value) -> bool:
        """Whether a reply matches the target."""
        return (
            isinstance(value, NormalText)
            and isinstance(truth, RightAnswer)
            and truth.matches(value)
        )

    further = Deferred("jobs.replies.score:FURTHER")
    score = Deferred("jobs.replies.score:score")

    def describe(self, dataset: ReplyData) -> Iterator[str]:  # type: ignore[override] # its own data
        """The files and the number of prompts."""
        names = ", ".join(path.name for path in dataset.settings.rows)
        yield f"{plural(len(dataset.rows), 'prompt')} of {names}."


job = Replies()
