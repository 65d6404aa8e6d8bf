"""Every job's scorecard comes out of its bundle again, byte for byte, with no network.

A bundle is only handed out once that was tried, so to make it is the proof. What ships
is tried with one job; SIFTLOG_PROVE tries all, and real recorded answers are used where
they are.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from runner.bundle.pieces import PIECE, texts_in
from store.database import open_reader
from store.read.tasks import parts
from store.redacted_log import stored_events
from tests.processes import siftlog

PROVE = "SIFTLOG_PROVE" in os.environ
JOBS = (
    (
        *("paper-investigation", "evidence-retrieval", "review-benchmark"),
        *("property-extraction", "screening"),
    )
    if PROVE
    else ("paper-investigation",)
)


def _is_sound(cwd: Path, run: str) -> None:
    made = json.loads(siftlog("bundle", run, "--json", cwd=cwd).stdout)
    folder = cwd / "runs" / run / "scores" / str(made["scoring"])
    assert made["members"] > len([path for path in folder.rglob("*") if path.is_file()])
    assert not made["partial"]
    if PROVE:
        said = json.loads(siftlog("verify", made["file"], "--json", cwd=cwd).stdout)
        assert (said["sound"], said["rebuilt"]) == (True, True)
    _is_redacted(cwd, run, made)


def _is_redacted(cwd: Path, run: str, made: dict[str, str]) -> None:
    """Every metric comes out of the redacted bundle, and no piece of a text is in it.

    The methods text of the run is checked with it, too.
    """
    hidden = json.loads(siftlog("bundle", run, "--redact", "--json", cwd=cwd).stdout)
    said = json.loads(siftlog("verify", hidden["file"], "--json", cwd=cwd).stdout)
    assert (said["sound"], said["rebuilt"]) == (True, True)
    assert said["redacted"]["recomputed"] == said["redacted"]["metrics"] > 0
    # texts of a metric that are tokens are those that the code gives
    if not _other_tokens(cwd / hidden["file"]):
        assert said["digest"] == made["digest"]
    assert not _shared_pieces(cwd / "runs" / run / "log.db", cwd / hidden["file"])
    (cwd / "methods.md").write_text(siftlog("methods", run, cwd=cwd).stdout)
    siftlog("check", "methods.md", "--bundle", hidden["file"], cwd=cwd)


def _other_tokens(bundle: Path) -> bool:
    """Whether a redacted scorecard has a token that is of no metric."""
    with ZipFile(bundle) as opened:
        card = json.loads(opened.read("scores/1/scorecard.json"))
    rest = json.dumps({name: card[name] for name in card.keys() - {"models"}})
    return re.search("~[0-9a-f]{64}", rest) is not None


def _shared_pieces(log: Path, bundle: Path) -> set[bytes]:
    """Pieces of requests' texts and of replies that stand in a redacted bundle."""
    texts: set[bytes] = set()
    with open_reader(log) as reader:
        for _, commit in stored_events(reader):
            for row, content in commit:
                if row.kind == "attempt_answered":
                    texts.update(texts_in(content.payload or b""))
                elif row.kind == "attempt_started":
                    hashes = re.findall(rb"[0-9a-f]{64}", content.payload or b"")
                    keys = [bytes.fromhex(sha256.decode()) for sha256 in hashes]
                    texts.update(parts(reader, keys).values())
    pieces = {
        text[at : at + PIECE] for text in texts for at in range(len(text) - PIECE + 1)
    }
    assert pieces
    with ZipFile(bundle) as opened:
        members = [opened.read(name) for name in opened.namelist()]
    return {
        content[at : at + PIECE]
        for content in members
        for at in range(len(content) - PIECE + 1)
    } & pieces


@pytest.mark.parametrize("job", JOBS)
def test_a_run_on_a_sample_can_be_bundled(job: str, tmp_path: Path) -> None:
    siftlog("run", job, "--run-id=r", cwd=tmp_path)
    _is_sound(tmp_path, "r")


def test_a_split_run_is_redacted_as_one_log(tmp_path: Path) -> None:
    split = ("--shards", 2, "--engine", "processes", "--no-report")
    siftlog("run", "ask", *split, "--run-id=r", cwd=tmp_path)
    hidden = json.loads(
        siftlog("bundle", "r", "--redact", "--json", cwd=tmp_path).stdout
    )
    said = json.loads(siftlog("verify", hidden["file"], "--json", cwd=tmp_path).stdout)
    assert (said["sound"], said["rebuilt"]) == (True, True)
    assert said["redacted"]["recomputed"] == said["redacted"]["metrics"] > 0


@pytest.mark.realdata
def test_imports_of_real_recorded_work_can_be_bundled(
    realdata: Path, tmp_path: Path
) -> None:
    papers, reviews = realdata / "clinpgx_qa", realdata / "bmlibrarian"
    evidence = realdata / "evidence_pipeline" / "baseline_default_val"
    large = papers / "paper_investigation" / "20260213_053253_all_models"
    imports: dict[str, tuple[object, ...]] = {
        "evidence-retrieval": (
            *("--per-query", evidence / "per_query.csv"),
            *("--against", evidence / "summary.json"),
        ),
        "paper-investigation": (
            *sorted(large.glob("*responses.jsonl")),
            *("--bench", papers / "variant_bench.jsonl", "--papers", papers / "papers"),
            *("--questions", papers / "derived_questions"),
            *("--sentence-bench", papers / "sentence_bench.jsonl"),
        ),
        "review-benchmark": (
            *("--truth", reviews / "ground_truth"),
            *("--results", reviews / "agent_runs"),
        ),
    }
    for job, words in imports.items() if PROVE else list(imports.items())[:1]:
        siftlog("import", job, *words, f"--run-id=of-{job}", cwd=tmp_path)
        _is_sound(tmp_path, f"of-{job}")
