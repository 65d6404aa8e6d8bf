"""Imports decisions and scores of other tools, from CSV files, as a run's answers.

A row is an answer of one stage. Its decision becomes a reply in the format required of
models, so that it is parsed, scored and compared like any other. A row with a score and
no decision becomes a reply with only the score: it is undecided, and ranks by its
score. Labels in the file are stored with it, unless a set has them.

A file of scores has no decisions. Tools that rank records write it: a probability, or
the rank of each record. Column names of such tools are recognised; others are mapped
with `--map OLD=NEW`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec

from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.cells import (
    Label,
    Positive,
    Probability,
    Text,
    Trimmed,
    one_of,
    word_of,
)
from jobs.kit.inputs.files import csv_columns, read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.screening.data import (
    KINDS,
    REASON_CODES,
    UNLABELLED,
    ScreeningRecord,
    record_key,
)
from jobs.screening.decisions import NOTED, STAGES, ImportedLabel, encode_label
from jobs.screening.input_tables import Id, id_of
from jobs.screening.inputs import read_set
from jobs.screening.parsing import decision_of
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from runner.job import ImportedAnswer, TaskSpec
from runner.messages import Reply

NEEDED = ("review_pmid", "paper_pmid", "decision")
RANK = "rank"
FIELDS = (
    *NEEDED,
    *("confidence", "model", "replicate", "stage", "reason_code", "reason", "label"),
    *("kind", "status", "noted", RANK),
)
"""Fields that a column may be mapped to."""

DECISIONS, SCORES = "decisions", "scores"
FORMS: Mapping[str, ImportForm] = {
    DECISIONS: ImportForm(recognised=f"CSV {', '.join(NEEDED)}", needs=("decision",)),
    SCORES: ImportForm(
        recognised=f"CSV paper_pmid and confidence or {RANK}, without a decision",
        needs=("paper_pmid", ("confidence", RANK)),
        spellings={
            "paper_pmid": ("record_id", "pmid", "pubmedID", "pubmed_id"),
            "confidence": ("score", "probability", "proba", "p_include"),
            RANK: ("asreview_ranking", "ranking"),
            "label": ("label_included", "included"),
        },
    ),
}


MODEL = "imported"
"""Default model name of a row."""

PARSED = "parsed"
STATUSES = (PARSED, "unparsed", "failed", "skipped", "missing")
"""Outcomes of a record, as in the `decisions.csv` of a scoring.

Of a record with a decision, the status is that of the stage after the deciding one: if
it is not `parsed`, the record did not end, and ranks with those that went on.
"""

NEVER_SENT = frozenset({"skipped", "missing"})
WITHOUT_REPLY = NEVER_SENT | {"failed"}


NOT_A_PROBABILITY = "none"
NO_CODE = "none"
"""Text for a confidence or a code that could not be read."""

UNREAD: Mapping[str, Reply] = {
    "parse.empty": Reply(text=""),
    "parse.refusal": Reply(text="", finish_reason="refusal"),
    "parse.truncated": Reply(text="", finish_reason="length"),
    "parse.no_decision": Reply(text="Nothing is decided."),
    "parse.bad_decision": Reply(text='{"decision": "none"}'),
    "parse.ambiguous": Reply(text='{"decision": "include"} {"decision": "exclude"}'),
}
"""Replies that represent unreadable ones, by the words of `noted`."""


class _ParsedRow(msgspec.Struct):
    """A decision in the format required of models."""

    decision: str
    p_include: float | str | None
    reason_code: str
    reason: str


class _AnswerRow(RowModel):
    """An answer; the required columns depend on the file."""

    review_pmid: Id = ""
    paper_pmid: Id
    confidence: Probability | None = None
    model: Trimmed = ""
    replicate: Positive = 1
    stage: Annotated[str, one_of(STAGES)] = "abstract"
    reason_code: Text = ""
    reason: Text = ""
    label: Label | None = None
    kind: Text = ""
    status: Annotated[str, one_of(STATUSES)] = PARSED
    noted: Trimmed = ""

    @property
    def notes(self) -> Sequence[str]:
        """Remarks of a scoring about the reply."""
        return self.noted.split(NOTED)

    def word(self, name: str, text: str, words: Sequence[str]) -> str:
        """Return the text of a column, which must be one of *words*."""
        try:
            return word_of(text, words)
        except ValueError as error:
            raise self.error(f"{name} {error}") from error


class _DecisionRow(_AnswerRow):
    decision: Text


class _RankRow(_AnswerRow):
    rank: Positive | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The columns of a file, and the values that its name supplies."""

    file: ImportFile
    model: type[_AnswerRow]
    review: str = ""  #: of all rows, if there is no such column

    @classmethod
    def of(cls, file: ImportFile) -> _Layout:
        """Return the layout for the columns of a file."""
        if file.form == DECISIONS:
            return cls(file=file, model=_DecisionRow)
        names = csv_columns(file.path)
        columns = {file.renamed.get(name, name) for name in names}
        return cls(
            file=file,
            model=_AnswerRow if "confidence" in columns else _RankRow,
            review="" if "review_pmid" in columns else _review(file.path),
        )

    def rows(self) -> Iterator[_AnswerRow]:
        """Yield the rows of the file."""
        needed = () if self.review else ("review_pmid",)
        if self.model is _AnswerRow:
            needed = (*needed, "confidence")
        return read_table(
            self.file.path,
            self.model,
            findings=InputFindings(),
            needed=needed,
            renamed=self.file.renamed,
            unit="row",
        )

    def last_ranks(self) -> Mapping[str, int]:
        """Return the largest rank number by review; empty for other scores."""
        last: dict[str, int] = {}
        for row in self.rows() if self.model is _RankRow else ():
            if isinstance(row, _RankRow) and row.rank is not None:
                review = row.review_pmid
                last[review] = max(last.get(review, 0), row.rank)
        return last

    def notes(self) -> tuple[str, ...]:
        """Return the lines to print about a file of scores when it is imported."""
        if self.file.form == DECISIONS:
            return ()
        kind = (
            "places in a ranking, read as scores that fall from 1 to "
            "0; calibration and thresholds do not apply to them"
            if self.model is _RankRow
            else "scores without decisions; --threshold turns them into decisions"
        )
        renamed = self.file.renamed.items()
        sentences = [kind, *(f"{new} is column {old}" for old, new in renamed)]
        if self.review:
            sentences.append(
                f"there is no column review_pmid, so the file's name {self.review} is "
                "the review's id"
            )
        return tuple(f"{self.file.path.name}: {words}." for words in sentences)


def _review(path: Path) -> str:
    """Return the id of the only review of a file: its name."""
    try:
        return id_of(path.name.removesuffix(".gz").rpartition(".")[0])
    except ValueError as error:
        raise DatasetError(
            f"{path.name}: there is no column review_pmid, and the file's name {error}."
        ) from error


@dataclass(slots=True, kw_only=True)
class _Reading:
    """State of an import, to reject repeated and contradictory rows."""

    settings: ScreeningSettings
    set_records: Mapping[str, ScreeningRecord] | None
    """Records of the set by key; None: labels are in the file."""
    model: str = MODEL
    last: Mapping[str, int] = field(default_factory=dict)
    """Number of ranks by review, in a file of ranks."""
    review: str = ""  #: of all rows, if there is no such column
    seen: set[tuple[str, str, int, str]] = field(default_factory=set)
    stated: dict[str, ImportedLabel] = field(default_factory=dict)

    def answers(self, row: _AnswerRow) -> Iterator[ImportedAnswer]:
        """Yield the answer of a row, and one for its status in the next stage.

        Raises:
            DatasetError: the row cannot be read, contradicts another or the set, or
                repeats one.
        """
        key = record_key(row.review_pmid or self.review, row.paper_pmid)
        model = row.model or self.model
        truth = self._truth(row, key)
        decision = row.decision if isinstance(row, _DecisionRow) else ""
        decided, status = bool(decision.strip()), row.status
        score = self._score(row)
        if score is not None and not decided and status in WITHOUT_REPLY:
            raise row.error(
                f"status is {status}, and there is a confidence (leave one out)"
            )
        if decided:
            text = self._text(row, decision, score)
        elif score is not None and self.settings.confidence_kind == "decision":
            raise row.error(
                "confidence is that of a decision, and there is none (leave it out, or "
                "use --confidence-kind include)"
            )
        else:
            text = _score_text(score)
        statuses = {row.stage: status}
        if decided and status != PARSED:
            statuses = {row.stage: PARSED, self._after(row): status}
        for name, stage_status in statuses.items():
            self._once(row, (key, model, row.replicate, name))
            spec = TaskSpec(
                stage=name,
                key=key,
                skip=stage_status if stage_status in NEVER_SENT else None,
                context=None if truth is None else encode_label(truth),
            )
            reply = None
            if stage_status == PARSED:
                reply = Reply(text=text)
            elif stage_status == "unparsed":
                reply = _unread(row, "" if decided else text)
            yield ImportedAnswer(
                spec=spec,
                model=model,
                replicate=row.replicate,
                text=None if reply is None else reply.text,
                finish_reason="stop" if reply is None else reply.finish_reason,
                error="unknown" if stage_status == "failed" else None,
            )

    def _once(self, row: _AnswerRow, identity: tuple[str, str, int, str]) -> None:
        if identity in self.seen:
            key, model, *_ = identity
            raise row.error(
                f"{key} has a decision of {model} already (remove one, or number "
                "them in a column replicate)"
            )
        self.seen.add(identity)

    def _after(self, row: _AnswerRow) -> str:
        """Return the stage after the deciding one, which has no readable reply."""
        later = STAGES[STAGES.index(row.stage) + 1 :]
        if not later:
            raise row.error(
                f"status is {row.status} although {row.stage} decides and no stage "
                "follows it (leave the decision out, or the status)"
            )
        return later[0]

    def _truth(self, row: _AnswerRow, key: str) -> ImportedLabel | None:
        """Return the label of a record, or None if the set has it."""
        if self.set_records is None:
            return self._stated(row, key)
        record = self.set_records.get(key)
        if record is None:
            raise row.error(f"{key} is not in the validation set (remove the row)")
        if row.label not in {None, record.label} and record.label != UNLABELLED:
            raise row.error(
                f"label contradicts the validation set, where {key} has {record.label} "
                "(correct it, or leave the column out)"
            )
        return None

    def _stated(self, row: _AnswerRow, key: str) -> ImportedLabel:
        label = UNLABELLED if row.label is None else row.label
        kind = row.kind and row.word("kind", row.kind, KINDS)
        if label == UNLABELLED:
            kind = "unlabelled"
        elif kind and (kind == "included") != bool(label):
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

    def _score(self, row: _AnswerRow) -> float | None:
        """Return the confidence, or the score of a rank; None if neither is given."""
        if not isinstance(row, _RankRow) or row.rank is None:
            return row.confidence
        # the middle of the interval of a rank, so that the order is the same and no
        # score is 0
        return 1 - (row.rank - 0.5) / self.last[row.review_pmid]

    def _text(self, row: _AnswerRow, written: str, p: float | None) -> str:
        """Return the reply of a row with a decision."""
        decision = decision_of(written)
        if decision is None:
            raise row.error(
                f"decision is {written!r} (include, exclude or unclear is expected)"
            )
        if p is not None and self.settings.confidence_kind == "decision":
            p = {"include": 0.5 + p / 2, "exclude": 0.5 - p / 2}.get(decision)
        code = row.word("reason_code", row.reason_code or "other", REASON_CODES)
        odd_p = NOT_A_PROBABILITY if "bad_confidence" in row.notes else None
        parsed_row = _ParsedRow(
            decision=decision,
            p_include=odd_p if p is None else p,
            reason_code=NO_CODE if "bad_reason_code" in row.notes else code,
            reason=row.reason,
        )
        return msgspec.json.encode(parsed_row).decode()


def _unread(row: _AnswerRow, text: str) -> Reply:
    """Return a reply that is unreadable for the reason that a scoring noted."""
    substitute = next((UNREAD[word] for word in row.notes if word in UNREAD), None)
    return Reply(text=text) if text or substitute is None else substitute


def _score_text(score: float | None) -> str:
    """Return the reply of a row without a decision: its score, or ""."""
    return "" if score is None else msgspec.json.encode({"p_include": score}).decode()


class DecisionsImporter(FileImporter[ScreeningSettings]):
    """Imports files of decisions, and of scores."""

    forms = FORMS
    fields = FIELDS
    hinted = FIELDS[:4]
    no_files = "Name the file of decisions: --decisions FILE."
    no_replicates = (
        "Number replicates in a column replicate of the file; --replicate is not for "
        "decisions."
    )

    def named(self, settings: ScreeningSettings) -> Iterator[ImportFile]:
        """Yield the file of decisions."""
        if settings.decisions is not None:
            yield ImportFile(path=settings.decisions)

    def answers(
        self, files: Sequence[ImportFile], settings: ScreeningSettings
    ) -> Iterator[ImportedAnswer]:
        """Yield an answer for each row."""
        set_records = None
        if settings.validation_set is not None:
            validation_set = read_set(settings.validation_set)
            set_records = {record.key: record for record in validation_set.records}
        reading = _Reading(settings=settings, set_records=set_records)
        for file in files:
            layout = _Layout.of(file)
            notes = layout.notes()
            reading.model, reading.review = file.model or MODEL, layout.review
            reading.last = layout.last_ranks()
            is_empty = True
            for row in layout.rows():
                is_empty = False
                for answer in reading.answers(row):
                    yield replace(answer, notes=notes) if notes else answer
                    notes = ()
            if is_empty:
                raise DatasetError(f"{file.path.name}: it has no decisions (add rows).")


importer = DecisionsImporter()
