"""Makes a run's truth from labels of people: `siftlog score RUN --gold labels`.

The gold values are written as the file that the job reads its truth from, named by its
content, in the folder of the run's labels. From there on it is an input like any other:
the scoring records its hash, the log keeps its content, a bundle carries it, and other
gold values are another input, hence another scoring.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from runner.errors import UsageError
from runner.job import Dataset, Job
from runner.job_faults import calling
from runner.labelling import Labelling
from store.filesystem import make_folder, replace_file
from store.labels.fold import LabelSet
from store.labels.folder import GOLD, LABELS_FOLDER, read_labels
from store.runs import RunFolder

_DIGITS = 16
"""Of the content's hash, in the name of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelGold:
    """Gold values of a run, and what was left out of them."""

    values: Mapping[str, Mapping[str, str]]  #: by field, by item
    adjudicated: int  #: of the values
    authors: tuple[str, ...]
    disputed: int = 0  #: fields whose labels differ, without an adjudication
    undecided: int = 0  #: fields whose agreed value decides nothing, such as "unclear"
    stale: int = 0  #: labels of a text that has changed since
    unknown: int = 0  #: labelled items that the data does not have

    @property
    def count(self) -> int:
        """Number of gold values."""
        return sum(map(len, self.values.values()))

    @property
    def sentence(self) -> str:
        """What the truth consists of, and what is left out."""
        left_out = (
            (self.disputed, "disputed"),
            (self.undecided, "undecided"),
            (self.stale, "of a changed text"),
            (self.unknown, "of unknown items"),
        )
        missing = ", ".join(f"{n:,} {words}" for n, words in left_out if n)
        return (
            f"gold: {self.count:,} values from labels of {', '.join(self.authors)}, "
            f"{self.adjudicated:,} of them adjudicated"
            f"{f'; left out: {missing}' if missing else ''}"
        )


def labelling_of(job: Job) -> Labelling:
    """Return the labelling of a job whose truth can be made from labels.

    Raises:
        UsageError: labels are no truth of this job.
    """
    labelling = job.labelling
    if not isinstance(labelling, Labelling) or not labelling.gold_setting:
        raise UsageError(
            f"{job.name} cannot be scored against labels: its truth is no value per "
            "item; leave out --gold labels."
        )
    return labelling


def gold_of(labelling: Labelling, dataset: Dataset, labels: LabelSet) -> LabelGold:
    """Return the gold values of the items that the data has."""
    texts: dict[str, str] = {}
    unknown: set[str] = set()
    for about in labels.by_field.keys() | labels.decided.keys():
        if about.item in texts or about.item in unknown:
            continue
        try:
            texts[about.item] = labelling.item(dataset, about.item).sha256
        except KeyError:
            unknown.add(about.item)
    undecided_values = {
        (field.name, choice.value)
        for field in labelling.fields(dataset)
        for choice in field.choices
        if not choice.is_gold
    }
    values: dict[str, dict[str, str]] = {}
    adjudicated = disputed = undecided = 0
    for about, gold in labels.gold(texts).items():
        if about.item in unknown:
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
        UsageError: labels are no truth of this job, or there is no gold value.
        StoreError: a label log cannot be read.
    """
    labelling = labelling_of(job)
    name = labelling.gold_setting
    read = read_labels(labels or folder.labels)
    with calling(job, "labelling"):
        dataset = job.load(settings)
        gold = gold_of(labelling, dataset, read)
        content = _csv(labelling, dataset, gold)
    if not gold.count:
        raise UsageError(
            f"No label in {labels or folder.labels} is a gold value of "
            f"{folder.run_id}: label items with siftlog label {folder.run_id}, or "
            "adjudicate disputed ones with siftlog labels adjudicate."
        )
    with TemporaryDirectory() as drafts:
        target = folder.path if is_recorded else Path(drafts)
        path = target / LABELS_FOLDER / GOLD
        make_folder(path)
        path /= f"{hashlib.sha256(content).hexdigest()[:_DIGITS]}.csv"
        if not path.exists() or path.read_bytes() != content:
            replace_file(path, content)
        yield settings.model_copy(update={name: path}), gold


def _csv(labelling: Labelling, dataset: Dataset, gold: LabelGold) -> bytes:
    rows = list(labelling.gold_rows(dataset, gold.values))
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode()
