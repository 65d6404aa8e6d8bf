"""The commands `siftlog labels`: list, import, export and compare labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.label_folders import (
    LabelTarget,
    author_name,
    author_option,
    field_option,
    labels_option,
    level_option,
    target_of,
    writing,
)
from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_raw, print_text

if TYPE_CHECKING:
    from store.document import Block
    from store.labels.events import LabelRecorded
    from store.labels.fold import LabelSet, TextHashes

MOST_DISPUTED = 20
"""Maximum number of disputed fields in the list."""

run_or_folder = click.argument("name", metavar="RUN|FOLDER")


class ListingGroup(click.Group):
    """A group that lists a run if the first word is not a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command, or the listing."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=ListingGroup, short_help="List, import, export and compare labels of people."
)
def labels() -> None:
    """List, import, export, compare and adjudicate labels of people.

    siftlog labels RUN lists the labels of a run. siftlog label RUN records them.
    """


@labels.command("list", short_help="Count labels; list disputed fields.")
@run_or_folder
@labels_option
@arguments.runs_dir
@arguments.as_json
def list_(name: str, labels_dir: Path | None, runs_dir: Path, as_json: bool) -> int:
    """Count labels by author, field and value; list disputed fields.

    A field is disputed while people disagree and it is not adjudicated. With a run,
    labels of a text or reply that has changed since are counted as stale.
    """
    from store.document import as_text

    target = target_of(runs_dir, name, labels_dir)
    read, texts = _read(target)
    gold = read.gold(texts)
    disputed = read.disputed(texts)
    tally = Counter(
        (key.author, key.field, label.event.value, label.event.is_blind)
        for key, label in read.current.items()
    )
    stale = len(read.stale(texts))
    if as_json:
        print_json(
            "siftlog.labels/1",
            {
                "folder": str(target.folder),
                "run": None if target.run is None else target.run.run_id,
                "labels": len(read.current),
                "items": len({about.item for about in read.by_field}),
                "gold": sum(one.value is not None for one in gold.values()),
                "adjudicated": sum(one.is_adjudicated for one in gold.values()),
                "withdrawn": sum(label.is_withdrawn for label in read.labels),
                "stale": stale,
                "drawn": len(read.draws),
                "unknown_events": read.unknown,
                "counts": [
                    {
                        "author": author,
                        "field": field,
                        "value": value,
                        "blind": is_blind,
                        "labels": count,
                    }
                    for (author, field, value, is_blind), count in sorted(
                        tally.items(), key=lambda row: (*row[0][:3], str(row[0][3]))
                    )
                ],
                "disputed": [
                    {
                        "item": about.item,
                        "field": about.field,
                        "values": dict(gold[about].values),
                    }
                    for about in disputed
                ],
            },
        )
        return DONE
    if not read.current and not read.decided:
        again = "FOLDER" if target.run is None else target.run.run_id
        print_note(
            f"{target.folder} holds no label; record some with siftlog label {again}, "
            f"or read a table with siftlog labels import {again} FILE."
        )
        return DONE
    print_text(as_text(_page(read, tally, texts, stale)))
    return DONE


def _read(target: LabelTarget) -> tuple[LabelSet, TextHashes]:
    """Return the labels of a target, and hashes of the present texts and replies."""
    from store.labels.folder import read_labels

    read = read_labels(target.folder)
    with target.source() as source:
        if source is None or not read.labels:
            return read, {}
        items = {about.item for about in read.by_field.keys() | read.decided.keys()}
        return read, source.text_hashes(sorted(items))


def _page(
    read: LabelSet,
    tally: Counter[tuple[str, str, str, bool | None]],
    texts: TextHashes,
    stale: int,
) -> list[Block]:
    from store.document import Fact, Heading, Numbers, TableBlock, Words

    gold = read.gold(texts)
    disputed = read.disputed(texts)
    agreed = sum(one.value is not None for one in gold.values())
    adjudicated = sum(one.is_adjudicated for one in gold.values())
    withdrawn = sum(label.is_withdrawn for label in read.labels)
    left_out = [f"{withdrawn:,} withdrawn"] if withdrawn else []
    left_out += [f"{stale:,} of a changed text or reply"] if stale else []
    left_out += [f"{read.unknown:,} of a later siftlog"] if read.unknown else []
    by_row: Counter[tuple[str, str, str]] = Counter()
    blind: Counter[tuple[str, str, str]] = Counter()
    for (author, field, value, is_blind), count in tally.items():
        by_row[author, field, value] += count
        blind[author, field, value] += count if is_blind else 0
    blocks: list[Block] = [
        Fact(
            "labels",
            f"{len(read.current):,} by {len(read.authors)} "
            f"{'people' if len(read.authors) != 1 else 'person'}",
        ),
        Fact("gold", f"{agreed:,} values, {adjudicated:,} of them adjudicated"),
        Fact("left out", ", ".join(left_out)),
        Fact("drawn", f"{len(read.draws):,} items by a design" if read.draws else ""),
        "",
        TableBlock(
            (
                Words("author"),
                Words("field"),
                Words("value"),
                Numbers("labels"),
                Numbers("blind"),
            ),
            [
                (author, field or None, value, count, blind[author, field, value])
                for (author, field, value), count in sorted(by_row.items())
            ],
            indent=0,
        ).filled(),
    ]
    if disputed:
        blocks += [
            "",
            Heading(f"{len(disputed):,} disputed"),
            TableBlock(
                (Words("item"), Words("field"), Words("labels")),
                [
                    (
                        about.item,
                        about.field or None,
                        ", ".join(
                            f"{author}: {value}"
                            for author, value in gold[about].values.items()
                        ),
                    )
                    for about in disputed[:MOST_DISPUTED]
                ],
                total=len(disputed),
                rest="siftlog labels RUN --json lists all",
            ).filled(),
        ]
    return blocks


@labels.command("import", short_help="Record labels from a table.")
@run_or_folder
@click.argument(
    "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True)
)
@author_option
@labels_option
@arguments.runs_dir
@arguments.as_json
def import_(
    name: str,
    file: Path,
    author: str | None,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Record the labels in FILE, a CSV or JSON lines: all of them or none.

    Columns: item and value; optional: field, author, reason, seconds, and blind (yes
    or no). With a run, items and values must be its own. Labels that are recorded
    already are left out, so the same file can be read twice.
    """
    import asyncio

    from jobs.kit.labels.label_rows import read_label_rows
    from store.labels.folder import read_labels

    person = author_name(author)
    target = target_of(runs_dir, name, labels_dir)
    before = read_labels(target.folder)
    with target.source() as source:
        rows, repeated = read_label_rows(
            file, author=person, labels=before, source=source
        )
    asyncio.run(_record(target.folder, person, rows))
    if as_json:
        print_json(
            "siftlog.label-import/1",
            {
                "folder": str(target.folder),
                "run": None if target.run is None else target.run.run_id,
                "file": str(file),
                "recorded": len(rows),
                "repeated": repeated,
                "authors": sorted({row.author for row in rows}),
            },
        )
    else:
        again = f"; {repeated:,} were recorded before" if repeated else ""
        print_text(f"Recorded {len(rows):,} labels in {target.folder}{again}.")
    return DONE


async def _record(folder: Path, author: str, rows: Sequence[LabelRecorded]) -> None:
    if not rows:
        return
    async with writing(folder, author) as writer:
        await writer.record_all(rows)


@labels.command("export", short_help="Write the current labels as CSV.")
@run_or_folder
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write.  [default: standard output]",
)
@labels_option
@arguments.runs_dir
@arguments.as_json
def export(
    name: str,
    out: Path | None,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Write the current labels as CSV, one row each, with the gold value.

    siftlog labels import reads such a file.
    """
    import io

    from jobs.kit.labels.label_rows import COLUMNS, exported_rows
    from runner.errors import UsageError
    from runner.table_files import csv_writer

    if as_json and out is not None:
        raise UsageError("--json prints the labels: leave out --out, or take > FILE.")
    target = target_of(runs_dir, name, labels_dir)
    read, texts = _read(target)
    rows = list(exported_rows(read, texts))
    if as_json:
        for row in rows:
            print_json("siftlog.label/1", dict(zip(COLUMNS, row, strict=True)))
        return DONE
    text = io.StringIO()
    write = csv_writer(text)
    write(COLUMNS)
    for row in rows:
        write(row)
    if out is None:
        print_raw(text.getvalue())
        return DONE
    out.write_text(text.getvalue(), encoding="utf-8", newline="")
    print_note(f"Wrote {len(rows):,} labels to {out}.")
    return DONE


@labels.command("agreement", short_help="Measure how far people agree.")
@run_or_folder
@field_option
@click.option("--models", is_flag=True, help="Count the models of a run as raters.")
@click.option("--blind", is_flag=True, help="Use only labels that were given blind.")
@level_option
@labels_option
@arguments.runs_dir
@arguments.as_json
def agreement(
    name: str,
    field_name: str | None,
    models: bool,
    blind: bool,
    level: float,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Measure how far people agree, with intervals.

    Cohen's kappa for two people, Fleiss' kappa, Krippendorff's alpha and Gwet's AC1;
    for each pair the same. With three raters or more, estimates each one's accuracy
    without a truth (Dawid and Skene). Intervals draw items.
    """
    from jobs.kit.labels.people import field_agreement, rating_table
    from jobs.kit.labels.rendering import agreement_blocks, agreement_json
    from runner.errors import UsageError
    from store.document import as_text

    target = target_of(runs_dir, name, labels_dir)
    if models and target.run is None:
        raise UsageError("--models needs a run: name the run instead of a folder.")
    read, _ = _read(target)
    names = sorted({key.field for key in read.current})
    if field_name is not None and field_name not in names:
        raise UsageError(
            f"No label is of the field {field_name!r}; there are labels of "
            f"{', '.join(names) or 'none'}."
        )
    results = []
    with target.source() as source:
        replies = source.replies if models and source is not None else {}
        for one in names if field_name is None else [field_name]:
            table = rating_table(read, one, replies=replies, is_blind_only=blind)
            results.append(field_agreement(one, table, level=level, replicates=1000))
    if as_json:
        print_json(
            "siftlog.label-agreement/1",
            {
                "folder": str(target.folder),
                "run": None if target.run is None else target.run.run_id,
                "level": level,
                "blind_only": blind,
                "fields": [agreement_json(result) for result in results],
            },
        )
    elif not results:
        print_note(f"{target.folder} holds no label of two people yet.")
    else:
        blocks: list[Block] = []
        for result in results:
            blocks += agreement_blocks(result, level)
        print_text(as_text(blocks))
    return DONE


@labels.command("adjudicate", short_help="Record the final value of an item.")
@run_or_folder
@click.argument("item", metavar="ITEM")
@click.option("--value", required=True, metavar="VALUE", help="The final value.")
@field_option
@click.option("--reason", default="", metavar="TEXT", help="Why, in a sentence.")
@author_option
@labels_option
@arguments.runs_dir
@arguments.as_json
def adjudicate(
    name: str,
    item: str,
    value: str,
    field_name: str | None,
    reason: str,
    author: str | None,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Record the final value of ITEM, which counts before all labels.

    The labels at that time are recorded with it. siftlog label RUN --adjudicate goes
    through all disputed items.
    """
    import asyncio

    from jobs.kit.labels.label_rows import known_item
    from jobs.kit.labels.session import checked_value
    from runner.errors import UsageError
    from store.labels.fold import ItemField
    from store.labels.folder import read_labels

    person = author_name(author)
    target = target_of(runs_dir, name, labels_dir)
    read = read_labels(target.folder)
    field, text_sha256, reply_sha256, run = field_name or "", "", "", ""
    with target.source() as source:
        if source is not None:
            known_item(source, source.items, item)
            fields = {one.name: one for one in source.fields_of(item)}
            if field not in fields:
                raise UsageError(
                    f"{item} has no field {field!r}: add --field with one of "
                    f"{', '.join(filter(None, fields)) or 'none'}."
                )
            value = checked_value(fields[field], value)
            text_sha256, run = source.item(item).sha256, source.run
            reply_sha256 = source.reply_hashes.get(ItemField(item, field), "")
    considered = [one.id for one in read.by_field.get(ItemField(item, field), ())]

    async def record() -> str:
        async with writing(target.folder, person) as writer:
            return await writer.adjudicate(
                item,
                value,
                field=field,
                reason=reason,
                considered=considered,
                text_sha256=text_sha256,
                reply_sha256=reply_sha256,
                run=run,
            )

    adjudication = asyncio.run(record())
    if as_json:
        print_json(
            "siftlog.adjudication/1",
            {
                "folder": str(target.folder),
                "run": run or None,
                "id": adjudication,
                "item": item,
                "field": field,
                "value": value,
                "author": person,
                "considered": considered,
            },
        )
    else:
        about = f"{item} {field}".rstrip()
        print_text(f"{about}: {value}, after {len(considered)} labels, by {person}.")
    return DONE
