"""How the columns of an imported file are read: as decisions, or as scores alone.

A file of scores has no decision. It is what a tool that orders records writes: a
probability, or the place of each record in the ranking. The names that such tools use
are known; others are mapped with `--map OLD=NEW`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.inputs.column_map import ColumnMap, column_map, found_words, listed
from jobs.inputs.files import csv_columns, read_csv
from jobs.inputs.rows import InputFindings, InputRow
from jobs.screening.inputs.ids import id_of, read_id
from runner.errors import DatasetError

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

KNOWN: Mapping[str, Sequence[str]] = {
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
    has_places: bool = False  #: scores are places in a ranking

    def rows(self, noticed: InputFindings) -> Iterator[InputRow]:
        """The rows of the file, with the review that they belong to."""
        needed = self._needed()
        rows = read_csv(
            self.path,
            needed,
            tuple(name for name in OPTIONAL if name not in needed),
            noticed=noticed,
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
        return (*ids, RANK if self.has_places else "confidence")

    def last_places(self) -> Mapping[str, int]:
        """By review the number of places in its ranking; empty for other scores."""
        last: dict[str, int] = {}
        for row in self.rows(InputFindings()) if self.has_places else ():
            if row.has(RANK):
                review, place = read_id(row, "review_pmid"), row.count(RANK)
                if not place:
                    raise row.error(f"{RANK} is 0 (places count from 1)")
                last[review] = max(last.get(review, 0), place)
        return last

    def notes(self) -> tuple[str, ...]:
        """What to print about a file of scores when it is imported."""
        if self.form == DECISIONS:
            return ()
        kind = (
            "places in a ranking, read as scores that fall from 1 to 0; calibration "
            "and thresholds say nothing about them"
            if self.has_places
            else "scores without decisions; --threshold turns them into decisions"
        )
        found = [kind, *(f"{new} is column {old}" for old, new in self.columns.items())]
        if self.review:
            found.append(
                f"there is no column review_pmid, so the file's name {self.review} is "
                "the review's id"
            )
        return tuple(f"{self.path.name}: {words}." for words in found)


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
    own = _recognised(path, names)
    there = {own.get(name, name) for name in names}
    if "paper_pmid" not in there or not there & {"confidence", RANK}:
        known = "; ".join(f"{name}: {words}" for name, words in FORMATS.items())
        raise DatasetError(
            f"{path.name}: column 'decision' is missing, and it is no file of scores "
            f"({found_words(names, FIELDS[:4])}; {known}); rename a column with "
            "--map OLD=NEW."
        )
    return Layout(
        path=path,
        form=SCORES,
        columns={**mapped, **own},
        review="" if "review_pmid" in there else _review(path),
        has_places="confidence" not in there,
    )


def _recognised(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Fields by the known other names of their columns."""
    found = {}
    for name, others in KNOWN.items():
        there = [other for other in others if other in names]
        if name in names or not there:
            continue
        if len(there) > 1:
            raise DatasetError(
                f"{path.name}: {listed(there)} could each be {name} (say which with "
                f"--map {there[0]}={name})."
            )
        found[there[0]] = name
    return found


def _review(path: Path) -> str:
    """The id of the only review of a file: its name, as of labelled records."""
    try:
        review = id_of(path.name.removesuffix(".gz").rpartition(".")[0])
    except ValueError as error:
        raise DatasetError(
            f"{path.name}: there is no column review_pmid, and the file's name {error}."
        ) from error
    return review
