"""What the contract needs of each job, in one table, and the runs it is tried with."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runner.job import Job
from runner.registry import load_job
from tests.commands import Done, command
from tests.contract.jobs.data import (
    Edit,
    Words,
    asking,
    evidence,
    investigation,
    prompted,
    properties,
    reviews,
    same,
    sample,
    screening,
    treatments,
)
from tests.golden.samples import items_of

QUIET = ("--no-report",)
FAST = ("--set", "boot_b=50")
"""No promise here is about intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCase:
    """A job, and how the promises are tried with it."""

    name: str
    replies: Sequence[str]  #: recorded models of the sample, or offline ones
    items: Callable[[], Sequence[str]]  #: all that `explain` knows in the sample
    readers: Sequence[str]  #: what its parsers call first, if they are guarded
    truths: Mapping[str, Callable[[Path], tuple[Words, Words]]]
    """By name: the sample with two truths, of which no request may depend."""
    texts: Callable[[Path, Callable[[str], str]], Words]
    """The sample with each text of papers and people changed by a function."""
    data: Callable[[Path], Words] | None = None  #: None: the shipped sample

    @property
    def job(self) -> Job:
        """The job itself."""
        return load_job(self.name)

    def words(self, folder: Path) -> Words:
        """The job and the options that name its data."""
        return (self.name,) if self.data is None else self.data(folder)

    def models(self) -> list[str]:
        """The options that name the models of `replies`."""
        return [word for model in self.replies for word in ("--model", model)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """A finished run of a sample."""

    runs: Path  #: the folder of runs
    name: str
    done: Done

    def command(self, verb: str, *words: object) -> Done:
        """A command about the run."""
        return command(verb, self.name, *words, "--runs-dir", self.runs)

    def scoring(self, number: int = 1) -> Path:
        """The folder of a scoring."""
        return self.runs / self.name / "scores" / str(number)

    def card(self, number: int = 1) -> Any:
        """The scorecard of a scoring."""
        return json.loads((self.scoring(number) / "scorecard.json").read_bytes())

    def tasks(self) -> list[dict[str, Any]]:
        """All its tasks."""
        done = self.command("tasks", "--json", "--limit", 100_000)
        assert done.code == 0, done.err
        return [json.loads(line) for line in done.out.splitlines()]


def run(folder: Path, *words: object, name: str = "r") -> SampleRun:
    """Run words of a command line, from the job on."""
    runs = folder / "runs"
    done = command("run", *words, *FAST, "--run-id", name, "--runs-dir", runs)
    assert "Traceback" not in done.err, done.err
    return SampleRun(runs=runs, name=name, done=done)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRuns:
    """Runs of the samples by their recorded models, made when they are asked for.

    The first worker that asks for a run makes it; each works on a copy of its own.
    """

    shared: Path  #: of all workers of a session
    folder: Path  #: of this worker
    made: dict[str, SampleRun] = field(default_factory=dict)

    def of(self, case: JobCase) -> SampleRun:
        """The run of a job: scored once, with report and figures."""
        if case.name not in self.made:
            done = self._done(case)
            runs = self.folder / case.name / "runs"
            shutil.copytree(self.shared / case.name / "runs", runs)
            self.made[case.name] = made = SampleRun(runs=runs, name="r", done=done)
            assert (made.scoring() / "report.html").exists(), done.err
        return self.made[case.name]

    def _done(self, case: JobCase) -> Done:
        """What the run said; it is made unless another worker has."""
        folder = self.shared / case.name
        folder.mkdir(parents=True, exist_ok=True)
        said = folder / "said.json"
        with (folder / "making.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                done = run(folder, *case.words(folder), *case.models()).done
                said.write_text(json.dumps(asdict(done)))
        return Done(**json.loads(said.read_text()))


def recorded(job: str) -> list[str]:
    """The recorded models of a sample."""
    return [f"recorded:{path}" for path in sorted((sample(job) / "replies").iterdir())]


def sample_items(job: str) -> Callable[[], Sequence[str]]:
    """All items of a shipped sample."""
    return lambda: list(items_of(job, sample(job)))


def with_texts(names: Sequence[str], change: Callable[[str], str]) -> Edit:
    """Changes the fields of these names, where they are texts."""
    return lambda row: {
        key: change(value) if key in names and isinstance(value, str) else value
        for key, value in row.items()
    }


def _other_label(row: Any) -> Any:
    """A record with the other label: what was included is a random paper."""
    kind = "random" if row["label"] == "1" else "included"
    label = str(1 - int(row["label"]))
    return {**row, "label": label, "kind": kind, "reason": "", "reason_code": ""}


def _other_key(line: Any) -> Any:
    """A question with another answer."""
    letter = str(line.get("correct_answer", "")).strip().lower()
    other = {
        "correct_answer": "d" if letter == "c" else "c",
        "expected_answer_p_value": "= 0.0314159",
        "expected_answer_significance": "no",
        "original_sentence": "A canary sings.",
        "annotation_id": "canary",
        "question_type": "canary",
    }
    return {key: other.get(key, value) for key, value in line.items()}


def _other_review(review: Any) -> Any:
    """A review with other studies, another conclusion and other notes."""
    studies = [{"title": f"Canary study {n}", "year": 1871} for n in range(5)]
    return {
        **review,
        "included_studies": studies,
        "authors_conclusion": "The canary sings no longer.",
        "source_url": "https://example.org/canary",
        "notes": "canary",
    }


def _pair(
    folder: Path, build: Callable[[Path, Edit], Words], other: Edit
) -> tuple[Words, Words]:
    """The same data as they are, and with an edit."""
    made = []
    for name, edit in (("one", same), ("other", other)):
        (folder / name).mkdir()
        made.append(build(folder / name, edit))
    first, second = made
    return first, second


def _gold(folder: Path) -> tuple[Words, Words]:
    made = []
    for name, turned in (("one", False), ("other", True)):
        (folder / name).mkdir()
        made.append(
            evidence(
                folder / name,
                lambda row, turned=turned: str(int(row["groundtruth"]) ^ turned),
            )
        )
    first, second = made
    return first, second


LISTED = (
    JobCase(
        name="ask",
        replies=("baseline/lexical",),
        items=sample_items("ask"),
        readers=("jobs.ask.plan.read_fields",),
        truths={
            "gold": lambda folder: _pair(
                folder,
                lambda own, edit: asking(own, gold=edit),
                lambda row: {**row, "enrolled": "8675309", "dose": "1"},
            )
        },
        texts=lambda folder, change: asking(folder, texts=change),
    ),
    JobCase(
        name="evidence-retrieval",
        replies=(*recorded("evidence-retrieval"), "baseline/lexical"),
        items=sample_items("evidence-retrieval"),
        readers=("jobs.evidence_retrieval.parsing.first_object",),
        truths={
            "gold": _gold,
            "folds": lambda folder: (
                evidence(folder, lambda row: row["groundtruth"]),
                (*evidence(folder, lambda row: row["groundtruth"]), "--n-folds", 3),
            ),
        },
        texts=lambda folder, change: evidence(
            folder,
            lambda row: row["groundtruth"],
            texts=with_texts(("text", "name"), change),
        ),
    ),
    JobCase(
        name="paper-investigation",
        replies=("baseline/lexical",),
        items=sample_items("paper-investigation"),
        readers=tuple(
            f"jobs.paper_investigation.parsing.{name}"
            for name in ("arrays", "last_object", "objects")
        ),
        truths={
            "variants": lambda folder: _pair(
                folder,
                lambda own, edit: (*investigation(own, edit), "--mode", "extract"),
                lambda paper: {**paper, "variants": ["rs8675309"]},
            ),
            "keys": lambda folder: _pair(
                folder,
                lambda own, edit: investigation(own, questions=edit),
                _other_key,
            ),
        },
        texts=lambda folder, change: investigation(
            folder,
            questions=with_texts(("blanked_sentence", "sentence"), change),
            texts=change,
        ),
    ),
    JobCase(
        name="property-extraction",
        replies=recorded("property-extraction"),
        items=sample_items("property-extraction"),
        readers=("jobs.property_extraction.parsing._whole",),
        truths={
            "values": lambda folder: _pair(
                folder,
                properties,
                lambda row: {**row, "property_value": "8675309", "material": "Pb"},
            )
        },
        texts=lambda folder, change: properties(
            folder, with_texts(("label", "material"), change), change
        ),
    ),
    JobCase(
        name="review-benchmark",
        replies=recorded("review-benchmark"),
        items=sample_items("review-benchmark"),
        readers=("jobs.review_benchmark.parsing.objects",),
        truths={"studies": lambda folder: _pair(folder, reviews, _other_review)},
        texts=lambda folder, change: reviews(
            folder,
            lambda review: {
                **with_texts(("title", "research_question", "notes"), change)(review),
                "included_studies": [
                    with_texts(("title",), change)(study)
                    for study in review["included_studies"]
                ],
            },
        ),
    ),
    JobCase(
        name="screening",
        replies=recorded("screening"),
        items=sample_items("screening"),
        readers=("jobs.screening.parsing.objects",),
        truths={"labels": lambda folder: _pair(folder, screening, _other_label)},
        texts=lambda folder, change: screening(
            folder, same, with_texts(("title", "abstract"), change)
        ),
    ),
    JobCase(
        name="replies",
        replies=("baseline/lexical",),
        items=lambda: ("dose", "blinded", "design", "women", "country"),
        readers=("jobs.replies.job.Replies.read",),
        truths={
            "targets": lambda folder: _pair(
                folder, prompted, lambda line: {**line, "target": "8675309"}
            )
        },
        texts=lambda folder, change: prompted(folder, with_texts(("prompt",), change)),
    ),
    JobCase(
        name="treatments",
        replies=("baseline/lexical",),
        items=lambda: ("a1", "a2", "b1", "b2"),
        readers=("tests.jobs.kit.sixth_job.Treatments.read",),
        truths={
            "drugs": lambda folder: _pair(
                folder,
                treatments,
                lambda row: {**row, "drug": "canary", "dose": "8675309"},
            )
        },
        texts=lambda folder, change: treatments(folder, with_texts(("text",), change)),
        data=treatments,
    ),
)
JOBS: Mapping[str, JobCase] = {case.name: case for case in LISTED}
