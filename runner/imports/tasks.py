"""Matches replies of other tools with the items of a job, as an imported run.

A reply belongs to the task of the job's plan whose key, or item, is the id of its
sample, or the value of the field that `--item` names. An item without a reply has no
task, and is counted. Replies may be in any order in their files, and the tasks of a run
are in that of the plan: so replies are kept in a temporary file, and sorted by their
places alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from runner.errors import DatasetError
from runner.imports.forms import FORMS, read_files, with_progress
from runner.imports.records import ForeignReply, item_key
from runner.job import AnySettings, Dataset, ImportedAnswer, Job, TaskSpec
from runner.job_faults import calling
from store.errors import ignore_progress
from store.nearest import nearest

LARGEST_SCORE: Final = 1e100
"""Sums and squares of larger ones may overflow, so that a metric has no value."""


class _Place(NamedTuple):
    """A reply's place in the run, which sorts it, and in the temporary file."""

    spec: int
    model: int
    epoch: int
    arrival: int
    start: int
    size: int


class ForeignImporter:
    """Imports files of other tools for one job: a `runner.job.Importer`.

    Args:
        job: the job that the run is of.
        dataset: its data.
        item: name of the field that holds the key of a reply's item, such as
            `metadata.pmid`; "": the id of the sample.
        progress: receives how many replies have been read.
    """

    def __init__(
        self,
        job: Job,
        dataset: Dataset,
        item: str = "",
        progress: Callable[[str], None] = ignore_progress,
    ) -> None:
        self.formats: Mapping[str, str] = {
            name: form.title for name, form in FORMS.items()
        }
        self._job = job
        self._item = item
        self._progress = progress
        with calling(job, "plan"):
            self._specs = list(job.plan(dataset))
        numbers: dict[str, list[int]] = {}
        for number, spec in enumerate(self._specs):
            for name in {spec.key, job.item(dataset, spec)}:
                numbers.setdefault(name, []).append(number)
        #: of an item with several tasks, no reply says which it is for
        self._numbers = {
            name: of_name[0] for name, of_name in numbers.items() if len(of_name) == 1
        }
        self.missing = 0  #: tasks of the plan without a reply
        self.dropped: Counter[str] = Counter()  #: replies by what was not kept of them

    def read(
        self,
        files: tuple[Path, ...],
        settings: AnySettings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """Yield the answers in the order of the plan; see `runner.job.Importer`.

        Raises:
            DatasetError: a file is damaged, or no reply is of an item of the job.
            UsageError: a reply has no model.
        """
        del settings
        models: dict[str, int] = {}
        places: list[_Place] = []
        encoder = msgspec.msgpack.Encoder()
        decoder = msgspec.msgpack.Decoder(ImportedAnswer)
        unknown: Counter[str] = Counter()
        with TemporaryFile(buffering=1 << 20) as stored:
            replies = read_files(files, form, model)
            for file, reply in with_progress(replies, self._progress):
                key = item_key(reply, self._item)
                number = self._numbers.get(key)
                if number is None:
                    unknown[key] += 1
                    continue
                self.dropped.update(self._lost(reply))
                packed = encoder.encode(self._answer(reply, self._specs[number]))
                places.append(
                    _Place(
                        number,
                        models.setdefault(reply.model, len(models)),
                        replicates.get(file, reply.epoch),
                        len(places),
                        stored.tell(),
                        len(packed),
                    )
                )
                stored.write(packed)
            self._check(places, unknown)
            places.sort()
            for _, of_task in groupby(places, key=lambda place: place[:2]):
                for replicate, place in enumerate(of_task, 1):
                    stored.seek(place.start)
                    answer = decoder.decode(stored.read(place.size))
                    yield replace(answer, replicate=replicate)

    def _check(self, places: list[_Place], unknown: Counter[str]) -> None:
        """Count items without replies, and replies without items; refuse only such."""
        self.missing = len(self._specs) - len({place.spec for place in places})
        if not unknown:
            if not places:
                raise DatasetError("The files have no reply (name other files).")
            return
        first = next(iter(unknown))
        near = nearest(first, self._numbers)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        if not places:
            raise DatasetError(
                f"No reply is of an item of {self._job.name}: it has no {first!r}"
                f"{hint} (name the field with the item's key: --item FIELD)."
            )
        what = f"items that {self._job.name} does not have, such as {first!r}"
        self.dropped[what] = unknown.total()

    def _answer(self, reply: ForeignReply, spec: TaskSpec) -> ImportedAnswer:
        context = spec.context
        scores = {
            name: score
            for name, score in reply.scores.items()
            if abs(score) <= LARGEST_SCORE
        }
        if self._job.holds_foreign and scores:
            context = msgspec.json.encode({"scores": scores}).decode()
        return ImportedAnswer(
            spec=structs.replace(spec, skip=None, context=context),
            model=reply.model,
            replicate=1,
            text=reply.text,
            finish_reason=reply.finish_reason,
            error=reply.error or None,
            usage=reply.usage,
            served=reply.served,
            created_s=reply.created_s,
            latency_ms=reply.latency_ms,
            cost_usd=reply.cost_usd,
            form=reply.form,
            body=reply.body,
        )

    def _lost(self, reply: ForeignReply) -> Iterator[str]:
        """Yield what the run does not keep of a reply."""
        yield from reply.dropped
        if self._job.holds_foreign:
            if any(abs(score) > LARGEST_SCORE for score in reply.scores.values()):
                yield "scores beyond 1e100"
        else:
            if reply.messages:
                yield "prompts"
            if reply.target is not None:
                yield "right answers"
            if reply.scores:
                yield "scores"
