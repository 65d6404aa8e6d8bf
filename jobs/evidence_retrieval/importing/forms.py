"""The forms in which results are written down elsewhere, and how each is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.evidence_retrieval.dataset import query_key
from jobs.evidence_retrieval.importing.gamma import is_gamma_sweep, read_gamma_sweep
from jobs.evidence_retrieval.importing.given import (
    CALIBRATED,
    GAMMA_PREFIX,
    PROB_PREFIX,
    RAW,
    encode,
)
from jobs.evidence_retrieval.importing.joining import Reading, joined
from jobs.evidence_retrieval.importing.lists import LIST_SUFFIX, is_lists, read_lists
from jobs.evidence_retrieval.importing.predictions import (
    LABEL,
    OPTIONAL,
    is_predictions,
    read_predictions,
)
from jobs.evidence_retrieval.importing.rankings import (
    SCORES,
    UIDS,
    is_rankings,
    read_rankings,
)
from jobs.evidence_retrieval.importing.source import QUERY, Owners, Part, Source
from jobs.evidence_retrieval.importing.trec import (
    QRELS_FIELDS,
    RUN_FIELDS,
    read_trec_qrels,
    read_trec_run,
    trec_fields,
)
from jobs.evidence_retrieval.settings import Settings
from jobs.inputs.column_map import ColumnMap, column_map, found_words, is_field
from jobs.inputs.files import csv_columns, holds_objects
from jobs.inputs.rows import InputFindings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec

MODEL = "imported"
"""Whose work it is where nothing names a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way in which results are written down."""

    recognised: str  #: what a file must have, in words
    read: Callable[[Source], Iterator[Part]]
    has_columns: Callable[[Sequence[str]], bool] | None = None  #: of a table
    words: int = 0  #: in a line
    judges_posts: bool = False


FORMS: Mapping[str, Form] = {
    "rankings": Form(
        recognised="JSONL post_id, criterion_id, sent_uids",
        read=read_rankings,
        has_columns=is_rankings,
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

FIELDS = (
    *QUERY,
    LABEL,
    *OPTIONAL,
    CALIBRATED,
    RAW,
    PROB_PREFIX + "*",
    UIDS,
    SCORES,
    "gold_ids",
    "*" + LIST_SUFFIX,
    GAMMA_PREFIX + "*",
)
"""What a column of a file may be mapped to."""

HINTED = (*QUERY, LABEL)
"""Columns by which formats are recognised, and whose names vary."""

LEADING = ("predictions", "lists", "qrels")
"""Forms that say what is true; one of them is read first, whatever was named first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A file as the command line names it."""

    path: Path
    form: str = ""  #: empty: by what the file holds
    model: str = ""  #: empty: the model of all files that name none

    def reading(
        self,
        settings: Settings,
        owners: Owners,
        noticed: InputFindings,
        columns: ColumnMap,
    ) -> Reading:
        source = Source(
            path=self.path,
            settings=settings,
            owners=owners,
            noticed=noticed,
            model=self.model,
            columns=columns,
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
        noticed = InputFindings()
        owners = Owners.of(settings)
        named = [*_by_settings(settings), *_by_place(files, form)]
        if not named:
            raise UsageError(
                "Name the files to import, by place or with --per-query, --rankings, "
                "--gamma-sweep, --qrels and --run."
            )
        columns = _columns(settings, named)
        named = [
            replace(
                each,
                form=each.form or _form(each.path, columns),
                # named before files are joined, so that all that is said of one model
                # becomes one answer, under whichever option it was given
                model=each.model or model or MODEL,
            )
            for each in named
        ]
        named.sort(key=lambda each: each.form not in LEADING)
        readings = [each.reading(settings, owners, noticed, columns) for each in named]
        for part in joined(readings, noticed):
            context = encode(part.truth)
            for name, said in part.given.items():
                yield ImportedAnswer(
                    spec=TaskSpec(
                        stage="given",
                        key=query_key(part.post, part.criterion),
                        context=context,
                    ),
                    model=name,
                    replicate=1,
                    text=encode(said),
                )


importer = EvidenceRetrievalImporter()


def _by_settings(settings: Settings) -> Iterator[_Named]:
    """What flags name."""
    if settings.per_query is not None:
        yield _Named(path=settings.per_query)
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
        yield _Named(form=form or "", path=path)


def _columns(settings: Settings, named: Sequence[_Named]) -> ColumnMap:
    """The fields by the columns that `--map` renames.

    Raises:
        UsageError: no file has a column that is mapped.
    """
    stored = set(stored_pairs(settings))
    pairs = [pair for pair in settings.map if pair not in stored]
    if not pairs:
        return {}
    forms = (each.form or _trec_form(each.path) for each in named)
    tables = (
        each.path
        for each, form in zip(named, forms, strict=True)
        if not (form and FORMS[form].words)
    )
    seen = (name for path in tables for name in csv_columns(path))
    return column_map(pairs, FIELDS, seen)


def stored_pairs(settings: Settings) -> Sequence[str]:
    """The pairs of `--map` that name a key of the results in `--against`.

    They are those without a column that this job reads; there are none without
    `--against`.
    """
    if settings.against is None:
        return ()
    return [
        pair
        for pair in settings.map
        if not any(is_field(side, FIELDS) for side in pair.split("="))
    ]


def _trec_form(path: Path) -> str:
    """The form of a file whose lines have words and no columns; empty: a table."""
    n = 0 if holds_objects(path) else trec_fields(path)
    forms = (name for name, form in FORMS.items() if n and form.words == n)
    return next(forms, "")


def _form(path: Path, columns: ColumnMap) -> str:
    trec = _trec_form(path)
    if trec:
        return trec
    found = [columns.get(name, name) for name in csv_columns(path)]
    for name, form in FORMS.items():
        if form.has_columns is not None and form.has_columns(found):
            return name
    known = "; ".join(f"{name}: {form.recognised}" for name, form in FORMS.items())
    raise DatasetError(
        f"{path.name}: fits no known format ({found_words(found, HINTED)}; {known}; "
        "rename a column with --map OLD=NEW, or force a format with --format)."
    )
