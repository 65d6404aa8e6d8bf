"""Labels items in a plain terminal, or from a script: `siftlog label RUN --plain`.

Each item is printed and answered by one key. On a terminal a key takes effect
immediately; from a pipe each line is an answer, so a script can label too.
"""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable, Iterator
from typing import Final, TextIO

from jobs.kit.labels.session import LabelSession, Question
from runner.errors import UsageError
from runner.labelling import ModelLabel
from store.document import WIDTH
from store.printable import one_line, printable

UNDO, SKIP, REVEAL, NOTE, HELP, QUIT = "z", "s", "r", "/", "?", "q"

_COMMANDS: Final = {
    UNDO: "undo",
    SKIP: "skip",
    REVEAL: "show replies",
    NOTE: "note",
    QUIT: "quit",
}

_CONTROLS: Final = {"\x03": QUIT, "\x04": QUIT, "\x7f": UNDO, "\x08": UNDO, " ": SKIP}
"""Additional keys of a terminal: Ctrl-C, Ctrl-D, backspace, space."""

RULE: Final = "-" * 60


async def label_plainly(
    session: LabelSession,
    *,
    write: Callable[[str], None],
    read: Callable[[], str | None],
    read_line: Callable[[str], str | None],
) -> None:
    """Ask all questions of a session until they are answered or the person quits.

    Args:
        session: has the questions, and records the answers.
        write: prints text, escaped for a terminal.
        read: returns the next key or word; None: the input has ended.
        read_line: returns a line of text after a prompt; None: the input has ended.
    """
    printed: Question | None = None
    while (question := session.question) is not None:
        if question != printed:
            write(question_text(question, session))
            printed = question
        key = read()
        if key is None or key == QUIT:
            return
        match key:
            case "z":
                if not await session.undo():
                    write("Nothing to undo in this session.")
            case "s":
                session.skip()
            case "r":
                session.reveal()
            case "/":
                session.note(read_line("note: ") or "")
            case "?" | "":
                printed = None
            case _:
                await _answer(session, question, key, write, read_line)
    write(session.ending)


async def _answer(
    session: LabelSession,
    question: Question,
    key: str,
    write: Callable[[str], None],
    read_line: Callable[[str], str | None],
) -> None:
    choice = question.field.choice(key)
    value: str | None = key if choice is None else choice.value
    if key == "=" and question.field.is_open:
        value = read_line("value: ")
    try:
        await session.answer(value or "")
    except UsageError as error:
        write(str(error))


def question_text(question: Question, session: LabelSession) -> str:
    """Return the page of a question: text, visible replies and labels, and the keys."""
    progress, item = session.progress, question.item
    lines = [
        RULE,
        f"{progress.done + 1:,} of {progress.total:,}  {one_line(item.key)}"
        + ("" if question.is_blind else "  (not blind)"),
    ]
    lines += [session.status] if session.status else []
    if item.title:
        lines.append(one_line(item.title))
    quotes = [
        quote.passage
        for reply in question.replies
        for quote in reply.quotes
        if quote.passage
    ]
    lines += ["", printable(marked(item.text, quotes)), ""]
    lines += map(_reply, question.replies)
    lines += [
        f"{one_line(rater)}: {one_line(label.event.value)}"
        + (f" ({one_line(label.event.reason)})" if label.event.reason else "")
        for rater, label in zip(question.raters, question.labels, strict=True)
    ]
    if question.note:
        lines.append(f"note: {one_line(question.note)}")
    lines += [one_line(question.field.question), *_key_bar(question)]
    return "\n".join(lines)


def _reply(reply: ModelLabel) -> str:
    stated = "" if reply.probability is None else f", p {reply.probability:.2f}"
    replicate = f" #{reply.replicate}" if reply.replicate > 1 else ""
    value = "no value" if reply.value is None else one_line(reply.value)
    reason = f" ({one_line(reply.reason)})" if reply.reason else ""
    return f"{one_line(reply.model)}{replicate}: {value}{stated}{reason}"


def _key_bar(question: Question) -> list[str]:
    """The keys in as many lines as they need."""
    lines = [""]
    for key in _keys(question):
        longer = f"{lines[-1]}  {key}".lstrip()
        if lines[-1] and len(longer) > WIDTH:
            lines.append(key)
        else:
            lines[-1] = longer
    return lines


def _keys(question: Question) -> Iterator[str]:
    for choice in question.field.choices:
        yield f"[{choice.key}] {choice.value}"
    if question.field.is_open:
        yield "[=] value"
    for key, words in _COMMANDS.items():
        if key != REVEAL or question.has_hidden_replies:
            yield f"[{key}] {words}"


def marked(text: str, quotes: list[str]) -> str:
    """Return a text with the passages of quotes in double brackets.

    >>> marked("We enrolled 12 adults.", ["12 adults"])
    'We enrolled [[12 adults]].'
    """
    for quote in dict.fromkeys(quotes):
        text = text.replace(quote, f"[[{quote}]]", 1)
    return text


def key_of(stream: TextIO) -> str | None:
    """Read a key from a terminal, or a line without its blanks; None at the end."""
    if not stream.isatty():
        line = stream.readline()
        return line.strip() if line else None
    before = termios.tcgetattr(stream)
    try:
        keys = termios.tcgetattr(stream)
        # without ISIG, Ctrl-C arrives as a key and ends the session properly
        keys[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(stream, termios.TCSADRAIN, keys)
        key = stream.read(1)
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)
    return _CONTROLS.get(key, key.strip()) if key else None


def line_of(prompt: str) -> str | None:
    """Read a line of text after a prompt; None at the end of the input."""
    if sys.stdin.isatty():
        sys.stdout.write(prompt)
        sys.stdout.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None
