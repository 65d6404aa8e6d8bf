"""Traps that show in what a run stores and writes: requests, imports, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.database import open_reader
from store.read.tasks import attempts, parts, tasks
from store.runs import RunFolder
from store.tables import payload
from tests.answering import answering
from tests.jobs.paper_investigation.small_run import (
    ENGINE,
    JOB,
    inputs,
    listing,
    question,
    write_rows,
)
from tests.processes import siftlog

# what was sent


def requests(cwd: Path) -> list[tuple[str, str, list[str]]]:
    """Stage and key of each task, with the texts of its request as the log has them."""
    found = []
    with open_reader(RunFolder(cwd / "runs" / "r").log) as reader:
        for row in tasks(reader, limit=1000):
            for attempt in attempts(reader, row.task):
                assert attempt.started_seq is not None
                skeleton = json.loads(payload(reader, attempt.started_seq) or b"")
                hashes = [
                    bytes.fromhex(part)
                    for message in skeleton["messages"]
                    for part in message["parts"]
                ]
                texts = parts(reader, hashes)
                own = [texts[sha256].decode() for sha256 in hashes]
                found.append((row.stage, row.key, own))
    return found


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over data whose every secret can be told from what a prompt may hold."""
    cwd = tmp_path_factory.mktemp("secretive")
    told = {
        "original_sentence": "SECRET-SENTENCE",
        "question_type": "SECRET-TYPE",
        "annotation_id": "SECRET-ANNOTATION",
        "a_field_of_its_own": "SECRET-FIELD",
    }
    bench = {"PMC1": ["rs1", "rs5000001"], "PMC2": ["rs1", "rs5000001"]}
    rows = [question(f"{n}-{p}", p, "rs1", **told) for p in bench for n in (1, 2)]
    data = inputs(cwd, bench, rows)
    sources = [{"pmcid": "PMC1", "variant": "rs1", "sentences": ["SECRET-SOURCE"]}]
    asked = {
        **{key: value for key, value in rows[0].items() if "option" not in key},
        "sentence": "A sentence that may be shown.",
        "expected_answer_p_value": "= 0.0271828",
        "expected_answer_significance": "SECRET-WORD",
    }
    options = (
        f"--study-param={write_rows(cwd / 'study.jsonl', [asked])}",
        f"--sentence-bench={write_rows(cwd / 'sentences.jsonl', sources)}",
        "--pipelines=mcq_drug,study_param",
    )
    with answering(listing("rs1")) as endpoint:
        url = f"--base-url={endpoint.url}"
        siftlog("run", JOB, *data, *options, *ENGINE, url, cwd=cwd)
    return cwd


def test_stored_requests_of_a_paper_begin_with_the_same_bytes(secretive: Path) -> None:
    beginnings: dict[str, set[tuple[str, ...]]] = {}
    stages = set()
    for stage, key, texts in requests(secretive):
        *shared, _ = texts
        beginnings.setdefault(key.partition("/")[0], set()).add(tuple(shared))
        stages.add(stage)
    assert stages == {"extract", "question"}
    assert {pmcid: len(each) for pmcid, each in beginnings.items()} == {
        "PMC1": 1,
        "PMC2": 1,
    }
    ((system, first),), ((same, second),) = beginnings.values()
    assert system == same
    assert "PMC1" in first
    assert "PMC2" in second


def test_no_stored_request_holds_truth_key_source_or_another_question(
    secretive: Path,
) -> None:
    asked = requests(secretive)
    assert len(asked) == 7
    for _, key, texts in asked:
        text = "".join(texts)
        for secret in ("SECRET", "rs5000001", "0.0271828"):
            assert secret not in text, key
        named = [name for name in ("1-PMC1", "2-PMC1", "1-PMC2") if name in text]
        assert len(named) <= 1, key


# what was imported


RECORD = {
    "pmcid": "PMC1",
    "ground_truth_variants": ["rs1"],
    "predicted_variants": ["rs1"],
    "variant_recall": 1.0,
    "variant_results": {
        "rs1": {
            "responses": [
                {
                    "source_pipeline": "mcq_drug",
                    "model_response": "b",
                    "correct": True,
                    "expected_answer": "b",
                }
            ]
        }
    },
    "paper_score": 1.0,
}


def test_models_whose_names_meet_or_climb_keep_files_of_their_own(
    tmp_path: Path,
) -> None:
    names = ["a/b", "a_b", "../../../up", "."]
    rows = [{**RECORD, "model": name} for name in names]
    file = write_rows(tmp_path / "x.jsonl", rows)
    before = {path.name for path in tmp_path.iterdir()}
    siftlog("import", JOB, file, "--run-id=r", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} - before == {"runs"}
    found = {}
    for path in (tmp_path / "runs" / "r" / "scores" / "1").iterdir():
        if path.name.endswith("_responses.jsonl"):
            (line,) = path.read_text().splitlines()
            found[json.loads(line)["model"]] = path.name
    assert sorted(found) == sorted(names)
    assert len(set(found.values())) == len(names)


def test_what_a_record_does_not_say_stays_unknown_however_often_it_is_imported(
    tmp_path: Path,
) -> None:
    file = write_rows(tmp_path / "x.jsonl", [{**RECORD, "model": "m"}])
    name = "m_paper_investigation_responses.jsonl"
    exports = []
    for run in ("one", "two", "three"):
        siftlog("import", JOB, file, f"--run-id={run}", cwd=tmp_path)
        file = tmp_path / "runs" / run / "scores" / "1" / name
        exports.append(file.read_text())
    assert '"question":null' in exports[0]
    assert exports[0] == exports[1] == exports[2]
