"""Maps columns and keys of files to the names used here: `--map OLD=NEW`.

Files name the same thing in many ways. A pair says which column, or key of a JSON
object, holds a field; whatever is not found is reported with the names that the file
has and the nearest of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from runner.errors import DatasetError, UsageError
from store.printable import printable

ColumnMap: TypeAlias = Mapping[str, str]
"""The field that each renamed column holds, by the column."""

MAX_NAMES = 20
"""Names that a message lists; a file of another format may have hundreds."""

NAME_CHARS = 40
"""Characters of one name; a line of JSON read as a header has thousands."""

MIN_SIMILARITY = 0.6
"""Ratio from which a name counts as near, the default of difflib."""

CONTAINED_SIMILARITY = 0.85
"""Similarity of a name that contains the other: above one changed letter in five.
"""

SHORTEST = 3
"""Characters from which a name is looked for inside longer ones."""


def column_map(
    pairs: Sequence[str],
    fields: Sequence[str],
    columns: Iterable[str],
    *,
    unseen: str = "no file has a column",
) -> dict[str, str]:
    """Read `--map` pairs and check that each names a column and a field.

    A pair is OLD=NEW. Where only the reverse makes sense, the left being a field and
    the right a column, NEW=OLD is understood.

    Args:
        pairs: as typed.
        fields: names used here; `*` stands for any characters, as in `prob_*`.
        columns: all columns and keys of the files that are read.
        unseen: how an error says that a name is not among *columns*.

    Raises:
        UsageError: a pair has no equals sign, its field is unknown, no file has its
            column, or two pairs name one column.
    """
    mapping: dict[str, str] = {}
    seen = list(dict.fromkeys(columns))
    for pair in pairs:
        old, is_pair, new = map(str.strip, pair.partition("="))
        if not (is_pair and old and new):
            raise UsageError(
                f"--map {pair}: write OLD=NEW, the name in the file first, such as "
                f"--map PubMed={_example(fields)}."
            )
        if not fits(old, new, seen, fields) and fits(new, old, seen, fields):
            old, new = new, old
        if not is_field(new, fields):
            if old not in seen and is_field(old, fields):
                raise _unseen(pair, new, seen, unseen)
            near = near_words(new, fields)
            hint = f"fields: {name_list(fields)}" + (
                f"; nearest: {near}" if near else ""
            )
            raise UsageError(f"--map {pair}: there is no field {new} ({hint}).")
        if old not in seen:
            raise _unseen(pair, old, seen, unseen)
        if mapping.setdefault(old, new) != new:
            raise UsageError(
                f"--map {pair}: {old} is mapped to {mapping[old]} already."
            )
    return mapping


def pairs_within(
    pairs: Sequence[str], fields: Sequence[str], columns: Sequence[str]
) -> list[str]:
    """Those of the pairs that rename one of *columns*, in either order."""
    sides = ((pair, *map(str.strip, pair.split("=", 1))) for pair in pairs)
    return [
        pair
        for pair, *names in sides
        if fits(names[0], names[-1], columns, fields)
        or fits(names[-1], names[0], columns, fields)
    ]


def fits(old: str, new: str, columns: Sequence[str], fields: Sequence[str]) -> bool:
    """Whether *old* is a column, and *new* a field."""
    return old in columns and is_field(new, fields)


def _unseen(pair: str, old: str, seen: Sequence[str], unseen: str) -> UsageError:
    near = near_words(old, seen)
    listing = f"found: {name_list(seen)}" + (f"; nearest: {near}" if near else "")
    return UsageError(
        f"--map {pair}: {unseen} {old} ({listing}); name one as spelled in the file."
    )


def is_field(name: str, fields: Sequence[str]) -> bool:
    """Whether a name is one of *fields*, in which `*` stands for any characters."""
    return any(fnmatchcase(name.strip(), field) for field in fields)


def missing_column(
    file: str,
    name: str,
    columns: Sequence[str],
    cure: str = "",
    *,
    spellings: Sequence[str] = (),
    takes_map: bool = False,
) -> DatasetError:
    """The error for a column that a file does not have.

    Args:
        file: its name.
        name: of the column.
        columns: those that it has.
        cure: what to do; by default to rename the column.
        spellings: further names under which the column is recognised.
        takes_map: whether the file is one that `--map` applies to.
    """
    near = near_words(name, columns, spellings)
    listing = name_list(columns) + (f"; nearest: {near}" if near else "")
    others = f", or one of {', '.join(spellings)}" if spellings else ""
    option = f", or pass --map COLUMN={name}" if takes_map else ""
    return DatasetError(
        f"{file}: column {name!r} is missing (found: {listing}); "
        f"{cure or f'name it in the header{others}{option}'}."
    )


def ambiguous_column(file: str, names: Sequence[str], field: str) -> DatasetError:
    """The error for columns of which each could be one field."""
    return DatasetError(
        f"{file}: {name_list(names)} could each be {field} (say which with --map "
        f"{names[-1]}={field})."
    )


def describe_columns(columns: Sequence[str], fields: Iterable[str]) -> str:
    """Return a file's columns for a message, with the nearest one to each field.

    Only fields that are missing and have a near column are named.
    """
    near = {
        field: close[0]
        for field in fields
        if field not in columns and (close := nearest(field, columns, n=1))
    }
    hints = "".join(f"; {_short(name)} may be {field}" for field, name in near.items())
    return f"found: {name_list(columns)}{hints}"


def name_list(names: Collection[str], limit: int = MAX_NAMES) -> str:
    """Names as a message lists them: printable, shortened, the first of many."""
    short_names = [_short(name) for name in list(names)[:limit]]
    more = len(names) - len(short_names)
    return ", ".join(short_names) + (f" and {more} more" if more > 0 else "") or "none"


def near_words(name: str, names: Iterable[str], spellings: Sequence[str] = ()) -> str:
    """The `nearest` names as a message lists them; empty for none."""
    every = list(names)
    near = dict.fromkeys(
        near_name
        for spelling in (name, *spellings)
        for near_name in nearest(spelling, every)
    )
    return name_list(list(near)[:3]) if near else ""


def nearest(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """The names most like *name*, the nearest first; case and punctuation aside.

    A name that holds the other as a whole counts as near, such as `paper_pmid` for
    `pmid`.
    """
    target = _plain(name)
    scored = []
    for index, candidate in enumerate(names):
        plain = _plain(candidate)
        if not plain or not target:
            continue
        matcher = difflib.SequenceMatcher(None, target, plain)
        # the quick one is an upper bound, and rules out most names
        ratio = matcher.ratio() if matcher.quick_ratio() >= MIN_SIMILARITY else 0.0
        short, long = sorted((target, plain), key=len)
        if len(short) >= SHORTEST and short in long:
            ratio = max(ratio, CONTAINED_SIMILARITY)
        if ratio >= MIN_SIMILARITY:
            scored.append((-ratio, index, candidate))
    return [candidate for _, _, candidate in sorted(scored)[:n]]


def rename_keys(value: Any, names: ColumnMap) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON value whose objects use the names used here, at every depth."""
    if not names:
        return value
    if isinstance(value, dict):
        return {
            names.get(key, key): rename_keys(inner, names)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [rename_keys(inner, names) for inner in value]
    return value


def keys_of(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    """All keys in a JSON value, at every depth, in order of first sight."""
    keys: dict[str, None] = {}
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            keys.update((key, None) for key in node)
            waiting.extend(reversed(list(node.values())))
        elif isinstance(node, list):
            waiting.extend(reversed(node))
    return keys


def _example(fields: Sequence[str]) -> str:
    return next((field for field in fields if "*" not in field), "pmid")


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1] + "…"
