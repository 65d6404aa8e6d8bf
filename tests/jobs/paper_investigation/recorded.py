"""The real recorded answers, imported and scored by the shipped commands."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from tests.processes import siftlog

JOB = "paper-investigation"
OPUS, HAIKU = "anthropic/claude-opus-4-6", "anthropic/claude-haiku-4-5-20251001"
SONNET, MINI, GPT = "anthropic/claude-sonnet-4-5-20250929", "gpt-4o-mini", "gpt-5.2"
GEMINI = "gemini/gemini-2.5-pro"
LARGE = "20260213_053253_all_models"

RUNS = {
    "r031950": ("paper_investigation/20260213_031950_all_models/*responses.jsonl", ()),
    "r043720": ("paper_investigation/20260213_043720_all_models/*responses.jsonl", ()),
    "r053253": (f"paper_investigation/{LARGE}/*responses.jsonl", ()),
    "extract": ("variant_extraction/*/*eval_results.jsonl", ("--mode=extract",)),
    "mcq": ("mcq/*/*eval_results.jsonl", ("--mode=questions",)),
    "study": ("study_param/*/*eval_results.jsonl", ("--mode=questions",)),
}


@dataclass(frozen=True)
class Scored:
    """One scoring as the command printed and wrote it."""

    folder: Path
    said: dict[str, object]

    def value(self, model: str, path: str) -> object:
        return self.metric(model, path)["value"]

    def metric(self, model: str, path: str) -> dict[str, object]:
        return self.said["models"][model]["metrics"][path]

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def agreement(self, profile: str) -> dict[str, tuple[int, int]]:
        """Recorded facts against ours: how many compared, how many equal."""
        return {
            row["fact"]: (int(row["compared"]), int(row["agreeing"]))
            for row in self.table("agreement")
            if row["profile"] == profile
        }


class Recorded:
    """The real files, imported once each; scored under any settings."""

    def __init__(self, cwd: Path, realdata: Path) -> None:
        self.cwd = cwd
        self.source = realdata / "clinpgx_qa"
        self._scored: dict[tuple[str, ...], Scored] = {}

    def scored(self, run: str, *words: str) -> Scored:
        if (run, *words) not in self._scored:
            folder = self.cwd / "runs" / run
            if not folder.exists():
                pattern, mode = RUNS[run]
                files = sorted(self.source.glob(pattern))
                imports = ("import", JOB, *files, *mode, f"--run-id={run}")
                siftlog(*imports, "--no-score", cwd=self.cwd)
            done = siftlog("score", run, *words, "--json", cwd=self.cwd)
            said = json.loads(done.stdout)
            target = folder / "scores" / str(said["scoring"])
            self._scored[run, *words] = Scored(folder=target, said=said)
        return self._scored[run, *words]

    def profile(self, run: str) -> Scored:
        return self.scored(run, "--set", "profile=clinpgx-qa")
