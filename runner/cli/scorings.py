"""The verb scores: what was scored when, by what, and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices
from runner.cli.folding import in_columns
from runner.cli.speech import DONE, record, row, tell

if TYPE_CHECKING:
    from store.events import RecordedEvent, ScoringRecorded


DIGITS = 12
"""Of a digest, as it is shown to people."""

_HEADS = ("scoring", "recorded (UTC)", "event", "digest", "headline", "against before")


@click.command()
@choices.run_argument
@choices.runs_dir
@choices.as_json
def scores(run_name: str, runs_dir: Path, as_json: bool) -> int:
    """List RUN's recorded scorings, oldest first.

    Each stands with the event that it read up to, the digest of its scorecard, its
    headline metric, and what it goes by that the one before did not: settings, inputs,
    code. The same log, settings, inputs and code give the same digest.
    """
    from store.database import open_reader
    from store.events import ScoringRecorded
    from store.read.tasks import events
    from store.runs import resolve
    from store.tables import last_seq

    folder = resolve(runs_dir, run_name)
    lines = []
    before: ScoringRecorded | None = None
    with open_reader(folder.log) as reader:
        most = last_seq(reader)
        for each in events(reader, limit=most, kinds=["scoring_recorded"]):
            if not isinstance(each.event, ScoringRecorded):
                tell(f"event {each.seq} records a scoring of a later siftlog.")
                continue
            values = _values(each, each.event, before)
            if as_json:
                record(values)
            lines.append(_cells(values))
            before = each.event
    if not as_json and lines:
        for line in in_columns([_HEADS, *lines]):
            row(line)
    if not lines:
        tell(
            f"Run {folder.run_id} has no scoring; make one with: "
            f"siftlog score {folder.run_id}"
        )
    return DONE


def _values(
    recorded: RecordedEvent, event: ScoringRecorded, before: ScoringRecorded | None
) -> dict[str, Any]:
    when = datetime.fromtimestamp(recorded.ts_us / 1e6, UTC)
    return {
        "scoring": event.number,
        "recorded": when.isoformat(timespec="seconds"),
        "seq": event.seq,
        "digest": event.digest,
        "headline": event.headline,
        "reached": event.reached,
        "job_version": event.job_version,
        "code": event.code_sha256,
        "definitions": event.definitions,
        "settings": json.loads(event.settings),
        "inputs": [
            {
                "setting": given.setting,
                "path": given.path,
                "sha256": given.sha256,
                "kept": bool(given.kept),
            }
            for given in event.inputs
        ],
        "changed": None if before is None else changed(before, event),
    }


def changed(before: ScoringRecorded, event: ScoringRecorded) -> dict[str, Any]:
    """What one scoring goes by that another did not."""
    old, new = json.loads(before.settings), json.loads(event.settings)
    # where an input lies is no setting: its content is what counts
    inputs = {given.setting for given in (*before.inputs, *event.inputs)}
    was, now = _hashes(before), _hashes(event)
    return {
        "settings": {
            name: [old.get(name), new.get(name)]
            for name in sorted({*old, *new} - inputs)
            if old.get(name) != new.get(name)
        },
        "inputs": [name for name in sorted(inputs) if was.get(name) != now.get(name)],
        "seq": event.seq - before.seq,
        "code": before.code_sha256 != event.code_sha256,
        "definitions": before.definitions != event.definitions,
    }


def _hashes(event: ScoringRecorded) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for given in event.inputs:
        found.setdefault(given.setting, []).append(given.sha256)
    return found


def _cells(values: dict[str, Any]) -> tuple[str, ...]:
    reached = (
        f"{'n/a' if value is None else f'{value:.4g}'}"
        for value in values["reached"].values()
    )
    return (
        str(values["scoring"]),
        values["recorded"].removesuffix("+00:00"),
        str(values["seq"]),
        values["digest"][:DIGITS],
        f"{values['headline']} {' '.join(reached)}".strip() or "-",
        ", ".join(_told(values["changed"])) or "-",
    )


def _told(changes: dict[str, Any] | None) -> Iterator[str]:
    if changes is None:
        return
    for name, (old, new) in changes["settings"].items():
        yield f"{name} {_word(old)} -> {_word(new)}"
    yield from (f"another {name}" for name in changes["inputs"])
    if changes["code"]:
        yield "other code"
    if changes["definitions"]:
        yield "other definitions"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
