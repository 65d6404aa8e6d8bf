"""The items of a report that a person should look at, with prompt, replies and gold."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Final

from jobs.kit.report.html import Child, Element, element, excerpt, folded, html_table
from runner.job import QuotedPassage
from runner.score.notable import NotableItem, NotableReply
from runner.score.render import ReportSource
from store.document import Numbers, Words
from store.printable import clip

VALUE_CHARS: Final = 80
"""Characters of an answer in the line of an item."""

_WORTH: Final = {True: "right", False: "wrong", None: "not judged"}


def notable_items(reported: ReportSource) -> Iterator[Element]:
    """The most telling items, each behind a click; counts and unparsed replies."""
    notable = reported.notable
    if notable.counts:
        yield html_table(
            "All items by the first reason to look at them. The most telling ones are "
            "listed below.",
            [Words("reason"), Numbers("items")],
            [(name, f"{n:,}") for name, n in notable.counts],
        )
    if notable.unparsed:
        yield html_table(
            "Unparsed replies: completed, but nothing could be read from them.",
            [Words("model"), Words("reason"), Numbers("replies")],
            [(row.model, row.reason, f"{row.replies:,}") for row in notable.unparsed],
            is_stacked=True,
        )
    for number, item in enumerate(notable.items, 1):
        yield _item(number, item, reported)


def _item(number: int, item: NotableItem, reported: ReportSource) -> Element:
    part = f", {item.part}" if item.part else ""
    summary = (
        element("span", f"{number}. {item.key}{part}", class_="name"),
        element("span", item.title, class_="title") if item.title else "",
        element("span", "; ".join(item.reasons), class_="why"),
        element("span", _answers(item), class_="why"),
    )
    prompt: Child = ()
    if item.prompt:
        title = "End of the prompt" if item.is_sent else "End of the job's prompt"
        prompt = (element("h4", title), excerpt(item.prompt))
    omitted = (
        element("p", f"{item.omitted:,} more replies are not listed.")
        if item.omitted
        else ""
    )
    return folded(
        summary,
        prompt,
        element("h4", "Replies"),
        (_reply(reply) for reply in item.replies),
        omitted,
        element("p", "In full: ", element("code", _command(item, reported))),
        is_open=number == 1,
        class_="item",
    )


def _answers(item: NotableItem) -> str:
    """The expected answer beside those of the models."""
    values = (_without(r.verdict.value, item.part) for r in item.replies)
    counts = Counter(clip(value or "unparsed", VALUE_CHARS) for value in values)
    answers = (f"{v} ({n} times)" if n > 1 else v for v, n in counts.items())
    expected = clip(_without(item.expected, item.part), VALUE_CHARS) or "not known"
    return f"expected: {expected}; answers: {' | '.join(answers)}"


def _without(value: str, part: str) -> str:
    """A value without the name of its part, which the item's line has."""
    return value.removeprefix(f"{part}: ")


def _command(item: NotableItem, reported: ReportSource) -> str:
    if reported.has_explain:
        return f"siftlog explain {reported.run_id} {shlex.quote(item.key)}"
    return f"siftlog show {reported.run_id} {shlex.quote(item.key)}"


def _reply(reply: NotableReply) -> Iterator[Element]:
    verdict = reply.verdict
    worth = "unparsed" if verdict.is_unparsed else _WORTH[verdict.correct]
    rule = f", rule {verdict.rule}" if verdict.rule else ""
    p = verdict.confidence
    marks = [
        "" if p is None else f"confidence {p:.2f}",
        "quote not in the text" if verdict.is_grounded is False else "",
    ]
    replicate = f", replicate {reply.replicate}" if reply.replicate > 1 else ""
    yield element(
        "p",
        f"{verdict.model}{replicate}: ",
        element("strong", _without(verdict.value, verdict.part) or "no value"),
        f", {', '.join([worth, *filter(None, marks)])} (task {verdict.task:,}{rule})",
    )
    if reply.text:
        yield excerpt(reply.text)
    for quote in reply.quotes:
        yield _quote(quote)


def _quote(quote: QuotedPassage) -> Element:
    label = ", ".join(filter(None, (quote.label, quote.place)))
    if quote.passage is None:
        text: Child = (quote.quote, " (not in the text)")
    else:
        text = (quote.before, element("mark", quote.passage), quote.after)
    title = f"Quote for {label}: " if label else "Quote: "
    return element("p", title, text, class_="quote")
