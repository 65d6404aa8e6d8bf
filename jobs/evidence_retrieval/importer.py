"""Imports results of other programs: recognises formats, joins files by query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from jobs.evidence_retrieval.data import query_key
from jobs.evidence_retrieval.import_formats import (
    LABEL,
    LIST_SUFFIX,
    OPTIONAL,
    QRELS_FIELDS,
    QUERY,
    RUN_FIELDS,
    SCORES,
    UIDS,
    EvidenceFile,
    ImportedQuery,
    SentenceOwners,
    is_gamma_sweep,
    is_lists,
    is_predictions,
    is_rankings,
    read_gamma_sweep,
    read_lists,
    read_predictions,
    read_rankings,
    read_trec_qrels,
    read_trec_run,
    trec_fields,
)
from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    GAMMA_PREFIX,
    PROB_PREFIX,
    RAW,
    SINGLE,
    ImportedPrediction,
    encode,
    merge_answers,
)
from jobs.evidence_retrieval.inputs import natural_order
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.column_map import ColumnMap, column_map, describe_columns, is_field
from jobs.kit.inputs.files import csv_columns, holds_objects
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec

Query: TypeAlias = tuple[str, str]
"""Post and criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedFile:
    """A file and the reader of its format."""

    source: EvidenceFile
    read: Callable[[EvidenceFile], Iterator[ImportedQuery]]
    judges_posts: bool = False  #: a post that it names is judged for every criterion

    @property
    def name(self) -> str:
        """The file, for errors and findings."""
        return self.source.path.name


def joined(
    readings: Sequence[FormattedFile], findings: InputFindings
) -> Iterator[ImportedQuery]:
    """Each query once, in the order of the first file, then of the others.

    Raises:
        DatasetError: a file is off, names a query twice or a post in two folds, two
            files give the same thing of the same model, or there is no query at all.
    """
    first, *others = readings
    seen = _ImportedNames()
    pending: dict[Query, ImportedQuery] = {}
    for reading in others:
        for part in seen.distinct(reading):
            earlier = pending.get(part.query)
            pending[part.query] = (
                part if earlier is None else _both(earlier, part, findings)
            )
    last: ImportedQuery | None = None
    for part in _streamed(seen.distinct(first), pending, findings):
        if last is not None:
            yield last
        last = seen.completed(part)
    if last is None:
        raise DatasetError(f"{first.name}: no row in it (nothing to import).")
    seen.compare_criteria(first, findings)
    yield replace(last, truth=replace(last.truth, noticed=findings.findings()))


def _streamed(
    parts: Iterator[ImportedQuery],
    pending: dict[Query, ImportedQuery],
    findings: InputFindings,
) -> Iterator[ImportedQuery]:
    for part in parts:
        other = pending.pop(part.query, None)
        yield part if other is None else _both(part, other, findings)
    yield from pending.values()


@dataclass(frozen=True, slots=True)
class _ImportedNames:
    """What files have named so far."""

    criteria: dict[str, set[str]] = field(default_factory=dict)  #: by file
    judged: set[str] = field(default_factory=set)  #: posts

    def distinct(self, reading: FormattedFile) -> Iterator[ImportedQuery]:
        """The parts of a file, each query once, each post in one fold."""
        lines: dict[Query, str] = {}
        folds: dict[str, str] = {}
        criteria = self.criteria.setdefault(reading.name, set())
        for part in reading.read(reading.source):
            line = lines.setdefault(part.query, part.location)
            if line is not part.location:
                raise part.error(
                    f"post {part.post} and criterion {part.criterion} stand at {line} "
                    "already (keep one of the two)"
                )
            fold = part.truth.fold
            if fold is not None and folds.setdefault(part.post, fold) != fold:
                raise part.error(
                    f"fold_id is {fold}, but post {part.post} is in fold "
                    f"{folds[part.post]} already (a post belongs to one fold)"
                )
            criteria.add(part.criterion)
            if reading.judges_posts:
                self.judged.add(part.post)
            yield part

    def completed(self, part: ImportedQuery) -> ImportedQuery:
        """A query of a judged post that is not mentioned has no evidence."""
        truth = part.truth
        if truth.gold is None and truth.y is None and part.post in self.judged:
            return replace(part, truth=replace(truth, gold=()))
        return part

    def compare_criteria(self, first: FormattedFile, findings: InputFindings) -> None:
        """All files should speak of the same criteria."""
        first_criteria = self.criteria[first.name]
        for name, criteria in self.criteria.items():
            if odd := natural_order(criteria ^ first_criteria):
                findings.add(
                    "criteria_differ",
                    "warn",
                    name,
                    f"{first.name} has {len(first_criteria)} criteria and {name} has "
                    f"{len(criteria)}; some stand in one of the two only.",
                    example=odd[0],
                    n=len(odd),
                )


def _both(
    part: ImportedQuery, other: ImportedQuery, findings: InputFindings
) -> ImportedQuery:
    """What two files say: the same of what is true, not of what a model says."""
    _compare_truth(part, other, findings)
    predictions = dict(part.predictions)
    for model, other_prediction in other.predictions.items():
        prediction = predictions.get(model)
        if prediction is not None:
            _require_new(part, prediction, other, other_prediction, model)
        predictions[model] = (
            other_prediction
            if prediction is None
            else merge_answers(prediction, other_prediction)
        )
    return replace(
        part, truth=merge_answers(part.truth, other.truth), predictions=predictions
    )


def _require_new(
    part: ImportedQuery,
    prediction: ImportedPrediction,
    other: ImportedQuery,
    other_prediction: ImportedPrediction,
    model: str,
) -> None:
    """Refuse a second answer of one model to one query.

    Two files may each hold a part of an answer, such as probabilities and a ranking.

    Raises:
        DatasetError: both hold the same part; names both files and rows.
    """
    twice = [
        *(
            f"the list {name}"
            for name in other_prediction.lists
            if name in prediction.lists
        ),
        *(name for name in other_prediction.probs if name in prediction.probs),
        *(name for name in other_prediction.stated if name in prediction.stated),
        *(
            name
            for name in SINGLE
            if None not in {getattr(prediction, name), getattr(other_prediction, name)}
        ),
    ]
    if twice:
        raise other.error(
            f"{twice[0]} of {model} for post {other.post} and criterion "
            f"{other.criterion} stands at {part.location} already (give one of the two "
            "files to another model with --rankings NAME=FILE, or import them as "
            "separate runs)"
        )


def _compare_truth(
    part: ImportedQuery, other: ImportedQuery, findings: InputFindings
) -> None:
    """Two files should say the same of what is true; else the first counts."""
    one, two = part.truth, other.truth
    gold = (one.gold, two.gold)
    differ = {
        "gold": None not in gold and set(one.gold or ()) != set(two.gold or ()),
        "has_evidence": None not in (one.y, two.y) and one.y != two.y,
        "fold_id": None not in (one.fold, two.fold) and one.fold != two.fold,
    }
    for name in (name for name, is_so in differ.items() if is_so):
        findings.add(
            "files_disagree",
            "error",
            name,
            f"Two files say different things of {name}; the first one counts.",
            example=f"{part.location} and {other.location}",
        )


MODEL = "imported"
"""Whose work it is where nothing names a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFormat:
    """One way in which results are written down."""

    recognised: str  #: what a file must have, in words
    read: Callable[[EvidenceFile], Iterator[ImportedQuery]]
    has_columns: Callable[[Sequence[str]], bool] | None = None  #: of a table
    words: int = 0  #: in a line
    judges_posts: bool = False


FORMS: Mapping[str, ResultFormat] = {
    "rankings": ResultFormat(
        recognised="JSONL post_id, criterion_id, sent_uids",
        read=read_rankings,
        has_columns=is_rankings,
    ),
    "qrels": ResultFormat(
        recognised="lines of qid 0 docid rel",
        read=read_trec_qrels,
        words=QRELS_FIELDS,
        judges_posts=True,
    ),
    "run": ResultFormat(
        recognised="lines of qid Q0 docid rank score tag",
        read=read_trec_run,
        words=RUN_FIELDS,
    ),
    "predictions": ResultFormat(
        recognised="CSV post_id, criterion_id, has_evidence_gold",
        read=read_predictions,
        has_columns=is_predictions,
    ),
    "lists": ResultFormat(
        recognised="CSV post_id, criterion_id, gold_ids, <name>_topk",
        read=read_lists,
        has_columns=is_lists,
    ),
    "gamma-sweep": ResultFormat(
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
class _NamedFile:
    """A file as the command line names it."""

    path: Path
    form: str = ""  #: empty: by what the file holds
    model: str = ""  #: empty: the model of all files that name none

    def reading(
        self,
        settings: EvidenceSettings,
        owners: SentenceOwners,
        findings: InputFindings,
        columns: ColumnMap,
    ) -> FormattedFile:
        source = EvidenceFile(
            path=self.path,
            settings=settings,
            owners=owners,
            findings=findings,
            model=self.model,
            columns=columns,
        )
        form = FORMS[self.form]
        return FormattedFile(
            source=source, read=form.read, judges_posts=form.judges_posts
        )


class EvidenceRetrievalImporter:
    """The job's `runner.job.Importer`."""

    formats: Mapping[str, str] = {name: form.recognised for name, form in FORMS.items()}

    def read(
        self,
        files: tuple[Path, ...],
        settings: EvidenceSettings,
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
        findings = InputFindings()
        owners = SentenceOwners.of(settings)
        named_files = [*_by_settings(settings), *_by_position(files, form)]
        if not named_files:
            raise UsageError(
                "Name the files to import, by place or with --per-query, --rankings, "
                "--gamma-sweep, --qrels and --run."
            )
        columns = _columns(settings, named_files)
        named_files = [
            replace(
                named_file,
                form=named_file.form or _form(named_file.path, columns),
                # named before files are joined, so that all that is said of one model
                # becomes one answer, under whichever option it was given
                model=named_file.model or model or MODEL,
            )
            for named_file in named_files
        ]
        named_files.sort(key=lambda named_file: named_file.form not in LEADING)
        readings = [
            named_file.reading(settings, owners, findings, columns)
            for named_file in named_files
        ]
        for part in joined(readings, findings):
            context = encode(part.truth)
            for name, prediction in part.predictions.items():
                yield ImportedAnswer(
                    spec=TaskSpec(
                        stage="given",
                        key=query_key(part.post, part.criterion),
                        context=context,
                    ),
                    model=name,
                    replicate=1,
                    text=encode(prediction),
                )


importer = EvidenceRetrievalImporter()


def _by_settings(settings: EvidenceSettings) -> Iterator[_NamedFile]:
    """What flags name."""
    if settings.per_query is not None:
        yield _NamedFile(path=settings.per_query)
    if settings.qrels is not None:
        yield _NamedFile(form="qrels", path=settings.qrels)
    if settings.run is not None:
        yield _NamedFile(form="run", path=settings.run)
    for text in settings.rankings:
        model, equals, path = text.partition("=")
        if equals and not Path(text).exists():
            yield _NamedFile(form="rankings", path=Path(path), model=model)
        else:
            yield _NamedFile(form="rankings", path=Path(text))
    if settings.gamma_sweep is not None:
        yield _NamedFile(form="gamma-sweep", path=settings.gamma_sweep)


def _by_position(files: tuple[Path, ...], form: str | None) -> Iterator[_NamedFile]:
    """What is named without saying what it is."""
    for path in files:
        yield _NamedFile(form=form or "", path=path)


def _columns(
    settings: EvidenceSettings, named_files: Sequence[_NamedFile]
) -> ColumnMap:
    """The fields by the columns that `--map` renames.

    Raises:
        UsageError: no file has a column that is mapped.
    """
    stored = set(stored_pairs(settings))
    pairs = [pair for pair in settings.map if pair not in stored]
    if not pairs:
        return {}
    forms = (
        named_file.form or _trec_form(named_file.path) for named_file in named_files
    )
    tables = (
        named_file.path
        for named_file, form in zip(named_files, forms, strict=True)
        if not (form and FORMS[form].words)
    )
    seen = (name for path in tables for name in csv_columns(path))
    return column_map(pairs, FIELDS, seen)


def stored_pairs(settings: EvidenceSettings) -> Sequence[str]:
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
    fields = [columns.get(name, name) for name in csv_columns(path)]
    for name, form in FORMS.items():
        if form.has_columns is not None and form.has_columns(fields):
            return name
    formats = "; ".join(f"{name}: {form.recognised}" for name, form in FORMS.items())
    raise DatasetError(
        f"{path.name}: fits no known format ({describe_columns(fields, HINTED)}; "
        f"{formats}; rename a column with --map OLD=NEW, or force a format with "
        "--format)."
    )
