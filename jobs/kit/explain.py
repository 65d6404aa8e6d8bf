"""Parts that the pages of `siftlog explain` share in all jobs.

A job finds what an item names and writes a page about it as blocks of a document
(`store.document`). The rest is here: `select` raises the error about an item that names
nothing, `summary_fact` begins a page, `reply_blocks` shows an answer with what was read
from it, and `pages_text` puts the pages together:

    >>> from store.document import Heading
    >>> posts = {"post_1": 3, "post_2": 1}
    >>> def explain(items):
    ...     chosen = select(
    ...         items,
    ...         lambda item: [item] if item in posts else [],
    ...         kinds="post",
    ...         otherwise="name a post by its id.",
    ...         near=lambda item: closest(item, posts),
    ...     )
    ...     return pages_text(
    ...         [Heading(post, level=1), f"{posts[post]} sentences"] for post in chosen
    ...     )
    >>> print(explain(["post_2", "post_1"]), end="")
    post_2
    1 sentences
    <BLANKLINE>
    post_1
    3 sentences
    >>> explain(["post"])
    Traceback (most recent call last):
    runner.errors.UsageError: There is no post 'post'; the nearest are post_1, post_2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from jobs.kit.report.answer_page import QuoteInContext
from runner.errors import UsageError
from runner.job import Answer, QuotedPassage
from runner.messages import ParseFailure
from store.document import Block, Fact, PageText, Quote, as_text
from store.nearest import RATIO, nearest
from store.printable import clip

T = TypeVar("T")

Reading: TypeAlias = tuple[str, str]
"""A label, such as `read`, and what was read or noticed."""

MODELS = 6
"""Answers that a summary lists."""

NAME_CHARS = 60
"""Characters of an unknown name that its error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswer:
    """A model's answer about an item, in a few words."""

    model: str
    text: str
    is_right: bool | None = None  #: None: not judged, or more than one question


def summary_fact(truth: str | None, answers: Iterable[ItemAnswer] = ()) -> Fact:
    """Begins a page below its heading: the truth, and each model's answer.

        >>> answer = ItemAnswer(model="m", text="include", is_right=False)
        >>> print(as_text([summary_fact("excluded", [answer])]))
        summary    truth: excluded; m: include, wrong

    Args:
        truth: in a few words; None: not known.
        answers: one a model and replicate; the first ones are listed.
    """
    texts = [
        f"{answer.model}: {answer.text}{_WORTH[answer.is_right]}" for answer in answers
    ]
    if more := len(texts) - MODELS:
        texts[MODELS:] = [f"and {more} more"] if more > 0 else []
    return Fact("summary", "; ".join([f"truth: {truth or 'not known'}", *texts]))


_WORTH = {True: ", right", False: ", wrong", None: ""}


def pages_text(pages: Iterable[Iterable[Block]]) -> PageText:
    """Renders pages for a terminal, with a blank line between them."""
    return as_text(block for page in pages for block in (*page, ""))


def select(
    items: Iterable[str],
    find: Callable[[str], Iterable[T]],
    *,
    kinds: str,
    otherwise: str,
    near: Callable[[str], Iterable[str]],
) -> list[T]:
    """Returns what each item names, in the order of the items.

    Args:
        items: as they were typed.
        find: returns what one item names; nothing where there is no such item.
        kinds: of what an item may name, such as `review and no record`.
        otherwise: how to name an item, for errors that know no similar name.
        near: returns similar names, the nearest first.

    Raises:
        UsageError: an item names nothing; gives the nearest names.
    """
    chosen: list[T] = []
    for item in items:
        named = list(find(item))
        if not named:
            raise unknown_item(item, near(item), kinds=kinds, otherwise=otherwise)
        chosen += named
    return chosen


def unknown_item(
    item: str,
    near: Iterable[str],
    *,
    kinds: str,
    otherwise: str,
    quote: Callable[[str], str] = str,
) -> UsageError:
    """Returns the error about an item that names nothing; *quote* is for near names."""
    names = [quote(clip(name, NAME_CHARS)) for name in near]
    verb = "are" if names[1:] else "is"
    hint = f"the nearest {verb} {', '.join(names)}." if names else otherwise
    return UsageError(f"There is no {kinds} {clip(item, NAME_CHARS)!r}; {hint}")


def closest(name: str, names: Iterable[str], *, always: bool = False) -> list[str]:
    """Returns up to three names like *name*; with *always*, however far they are."""
    return nearest(name, names, limit=3, ratio=0.0 if always else RATIO)


def reply_blocks(
    answer: Answer,
    readings: Iterable[Reading],
    *,
    width: int = 9,
    skipped: str = "skipped",
    is_quoted: bool = True,
) -> Iterator[Block]:
    """Shows an answer: the reply, then what was read from it or why there is none.

    Args:
        answer: with or without a reply.
        readings: of its reply; not begun where there is none.
        width: cells of the labels, with the blanks after them.
        skipped: labels the reason of a skip.
        is_quoted: whether there are words of a model to quote; an import has none.
    """
    if answer.chat is not None and is_quoted:
        yield Quote(answer.chat.text)
        if answer.chat.finish_reason != "stop":
            yield Fact("ended", answer.chat.finish_reason, 4, width)
    if answer.skip is not None:
        readings = [(skipped, answer.skip)]
    elif answer.error is not None:
        readings = [("error", answer.error)]
    elif answer.reply is None:
        readings = [("open", "not answered yet")]
    for label, text in readings:
        yield Fact(label, text, 4, width)


def failure_text(failure: ParseFailure) -> str:
    """Says why a reply could not be read, with the detail if there is one."""
    return f"{failure.reason}: {failure.detail}" if failure.detail else failure.reason


def passage_of(
    text: str,
    quote: str,
    span: tuple[int, int] | None,
    *,
    label: str = "",
    match: str = "",
    place: str = "",
) -> QuotedPassage:
    """Returns a quote with the text around it, on one line.

    Args:
        text: of the item.
        quote: as the model wrote it.
        span: offsets of the passage in the text; None: it was not found.
        label: what the quote supports.
        match: how well the passage matches it.
        place: such as a page.
    """
    if span is None:
        return QuotedPassage(quote=quote, label=label, match=match, place=place)
    context = QuoteInContext.of(text, *span)
    return QuotedPassage(
        quote=quote,
        label=label,
        match=match,
        place=place,
        before=_BLANKS.sub(" ", context.before),
        passage=_BLANKS.sub(" ", context.quote),
        after=_BLANKS.sub(" ", context.after),
    )


_BLANKS = re.compile(r"\s+")
