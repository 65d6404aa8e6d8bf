"""A toy job that reads files, one of them below a folder that a setting names.

It may also try to reach an address while it scores, as no job should.
"""

from __future__ import annotations

import socket
from pathlib import Path

from runner.job import Answers, InputFile
from runner.scorecard import Metric, Scorecard
from tests.runner.toy_jobs import ToyJob, ToySettings


class CountingSettings(ToySettings):
    """Settings of `Counting`."""

    words: int = 1
    counted: Path | None = None
    tree: Path | None = None  #: of which `deep/` is read
    unread: Path | None = None  #: named, and not read
    port: int = 0  #: on this machine, to be reached from a scoring; 0: none


class Counting(ToyJob):
    """`ToyJob`, scored by how long its inputs are."""

    name = "counting"
    Settings = CountingSettings

    def inputs(self, settings: CountingSettings) -> tuple[InputFile, ...]:
        deep = settings.tree and settings.tree / "deep"
        named = (("counted", settings.counted), ("deep", deep))
        return tuple(InputFile(setting=name, path=path) for name, path in named if path)

    def score(self, dataset: CountingSettings, answers: Answers) -> Scorecard:
        if dataset.port:
            with socket.create_connection(("127.0.0.1", dataset.port)):
                pass
        read = [
            file.read_bytes()
            for each in self.inputs(dataset)
            for file in (
                [each.path] if each.path.is_file() else sorted(each.path.iterdir())
            )
        ]
        n = sum(1 for _ in answers.families())
        metrics = (
            Metric(path="items", value=n, n=n),
            Metric(path="bytes", value=sum(map(len, read)), n=len(read)),
        )
        return Scorecard(
            models=dict.fromkeys(answers.models, metrics), summary=f"{n} items"
        )


job = Counting()
