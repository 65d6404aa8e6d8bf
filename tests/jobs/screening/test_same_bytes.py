"""A set has the same bytes whatever the hash seed, the locale and the order of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.processes import siftlog

SAMPLE = Path(__file__).parents[3] / "jobs" / "screening" / "sample"
KINDS = ("near-miss", "random", "true-excluded")


def prepared(inputs: Path, out: Path, **environment: str) -> dict[str, bytes]:
    """The files of a set, built as the shipped one was."""
    siftlog(
        "prepare",
        "screening",
        *("--tables", inputs / "tables", "--criteria", inputs / "criteria.jsonl"),
        *("--excluded", inputs / "excluded.csv", "--keep-without-negatives"),
        *(word for kind in KINDS for word in ("--negatives", kind)),
        *("--out", out),
        cwd=out.parent,
        env=environment,
    )
    return contents(out)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def reversed_rows(source: Path, target: Path) -> None:
    """The same rows from last to first; no field of the sample holds a line end."""
    header, *rows = source.read_text(encoding="utf-8").splitlines(keepends=True)
    text = header + "".join(reversed(rows))
    if source.suffix == ".jsonl":
        text = "".join(reversed(rows)) + header
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="")


def test_the_shipped_set_is_what_prepare_writes_on_this_machine(tmp_path: Path) -> None:
    made = prepared(SAMPLE, tmp_path / "set", PYTHONHASHSEED="1", LC_ALL="C")
    assert made == contents(SAMPLE / "set")


def test_rows_in_another_order_give_the_same_set(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    for source in sorted(SAMPLE.rglob("*")):
        if source.parent in {SAMPLE, SAMPLE / "tables"} and source.is_file():
            reversed_rows(source, inputs / source.relative_to(SAMPLE))
    made = prepared(
        inputs,
        tmp_path / "set",
        PYTHONHASHSEED="2",
        LC_ALL="tr_TR.UTF-8",
        TZ="Asia/Tokyo",
    )
    shipped = contents(SAMPLE / "set")
    # these two alone speak of the files: their hashes, and rows that were odd
    summary, own = (json.loads(files.pop("summary.json")) for files in (made, shipped))
    assert_same(summary, own)
    assert made.pop("manifest.json") != shipped.pop("manifest.json")
    assert made == shipped


def assert_same(summary: dict[str, Any], other: dict[str, Any]) -> None:
    """Two summaries, but for the first example of what was noticed."""
    for each in (summary, other):
        each["findings"] = sorted(
            (found["code"], found["where"], found["n"]) for found in each["findings"]
        )
    assert summary == other
