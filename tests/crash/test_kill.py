"""The real process, hit from outside at any moment: nothing is paid twice.

The endpoint is the project's own, misbehaves, and keeps a ledger of what it served; the
two books are compared after every blow. The short form runs in `make test`, the counts
of the promise in `make prove`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.evidence_retrieval.inputs import DATA, SAMPLE
from jobs.evidence_retrieval.job import job as evidence
from jobs.paper_investigation.job import job as papers
from jobs.property_extraction.inputs import SAMPLE as EXTRACTED
from jobs.property_extraction.job import job as extraction
from jobs.review_benchmark.job import job as reviews
from jobs.screening.inputs import SAMPLE as SCREENED
from jobs.screening.job import job as screening
from runner.cli.arguments import job_settings
from runner.job import Job
from runner.workload import resolve
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.crash.blows import BLOWS, Toll, shuffled
from tests.crash.books import Books
from tests.crash.panel.job import job as panel
from tests.crash.survey.job import job as survey
from tests.gates import Gate, gated
from tests.jobs.review_benchmark.small_review import write_reviews
from tests.ledgers import read_ledger
from tests.plugging import plugged
from tests.processes import siftlog, simulated, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
CONCURRENCY = 24
MODELS = ("tested", "acme/other model")
MISBEHAVING = (
    *("--latency-ms", 60, "--jitter-ms", 100),
    *("--rate-429", 0.005, "--rate-5xx", 0.01, "--rate-hang", 0.002),
    *("--rate-malformed", 0.01, "--rate-drop", 0.01),
)
ENGINE = (f"--concurrency={CONCURRENCY}", "--timeout-s=1", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run, and how often it is hit by what."""

    job: Job
    words: tuple[str, ...]  #: the job's settings, as typed
    options: tuple[str, ...]  #: of the run
    models: int  #: that are asked, in any role
    hits: tuple[int, ...]  #: how often by each of `BLOWS`


def _survey(_folder: Path) -> Case:
    """Every kind of follow-up, replies to be asked for again, and a budget."""
    return Case(
        job=survey,
        words=(f"--items={450 if PROVE else 40}", "--reask=1"),
        options=("--replicates=2", "--price=1,2", "--budget=1000"),
        models=2,
        hits=(110, 10, 18, 18, 18, 20, 10) if PROVE else (4, 1, 1, 1, 1, 1, 1),
    )


def _panel(_folder: Path) -> Case:
    """Vectors, rankings and judges beside the answers."""
    return Case(
        job=panel,
        words=(f"--items={400 if PROVE else 30}",),
        options=("--judge-model=j", "--embed-model=e", "--rerank-model=r"),
        models=5,
        hits=(20, 0, 2, 2, 2, 2, 2) if PROVE else (2, 0, 0, 0, 0, 0, 0),
    )


def _papers(folder: Path) -> Case:
    """The job that people use, with the cache that its runs share."""
    return Case(
        job=papers,
        words=(*write_corpus(folder / "corpus", 110 if PROVE else 25), "--reask=1"),
        options=("--cache", "--cache-dir=cache"),
        models=2,
        hits=(20, 2, 2, 2, 2, 2, 2) if PROVE else (2, 0, 0, 0, 0, 1, 0),
    )


def _evidence(_folder: Path) -> Case:
    """All kinds of request in one run, windows that follow windows, a fitted gate."""
    return Case(
        job=evidence,
        words=(
            *(f"--{name}={SAMPLE / file}" for name, file in DATA.items()),
            "--tasks=assess,rerank,embed,rerank_api",
            "--rerank-window=4",
            "--rerank-stride=2",
        ),
        options=("--embed-model=e", "--rerank-model=r"),
        models=4,
        hits=(20, 2, 2, 2, 2, 2, 2) if PROVE else (3, 0, 0, 0, 0, 1, 0),
    )


def _reviews(folder: Path) -> Case:
    """Searches between the calls, and conclusions that wait for all scores."""
    papers, truth = write_reviews(folder / "reviews", 100 if PROVE else 20)
    return Case(
        job=reviews,
        words=(f"--truth={truth}", f"--database={papers}", "--reask=1"),
        options=("--replicates=2",) if PROVE else (),
        models=2,
        hits=(20, 2, 2, 2, 2, 2, 2) if PROVE else (1, 0, 0, 0, 0, 0, 0),
    )


def _screening(_folder: Path) -> Case:
    """Criteria that a model states, then stage after stage for what is still alive."""
    return Case(
        job=screening,
        words=(
            *(
                f"--validation-set={SCREENED / 'set'}",
                "--title-criteria",
                f"--fulltext={SCREENED / 'fulltext'}",
            ),
            *("--stages=title,abstract,fulltext", "--criteria-source=llm"),
            *("--reask=1", f"--limit={0 if PROVE else 30}", "--boot-b=0"),
        ),
        options=(),
        models=2,
        hits=(20, 2, 2, 2, 2, 2, 2) if PROVE else (1, 0, 0, 0, 0, 0, 0),
    )


def _extraction(_folder: Path) -> Case:
    """Papers in pieces, which are gathered before their quotes are asked for again."""
    return Case(
        job=extraction,
        words=(
            *(f"--{name}={EXTRACTED / name}.csv" for name in ("truth", "rubric")),
            *(f"--papers={EXTRACTED / 'papers'}", "--requote", "--boot-b=0"),
            *(f"--max-chars={600 if PROVE else 1500}", "--chunk-overlap=200"),
        ),
        options=("--replicates=4",) if PROVE else (),
        models=2,
        hits=(20, 2, 2, 2, 2, 2, 2) if PROVE else (1, 0, 0, 0, 0, 0, 0),
    )


JOBS = {
    "survey": "tests.crash.survey.job:job",
    "panel": "tests.crash.panel.job:job",
}


@pytest.mark.timeout(1800 if PROVE else 600)
@pytest.mark.parametrize(
    "case_in",
    [_survey, _panel, _papers, _evidence, _screening, _reviews, _extraction],
)
def test_hit_at_random_moments_a_run_repeats_nothing_it_had_recorded(
    case_in: Callable[[Path], Case], tmp_path: Path
) -> None:
    case = case_in(tmp_path)
    environment = plugged(tmp_path / "plugged", **JOBS)
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    calm.mkdir()
    wild.mkdir()
    # what a reply says depends on the seed and the request alone
    server = ("--job", case.job.name, "--seed", 5)
    with simulated(*server, cwd=calm, env=environment) as url:
        command = (*_new(case), *ENGINE, f"--base-url={url}")
        siftlog(*command, cwd=calm, env=environment)
    sent = status(calm, "r")["attempts"]
    share = (sent["started"] - sent["cached"]) // (sum(case.hits) + 1)

    ledger = wild / "ledger.jsonl"
    settings = resolve(
        case.job, typed=job_settings(case.words, []), environment={}, file={}
    )
    folder = RunFolder(wild / "runs" / "r")
    books = Books(folder, ledger, case.job, case.job.load(settings))
    with (
        simulated(
            *(*server, *MISBEHAVING, "--ledger", ledger), cwd=wild, env=environment
        ) as url,
        gated(url, passes=0) as gate,
    ):
        slots = CONCURRENCY * case.models
        toll = Toll(books, ledger, gate, slots=slots, share=share, seed=11)
        _run_under_fire(case, wild, gate, toll, environment)
    print(f"\n{case.job.name}\n{toll}")

    assert all(toll.tallies["SIGKILL"].in_flight), "a kill met no call in flight"
    books.read()
    books.check()
    assert not books.in_flight
    assert books.unknown.total() == toll.unknown
    end = status(wild, "r")
    attempts, tasks = end["attempts"], end["tasks"]
    assert attempts["unknown"] == toll.unknown
    assert attempts["answered"] == books.answered.total() + books.cached
    # what was killed before its first byte left is known to the log alone
    requests = len(read_ledger(ledger))
    sent = attempts["started"] - books.cached
    missed = toll.unknown + books.late(books.served()).total()
    assert sent - missed <= requests <= sent
    assert tasks["open"] == tasks["failed"] == 0
    assert tasks["completed"] + tasks["skipped"] == tasks["planned"]
    score = Path("runs/r/scores/1/scorecard.json")
    assert (wild / score).read_bytes() == (calm / score).read_bytes()
    siftlog("verify", "r", cwd=wild)


def _new(case: Case) -> tuple[str, ...]:
    models = [f"--model={model}" for model in MODELS]
    return ("run", case.job.name, *case.words, *models, *case.options, "--run-id=r")


def _run_under_fire(
    case: Case, cwd: Path, gate: Gate, toll: Toll, environment: dict[str, str]
) -> None:
    """Hit the run and resume it until it has had its blows; let it end by itself."""
    command = _new(case)
    counts = dict(zip(BLOWS, case.hits, strict=True))
    for name in shuffled(counts, seed=11):
        process = start(
            *(*command, *ENGINE, *BLOWS[name].options, f"--base-url={gate.url}"),
            cwd=cwd,
            env=environment,
        )
        assert toll.hit(process, name), "the run was over before its blows were"
        command = ("resume", "r")
    gate.open()
    resume = ("resume", "r", *ENGINE, f"--base-url={gate.url}")
    siftlog(*resume, cwd=cwd, env=environment)
