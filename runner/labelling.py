"""Declares what people can label in a run: the part `labelling` of a job.

A job says which fields its items have, which values are allowed, what a person reads,
and what the models replied. A job whose truth people can state also turns gold values
into the files that its settings read. All methods are pure.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from runner.job import Answers, Dataset, QuotedPassage
from store.labels.fold import ItemField, LabelSet, TextHashes, text_hash

COMMAND_KEYS: Final = frozenset("zsrq/?")
"""Keys of the front ends (undo, skip, reveal, quit, note, help): no choice has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChoice:
    """An allowed value of a field."""

    value: str
    key: str  #: one character, unique in its field, that gives this answer
    is_gold: bool = True  #: False: it decides nothing, such as "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelField:
    """A question about an item that people label."""

    name: str  #: "": the item itself
    question: str
    choices: tuple[LabelChoice, ...] = ()
    is_open: bool = False  #: any text is a value too, which is typed
    #: what a typed text should be instead; "": it fits
    fault: Callable[[str], str] = field(default=lambda _: "", compare=False)

    def choice(self, key: str) -> LabelChoice | None:
        """The choice that a key gives; None: there is none."""
        return next((one for one in self.choices if one.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelItem:
    """Text of an item for the person who labels it."""

    key: str
    title: str
    text: str

    @property
    def sha256(self) -> str:
        """Hash of what a person reads of it, in hex, as labels refer to it."""
        return text_hash(f"{self.title}\n\n{self.text}" if self.title else self.text)

    @property
    def visible(self) -> tuple[str, ...]:
        """The parts that it has, as `LabelRecorded.visible` lists them."""
        parts = (("title", self.title), ("text", self.text))
        return tuple(name for name, content in parts if content.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLabel:
    """Reply of one replicate of a model about a field of an item."""

    item: str
    field: str
    model: str
    replicate: int
    value: str | None  #: None: the reply has no value that could be read
    reason: str = ""
    probability: float | None = None  #: of the value, as stated by the model, 0 to 1
    quotes: tuple[QuotedPassage, ...] = ()
    task: int | None = None


class Labelling(ABC):
    """The part `labelling` of a job."""

    gold_setting: str = ""
    """Setting of the job that names its file of truth; "": labels are no truth."""

    gold_suffix: str = ".csv"
    """Ending of the names of the files of truth."""

    needs_reply: bool = False
    """Whether a label is about a reply, which is then visible while labelling."""

    def of_run(self, dataset: Dataset, answers: Answers) -> Labelling | None:
        """Return the labelling of a run, with what it needs of the run's answers.

        None: people label whether the run's replies are correct, as in a job without
        this part; by default no run is such.
        """
        del dataset, answers
        return self

    @abstractmethod
    def fields(self, dataset: Dataset) -> tuple[LabelField, ...]:
        """The fields of every item, in the order in which they are labelled."""

    @abstractmethod
    def items(self, dataset: Dataset) -> Iterator[str]:
        """The keys of the items, in the order of the plan."""

    @abstractmethod
    def item(self, dataset: Dataset, key: str) -> LabelItem:
        """An item; raise `KeyError` if the data has none of that key."""

    @abstractmethod
    def replies(self, dataset: Dataset, answers: Answers) -> Iterator[ModelLabel]:
        """Yield the models' replies, read in one pass over the answers."""

    def labels_about(self, labels: LabelSet, run: str) -> LabelSet:
        """The labels that may say something of a run.

        A label of a reply is about the reply of one run; another run's reply to the
        same item has the same name and differs. Imported labels name the run, or none.
        """
        return labels.of_run(run) if self.needs_reply else labels

    def reply_hashes(self, dataset: Dataset, answers: Answers) -> TextHashes:
        """Hashes of the replies that labels are about; none if items are labelled."""
        if not self.needs_reply:
            return {}
        return {
            ItemField(reply.item, reply.field): text_hash(reply.value or "")
            for reply in self.replies(dataset, answers)
        }

    def items_of_task(self, dataset: Dataset, key: str) -> Iterable[str]:
        """The items that a task is about, by the task's key; by default that key."""
        del dataset
        return (key,)

    def applies(self, dataset: Dataset, key: str, field: LabelField) -> bool:
        """Whether a field is labelled for an item; by default every field is."""
        del dataset, key, field
        return True

    def gold_changes(self, dataset: Dataset) -> Mapping[str, object]:
        """Values of further settings under which labels are the whole truth."""
        del dataset
        return {}

    def gold_rows(
        self, dataset: Dataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """The rows of the file that the setting `gold_setting` reads, as a CSV.

        Args:
            dataset: the data of the run, with the truth that it has, if any.
            gold: value by field, by item; only items that the data has.
        """
        del dataset, gold
        return iter(())

    def gold_files(
        self, dataset: Dataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, str]:
        """The text of each file of truth, by the setting that names it.

        By default `gold_rows` as a CSV. Empty: no item has all values that it needs.
        The arguments are those of `gold_rows`.
        """
        rows = list(self.gold_rows(dataset, gold))
        if not rows:
            return {}
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return {self.gold_setting: text.getvalue()}
