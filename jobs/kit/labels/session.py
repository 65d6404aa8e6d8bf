"""One person's pass over the items of a run, as every front end uses it.

A front end shows `session.question`, calls `answer`, `undo`, `skip`, `note` or
`reveal`, and shows the next `question`. An answer is durable when `answer` returns.
Nothing else is kept: a later session of the same author continues where this one ended,
because the label log says what is labelled.

    while (question := session.question) is not None:
        show(question)
        await session.answer(value_of_key())

What was visible is recorded with each label. A question begins blind unless the session
is assisted or the job's labels are about replies; `reveal` shows the replies, and
nothing hides them again before the question is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobs.kit.labels.draws import majority
from runner.errors import UsageError
from runner.labelling import LabelField, LabelItem, ModelLabel
from store.clock import Clock
from store.labels.events import LABELS, REPLY, Adjudicated, ItemDrawn, LabelRecorded
from store.labels.fold import (
    ItemField,
    LabelKey,
    LabelSet,
    Statement,
    TextHashes,
    is_stale,
    text_hash,
)


class LabelRecorder(Protocol):
    """Records labels durably: `store.labels.writer.LabelWriter`, or a test's."""

    author: str

    async def record(
        self,
        item: str,
        value: str,
        *,
        field: str = "",
        reason: str = "",
        visible: Sequence[str] | None = None,
        run: str = "",
        run_task: int | None = None,
        text_sha256: str = "",
        reply_sha256: str = "",
        draw: str = "",
        probability: float | None = None,
        seconds: float | None = None,
    ) -> str:
        """Record a label; return its id."""
        ...

    async def withdraw(self, label: str, *, reason: str = "") -> str:
        """Withdraw a label or adjudication."""
        ...

    async def adjudicate(
        self,
        item: str,
        value: str,
        *,
        considered: Sequence[str],
        field: str = "",
        reason: str = "",
        text_sha256: str = "",
        reply_sha256: str = "",
        run: str = "",
    ) -> str:
        """Record a final value; return the event's id."""
        ...


class SessionSource(Protocol):
    """The part of `jobs.kit.labels.source.LabelSource` that a session uses."""

    @property
    def run(self) -> str:
        """Id of the run."""
        ...

    @property
    def replies(self) -> Mapping[ItemField, Sequence[ModelLabel]]:
        """Return the models' replies."""
        ...

    @property
    def reply_hashes(self) -> TextHashes:
        """SHA-256 of the replies that labels are about."""
        ...

    def item(self, key: str) -> LabelItem:
        """An item by its key."""
        ...

    def field(self, name: str) -> LabelField:
        """A field by its name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question on display."""

    item: LabelItem
    field: LabelField
    replies: tuple[ModelLabel, ...]  #: visible ones; empty while blind
    labels: tuple[Statement[LabelRecorded], ...]  #: of others, while adjudicating
    raters: tuple[str, ...]  #: names for the authors of the labels
    has_hidden_replies: bool  #: replies are hidden, if there are any
    note: str  #: goes with the answer as its reason

    @property
    def visible(self) -> list[str]:
        """Visible parts, as `LabelRecorded.visible` lists them."""
        models = dict.fromkeys(f"{REPLY}{reply.model}" for reply in self.replies)
        return [*self.item.visible, *models, *([LABELS] if self.labels else [])]

    @property
    def is_blind(self) -> bool:
        """Whether neither a reply nor another label is visible."""
        return not self.replies and not self.labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProgress:
    """Progress of a session."""

    answered: int  #: in this session
    done: int  #: of the session's questions, those of earlier sessions included
    total: int
    skipped: int  #: put off in this session, and not answered yet
    compared: int  #: answers of this session that were given with replies visible
    agreed: int  #: of these, with the value of most replies


@dataclass(slots=True, kw_only=True)
class _Open:
    """The state of the present question."""

    about: ItemField
    since: float  #: of the monotonic clock
    is_revealed: bool
    note: str = ""


@dataclass(slots=True)
class _Recorded:
    """An answer of this session, for undo."""

    about: ItemField
    id: str
    agrees: bool | None  #: with most visible replies; None: there were none


@dataclass(slots=True)
class _Queue:
    """Questions in the order in which they are shown."""

    waiting: deque[ItemField]
    skipped: list[ItemField] = field(default_factory=list)

    def first(self) -> ItemField | None:
        """The next question; those put off come after all others."""
        if not self.waiting and self.skipped:
            self.waiting.extend(self.skipped)
            self.skipped.clear()
        return self.waiting[0] if self.waiting else None

    def discard(self, about: ItemField) -> bool:
        """Take a question out; return whether it was in."""
        for questions in (self.waiting, self.skipped):
            if about in questions:
                questions.remove(about)
                return True
        return False


class LabelSession:
    """A session of one author over some questions."""

    def __init__(
        self,
        source: SessionSource,
        recorder: LabelRecorder,
        questions: Iterable[ItemField],
        *,
        labels: LabelSet,
        clock: Clock,
        is_assisted: bool = False,
        needs_reply: bool = False,
        is_adjudicating: bool = False,
        hides_names: bool = False,
    ) -> None:
        """Start with the first question that the author has not answered.

        Args:
            source: the items and replies.
            recorder: records the answers, in the name of its author.
            questions: what is labelled, in this order; see `questions_of`.
            labels: of the folder, as it is now.
            clock: measures the seconds of an answer.
            is_assisted: whether replies are visible from the start.
            needs_reply: whether the labels are about replies, which are then visible.
            is_adjudicating: whether answers are final values, given with the labels of
                all people visible.
            hides_names: whether their labels are shown without their names.
        """
        self._source = source
        self._recorder = recorder
        self._labels = labels
        self._clock = clock
        self._shows_replies = is_assisted or needs_reply
        self._is_adjudicating = is_adjudicating
        self._hides_names = hides_names
        every = list(dict.fromkeys(questions))
        waiting = [about for about in every if not self._is_answered(about)]
        self._queue = _Queue(deque(waiting))
        self._done_before = len(every) - len(waiting)
        self._total = len(every)
        self._history: list[_Recorded] = []
        self._open: _Open | None = None
        self._drawn_since: dict[ItemField, Statement[ItemDrawn]] = {}
        self._advance()

    @property
    def author(self) -> str:
        """In whose name labels are recorded."""
        return self._recorder.author

    @property
    def status(self) -> str:
        """A line about where the work stands, to show with each question; "": none."""
        return ""

    @property
    def ending(self) -> str:
        """Text to show when no question is left."""
        return "All items are labelled."

    @property
    def question(self) -> Question | None:
        """The present question; None: all are answered."""
        if self._open is None:
            return None
        about = self._open.about
        replies = tuple(self._source.replies.get(about, ())) if self._may_look else ()
        labels = self._labels.by_field.get(about, ()) if self._is_adjudicating else ()
        raters = [label.event.author for label in labels]
        if self._hides_names:
            # in an order that says nothing about who is who
            labels = sorted(labels, key=lambda label: text_hash(label.id))
            raters = [f"person {number}" for number in range(1, len(labels) + 1)]
        return Question(
            item=self._source.item(about.item),
            field=self._source.field(about.field),
            replies=replies,
            labels=tuple(labels),
            raters=tuple(raters),
            has_hidden_replies=not self._may_look,
            note=self._open.note,
        )

    @property
    def progress(self) -> SessionProgress:
        """Return how many questions are answered and left."""
        left = len(self._queue.waiting) + len(self._queue.skipped)
        return SessionProgress(
            answered=len(self._history),
            done=self._total - left,
            total=self._total,
            skipped=len(self._queue.skipped),
            compared=sum(one.agrees is not None for one in self._history),
            agreed=sum(one.agrees is True for one in self._history),
        )

    async def answer(self, value: str, *, reason: str = "") -> str:
        """Record the value of the present question; return the label's id.

        The next question is the present one as soon as this returns.

        Args:
            value: one of the field's choices, or any text if the field is open.
            reason: added to the note of the question.

        Raises:
            UsageError: there is no question, or the value is none of the choices.
            LogClosed: the disk refused; the question stays open.
        """
        question, opened = self.question, self._open
        if question is None or opened is None:
            raise UsageError("All items are labelled: undo an answer to change it.")
        value = checked_value(question.field, value)
        about = opened.about
        text_sha256 = question.item.sha256
        reply_sha256 = self._source.reply_hashes.get(about, "")
        why = " ".join(filter(None, (opened.note, reason)))
        if self._is_adjudicating:
            label = await self._recorder.adjudicate(
                about.item,
                value,
                field=about.field,
                considered=[one.id for one in question.labels],
                reason=why,
                text_sha256=text_sha256,
                reply_sha256=reply_sha256,
                run=self._source.run,
            )
        else:
            draw = self._draw_of(about)
            tasks = [one.task for one in question.replies if one.task is not None]
            label = await self._recorder.record(
                about.item,
                value,
                field=about.field,
                reason=why,
                visible=question.visible,
                run=self._source.run,
                run_task=tasks[0] if tasks else None,
                text_sha256=text_sha256,
                reply_sha256=reply_sha256,
                draw=draw.id if draw else "",
                probability=draw.event.probability if draw else None,
                seconds=round(self._clock.monotonic() - opened.since, 3),
            )
        most = majority(question.replies)
        self._history.append(_Recorded(about, label, value == most if most else None))
        self._queue.waiting.popleft()
        self._advance()
        return label

    async def undo(self) -> bool:
        """Withdraw the last answer of this session and ask its question again.

        Returns:
            False: this session has no answer to undo.

        Raises:
            LogClosed: the disk refused; the answer still counts.
        """
        if not self._history:
            return False
        last = self._history[-1]
        await self._recorder.withdraw(last.id, reason="undone")
        self._history.pop()
        self._queue.waiting.appendleft(last.about)
        self._advance()
        return True

    def skip(self) -> None:
        """Put the present question off until all others are answered."""
        if self._open is not None:
            self._queue.skipped.append(self._queue.waiting.popleft())
            self._advance()

    def note(self, text: str) -> None:
        """Set the note of the present question; it is recorded with the answer."""
        if self._open is not None:
            self._open.note = text.strip()

    def load_replies(self) -> None:
        """Read the replies, which may take seconds, before `reveal` shows any.

        It may run in a thread, as `reveal` may not.
        """
        _ = self._source.replies

    def reveal(self) -> None:
        """Show the replies to the present question: its label is an assisted one."""
        if self._open is not None:
            self._open.is_revealed = True

    def ask_next(
        self, about: ItemField, draw: Statement[ItemDrawn] | None = None
    ) -> None:
        """Make a question the present one, put off or not, or none of the session yet.

        Args:
            about: the question.
            draw: that chose it since the session began, for its label.
        """
        if draw is not None:
            self._drawn_since[about] = draw
        if self._open is not None and self._open.about == about:
            return
        is_waiting = self._queue.discard(about)
        self._total += not is_waiting
        self._queue.waiting.appendleft(about)
        self._advance()

    def rearrange(self, questions: Iterable[ItemField]) -> None:
        """Ask the waiting questions in another order; those put off stay put off."""
        waiting = set(self._queue.waiting)
        ordered = [about for about in questions if about in waiting]
        rest = waiting.difference(ordered)
        others = [about for about in self._queue.waiting if about in rest]
        self._queue.waiting = deque([*ordered, *others])
        self._advance()

    def leave_out(self, about: ItemField) -> None:
        """Ask a question no more, because somebody else has answered it."""
        is_open = self._open is not None and self._open.about == about
        if self._queue.discard(about) and is_open:
            self._advance()

    @property
    def _may_look(self) -> bool:
        return self._shows_replies or (
            self._open is not None and self._open.is_revealed
        )

    def _advance(self) -> None:
        about = self._queue.first()
        self._open = (
            None
            if about is None
            else _Open(about=about, since=self._clock.monotonic(), is_revealed=False)
        )

    def _draw_of(self, about: ItemField) -> Statement[ItemDrawn] | None:
        if about in self._drawn_since:
            return self._drawn_since[about]
        draws = self._labels.drawn
        return draws.get(about) or draws.get(ItemField(about.item, ""))

    def _is_answered(self, about: ItemField) -> bool:
        """Whether the author labelled the present text and reply, or it is decided."""
        statement: Statement[LabelRecorded] | Statement[Adjudicated] | None
        if self._is_adjudicating:
            statement = self._labels.decided.get(about)
        else:
            key = LabelKey(self._recorder.author, *about)
            statement = self._labels.current.get(key)
        if statement is None:
            return False
        texts: dict[str | ItemField, str] = {**self._source.reply_hashes}
        if statement.event.text_sha256:
            texts[about.item] = self._source.item(about.item).sha256
        return not is_stale(statement, texts)


def checked_value(field: LabelField, value: str) -> str:
    """Return a value without outer blanks.

    Raises:
        UsageError: the field does not have it; names the values that it has.
    """
    text = value.strip()
    values = [choice.value for choice in field.choices]
    typed = "a text" if field.is_open else ""
    if field.is_open and text:
        typed = field.fault(text)
    if text in values or (field.is_open and text and not typed):
        return text
    about = f" of {field.name}" if field.name else ""
    raise UsageError(
        f"{value!r} is no value{about}: give one of {', '.join(values)}"
        f"{f', or {typed}' if typed else ''}."
    )
