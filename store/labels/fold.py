"""Folds the events of label logs into the labels that count.

The fold is pure: the order of a union, (time, writer, seq), is restored first, so the
files of a folder may be read in any order. A withdrawal names its label by id and
holds wherever it stands; one by another author has no effect.

    labels = LabelSet.of(events)
    labels.gold(texts)["paper-7", ""].value  # "include", or None: disputed
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from store.events import Event, UnknownEvent
from store.labels.events import Adjudicated, ItemDrawn, LabelRecorded, LabelWithdrawn


class EventId(NamedTuple):
    """Identity of an event in any log: the merge key of unions."""

    writer: str  #: in hex
    seq: int

    def __str__(self) -> str:
        """Return the id as events refer to it."""
        return f"{self.writer}:{self.seq}"


class LabelEntry(NamedTuple):
    """An event of a label log with its place in the order of a union."""

    ts_us: int
    id: EventId
    event: Event | UnknownEvent


class ItemField(NamedTuple):
    """Item and field that a label is about."""

    item: str
    field: str  #: "": the item itself


TextHashes: TypeAlias = Mapping[str | ItemField, str]
"""SHA-256 of present texts, in hex: of an item by its key, of a reply by its field."""

NO_TEXTS: Final[TextHashes] = MappingProxyType({})


class LabelKey(NamedTuple):
    """Key of one current label."""

    author: str
    item: str
    field: str


_E = TypeVar("_E", LabelRecorded, Adjudicated, ItemDrawn)


@dataclass(frozen=True, slots=True)
class Statement(Generic[_E]):
    """An event about an item, with its id and whether it still counts."""

    id: str
    ts_us: int
    event: _E
    is_withdrawn: bool = False

    @property
    def about(self) -> ItemField:
        """The item and field that it is about."""
        return ItemField(self.event.item, self.event.field)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldValue:
    """Gold value of a field of an item, from labels."""

    value: str | None  #: None: disputed, which counts as missing
    is_adjudicated: bool
    values: Mapping[str, str]  #: current label by author, stale ones left out
    sources: tuple[str, ...]  #: ids of the adjudication, or of the labels


@dataclass(frozen=True, eq=False)
class LabelSet:
    """All labels of a folder as of a moment; a value that never changes."""

    labels: tuple[Statement[LabelRecorded], ...]  #: in order, withdrawn ones included
    adjudications: tuple[Statement[Adjudicated], ...]  #: likewise
    draws: tuple[Statement[ItemDrawn], ...]  #: in order
    unknown: int = 0  #: events of a later siftlog, which are skipped

    def of_run(self, run: str) -> LabelSet:
        """Return the labels that were recorded next to a run, or name none."""
        return replace(
            self,
            labels=tuple(one for one in self.labels if one.event.run in {"", run}),
            adjudications=tuple(
                one for one in self.adjudications if one.event.run in {"", run}
            ),
        )

    @classmethod
    def of(
        cls, entries: Iterable[LabelEntry], *, until_us: int | None = None
    ) -> LabelSet:
        """Fold *entries*, which may be in any order.

        Args:
            entries: events of label logs; repeated ones count once.
            until_us: leave out what was recorded later, in microseconds since 1970;
                None: nothing.
        """
        ordered = sorted(
            {
                entry.id: entry
                for entry in entries
                if until_us is None or entry.ts_us <= until_us
            }.values(),
            key=lambda entry: (entry.ts_us, entry.id),
        )
        withdrawn: set[tuple[str, str]] = {
            (entry.event.label, entry.event.author)
            for entry in ordered
            if isinstance(entry.event, LabelWithdrawn)
        }
        labels: list[Statement[LabelRecorded]] = []
        adjudications: list[Statement[Adjudicated]] = []
        draws: list[Statement[ItemDrawn]] = []
        unknown = 0
        for ts_us, event_id, event in ordered:
            name = str(event_id)
            match event:
                case LabelRecorded():
                    is_out = (name, event.author) in withdrawn
                    labels.append(Statement(name, ts_us, event, is_out))
                case Adjudicated():
                    is_out = (name, event.author) in withdrawn
                    adjudications.append(Statement(name, ts_us, event, is_out))
                case ItemDrawn():
                    draws.append(Statement(name, ts_us, event))
                case UnknownEvent():
                    unknown += 1
                case _:
                    pass
        return cls(tuple(labels), tuple(adjudications), tuple(draws), unknown)

    @cached_property
    def current(self) -> Mapping[LabelKey, Statement[LabelRecorded]]:
        """The latest label that counts, of each author, item and field."""
        return {
            LabelKey(label.event.author, *label.about): label
            for label in self.labels
            if not label.is_withdrawn
        }

    @cached_property
    def by_field(self) -> Mapping[ItemField, Sequence[Statement[LabelRecorded]]]:
        """The current labels of each item and field, in the order of their authors."""
        grouped: defaultdict[ItemField, list[Statement[LabelRecorded]]] = defaultdict(
            list
        )
        for key in sorted(self.current):
            label = self.current[key]
            grouped[label.about].append(label)
        return dict(grouped)

    @cached_property
    def decided(self) -> Mapping[ItemField, Statement[Adjudicated]]:
        """The latest adjudication that counts, of each item and field."""
        return {one.about: one for one in self.adjudications if not one.is_withdrawn}

    @cached_property
    def drawn(self) -> Mapping[ItemField, Statement[ItemDrawn]]:
        """The first draw of each item and field."""
        return {draw.about: draw for draw in reversed(self.draws)}

    @property
    def authors(self) -> list[str]:
        """Everyone with a label or adjudication that counts, by name."""
        return sorted(
            {key.author for key in self.current}
            | {one.event.author for one in self.decided.values()}
        )

    def labelled_by(self, author: str) -> Mapping[ItemField, Statement[LabelRecorded]]:
        """The current labels of one author."""
        return {
            label.about: label
            for key, label in self.current.items()
            if key.author == author
        }

    def stale(self, texts: TextHashes) -> list[Statement[LabelRecorded]]:
        """The current labels of a text or reply that has changed since.

        Args:
            texts: of the present texts and replies; a label of what has no hash here,
                or that has none itself, is never stale.
        """
        return [label for label in self.current.values() if is_stale(label, texts)]

    def gold(self, texts: TextHashes = NO_TEXTS) -> Mapping[ItemField, GoldValue]:
        """The gold value of each item and field with a label or adjudication.

        An adjudication wins; else the value on which all current labels agree. Stale
        labels and adjudications do not count, and what has only stale ones is left out.

        Args:
            texts: as of `stale`.
        """
        values: dict[ItemField, GoldValue] = {}
        for about in sorted(self.by_field.keys() | self.decided.keys()):
            labels = [
                label
                for label in self.by_field.get(about, ())
                if not is_stale(label, texts)
            ]
            by_author = {label.event.author: label.event.value for label in labels}
            decision = self.decided.get(about)
            if decision is not None and not is_stale(decision, texts):
                values[about] = GoldValue(
                    value=decision.event.value,
                    is_adjudicated=True,
                    values=by_author,
                    sources=(decision.id,),
                )
            elif labels:
                agreed = set(by_author.values())
                values[about] = GoldValue(
                    value=agreed.pop() if len(agreed) == 1 else None,
                    is_adjudicated=False,
                    values=by_author,
                    sources=tuple(label.id for label in labels),
                )
        return values

    def disputed(self, texts: TextHashes = NO_TEXTS) -> list[ItemField]:
        """Fields whose current labels differ and that nobody has adjudicated."""
        return [about for about, gold in self.gold(texts).items() if gold.value is None]


def is_stale(
    statement: Statement[LabelRecorded] | Statement[Adjudicated],
    texts: TextHashes,
) -> bool:
    """Return whether it is of another text or reply than the present one.

    Args:
        statement: a label or an adjudication.
        texts: of the present texts and replies.
    """
    event = statement.event
    return any(
        labelled and labelled != texts.get(key, labelled)
        for key, labelled in (
            (event.item, event.text_sha256),
            (statement.about, event.reply_sha256),
        )
    )


def text_hash(text: str) -> str:
    """SHA-256 of a visible text in hex, as labels refer to it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def population_hash(items: Iterable[str]) -> str:
    """SHA-256 over the sorted keys of a population, as draws refer to it, in hex."""
    joined = "".join(f"{item}\n" for item in sorted(items))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
