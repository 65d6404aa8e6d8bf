"""Reads and writes alias files: lossless JSON, or CSV for a spreadsheet.

Files that a person gives to a scoring are validated, and never repaired.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, PlainValidator, model_validator

from jobs.kit.grouping import grouped
from jobs.kit.inputs.cells import (
    BLANK,
    Count,
    InputCell,
    Probability,
    Text,
    Texts,
    Whole,
    filled,
    kind_of,
    trimmed,
)
from jobs.kit.inputs.files import read_json, read_table, read_text
from jobs.kit.inputs.rows import InputFindings, RowModel, RowSource
from jobs.property_extraction.aliases.alias_set import (
    FOLDS,
    SOURCES,
    STATUSES,
    AliasEntry,
    AliasOrigin,
    AliasSet,
    Key,
    Source,
    Status,
)
from jobs.property_extraction.aliases.chains import loops
from jobs.property_extraction.settings import Clash, NameMatch, SameName
from runner.errors import DatasetError
from runner.table_files import as_meant, csv_lines

SCHEMA = "siftlog.aliases/1"
"""Schema name in the JSON of a set."""

COLUMNS = tuple(field.name for field in fields(AliasEntry))


def _name(cell: InputCell) -> str:
    """Return a name without outer blanks, as in truth and predictions."""
    name = filled(cell).strip()
    if not name:
        raise ValueError(BLANK)
    return name


def _word(words: Sequence[str], default: str | None) -> PlainValidator:
    """Return a validator for some words, in any case; a blank cell has the default."""

    def word(cell: InputCell) -> str | None:
        text = trimmed(cell).lower()
        if text and text not in words:
            raise ValueError(f"is {text!r} (one of {', '.join(words)} is expected)")
        return text or default

    return PlainValidator(word)


class _EntryRow(RowModel):
    pred_name: Annotated[str, PlainValidator(_name)]
    gt_name: Annotated[str, PlainValidator(_name)]
    refno: Text = ""
    status: Annotated[Status, _word(STATUSES, "undecided")] = "undecided"
    decided_by: Annotated[Source | None, _word(SOURCES, None)] = Field(
        default=None, validation_alias="source"
    )
    models: Texts = ()
    votes: Count = 0
    reason: Text = ""
    count: Count = 0
    avg_sim: Probability | None = None


class _SheetRow(_EntryRow):
    """An entry in CSV, whose cells may be marked as texts for a spreadsheet."""

    @model_validator(mode="before")
    @classmethod
    def _meant(cls, cells: dict[str, InputCell]) -> dict[str, InputCell]:
        return {
            name: as_meant(cell) if isinstance(cell, str) else cell
            for name, cell in cells.items()
        }


class _OriginRow(RowModel):
    run: Text = ""
    scoring: Whole | None = None
    verification_runs: Texts = ()


class _SetRow(RowModel):
    parent: Text = ""


Placed: TypeAlias = tuple[str, AliasEntry]
"""An entry and its place in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasFile:
    """The alias set of a file, not validated or changed."""

    alias_set: AliasSet
    file: str
    row_labels: tuple[str, ...]  #: of each entry, such as `row 5`

    @property
    def placed(self) -> list[Placed]:
        """Every entry with its place."""
        return list(zip(self.row_labels, self.alias_set.entries, strict=True))


def read_aliases(path: Path) -> AliasFile:
    """Read any of the three forms.

    Raises:
        DatasetError: the file is unreadable, or a row is invalid.
    """
    if path.suffix.lower() == ".csv":
        return _of_csv(path)
    value = read_json(path)
    if not isinstance(value, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(value)} instead of an object (an alias set, or "
            "names with the names that they stand for, is expected)."
        )
    return _of_set(path, value) if "entries" in value else _of_map(path, value)


def set_json(alias_set: AliasSet) -> str:
    """Return a set as JSON, with all its fields."""
    content = {
        "schema": SCHEMA,
        "id": alias_set.id,
        "parent": alias_set.parent,
        "created_from": asdict(alias_set.created_from),
        "entries": [asdict(entry) for entry in alias_set.entries],
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def set_csv(alias_set: AliasSet) -> str:
    """Return the entries of a set as CSV, for decisions in a spreadsheet."""
    rows = (
        tuple(
            "|".join(entry.models) if name == "models" else getattr(entry, name)
            for name in COLUMNS
        )
        for entry in alias_set.entries
    )
    return csv_lines((COLUMNS, *rows))


def _of_csv(path: Path) -> AliasFile:
    rows = read_table(
        path,
        _SheetRow,
        findings=InputFindings(),
        needed=("status",),
        unit="row",
        cure="an alias acts only where somebody wrote that it is accepted",
    )
    return _alias_file(path, rows, "human")


def _of_set(path: Path, value: Mapping[str, Any]) -> AliasFile:
    schema, entries = value.get("schema"), value["entries"]
    if schema != SCHEMA:
        raise DatasetError(
            f"{path.name}: schema is {schema!r} ({SCHEMA!r} is expected)."
        )
    whole = RowSource(file=path.name, unit="object")
    if not isinstance(entries, list):
        raise whole.error(1, f"entries is {kind_of(entries)} (a list is expected)")
    alias_file = _alias_file(path, _entry_rows(path, entries), "import")
    alias_set = replace(
        alias_file.alias_set,
        parent=_SetRow.at(whole, 1, value).parent or None,
        created_from=_origin(whole, value),
    )
    if value.get("id", alias_set.id) != alias_set.id:
        raise whole.error(
            1,
            f"id is {value['id']!r}, and that of its entries is {alias_set.id!r}: they "
            "were changed since (correct the id or take it out)",
        )
    return replace(alias_file, alias_set=alias_set)


def _entry_rows(path: Path, entries: Iterable[object]) -> Iterator[_EntryRow]:
    source = RowSource(file=path.name, unit="entry")
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise DatasetError(
                f"{path.name} entry {number}: {kind_of(entry)} instead of an object."
            )
        yield _EntryRow.at(source, number, entry)


def _origin(whole: RowSource, value: Mapping[str, Any]) -> AliasOrigin:
    origin = value.get("created_from") or {}
    if not isinstance(origin, dict):
        raise whole.error(
            1, f"created_from is {kind_of(origin)} (an object is expected)"
        )
    row = _OriginRow.at(whole, 1, origin)
    return AliasOrigin(
        run=row.run or None,
        scoring=row.scoring,
        verification_runs=row.verification_runs,
    )


def _of_map(path: Path, value: Mapping[str, object]) -> AliasFile:
    for name, target in value.items():
        if not isinstance(target, str):
            raise DatasetError(
                f"{path.name}: {name!r} stands for {kind_of(target)} (a name is "
                "expected; an alias set would have a key entries)."
            )
    # as pairs: of a repeated name, an object would retain only the last
    pairs = json.loads(read_text(path), object_pairs_hook=tuple)
    source = RowSource(file=path.name, unit="pair")
    rows = (
        _EntryRow.at(
            source,
            number,
            {"pred_name": name, "gt_name": target, "status": "accepted"},
        )
        for number, (name, target) in enumerate(pairs, start=1)
    )
    return _alias_file(path, rows, "draft")


def _alias_file(path: Path, rows: Iterable[_EntryRow], source: Source) -> AliasFile:
    """Return the entries of rows; *source* applies if a row names none."""
    entries, row_labels = [], []
    for row in rows:
        cells = {name: getattr(row, name) for name in COLUMNS if name != "source"}
        cells |= {"refno": row.refno or None, "source": row.decided_by or source}
        entries.append(AliasEntry(**cells))
        row_labels.append(row.place)
    return AliasFile(
        alias_set=AliasSet(entries=tuple(entries)),
        file=path.name,
        row_labels=tuple(row_labels),
    )


def acting_aliases(
    path: Path,
    *,
    canonical: Container[str],
    accept_drafts: bool = False,
    name_match: NameMatch = "exact",
    clash: Clash = "best",
    same_name: SameName = "guard",
) -> AliasSet:
    """Read an alias file that is to act on a scoring.

    Args:
        path: of any of the forms that `read_aliases` reads.
        canonical: names of truth and rubric.
        accept_drafts: let unverified entries act.
        name_match: how an entry matches a name.
        clash: `set` allows several targets of a name; otherwise that is an error.
        same_name: `keep` lets names of truth and rubric be renamed.

    Raises:
        DatasetError: the file is invalid, or its entries contradict these settings.
    """
    file = read_aliases(path)
    _refuse_repeats(file)
    acting = [(row, entry) for row, entry in file.placed if entry.acts]
    if not accept_drafts:
        _refuse_drafts(file, acting)
    if same_name == "guard":
        _refuse_canonical(file, acting, canonical)
    if clash != "set":
        _refuse_clashes(file, acting, name_match)
    _refuse_loops(file, acting, canonical, name_match)
    return file.alias_set


def reviewed_aliases(path: Path, *, clash: Clash = "best") -> tuple[AliasEntry, ...]:
    """Read people's decisions, to build a set from them.

    Args:
        path: of any of the forms that `read_aliases` reads.
        clash: `set` allows several targets of a name; otherwise that is an error.

    Raises:
        DatasetError: the file is invalid, or two of its rows contradict one another.
    """
    file = read_aliases(path)
    _refuse_repeats(file)
    if clash != "set":
        acting = [(row, entry) for row, entry in file.placed if entry.acts]
        _refuse_clashes(file, acting, "exact")
    return file.alias_set.entries


def _refuse_repeats(file: AliasFile) -> None:
    seen: dict[Key, str] = {}
    for row, entry in file.placed:
        if entry.key in seen:
            raise DatasetError(
                f"{file.file}: {seen[entry.key]} and {row} are both about "
                f"{entry.label}; keep one of them."
            )
        seen[entry.key] = row


def _refuse_drafts(file: AliasFile, acting: list[Placed]) -> None:
    drafts = [(row, entry) for row, entry in acting if entry.is_draft]
    if drafts:
        row, entry = drafts[0]
        raise DatasetError(
            f"{file.file}: {len(drafts)} of its aliases are unverified "
            f"drafts, such as {row}, {entry.label}; verify them and "
            "build a set (siftlog prepare property-extraction "
            "aliases), or add --accept-drafts."
        )


def _refuse_canonical(
    file: AliasFile, acting: list[Placed], canonical: Container[str]
) -> None:
    for row, entry in acting:
        if entry.pred_name in canonical and entry.pred_name != entry.gt_name:
            raise DatasetError(
                f"{file.file}: {row} renames {entry.pred_name!r}, which is itself a "
                "name of truth or rubric; remove it, or add --same-name keep to rename "
                "right names too."
            )


def _refuse_clashes(
    file: AliasFile, acting: list[Placed], name_match: NameMatch
) -> None:
    fold = FOLDS[name_match]
    seen: dict[tuple[str | None, str], Placed] = {}
    for row, entry in acting:
        other, first = seen.setdefault(
            (entry.refno, fold(entry.pred_name)), (row, entry)
        )
        if first.gt_name != entry.gt_name:
            raise DatasetError(
                f"{file.file}: {other} and {row} clash: {first.pred_name!r} stands "
                f"for {first.gt_name!r} and for {entry.gt_name!r}; keep one of them, "
                "or add --clash set to let it stand for both."
            )


def _refuse_loops(
    file: AliasFile,
    acting: list[Placed],
    canonical: Container[str],
    name_match: NameMatch,
) -> None:
    """Raise if names form a cycle; canonical names are never renamed and break it."""
    fold = FOLDS[name_match]
    loose = [(row, e) for row, e in acting if e.pred_name not in canonical]
    for scope in _scopes(loose, fold):
        targets = {
            name: {fold(entry.gt_name) for _, entry in placed_entries}
            for name, placed_entries in scope.items()
        }
        for loop in loops(targets):
            rows = [
                row
                for name in sorted(loop)
                for row, entry in scope[name]
                if fold(entry.gt_name) in loop
            ]
            raise DatasetError(
                f"{file.file}: {' and '.join(rows)} form a cycle of names: "
                f"{', '.join(map(repr, sorted(loop)))} name one another; remove "
                "one of the rows."
            )


def _scopes(
    acting: list[Placed], fold: Callable[[str], str]
) -> Iterator[Mapping[str, list[Placed]]]:
    """Yield the acting rows by key: for papers without entries, then for each other."""
    papers = grouped((entry.refno, (row, entry)) for row, entry in acting)
    scopes = {
        refno: grouped((fold(entry.pred_name), (row, entry)) for row, entry in placed)
        for refno, placed in papers.items()
    }
    everywhere = scopes.pop(None, {})
    yield everywhere
    for refno in sorted(filter(None, scopes)):
        yield {**everywhere, **scopes[refno]}
