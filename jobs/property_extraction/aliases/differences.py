"""Assigns each row that a change of aliases gained or lost to one alias; pure.

A row is assigned to its current alias, else to its former one. A row without one was
displaced by another, or freed, and is assigned to none. As every row that became a true
positive or ceased to be one is assigned once, gains less losses are exactly the change
of the true positives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.kit.tables import TableOf, count, text
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from runner.scorecard import Booking

NOT_RENAMED = "not renamed"
"""Source in the table of rows without an alias."""


class BookedRow(NamedTuple):
    """A prediction in one scoring."""

    row: int  #: its number, the same in every scoring of a run
    refno: str
    is_tp: bool
    alias: AliasEntry | None  #: None: it is matched under its original name


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookable:
    """The predictions of a model, and the aliases that could act on them."""

    rows: tuple[BookedRow, ...]
    aliases: tuple[AliasEntry, ...] = ()


@dataclass(slots=True)
class _Account:
    """The counts of one alias's rows."""

    source: str
    renamed: int = 0
    gained: int = 0
    lost: int = 0
    papers: set[str] = field(default_factory=set)


def changes_by_alias(before: Bookable, after: Bookable) -> Booking:
    """Return the gains and losses of a change of aliases, by alias.

    Aliases of *after* without gains and losses come last.
    """
    accounts: dict[tuple[str, str, str], _Account] = {}

    def account(alias: AliasEntry | None) -> _Account:
        if alias is None:
            return accounts.setdefault(("", "", ""), _Account(NOT_RENAMED))
        key = (*alias.names, alias.refno or "")
        return accounts.setdefault(key, _Account(alias.source))

    for alias in after.aliases:
        account(alias)
    old, new = _by_number(before.rows), _by_number(after.rows)
    for number in dict.fromkeys((*new, *old)):
        was, now = old.get(number), new.get(number)
        sides = [side for side in (now, was) if side is not None]
        if now is not None and now.alias is not None:
            alias_account = account(now.alias)
            alias_account.renamed += 1
            alias_account.papers.add(now.refno)
        gain = _is_tp(now) - _is_tp(was)
        if gain:
            alias_account = account(
                next((side.alias for side in sides if side.alias), None)
            )
            alias_account.gained += gain > 0
            alias_account.lost += gain < 0
            alias_account.papers.add(sides[0].refno)
    return Booking(
        metric="tp",
        change=sum(
            alias_account.gained - alias_account.lost
            for alias_account in accounts.values()
        ),
        table=ALIAS_DIFF.table(_account_rows(accounts)),
    )


def _by_number(rows: Iterable[BookedRow]) -> dict[int, BookedRow]:
    return {row.row: row for row in rows}


def _is_tp(row: BookedRow | None) -> int:
    return int(row is not None and row.is_tp)


class _AccountRow(NamedTuple):
    pred_name: str
    gt_name: str
    account: _Account


ALIAS_DIFF = TableOf[_AccountRow](
    name="alias_diff",
    columns=(
        text("pred_name", lambda row: row.pred_name),
        text("gt_name", lambda row: row.gt_name),
        text("source", lambda row: row.account.source),
        count("rows_renamed", lambda row: row.account.renamed),
        count("tp_gained", lambda row: row.account.gained),
        count("tp_lost", lambda row: row.account.lost),
        count("papers", lambda row: len(row.account.papers)),
    ),
    caption="alias",
)


def _account_rows(
    accounts: Mapping[tuple[str, str, str], _Account],
) -> Iterator[_AccountRow]:
    """Yield the largest gains first, then losses, then aliases without effect."""

    def sort_key(name: tuple[str, str, str]) -> tuple[object, ...]:
        account = accounts[name]
        return not (account.gained or account.lost), account.lost - account.gained, name

    for name in sorted(accounts, key=sort_key):
        yield _AccountRow(name[0], name[1], accounts[name])


SETTINGS = frozenset({"aliases", "accept_drafts", "clash", "name_match"})
"""Settings that decide which aliases act; other changes are assigned to none."""


def is_of_aliases(names: Collection[str]) -> bool:
    """Return whether a change of these settings only affects aliases."""
    return bool(names) and SETTINGS.issuperset(names)


def booked_on_aliases(
    names: Collection[str], before: Bookable, after: Bookable
) -> Booking | None:
    """Return the rows that a change of these settings gained or lost.

    None if other settings changed too.
    """
    return changes_by_alias(before, after) if is_of_aliases(names) else None


def bookable_predictions(outcomes: RowOutcomes) -> Bookable:
    """Return the rows of one replicate, by index, each with its alias."""
    return Bookable(
        rows=tuple(_booked_rows(outcomes)),
        aliases=outcomes.dataset.aliases.accepted,
    )


def _booked_rows(outcomes: RowOutcomes) -> Iterator[BookedRow]:
    for index, (prediction, outcome) in enumerate(
        zip(outcomes.predictions, outcomes.prediction_outcomes, strict=True)
    ):
        partner = outcomes.partners[index]
        name = None if partner < 0 else outcomes.truth[partner].name
        entry = outcomes.renamed[index].entry(name)
        yield BookedRow(index, prediction.refno, outcome is RowOutcome.TP, entry)
