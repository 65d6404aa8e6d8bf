"""Input files of the five jobs, each spoiled in the ways in which files go wrong.

Two tables: the inputs that each job reads, with the options that name them, and the
ways to spoil one. Each way with each input is one command; what is refused gives its
sentence, what is only doubtful its warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.golden.cases import Case, Step

Spoil = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A command that reads inputs of a sample."""

    job: str
    name: str
    command: str  #: followed by the options of `inputs`
    inputs: Mapping[str, str]  #: option -> path in the sample
    spoiled: tuple[str, ...]  #: options whose file is spoiled


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Spoil:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def _renamed(data: bytes) -> bytes:
    """The first column or key by another name."""
    if data.lstrip()[:1] in {b"{", b"["}:
        key = re.search(rb'"(\w+)":', data)
        return data.replace(key[0], b'"nonsense":') if key else data
    return re.sub(rb"^[^,\n]+", b"nonsense", data, count=1)


def _mistyped(data: bytes) -> bytes:
    """Words where numbers are."""
    data = re.sub(rb"(?<=: )-?\d[\d.]*(?=[,\n}])", b'"many"', data)
    return re.sub(rb"(?<=,)-?\d[\d.]*(?=[,\r\n])", b"many", data)


def _blanked(data: bytes) -> bytes:
    """The first cell of each row, or the first text of each object, left blank."""
    if data.lstrip()[:1] in {b"{", b"["}:
        return re.sub(rb'": "[^"]*"', b'": ""', data, count=3)
    head, _, rest = data.partition(b"\n")
    return head + b"\n" + re.sub(rb"^[^,\n]*,", b",", rest, flags=re.MULTILINE)


SPOILS: Mapping[str, Spoil] = {
    "empty": lambda _: b"",
    "first line alone": _lines(lambda lines: lines[:1]),
    "without first line": _lines(lambda lines: lines[1:]),
    "cut": lambda data: data[: len(data) * 3 // 5],
    "semicolons": lambda data: data.replace(b",", b";"),
    "tabs": lambda data: data.replace(b",", b"\t"),
    "utf-16": lambda data: data.decode("utf-8").encode("utf-16"),
    "latin-1": lambda data: data.replace(b"e", b"\xe9"),
    "with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "old line ends": lambda data: data.replace(b"\n", b"\r"),
    "null bytes": lambda data: data[:40] + b"\0\0" + data[40:],
    "twice": lambda data: data + b"".join(data.splitlines(keepends=True)[1:]),
    "renamed": _renamed,
    "mistyped": _mistyped,
    "blanked": _blanked,
    "other json": lambda _: json.dumps({"nonsense": [1, None]}).encode(),
    "a number": lambda _: b"42\n",
    "html": lambda _: b"<!doctype html><title>404</title><p>Not found\n",
}

_QUESTIONS = "questions/study_param_questions"
READINGS = (
    Reading(
        job="paper-investigation",
        name="inputs",
        command="prepare paper-investigation check",
        inputs={
            "bench": "variant_bench.jsonl",
            "papers": "papers",
            "questions": "questions",
            "sentence-bench": "sentence_bench.jsonl",
            "mcq-drug": "questions/mcq_options/drug_mcq_options.jsonl",
            "study-param": f"{_QUESTIONS}/study_param_questions.jsonl",
        },
        spoiled=("bench", "sentence-bench", "mcq-drug", "study-param"),
    ),
    Reading(
        job="paper-investigation",
        name="import",
        command="import paper-investigation --run-id {n} --no-report --no-score",
        inputs={"": "records/alder-7b_paper_investigation_responses.jsonl"},
        spoiled=("",),
    ),
    Reading(
        job="evidence-retrieval",
        name="inputs",
        command="run evidence-retrieval --dry-run",
        inputs={
            "posts": "posts.csv",
            "sentences": "sentences.jsonl",
            "criteria": "criteria.json",
            "gold": "gold.csv",
            "folds": "folds.csv",
        },
        spoiled=("posts", "sentences", "criteria", "gold", "folds"),
    ),
    Reading(
        job="property-extraction",
        name="inputs",
        command="prepare property-extraction lint",
        inputs={
            "papers": "papers",
            "truth": "truth.csv",
            "rubric": "rubric.csv",
            "clusters": "clusters.json",
            "unit-table": "units.csv",
        },
        spoiled=("truth", "rubric", "clusters", "unit-table"),
    ),
    Reading(
        job="property-extraction",
        name="import",
        command="import property-extraction --run-id {n} --no-report --no-score",
        inputs={
            "truth": "truth.csv",
            "rubric": "rubric.csv",
            "aliases": "aliases/aliases-cbb87a5ad421.json",
            "preds": "predictions.csv",
        },
        spoiled=("preds", "aliases"),
    ),
    Reading(
        job="review-benchmark",
        name="truth",
        command="prepare review-benchmark coverage",
        inputs={"database": "papers.db", "truth": "truth/cochrane_CD990001.json"},
        spoiled=("truth",),
    ),
    Reading(
        job="review-benchmark",
        name="papers",
        command="prepare review-benchmark import --database {n}.db",
        inputs={"": "papers/papers.csv"},
        spoiled=("",),
    ),
    Reading(
        job="review-benchmark",
        name="results",
        command="import review-benchmark --run-id {n} --no-report --no-score",
        inputs={"truth": "truth", "": "results/CD990001__linden.json"},
        spoiled=("",),
    ),
    Reading(
        job="screening",
        name="tables",
        command="prepare screening --out {n}",
        inputs={
            "reviews": "tables/cochrane_pubmed_abstracts.csv",
            "references": "tables/cochrane_pubmed_references.csv",
            "papers": "tables/referenced_paper_abstracts.csv",
            "excluded": "excluded.csv",
            "criteria": "criteria.jsonl",
        },
        spoiled=("reviews", "references", "papers", "excluded", "criteria"),
    ),
)


def spoiled_cases(sample: Callable[[str], Path]) -> Iterator[Case]:
    """A case for each reading: every input spoiled in every way, and missing."""
    for reading in READINGS:
        yield _case(reading, sample(reading.job))


def _case(reading: Reading, sample: Path) -> Case:
    files: dict[str, str | bytes] = {
        _target(path): f"@sample/{reading.job}/{path}"
        for path in reading.inputs.values()
        if not any(path.startswith(f"{p}/") for p in reading.inputs.values())
    }
    commands = []
    for option in reading.spoiled:
        path = Path(reading.inputs[option])
        data = (sample / path).read_bytes()
        for number, (way, spoil) in enumerate(SPOILS.items()):
            name = f"{way.replace(' ', '-')}-{path.name}"
            files[name] = spoil(data)
            commands.append(_step(reading, option, name, f"{option or 'f'}{number}"))
        commands.append(_step(reading, option, "nowhere", "nowhere"))
        files["folder/x"] = ""
        commands.append(_step(reading, option, "folder", "folder"))
    return Case(
        name=f"spoiled/{reading.job}-{reading.name}", steps=commands, files=files
    )


def _target(path: str) -> str:
    return f"good/{path}"


def _step(reading: Reading, option: str, name: str, run: str) -> Step:
    paths = {o: _target(path) for o, path in reading.inputs.items()} | {option: name}
    options = " ".join(f"--{o} {path}" if o else path for o, path in paths.items())
    command = reading.command.format(n=run)
    return Step(
        line=f"{command} {options}", label=f"{option or 'file'} {Path(name).stem}"
    )
