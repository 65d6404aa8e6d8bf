"""Scoring paper-investigation: seconds and peak memory, and how both grow.

Imported answers of five models about small papers, ten answers a paper and model;
every scoring is a process of its own. The goals are those for 200 and for 20,000
papers; the second is held against what the two measured sizes give in a straight line.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.paper_investigation.rule_sets import p_value_right, parse_letter
from runner.messages import Reply
from tests.bench.prose import prose
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.corpus import write_corpus
from tests.processes import SIFTLOG

MODELS = tuple(f"bench/m{number}" for number in range(5))
SMALL, LARGEST = 200, 20_000
TEXT_BYTES = 20_000
RECALLED = 0.8
"""Share of the truth variants that a model lists."""

LETTERS = ("{}", "**{}**", "The answer is {}.", '{{"answer": "{}"}}')
P_VALUES = ("= 0.03", "< 0.001", "> 0.05", "NS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took."""

    cpu_s: float
    peak_mb: float


def measure(quick: bool) -> list[Row]:
    """Whole scorings at two sizes, and the reading of letters and p-values alone."""
    large = 500 if quick else 2_000
    scale = (LARGEST - SMALL) / (large - SMALL)
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        for papers in (SMALL, large):
            _imported(cwd, papers)
        rows = []
        for label, words in (
            ("", ()),
            (", nothing written", ("--no-record",)),
            (", nothing written or grounded", ("--no-record", "--set=grounding=false")),
        ):
            few, many = (_scored(cwd, papers, *words) for papers in (SMALL, large))
            seconds = few.cpu_s + (many.cpu_s - few.cpu_s) * scale
            memory = few.peak_mb + (many.peak_mb - few.peak_mb) * scale
            rows += [
                _row(f"{SMALL} papers x 5 models{label}, s", few.cpu_s, 1),
                shown(f"the same, MB{label}", few.peak_mb, "scoring"),
                shown(f"{large:,} papers x 5 models{label}, s", many.cpu_s, "scoring"),
                shown(f"the same, MB{label}", many.peak_mb, "scoring"),
                _row(f"{LARGEST:,} papers in a straight line{label}, s", seconds, 60),
                _row(f"the same, MB{label}", memory, 1024),
            ]
    count = 10 if quick else 1
    return [*rows, _letters(1_000_000 // count), _verdicts(300_000 // count)]


def _row(what: str, value: float, bound: float) -> Row:
    return most("scoring", what, value, bound)


def _imported(cwd: Path, papers: int) -> None:
    corpus = cwd / f"corpus{papers}"
    options = [o for o in write_corpus(corpus, papers) if "boot" not in o]
    for number, path in enumerate(sorted((corpus / "papers").iterdir())):
        path.write_bytes(path.read_bytes() + prose(TEXT_BYTES, number))
    replies = corpus / "replies.jsonl"
    with replies.open("w") as file:
        file.writelines(json.dumps(line) + "\n" for line in _replies(corpus))
    _run(
        cwd,
        *("import", "paper-investigation", replies, f"--run-id=p{papers}"),
        *("--no-score", *(f"--set={option[2:]}" for option in options)),
    )


def _replies(corpus: Path) -> Iterator[dict[str, object]]:
    """Flat replies to all that is asked: lists, letters and study parameters."""
    chance = random.Random(0)
    questions: dict[str, list[dict[str, str]]] = {}
    for pipeline, path in (
        ("mcq_variant", "mcq_options/variant_mcq_options.jsonl"),
        ("study_param", "study_param_questions/study_param_questions.jsonl"),
    ):
        for line in (corpus / "questions" / path).open():
            question = {"source_pipeline": pipeline, **json.loads(line)}
            questions.setdefault(question["pmcid"], []).append(question)
    for line in (corpus / "bench.jsonl").open():
        paper = json.loads(line)
        for model in MODELS:
            listed = [v for v in paper["variants"] if chance.random() < RECALLED]
            found = [*listed, f"rs{chance.randrange(10**5, 10**8)}"]
            who = {"model": model, "pmcid": paper["pmcid"]}
            yield {**who, "kind": "extract", "response": json.dumps(found)}
            for question in questions[paper["pmcid"]]:
                if question["variant"] in listed:
                    yield {
                        **who,
                        "kind": "question",
                        "source_pipeline": question["source_pipeline"],
                        "question_id": question["question_id"],
                        "response": _response(question, chance),
                    }


def _response(question: dict[str, str], chance: random.Random) -> str:
    if question["source_pipeline"] != "study_param":
        return chance.choice(LETTERS).format(chance.choice("abcd"))
    stated = question["expected_answer_p_value"]
    p_value = stated if chance.random() < RECALLED else chance.choice(P_VALUES)
    return json.dumps(
        {"p_value": p_value, "significance": chance.choice(["yes", "no"])}
    )


def _scored(cwd: Path, papers: int, *words: str) -> Cost:
    # what drawing takes does not grow with the papers
    return _run(cwd, "score", f"p{papers}", "--no-report", *words)


def _run(cwd: Path, *words: object) -> Cost:
    """One command to its end."""
    process = subprocess.Popen(
        [SIFTLOG, *map(str, words)], cwd=cwd, stdout=subprocess.DEVNULL
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"siftlog {words[0]} ended with {process.returncode}")
    return Cost(cpu_s=usage.ru_utime + usage.ru_stime, peak_mb=usage.ru_maxrss / 1024)


def _letters(count: int) -> Row:
    """Letters by the default rules, none of them read before."""
    replies = [Reply(text=form.format(letter)) for form in LETTERS for letter in "abcd"]
    began = time.process_time()
    for number in range(count):
        parse_letter(replies[number % len(replies)], "robust", None)
    seconds = time.process_time() - began
    return _row(f"{count:,} letters read, s", seconds, 5 * count / 1_000_000)


def _verdicts(count: int) -> Row:
    """Verdicts on p-values, no two of them alike."""
    began = time.process_time()
    for number in range(count):
        p_value = f"{0.001 + number / count:.7f}"
        p_value_right(f"= {p_value}", f"p = {p_value}", "robust", 0.05)
    seconds = time.process_time() - began
    return _row(f"{count:,} p-values compared, s", seconds, 10 * count / 300_000)
