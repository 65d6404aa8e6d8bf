"""Imports results of other programs: recognises formats, joins files by query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from jobs.evidence_retrieval.data import query_key
from jobs.evidence_retrieval.import_columns import (
    FIELDS,
    LABEL,
    LIST_SUFFIX,
    QUERY,
    UIDS,
    stored_pairs,
)
from jobs.evidence_retrieval.import_formats import (
    QRELS_COLUMNS,
    RUN_COLUMNS,
    EvidenceFile,
    ImportedQuery,
    read_gamma_sweep,
    read_lists,
    read_predictions,
    read_rankings,
    read_trec_qrels,
    read_trec_run,
    sentence_owners,
    trec_columns,
)
from jobs.evidence_retrieval.import_records import (
    GAMMA_PREFIX,
    SINGLE,
    ImportedPrediction,
    Query,
    encode,
    merge_answers,
)
from jobs.evidence_retrieval.inputs import natural_order
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.files import csv_columns, holds_objects
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError
from runner.job import ImportedAnswer, TaskSpec

Reader: TypeAlias = Callable[[EvidenceFile], Iterator[ImportedQuery]]

READERS: Mapping[str, Reader] = {
    "rankings": read_rankings,
    "qrels": read_trec_qrels,
    "run": read_trec_run,
    "predictions": read_predictions,
    "lists": read_lists,
    "gamma-sweep": read_gamma_sweep,
}
"""Readers by the form of a file."""

JUDGES_POSTS = frozenset({"qrels"})
"""Forms in which a named post is judged for every criterion."""


def joined(
    files: Sequence[EvidenceFile], findings: InputFindings
) -> Iterator[ImportedQuery]:
    """Yield each query once, in the order of the first file, then of the others.

    Raises:
        DatasetError: a file is invalid, names a query twice or a post in two folds, two
            files have the same value for the same model, or there is no query at all.
    """
    first, *others = files
    seen = _ImportedNames()
    pending: dict[Query, ImportedQuery] = {}
    for file in others:
        for part in seen.distinct(file):
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
        raise DatasetError(f"{first.name}: it has no rows (nothing to import).")
    seen.compare_criteria(first, findings)
    yield replace(last, truth=replace(last.truth, noticed=findings.findings() or None))


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
    """Names in the files read so far."""

    criteria: dict[str, set[str]] = field(default_factory=dict)  #: by file
    judged: set[str] = field(default_factory=set)  #: posts

    def distinct(self, source: EvidenceFile) -> Iterator[ImportedQuery]:
        """Yield the parts of a file; queries and folds of posts must be unique."""
        lines: dict[Query, str] = {}
        folds: dict[str, str] = {}
        criteria = self.criteria.setdefault(source.name, set())
        for part in READERS[source.file.form](source):
            line = lines.setdefault(part.query, part.location)
            if line is not part.location:
                raise part.error(
                    f"post {part.post} and criterion {part.criterion} occur at "
                    f"{line} already (keep one of the two)"
                )
            fold = part.truth.fold
            if fold is not None and folds.setdefault(part.post, fold) != fold:
                raise part.error(
                    f"fold_id is {fold}, but post {part.post} is in fold "
                    f"{folds[part.post]} already (a post belongs to one fold)"
                )
            criteria.add(part.criterion)
            if source.file.form in JUDGES_POSTS:
                self.judged.add(part.post)
            yield part

    def completed(self, part: ImportedQuery) -> ImportedQuery:
        """Add that a query of a judged post that is not mentioned has no evidence."""
        truth = part.truth
        if truth.gold is None and truth.y is None and part.post in self.judged:
            return replace(part, truth=replace(truth, gold=()))
        return part

    def compare_criteria(self, first: EvidenceFile, findings: InputFindings) -> None:
        """Report criteria that are not in all files."""
        first_criteria = self.criteria[first.name]
        for name, criteria in self.criteria.items():
            if odd := natural_order(criteria ^ first_criteria):
                findings.add(
                    "criteria_differ",
                    "warn",
                    name,
                    f"{first.name} has {len(first_criteria)} criteria and {name}"
                    f" has {len(criteria)}; some are in only one of the two.",
                    example=odd[0],
                    n=len(odd),
                )


def _both(
    part: ImportedQuery, other: ImportedQuery, findings: InputFindings
) -> ImportedQuery:
    """Merge two files' data about a query.

    Each file may have a part of an answer, such as probabilities or a ranking.

    Raises:
        DatasetError: both have the same part; names both files and rows.
    """
    _compare_truth(part, other, findings)
    predictions = dict(part.predictions)
    for model, theirs in other.predictions.items():
        earlier = predictions.get(model)
        if earlier is None:
            predictions[model] = theirs
            continue
        if (twice := next(_repeated_parts(earlier, theirs), None)) is not None:
            raise other.error(
                f"{twice} of {model} for post {other.post} and criterion "
                f"{other.criterion} occurs at {part.location} already (give "
                "one of the two files to another model with --rankings "
                "NAME=FILE, or import them as separate runs)"
            )
        predictions[model] = merge_answers(earlier, theirs)
    truth = merge_answers(part.truth, other.truth)
    return replace(part, truth=truth, predictions=predictions)


def _repeated_parts(
    earlier: ImportedPrediction, theirs: ImportedPrediction
) -> Iterator[str]:
    """Yield the parts of an answer that both have."""
    yield from (f"the list {name}" for name in theirs.lists if name in earlier.lists)
    yield from (name for name in theirs.probs if name in earlier.probs)
    yield from (name for name in theirs.stated if name in earlier.stated)
    for name in SINGLE:
        if None not in {getattr(earlier, name), getattr(theirs, name)}:
            yield name


def _compare_truth(
    part: ImportedQuery, other: ImportedQuery, findings: InputFindings
) -> None:
    """Report labels that differ between two files; the first counts."""
    one, two = part.truth, other.truth
    gold = (one.gold, two.gold)
    differ = {
        "gold": None not in gold and set(one.gold or ()) != set(two.gold or ()),
        "has_evidence": None not in (one.y, two.y) and one.y != two.y,
        "fold_id": None not in (one.fold, two.fold) and one.fold != two.fold,
    }
    for name, is_different in differ.items():
        if is_different:
            findings.add(
                "files_disagree",
                "error",
                name,
                f"Two files say different things of {name}; the first one counts.",
                example=f"{part.location} and {other.location}",
            )


MODEL = "imported"
"""Default model name of a file."""

FORMS: Mapping[str, ImportForm] = {
    "rankings": ImportForm(
        recognised="JSONL post_id, criterion_id, sent_uids", needs=(*QUERY, UIDS)
    ),
    "qrels": ImportForm(recognised="lines of qid 0 docid rel", needs=QRELS_COLUMNS),
    "run": ImportForm(
        recognised="lines of qid Q0 docid rank score tag", needs=RUN_COLUMNS
    ),
    "predictions": ImportForm(
        recognised="CSV post_id, criterion_id, has_evidence_gold",
        needs=(*QUERY, LABEL),
    ),
    "lists": ImportForm(
        recognised="CSV post_id, criterion_id, gold_ids, <name>_topk",
        needs=(*QUERY, "gold_ids", "*" + LIST_SUFFIX),
    ),
    "gamma-sweep": ImportForm(
        recognised="CSV post_id, criterion_id, k_gamma_<g>",
        needs=(*QUERY, GAMMA_PREFIX + "[0-9]*"),
    ),
}

LEADING = ("predictions", "lists", "qrels")
"""Forms with labels; one of them is read first, in any order of the options."""


class EvidenceRetrievalImporter(FileImporter[EvidenceSettings]):
    """Imports predictions, ranked lists, sweeps and TREC files."""

    forms = FORMS
    fields = FIELDS
    hinted = (*QUERY, LABEL)  # formats are recognised by them, and their names vary
    no_files = (
        "Name the files to import, by place or with --per-query, --rankings, "
        "--gamma-sweep, --qrels and --run."
    )
    no_replicates = (
        "These formats have no replicates; omit --replicate, or import "
        "each replicate as a separate run."
    )

    def named(self, settings: EvidenceSettings) -> Iterator[ImportFile]:
        """Yield the files that options name."""
        first = {"": settings.per_query, "qrels": settings.qrels, "run": settings.run}
        for form, first_path in first.items():
            if first_path is not None:
                yield ImportFile(form=form, path=first_path)
        for text in settings.rankings:
            model, equals, path = text.partition("=")
            if equals and not Path(text).exists():
                yield ImportFile(form="rankings", path=Path(path), model=model)
            else:
                yield ImportFile(form="rankings", path=Path(text))
        if settings.gamma_sweep is not None:
            yield ImportFile(form="gamma-sweep", path=settings.gamma_sweep)

    def pairs(self, settings: EvidenceSettings) -> Sequence[str]:
        """Return all pairs except those about the results in `--against`."""
        stored = set(stored_pairs(settings))
        return [pair for pair in settings.map if pair not in stored]

    def columns(self, file: ImportFile, settings: EvidenceSettings) -> Sequence[str]:  # noqa: ARG002 - of the base
        """Return the columns of a table, or of a TREC file by their number."""
        trec = () if holds_objects(file.path) else trec_columns(file.path)
        return trec or csv_columns(file.path)

    def keys(self, file: ImportFile, settings: EvidenceSettings) -> Sequence[str]:
        """Return the columns of a table; a TREC file has no names to map."""
        is_trec = file.form in {"qrels", "run"}
        columns = () if is_trec else self.columns(file, settings)
        return () if columns in {QRELS_COLUMNS, RUN_COLUMNS} else columns

    def answers(
        self, files: Sequence[ImportFile], settings: EvidenceSettings
    ) -> Iterator[ImportedAnswer]:
        """Yield an answer for each query and model."""
        findings = InputFindings()
        owners = sentence_owners(settings)
        sources = [
            EvidenceFile(
                # named before files are joined, so that all data of one model becomes
                # one answer, regardless of the option that named the file
                file=replace(file, model=file.model or MODEL),
                settings=settings,
                owners=owners,
                findings=findings,
            )
            for file in sorted(files, key=lambda file: file.form not in LEADING)
        ]
        for part in joined(sources, findings):
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
