"""The command cache: lists or prunes the response cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.cli.mistakes import NearestGroup
from store.clock import SystemClock, iso_time

if TYPE_CHECKING:
    import sqlite3

    from store.cache import CacheGroup


CLOCK = SystemClock()


Amount: TypeAlias = Callable[[click.Context, click.Parameter, str | None], int | None]


def amount(units: Mapping[str, int], example: str) -> Amount:
    """Return a click callback that converts *units* to multiples of the smallest.

    *example* appears in the error message.
    """

    def read(
        ctx: click.Context, param: click.Parameter, value: str | None
    ) -> int | None:
        if value is None:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?) *([a-z]+)", value.lower(), re.ASCII)
        if match is None or match[2] not in units:
            raise click.BadParameter(
                f"write a number and one of {', '.join(units)}, such as {example}.",
                ctx,
                param,
            )
        return round(float(match[1]) * units[match[2]])

    return read


SECOND_US = 1_000_000
AGES_US = {
    "s": SECOND_US,
    "m": 60 * SECOND_US,
    "h": 3600 * SECOND_US,
    "d": 86_400 * SECOND_US,
    "w": 604_800 * SECOND_US,
}
SIZES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}

model_option = click.option("--model", help="Only entries of this model.")


@click.group(cls=NearestGroup)
def cache() -> None:
    """Show or prune the response cache of runs with --cache."""


@cache.command("list")
@model_option
@arguments.cache_dir
@arguments.as_json
def list_(model: str | None, cache_dir: Path | None, as_json: bool) -> int:
    """List entries by model and endpoint: count, bytes, age, uses."""
    from store.cache import groups

    cached_groups = []
    with _opened(cache_dir) as conn:
        if conn is not None:
            cached_groups = groups(conn, model)
    if as_json:
        for group in cached_groups:
            print_json("siftlog.cache-group/1", _group_json(group))
        return DONE
    for group in cached_groups:
        print_text(
            f"{group.model:32} {group.entries:>9,} entries {_size(group.bytes):>9} "
            f"{group.hits:>9,} hits"
        )
        print_text(
            f"  {group.endpoint}  {_day(group.oldest_us)} to {_day(group.newest_us)}"
        )
    if cached_groups:
        entries, size = (
            sum(g.entries for g in cached_groups),
            sum(g.bytes for g in cached_groups),
        )
        print_text(f"{'in all':32} {entries:>9,} entries {_size(size):>9}")
    else:
        print_note("There is no such entry; runs with --cache make some.")
    return DONE


@cache.command()
@click.option(
    "--older-than",
    callback=amount(AGES_US, "30d"),
    metavar="AGE",
    help="Remove entries not used for this long: 30d, 12h.",
)
@model_option
@click.option(
    "--max-size",
    callback=amount(SIZES, "2GB"),
    metavar="SIZE",
    help="Then remove the least recently used until the file is this small: 2GB.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@arguments.cache_dir
@arguments.as_json
def prune(
    older_than: int | None,
    model: str | None,
    max_size: int | None,
    dry_run: bool,
    cache_dir: Path | None,
    as_json: bool,
) -> int:
    """Remove entries by age, by model, or to a size."""
    from runner.errors import UsageError
    from store.cache import Pruned
    from store.cache import prune as remove

    if older_than is None and model is None and max_size is None:
        raise UsageError(
            "Say what to remove: --older-than 30d, --model NAME or --max-size 2GB."
        )
    pruned = Pruned(entries=0, bytes=0, left_entries=0, left_bytes=0)
    since_us = None if older_than is None else CLOCK.now_us() - older_than
    with _opened(cache_dir) as conn:
        if conn is not None:
            pruned = remove(
                conn,
                model=model,
                unused_since_us=since_us,
                max_bytes=max_size,
                dry_run=dry_run,
            )
    if as_json:
        print_json(
            "siftlog.cache-prune/1",
            {
                "entries": pruned.entries,
                "bytes": pruned.bytes,
                "left_entries": pruned.left_entries,
                "left_bytes": pruned.left_bytes,
                "dry_run": dry_run,
            },
        )
    else:
        print_text(
            f"{pruned.entries:,} entries {'would be' if dry_run else 'were'} removed "
            f"({_size(pruned.bytes)}); {pruned.left_entries:,} are left "
            f"({_size(pruned.left_bytes)})."
        )
    return DONE


@contextmanager
def _opened(folder: Path | None) -> Iterator[sqlite3.Connection | None]:
    """Open the cache, or yield None if there is none; never creates the file.

    Raises:
        CacheUnusable: it cannot be read or written.
    """
    import sqlite3

    from runner.engine.answer_cache import cache_path
    from store.cache import connect, unusable

    path = cache_path(folder)
    if not path.exists():
        yield None
        return
    with closing(connect(path)) as conn:
        try:
            yield conn
        except sqlite3.Error as error:
            raise unusable(path, error) from error


def _group_json(group: CacheGroup) -> dict[str, Any]:
    return {
        "model": group.model,
        "endpoint": group.endpoint,
        "entries": group.entries,
        "bytes": group.bytes,
        "oldest": iso_time(group.oldest_us),
        "newest": iso_time(group.newest_us),
        "hits": group.hits,
    }


def _day(us: int) -> str:
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d}"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"
