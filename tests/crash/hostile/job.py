"""A job that never checked its items: their keys are whatever a data set holds."""

from __future__ import annotations

from collections.abc import Iterator

from runner.job import Answers, TaskSpec
from runner.scorecard import Artifact, Metric, Scorecard, Table
from tests.runner.toy_jobs import ToyJob, ToySettings

KEYS = (
    "../../climbs",
    "/absolute",
    "two\nlines finished",
    "re\rturned",
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "\x9b31mred",
    "\u202egnp.exe\u2066\u200b",
    "next\x85line\u2028separated\u2029",
    "=cmd|' /C calc'!A0",
    "@SUM(1+9)",
    "＝1+1",
    "\t=1+1",
    "\n=1+1",
    "[red]markup[/red]",
    "<script>alert(1)</script>",
    "nul\0byte",
    "-rf",
    "ключ 😀",
    "long" * 1000,
)


class Hostile(ToyJob):
    """`ToyJob` over `KEYS`."""

    name = "hostile"

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        """One reading a key."""
        del dataset
        for key in KEYS:
            yield TaskSpec(stage="read", key=key)

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        """Every text in a place where it could do harm."""
        del dataset
        texts = [
            (a.task.key, a.task.model, a.reply.text if a.reply else None)
            for family in answers.families()
            for a in family
        ]
        summary = "\n".join(f"{key}: {text}" for key, _, text in texts)
        return Scorecard(
            models={
                model: (Metric(path="n", value=1, n=1),) for model in answers.models
            },
            summary=summary,
            worth_explaining=KEYS[0],
            tables=(
                Table(name="texts", columns=("key", "model", "reply"), rows=(*texts,)),
            ),
            artifacts=(Artifact(name="texts.txt", text=summary),),
        )


job = Hostile()
