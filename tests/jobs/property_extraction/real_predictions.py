"""Real predictions, imported once by the command and scored by it in many ways."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands import command
from tests.csv_files import write_csv

GEMINI = "preds_gemini-2.5-flash.csv"
CHAT = "preds_chatextract.csv"
FREE = "preds_Ru7B3_free_names.csv"
"""Of one paper, by names of the model's own."""

MODEL = "m"
COUNTS = ("tp", "fp", "fn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What `siftlog score --json` printed."""

    metrics: Mapping[str, Mapping[str, Any]]

    def values(self, *paths: str) -> tuple[float | None, ...]:
        return tuple(self.metrics[path]["value"] for path in paths)

    @property
    def counts(self) -> tuple[float | None, ...]:
        return self.values(*COUNTS)

    @property
    def alias_id(self) -> str:
        """Of the set that acted, as the definition of every metric has it."""
        (found,) = re.findall(r"aliases=(\w+)", self.metrics["tp"]["definition"])
        return str(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """A scoring that the run keeps: its number and its files."""

    folder: Path

    def draft(self) -> dict[str, str]:
        path = self.folder / "property_aliases.json"
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPredictions:
    """Runs by the name of their file; compositions are left out unless said."""

    runs: Path
    folder: Path  #: of the real data

    @property
    def truth(self) -> Path:
        return self.folder / "gt.csv"

    @property
    def rubric(self) -> Path:
        return self.folder / "scoring_assets/rubric.csv"

    def run(self, name: str) -> Path:
        """The run of a file; the free names are scored against their paper alone."""
        run = self.runs / Path(name).stem
        if not run.exists():
            assets = self.folder / "scoring_assets"
            done = command(
                *("import", "property-extraction", "--model", MODEL, "--no-report"),
                *("--runs-dir", self.runs, "--run-id", run.name),
                *("--preds", self.folder / name, "--rubric", self.rubric),
                *("--truth", self._first_paper() if name == FREE else self.truth),
                *(
                    "--clusters",
                    assets / "property_clusters_gemini-3-pro-preview.json",
                    "--space-groups",
                    assets / "space_groups_normalized.json",
                ),
                *("--set", "pymatgen=leave_out"),
            )
            assert done.code == 0, done.err
        return run

    def _first_paper(self) -> Path:
        path = self.runs / "first_paper.csv"
        with self.truth.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            columns = list(rows.fieldnames or ())
            own = [row for row in rows if row["refno"] == "Paper_1"]
        assert len(own) == 37
        return write_csv(path, columns, own)

    def scored(self, name: str, *words: object) -> Scored:
        """The run scored under other settings; nothing is kept of it."""
        done = command(
            *("score", self.run(name), "--json", "--no-record", "--no-report"), *words
        )
        assert done.code == 0, done.err
        return Scored(metrics=json.loads(done.out)["models"][MODEL]["metrics"])

    def scoring(self, name: str, *words: object) -> Scoring:
        """The run scored once more, as a new scoring of it."""
        run = self.run(name)
        done = command("score", run, "--no-report", *words)
        assert done.code == 0, done.err
        made = max((run / "scores").iterdir(), key=lambda path: int(path.name))
        return Scoring(folder=made)
