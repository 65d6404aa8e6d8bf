"""Small data sets of the job, and the answers that a plan leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.name_pairs import NamePair
from jobs.property_extraction.papers import PaperLibrary, read_papers
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.tasks import name_questions
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from runner.job import Answer, Task, TaskSpec
from runner.messages import ChatRequest, Reply

TRUE_VALUE = "7.7777"
"""A value of the truth, which no prompt may hold."""

RUBRIC = Rubric(
    properties={
        "Tc onset": Property(
            name="Tc onset",
            kind=ComparisonKind.SI,
            si="K",
            definition="onset of the transition",
        ),
        "gap": Property(name="gap", kind=ComparisonKind.SI, si="meV"),
    }
)


def dataset(folder: Path, texts: dict[str, str], **settings: Any) -> PropertyDataset:
    """Papers with these texts, and one true value of paper `P1`."""
    papers = folder / "papers"
    papers.mkdir(exist_ok=True)
    for refno, text in texts.items():
        (papers / f"{refno}.txt").write_text(text, "utf-8")
    return PropertyDataset(
        settings=PropertySettings(papers=papers, **settings),
        papers=read_papers(papers) if texts else PaperLibrary(),
        truth=(
            TruthRow(refno="P1", name="Tc onset", value=TRUE_VALUE),
            TruthRow(
                refno="P9", name="Tc onset", value=TRUE_VALUE, definition="defined"
            ),
        ),
        rubric=RUBRIC,
    )


def verifying(
    *pairs: NamePair,
    verified: frozenset[tuple[str, str]] = frozenset(),
    **settings: Any,
) -> PropertyDataset:
    """Pairs of names to verify."""
    own = PropertySettings(mode="verify", candidates=Path("candidates.csv"), **settings)
    return PropertyDataset(
        settings=own,
        questions={
            each.key: each for each in name_questions(pairs, own.verify, verified)
        },
        truth=(
            TruthRow(refno="P1", name="T9", value=TRUE_VALUE, definition="defined"),
        ),
        rubric=RUBRIC,
    )


def task(spec: TaskSpec) -> Task:
    return Task(
        number=1,
        stage=spec.stage,
        key=spec.key,
        model="m",
        replicate=1,
        context=spec.context,
    )


def answer(key: str, parsed: object) -> Answer:
    """An answer of stage `extract`."""
    spec = TaskSpec(stage="extract", key=key)
    return Answer(task=task(spec), reply=Reply(text=""), parsed=parsed)


def told(request: ChatRequest) -> str:
    """All that a prompt says beside its instructions."""
    return "".join(each.text for each in request.messages if each.role == "user")
