"""Imports decisions and scores made by other tools, from CSV files, as a run's answers.

A row is an answer of one stage. Its decision becomes a reply in the form that models
are asked for, so that it is read, scored and compared like any other. A row with a
score and no decision becomes a reply with the score alone: it is undecided, and ranks
by its score. What the file says is true is stored with it, unless a set says so.

A file of scores has no decision. It is what a tool that orders records writes: a
probability, or the place of each record in the ranking. The names that such tools use
are known; others are mapped with `--map OLD=NEW`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from jobs.kit.inputs.column_map import (
    ColumnMap,
    column_map,
    describe_columns,
    name_list,
)
from jobs.kit.inputs.files import csv_columns, read_csv
from jobs.kit.inputs.rows import InputFindings, InputRow
from jobs.screening.data import KINDS, REASON_CODES, ScreeningRecord, record_key
from jobs.screening.decisions import NOTED, STAGES, ImportedLabel, encode_label
from jobs.screening.input_tables import id_of, read_id
from jobs.screening.inputs import read_set
from jobs.screening.parsing import decision_of
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec
from runner.messages import Reply

NEEDED = ("review_pmid", "paper_pmid", "decision")
OPTIONAL = (
    "confidence",
    "model",
    "replicate",
    "stage",
    "reason_code",
    "reason",
    "label",
    "kind",
    "status",
    "noted",
)
RANK = "rank"
FIELDS = (*NEEDED, *OPTIONAL, RANK)
"""What a column may be mapped to."""

DECISIONS, SCORES = "decisions", "scores"
FORMATS: Mapping[str, str] = {
    DECISIONS: f"CSV {', '.join(NEEDED)}",
    SCORES: f"CSV paper_pmid and confidence or {RANK}, without a decision",
}

COLUMN_ALIASES: Mapping[str, Sequence[str]] = {
    "paper_pmid": ("record_id", "pmid", "pubmedID", "pubmed_id"),
    "confidence": ("score", "probability", "proba", "p_include"),
    RANK: ("asreview_ranking", "ranking"),
    "label": ("label_included", "included"),
}
"""Further names of the columns of a file of scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one file is read."""

    path: Path
    form: str
    columns: ColumnMap  #: fields by columns that are called otherwise
    review: str = ""  #: of all rows, where no column says it
    has_ranks: bool = False  #: scores are places in a ranking

    def rows(self, findings: InputFindings) -> Iterator[InputRow]:
        """The rows of the file, with the review that they belong to."""
        needed = self._needed()
        rows = read_csv(
            self.path,
            needed,
            tuple(name for name in OPTIONAL if name not in needed),
            findings=findings,
            renamed=self.columns,
            unit="row",
        )
        for row in rows:
            fields = {"review_pmid": self.review} if self.review else {}
            yield replace(row, fields={**row.fields, **fields}) if fields else row

    def _needed(self) -> tuple[str, ...]:
        if self.form == DECISIONS:
            return NEEDED
        ids = NEEDED[1:2] if self.review else NEEDED[:2]
        return (*ids, RANK if self.has_ranks else "confidence")

    def last_ranks(self) -> Mapping[str, int]:
        """By review the number of places in its ranking; empty for other scores."""
        last: dict[str, int] = {}
        for row in self.rows(InputFindings()) if self.has_ranks else ():
            if row.has(RANK):
                review, rank = read_id(row, "review_pmid"), row.count(RANK)
                if not rank:
                    raise row.error(f"{RANK} is 0 (places count from 1)")
                last[review] = max(last.get(review, 0), rank)
        return last

    def notes(self) -> tuple[str, ...]:
        """What to print about a file of scores when it is imported."""
        if self.form == DECISIONS:
            return ()
        kind = (
            "places in a ranking, read as scores that fall from 1 to 0; calibration "
            "and thresholds say nothing about them"
            if self.has_ranks
            else "scores without decisions; --threshold turns them into decisions"
        )
        sentences = [
            kind,
            *(f"{new} is column {old}" for old, new in self.columns.items()),
        ]
        if self.review:
            sentences.append(
                f"there is no column review_pmid, so the file's name {self.review} is "
                "the review's id"
            )
        return tuple(f"{self.path.name}: {words}." for words in sentences)


def layouts(
    paths: Sequence[Path], pairs: Sequence[str], form: str | None
) -> tuple[Layout, ...]:
    """How each file is read.

    Args:
        paths: the files.
        pairs: of `--map`.
        form: a name in `FORMATS`; None: by the columns of each.

    Raises:
        DatasetError: a file is in neither form, or two columns could be one field.
        UsageError: `--map` names a column that no file has.
    """
    headers = {path: csv_columns(path) for path in paths}
    seen = (name for names in headers.values() for name in names)
    mapped = column_map(pairs, FIELDS, seen)
    return tuple(
        _layout(path, [mapped.get(name, name) for name in names], mapped, form)
        for path, names in headers.items()
    )


def _layout(
    path: Path, names: Sequence[str], mapped: ColumnMap, form: str | None
) -> Layout:
    if form == DECISIONS or (form is None and "decision" in names):
        return Layout(path=path, columns=mapped, form=DECISIONS)
    renamed = _recognised(path, names)
    columns = {renamed.get(name, name) for name in names}
    if "paper_pmid" not in columns or not columns & {"confidence", RANK}:
        forms = "; ".join(f"{name}: {words}" for name, words in FORMATS.items())
        raise DatasetError(
            f"{path.name}: column 'decision' is missing, and it is no file of scores "
            f"({describe_columns(names, FIELDS[:4])}; {forms}); rename a column with "
            "--map OLD=NEW."
        )
    return Layout(
        path=path,
        form=SCORES,
        columns={**mapped, **renamed},
        review="" if "review_pmid" in columns else _review(path),
        has_ranks="confidence" not in columns,
    )


def _recognised(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Fields by the known other names of their columns."""
    renamed = {}
    for name, others in COLUMN_ALIASES.items():
        present = [other for other in others if other in names]
        if name in names or not present:
            continue
        if len(present) > 1:
            raise DatasetError(
                f"{path.name}: {name_list(present)} could each be {name} (say "
                f"which with --map {present[0]}={name})."
            )
        renamed[present[0]] = name
    return renamed


def _review(path: Path) -> str:
    """The id of the only review of a file: its name, as of labelled records."""
    try:
        review = id_of(path.name.removesuffix(".gz").rpartition(".")[0])
    except ValueError as error:
        raise DatasetError(
            f"{path.name}: there is no column review_pmid, and the file's name {error}."
        ) from error
    return review


MODEL = "imported"
"""Whose work it is where nothing names a model."""

PARSED = "parsed"
STATUSES = (PARSED, "unparsed", "failed", "skipped", "missing")
"""What became of a record, as `decisions.csv` of a scoring says it.

Beside a decision it tells of the stage after the one that decides: where that came to
nothing the record did not end, and ranks with those that went on.
"""

NEVER_SENT = frozenset({"skipped", "missing"})
WITHOUT_REPLY = NEVER_SENT | {"failed"}


NOT_A_PROBABILITY = "none"
NO_CODE = "none"
"""What stands for a confidence or a code that could not be read."""

UNREAD: Mapping[str, Reply] = {
    "parse.empty": Reply(text=""),
    "parse.refusal": Reply(text="", finish_reason="refusal"),
    "parse.truncated": Reply(text="", finish_reason="length"),
    "parse.no_decision": Reply(text="Nothing is decided."),
    "parse.bad_decision": Reply(text='{"decision": "none"}'),
    "parse.ambiguous": Reply(text='{"decision": "include"} {"decision": "exclude"}'),
}
"""Replies that stand for those that could not be read, by the words of `noted`."""


class _ParsedRow(msgspec.Struct):
    """A decision in the form that models are asked for."""

    decision: str
    p_include: float | str | None
    reason_code: str
    reason: str


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The rows read so far: what may not occur twice, and what may not contradict."""

    settings: ScreeningSettings
    model: str
    set_records: (
        Mapping[str, ScreeningRecord] | None
    )  #: of the set; None: the file says what is true
    last: Mapping[str, int] = field(default_factory=dict)
    """By review the number of places, in a file of places."""
    seen: set[tuple[str, str, int, str]] = field(default_factory=set)
    stated: dict[str, ImportedLabel] = field(default_factory=dict)

    def answers(self, row: InputRow) -> Iterator[ImportedAnswer]:
        """A row as an answer, and what its status says of the stage after it.

        Raises:
            DatasetError: the row cannot be read, contradicts another or the set, or
                repeats one.
        """
        key = record_key(read_id(row, "review_pmid"), read_id(row, "paper_pmid"))
        model = row.optional_text("model").strip() or self.model
        replicate = row.count("replicate") if row.has("replicate") else 1
        if replicate < 1:
            raise row.error("replicate is 0 (they count from 1)")
        stage = row.one_of("stage", STAGES) if row.has("stage") else "abstract"
        truth = self._truth(row, key)
        status = row.one_of("status", STATUSES) if row.has("status") else PARSED
        decided = bool(row.optional_text("decision").strip())
        score = self._score(row)
        if score is not None and not decided and status in WITHOUT_REPLY:
            raise row.error(
                f"status is {status}, and there is a confidence (leave one out)"
            )
        if decided:
            text = self._text(row, score)
        elif score is not None and self.settings.confidence_kind == "decision":
            raise row.error(
                "confidence is that of a decision, and there is none (leave it out, or "
                "use --confidence-kind include)"
            )
        else:
            text = _score_text(score)
        unread = _unread(row, "" if decided else text)
        statuses = {stage: status}
        if decided and status != PARSED:
            statuses = {stage: PARSED, self._after(row, stage, status): status}
        for name, stage_status in statuses.items():
            self._once(row, (key, model, replicate, name))
            yield ImportedAnswer(
                spec=TaskSpec(
                    stage=name,
                    key=key,
                    skip=stage_status if stage_status in NEVER_SENT else None,
                    context=None if truth is None else encode_label(truth),
                ),
                model=model,
                replicate=replicate,
                text={PARSED: text, "unparsed": unread.text}.get(stage_status),
                finish_reason=(
                    unread.finish_reason if stage_status == "unparsed" else "stop"
                ),
                error="unknown" if stage_status == "failed" else None,
            )

    def _once(self, row: InputRow, identity: tuple[str, str, int, str]) -> None:
        if identity in self.seen:
            key, model, *_ = identity
            raise row.error(
                f"{key} has a decision of {model} already (remove one, or number "
                "them in a column replicate)"
            )
        self.seen.add(identity)

    def _after(self, row: InputRow, stage: str, status: str) -> str:
        """The stage that came to nothing after the one that decides."""
        later = STAGES[STAGES.index(stage) + 1 :]
        if not later:
            raise row.error(
                f"status is {status} although {stage} decides and no stage follows it "
                "(leave the decision out, or the status)"
            )
        return later[0]

    def _truth(self, row: InputRow, key: str) -> ImportedLabel | None:
        """What is true of a record; None where the set says it."""
        if self.set_records is None:
            return self._stated(row, key)
        record = self.set_records.get(key)
        if record is None:
            raise row.error(f"{key} is not in the validation set (remove the row)")
        if row.has("label") and row.label("label") != record.label:
            raise row.error(
                f"label contradicts the validation set, where {key} has {record.label} "
                "(correct it, or leave the column out)"
            )
        return None

    def _stated(self, row: InputRow, key: str) -> ImportedLabel:
        if not row.has("label"):
            raise row.error("label is missing (fill it in or name a --validation-set)")
        label = row.label("label")
        kind = row.one_of("kind", KINDS) if row.has("kind") else ""
        if kind and (kind == "included") != bool(label):
            raise row.error(f"label {label} contradicts the kind {kind} (correct one)")
        truth = ImportedLabel(
            label=label, kind=kind or ("included" if label else "unspecified")
        )
        before = self.stated.setdefault(key, truth)
        if before != truth:
            raise row.error(
                f"label or kind of {key} contradicts an earlier row (correct one)"
            )
        return truth

    def _score(self, row: InputRow) -> float | None:
        """The confidence, or what the place in a ranking becomes; None: none given."""
        if not row.has(RANK):
            return row.probability("confidence") if row.has("confidence") else None
        # the middle of a place's share, so that the order is kept and no score is 0
        return 1 - (row.count(RANK) - 0.5) / self.last[read_id(row, "review_pmid")]

    def _text(self, row: InputRow, p: float | None) -> str:
        """The reply of a row with a decision."""
        decision = decision_of(row.text("decision"))
        if decision is None:
            raise row.error(
                f"decision is {row.text('decision')!r} (include, exclude or unclear is "
                "expected)"
            )
        if p is not None and self.settings.confidence_kind == "decision":
            p = {"include": 0.5 + p / 2, "exclude": 0.5 - p / 2}.get(decision)
        code = row.optional_text("reason_code") or "other"
        if code not in REASON_CODES:
            raise row.error(
                f"reason_code is {code!r} (one of {', '.join(REASON_CODES)} is "
                "expected)"
            )
        noted = _note_row(row)
        odd_p = NOT_A_PROBABILITY if "bad_confidence" in noted else None
        parsed_row = _ParsedRow(
            decision=decision,
            p_include=odd_p if p is None else p,
            reason_code=NO_CODE if "bad_reason_code" in noted else code,
            reason=row.optional_text("reason"),
        )
        return msgspec.json.encode(parsed_row).decode()


def _note_row(row: InputRow) -> Sequence[str]:
    """What a scoring noted about the reply."""
    return row.optional_text("noted").strip().split(NOTED)


def _unread(row: InputRow, text: str) -> Reply:
    """A reply that cannot be read for the reason that a scoring noted."""
    substitute = next((UNREAD[word] for word in _note_row(row) if word in UNREAD), None)
    return Reply(text=text) if text or substitute is None else substitute


def _score_text(score: float | None) -> str:
    """The reply of a row without a decision: its score, or nothing that can be read."""
    return "" if score is None else msgspec.json.encode({"p_include": score}).decode()


class DecisionsImporter:
    """The job's `runner.job.Importer`."""

    formats: Mapping[str, str] = FORMATS

    def read(
        self,
        files: tuple[Path, ...],
        settings: ScreeningSettings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """An answer for each row.

        Args:
            files: named by their place; the one that settings name comes first.
            settings: of the run.
            model: name of the model where a row has none.
            form: a name in `formats`; None: by the columns of each file.
            replicates: must be empty; they are numbered in a column.

        Raises:
            DatasetError: a row is off; names file and row.
            UsageError: no file is named, or one is said to be a replicate.
        """
        if replicates:
            raise UsageError(
                "Number replicates in a column replicate of the file; --replicate is "
                "not for decisions."
            )
        sources = (settings.decisions, *files)
        paths = [path for path in sources if path is not None]
        if not paths:
            raise UsageError("Name the file of decisions: --decisions FILE.")
        set_records = None
        if settings.validation_set is not None:
            validation_set = read_set(settings.validation_set)
            set_records = {record.key: record for record in validation_set.records}
        reading = _Reading(
            settings=settings, model=model or MODEL, set_records=set_records
        )
        findings = InputFindings()
        for layout in layouts(paths, settings.map, form):
            notes = layout.notes()
            reading.last = layout.last_ranks()
            is_empty = True
            for row in layout.rows(findings):
                is_empty = False
                for answer in reading.answers(row):
                    yield replace(answer, notes=notes) if notes else answer
                    notes = ()
            if is_empty:
                raise DatasetError(
                    f"{layout.path.name}: there is no decision (add rows)."
                )


importer = DecisionsImporter()
