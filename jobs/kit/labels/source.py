"""Opens what can be labelled in a run: its items, their fields, and the replies.

with label_source(folder) as source:
for key in source.items:
print(source.item(key).title)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from runner.errors import UsageError
from runner.job import Answers, Dataset, Job
from runner.job_faults import calling
from runner.labelling import LabelField, LabelItem, Labelling, ModelLabel
from runner.registry import job_of
from runner.reply_labels import reply_labelling
from runner.score import scoring
from store.database import open_reader
from store.labels.fold import ItemField, TextHashes
from store.labels.folder import is_label_gold
from store.read.status import run_started, scorings
from store.runs import RunFolder
from store.tables import visible_seq
from store.verdicts import all_verdicts


@dataclass(frozen=True, kw_only=True)
class LabelSource:
    """A run's items as people label them; its data is loaded."""

    run: str  #: id
    job: Job
    labelling: Labelling
    dataset: Dataset = field(repr=False)
    answers: Answers = field(repr=False)

    @cached_property
    def fields(self) -> tuple[LabelField, ...]:
        """The fields of the items."""
        with calling(self.job, "labelling"):
            return self.labelling.fields(self.dataset)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The keys of all items, in the order of the plan."""
        with calling(self.job, "labelling"):
            return tuple(self.labelling.items(self.dataset))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.items)

    def item(self, key: str) -> LabelItem:
        """An item; raise `KeyError` if the run has none of that key."""
        if key not in self._known:
            raise KeyError(key)
        with calling(self.job, "labelling"):
            return self.labelling.item(self.dataset, key)

    def items_named(self, keys: Iterable[str]) -> tuple[str, ...]:
        """The items of that key, or that tasks of that key are about, each once.

        A key that is neither stays as it is.
        """
        named: dict[str, None] = {}
        for key in keys:
            about: tuple[str, ...] = (key,)
            if key not in self._known:
                with calling(self.job, "labelling"):
                    about = tuple(self.labelling.items_of_task(self.dataset, key))
            named |= dict.fromkeys(
                [one for one in about if one in self._known] or [key]
            )
        return tuple(named)

    def field(self, name: str) -> LabelField:
        """A field; raise `KeyError` if there is none of that name."""
        return {one.name: one for one in self.fields}[name]

    def fields_of(self, key: str) -> tuple[LabelField, ...]:
        """The fields that are labelled for an item."""
        return tuple(
            one for one in self.fields if self.labelling.applies(self.dataset, key, one)
        )

    def questions(self, keys: Iterable[str]) -> Iterator[ItemField]:
        """Yield the questions about items, in the order of the keys."""
        for key in keys:
            for one in self.fields_of(key):
                yield ItemField(key, one.name)

    @cached_property
    def replies(self) -> Mapping[ItemField, Sequence[ModelLabel]]:
        """Return the models' replies; they are read at the first call."""
        by_field: dict[ItemField, list[ModelLabel]] = {}
        with calling(self.job, "labelling"):
            for reply in self.labelling.replies(self.dataset, self.answers):
                about = ItemField(reply.item, reply.field)
                by_field.setdefault(about, []).append(reply)
        return by_field

    @cached_property
    def reply_hashes(self) -> TextHashes:
        """SHA-256 of the replies that labels are about; none if items are labelled."""
        with calling(self.job, "labelling"):
            return self.labelling.reply_hashes(self.dataset, self.answers)

    def text_hashes(self, keys: Iterable[str]) -> TextHashes:
        """SHA-256 of the present texts of items, by key, and of all labelled replies.

        Unknown keys are left out.
        """
        known = self._known
        return {
            **self.reply_hashes,
            **{key: self.item(key).sha256 for key in keys if key in known},
        }


def recorded_verdicts(
    folder: RunFolder, number: int | None = None
) -> tuple[int | None, Mapping[int, float]]:
    """Return a scoring's number and the share of right verdicts on each task.

    Args:
        folder: of the run.
        number: of the scoring; None: the latest with verdicts that labels did not make.

    Returns:
        None and no verdicts where there is no such scoring.

    Raises:
        UsageError: the named scoring was made from labels, or has no verdicts.
        StoreError: the log cannot be read.
    """
    with open_reader(folder.log) as reader:
        recorded = scorings(reader)
    for event in reversed(recorded):
        path = folder.scores / str(event.number) / "verdicts.db"
        from_labels = any(is_label_gold(Path(one.path)) for one in event.inputs)
        if number in {None, event.number} and not from_labels and path.exists():
            counts: dict[int, list[bool]] = {}
            for verdict in all_verdicts(path):
                if verdict.correct is not None or verdict.expected:
                    # what decides nothing, such as "unclear", is not what was expected
                    counts.setdefault(verdict.task, []).append(bool(verdict.correct))
            shares = {task: sum(right) / len(right) for task, right in counts.items()}
            if shares or number is not None:
                return event.number, shares
    if number is not None:
        raise UsageError(
            f"Scoring {number} of {folder.run_id} cannot predict labels: it does not "
            "exist, was made from labels, or has no verdicts; see siftlog scores "
            f"{folder.run_id}."
        )
    return None, {}


@contextmanager
def label_source(
    folder: RunFolder, typed: Mapping[str, Sequence[str]] | None = None
) -> Iterator[LabelSource]:
    """Load the data of a run and open its answers as of now.

    Args:
        folder: of the run.
        typed: settings of the job that differ from the run's.

    Raises:
        DatasetError: an input file is missing or invalid.
        StoreError: the log cannot be read.
    """
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        job = job_of(first)
        settings = scoring.effective_settings(job, folder, typed or {})
        with calling(job, "load"):
            dataset = job.load(settings)
        answers = scoring.answers(reader, first, visible_seq(reader))
        with calling(job, "labelling"):
            labelling = job.labelling and job.labelling.of_run(dataset, answers)
            if labelling is None:
                labelling = reply_labelling(job, dataset, answers)
        yield LabelSource(
            run=folder.run_id,
            job=job,
            labelling=labelling,
            dataset=dataset,
            answers=answers,
        )
