"""The forms in which results are written down elsewhere, and how each is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.evidence_retrieval.dataset import query_key
from jobs.evidence_retrieval.importing.gamma import is_gamma_sweep, read_gamma_sweep
from jobs.evidence_retrieval.importing.given import encode
from jobs.evidence_retrieval.importing.joining import Reading, joined
from jobs.evidence_retrieval.importing.lists import is_lists, read_lists
from jobs.evidence_retrieval.importing.predictions import (
    is_predictions,
    read_predictions,
)
from jobs.evidence_retrieval.importing.rankings import read_rankings
from jobs.evidence_retrieval.importing.source import MAIN, Owners, Part, Source
from jobs.evidence_retrieval.importing.trec import (
    QRELS_FIELDS,
    RUN_FIELDS,
    read_trec_qrels,
    read_trec_run,
    trec_fields,
)
from jobs.evidence_retrieval.settings import Settings
from jobs.noticed import Noticed
from jobs.rows.files import csv_columns
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer
from runner.task import TaskSpec

MODEL = "imported"
"""Whose work it is where nothing names a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way in which results are written down."""

    recognised: str  #: what a file must have, in words
    read: Callable[[Source], Iterator[Part]]
    has_columns: Callable[[Sequence[str]], bool] | None = None  #: of a CSV file
    suffixes: tuple[str, ...] = ()  #: of the file's name
    words: int = 0  #: in a line
    judges_posts: bool = False

    def fits(self, path: Path) -> bool:
        """Whether a file is written in this form."""
        if self.suffixes:
            return path.name.endswith(self.suffixes)
        if self.words:
            return trec_fields(path) == self.words
        return self.has_columns is not None and self.has_columns(csv_columns(path))


FORMS: Mapping[str, Form] = {
    "rankings": Form(
        recognised="JSONL post_id, criterion_id, sent_uids",
        read=read_rankings,
        suffixes=(".jsonl", ".jsonl.gz"),
    ),
    "qrels": Form(
        recognised="lines of qid 0 docid rel",
        read=read_trec_qrels,
        words=QRELS_FIELDS,
        judges_posts=True,
    ),
    "run": Form(
        recognised="lines of qid Q0 docid rank score tag",
        read=read_trec_run,
        words=RUN_FIELDS,
    ),
    "predictions": Form(
        recognised="CSV post_id, criterion_id, has_evidence_gold",
        read=read_predictions,
        has_columns=is_predictions,
    ),
    "lists": Form(
        recognised="CSV post_id, criterion_id, gold_ids, <name>_topk",
        read=read_lists,
        has_columns=is_lists,
    ),
    "gamma-sweep": Form(
        recognised="CSV post_id, criterion_id, k_gamma_<g>",
        read=read_gamma_sweep,
        has_columns=is_gamma_sweep,
    ),
}
"""In the order in which they are tried."""

LEADING = ("predictions", "lists", "qrels")
"""Forms that say what is true; one of them is read first, whatever was named first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A file as the command line names it."""

    form: str
    path: Path
    model: str = MAIN

    def reading(self, settings: Settings, owners: Owners, noticed: Noticed) -> Reading:
        source = Source(
            path=self.path,
            settings=settings,
            owners=owners,
            noticed=noticed,
            model=self.model,
        )
        form = FORMS[self.form]
        return Reading(source=source, read=form.read, judges_posts=form.judges_posts)


class EvidenceRetrievalImporter:
    """The job's `runner.job.Importer`."""

    formats: Mapping[str, str] = {name: form.recognised for name, form in FORMS.items()}

    def read(
        self,
        files: tuple[Path, ...],
        settings: Settings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """An answer for each query and model.

        Args:
            files: named by their place; those that settings name come before them.
            settings: of the run.
            model: name of the model whose files do not name it.
            form: of *files*, a name in `formats`; None: by the content of each.
            replicates: must be empty, these formats have none.

        Raises:
            DatasetError: a file cannot be read, fits no form, or contradicts itself.
            UsageError: *form* is none of `formats`, no file is named at all, or one is
                said to be a replicate.
        """
        if replicates:
            raise UsageError(
                "These formats have no replicates; leave --replicate out, or import "
                "each as a run of its own."
            )
        noticed = Noticed()
        owners = Owners.of(settings)
        named = [*_by_settings(settings), *_by_place(files, form)]
        if not named:
            raise UsageError(
                "Name the files to import, by place or with --per-query, --rankings, "
                "--gamma-sweep, --qrels and --run."
            )
        named.sort(key=lambda each: each.form not in LEADING)
        readings = [each.reading(settings, owners, noticed) for each in named]
        for part in joined(readings, noticed):
            context = encode(part.truth)
            for name, said in part.given.items():
                yield ImportedAnswer(
                    spec=TaskSpec(
                        stage="given",
                        key=query_key(part.post, part.criterion),
                        context=context,
                    ),
                    model=name or model or MODEL,
                    replicate=1,
                    text=encode(said),
                )


importer = EvidenceRetrievalImporter()


def _by_settings(settings: Settings) -> Iterator[_Named]:
    """What flags name."""
    if settings.per_query is not None:
        yield _Named(form=_form(settings.per_query), path=settings.per_query)
    if settings.qrels is not None:
        yield _Named(form="qrels", path=settings.qrels)
    if settings.run is not None:
        yield _Named(form="run", path=settings.run)
    for text in settings.rankings:
        model, equals, path = text.partition("=")
        if equals and not Path(text).exists():
            yield _Named(form="rankings", path=Path(path), model=model)
        else:
            yield _Named(form="rankings", path=Path(text))
    if settings.gamma_sweep is not None:
        yield _Named(form="gamma-sweep", path=settings.gamma_sweep)


def _by_place(files: tuple[Path, ...], form: str | None) -> Iterator[_Named]:
    """What is named without saying what it is."""
    for path in files:
        yield _Named(form=form or _form(path), path=path)


def _form(path: Path) -> str:
    for name, form in FORMS.items():
        if form.fits(path):
            return name
    known = "; ".join(f"{name}: {form.recognised}" for name, form in FORMS.items())
    raise DatasetError(
        f"{path.name}: fits no known format ({known}; force one with --format)."
    )
