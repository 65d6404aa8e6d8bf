"""Turns a question into what is shown of it, for the screen and for the browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.printable import printable
from tui.sources.item_text import Span, quoted_spans

if TYPE_CHECKING:
    from jobs.kit.labels.session import Question, SessionProgress

_LEAST = 3
"""Answers from which a rate is shown."""
_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStatement:
    """Statement of a model or another person about the item."""

    who: str
    value: str  #: "": a reply without a value
    reason: str
    probability: float | None = None

    @property
    def line(self) -> str:
        """All of it in a line."""
        stated = "" if self.probability is None else f", p {self.probability:.2f}"
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.who}: {self.value or 'no value'}{stated}{reason}"


def statements(question: Question) -> list[ItemStatement]:
    """The visible replies, then the labels that an adjudicator sees."""
    replies = [
        ItemStatement(
            who=f"{one.model} #{one.replicate}" if one.replicate > 1 else one.model,
            value=one.value or "",
            reason=one.reason,
            probability=one.probability,
        )
        for one in question.replies
    ]
    labels = [
        ItemStatement(who=who, value=one.event.value, reason=one.event.reason)
        for who, one in zip(question.raters, question.labels, strict=True)
    ]
    return replies + labels


def spans(question: Question) -> list[Span]:
    """Return the passages with a quote of a visible reply; they do not overlap."""
    quotes = (
        quote.passage or quote.quote
        for reply in question.replies
        for quote in reply.quotes
    )
    return quoted_spans(question.item.text, quotes)


def parts(question: Question) -> Iterator[tuple[str, bool]]:
    """Yield the text in pieces, and whether each is a quote."""
    text, at = question.item.text, 0
    for begin, end in spans(question):
        yield text[at:begin], False
        yield text[begin:end], True
        at = end
    yield text[at:], False


def blindness(question: Question) -> str:
    """Return what is visible besides the item, in words."""
    if question.labels:
        return "labels of all people are visible"
    if question.replies:
        return "replies are visible: the label counts as assisted"
    if not question.has_hidden_replies:
        return "no replies"
    return "blind: replies are hidden"


def progress_words(progress: SessionProgress, seconds: float) -> list[str]:
    """Return a session's progress: done of all, skipped, rate, agreement if allowed.

    Agreement counts only answers that were given with replies in sight, so it says
    nothing about a reply that is hidden.

    Args:
        progress: of the session.
        seconds: that it took so far.
    """
    words = [f"{progress.done:,} of {progress.total:,} labelled"]
    if progress.skipped:
        words.append(f"{progress.skipped:,} skipped")
    if progress.answered >= _LEAST and seconds > 0:
        words.append(f"{progress.answered * _HOUR_S / seconds:,.0f}/h")
    if progress.compared:
        words.append(
            f"{progress.agreed:,} of {progress.compared:,} agree with most replies"
        )
    return words


def error_sentence(error: Exception) -> str:
    """Return the message of an error as a sentence for a display."""
    text = printable(str(error)).rstrip(".")
    return f"{text}."
