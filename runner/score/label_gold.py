"""Makes a run's truth from labels of people: `siftlog score RUN --gold labels`.

The gold values are written as the files that the job reads its truth from, named by
their content, in the folder of the run's labels. From there on they are inputs like any
other: the scoring records their hashes, the log keeps their content, a bundle carries
them, and other gold values are other inputs, hence another scoring.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from runner.errors import UsageError
from runner.job import Answers, Dataset, Job
from runner.job_faults import calling
from runner.labelling import Labelling
from runner.reply_labels import SETTING, reply_labelling
from runner.score import scoring
from runner.workload import validated
from store.database import open_reader
from store.filesystem import make_folder, replace_file
from store.labels.fold import ItemField, LabelSet
from store.labels.folder import GOLD, LABELS_FOLDER, read_labels
from store.read.status import run_started
from store.runs import RunFolder
from store.tables import visible_seq

_DIGITS = 16
"""Digits of the content's hash in the name of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelGold:
    """Gold values of a run, and what was left out of them."""

    values: Mapping[str, Mapping[str, str]]  #: by field, by item
    adjudicated: int  #: of the values
    authors: tuple[str, ...]
    disputed: int = 0  #: fields whose labels differ, without an adjudication
    undecided: int = 0  #: fields whose agreed value decides nothing, such as "unclear"
    stale: int = 0  #: labels of a text or reply that has changed since
    unknown: int = 0  #: labelled items that the data does not have

    @property
    def count(self) -> int:
        """Number of gold values."""
        return sum(map(len, self.values.values()))

    @property
    def sentence(self) -> str:
        """Return what the truth consists of, and what is left out."""
        left_out = (
            (self.disputed, "disputed"),
            (self.undecided, "undecided"),
            (self.stale, "of a changed text or reply"),
            (self.unknown, "of unknown items"),
        )
        missing = ", ".join(f"{n:,} {words}" for n, words in left_out if n)
        return (
            f"gold: {self.count:,} values from labels of {', '.join(self.authors)}, "
            f"{self.adjudicated:,} of them adjudicated"
            f"{f'; left out: {missing}' if missing else ''}"
        )


def labelling_of(job: Job, dataset: Dataset, stored: Answers) -> Labelling:
    """Return what people label in a run: its truth, or which replies are correct."""
    labelling = job.labelling
    if isinstance(labelling, Labelling) and labelling.gold_setting:
        of_run = labelling.of_run(dataset, stored)
        if of_run is not None:
            return of_run
    return reply_labelling(job, dataset, stored)


def gold_of(
    labelling: Labelling, dataset: Dataset, stored: Answers, labels: LabelSet
) -> LabelGold:
    """Return the gold values of the items that the data has."""
    texts: dict[str | ItemField, str] = {**labelling.reply_hashes(dataset, stored)}
    unknown: set[str] = set()
    fields = labelling.fields(dataset)
    names = {field.name for field in fields}
    for about in labels.by_field.keys() | labels.decided.keys():
        if about.item in texts or about.item in unknown:
            continue
        try:
            texts[about.item] = labelling.item(dataset, about.item).sha256
        except KeyError:
            unknown.add(about.item)
    undecided_values = {
        (field.name, choice.value)
        for field in fields
        for choice in field.choices
        if not choice.is_gold
    }
    values: dict[str, dict[str, str]] = {}
    adjudicated = disputed = undecided = 0
    for about, gold in labels.gold(texts).items():
        if about.item in unknown or about.field not in names:
            continue
        if gold.value is None:
            disputed += 1
        elif (about.field, gold.value) in undecided_values:
            undecided += 1
        else:
            values.setdefault(about.item, {})[about.field] = gold.value
            adjudicated += gold.is_adjudicated
    return LabelGold(
        values=values,
        adjudicated=adjudicated,
        authors=tuple(labels.authors),
        disputed=disputed,
        undecided=undecided,
        stale=len(labels.stale(texts)),
        unknown=len(unknown),
    )


@contextmanager
def gold_settings(
    job: Job,
    folder: RunFolder,
    settings: BaseModel,
    *,
    labels: Path | None = None,
    is_recorded: bool = True,
) -> Iterator[tuple[BaseModel, LabelGold]]:
    """Return settings whose truth is the gold values of labels.

    Args:
        job: the job of the run.
        folder: the run's folder, which gets the file.
        settings: of the scoring; their own truth is replaced.
        labels: folder of label logs; None: the run's own.
        is_recorded: whether the file stays; else it exists until the block ends.

    Raises:
        UsageError: no item has all gold values that it needs.
        StoreError: a label log cannot be read.
    """
    read = read_labels(labels or folder.labels)
    with calling(job, "labelling"), open_reader(folder.log) as reader:
        dataset = job.load(settings)
        stored = scoring.answers(reader, run_started(reader), visible_seq(reader))
        labelling = labelling_of(job, dataset, stored)
        about = labelling.labels_about(read, folder.run_id)
        gold = gold_of(labelling, dataset, stored, about)
        files = labelling.gold_files(dataset, gold.values)
        changes = labelling.gold_changes(dataset)
    if not gold.count:
        raise UsageError(
            f"No label in {labels or folder.labels} is a gold value of "
            f"{folder.run_id}: label items with siftlog label {folder.run_id}, or "
            "adjudicate disputed ones with siftlog labels adjudicate."
        )
    if not files:
        raise UsageError(
            f"No item of {folder.run_id} has a gold value in each field that counts: "
            f"label the rest of an item with siftlog label {folder.run_id}."
        )
    with TemporaryDirectory() as drafts:
        target = folder.path if is_recorded else Path(drafts)
        truth = {
            setting: _written(target, text.encode(), labelling.gold_suffix)
            for setting, text in files.items()
        }
        if SETTING not in truth:
            yield settings.model_copy(update={**changes, **truth}), gold
            return
        values = settings.model_dump(mode="json", exclude_unset=True)
        yield validated(job, {**values, **truth}), gold


def _written(target: Path, content: bytes, suffix: str) -> Path:
    """Return the path of a file of truth, which is written unless it is there."""
    folder = target / LABELS_FOLDER / GOLD
    make_folder(folder)
    path = folder / f"{hashlib.sha256(content).hexdigest()[:_DIGITS]}{suffix}"
    if not path.exists() or path.read_bytes() != content:
        replace_file(path, content)
    return path
