"""Posts that nobody has judged: the ranked evidence is that of the other files."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import command
from tests.contract.jobs.data import evidence, sample


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def replies(folder: Path) -> set[tuple[int, str]]:
    """What was read from the reply to each task."""
    with closing(sqlite3.connect(folder / "verdicts.db")) as verdicts:
        return {*verdicts.execute("SELECT task, value FROM verdict")}


def ranked(folder: Path) -> dict[tuple[str, str], str]:
    """The sentences of each query in the order of `evidence.csv`."""
    lists: dict[tuple[str, str], list[str]] = {}
    for row in rows(folder / "evidence.csv"):
        query = lists.setdefault((row["post_id"], row["criterion_id"]), [])
        query.append(row["sent_uid"])
        assert int(row["rank"]) == len(query)
    return {key: "|".join(uids) for key, uids in lists.items()}


def final(folder: Path, step: str) -> dict[tuple[str, str], str]:
    """The same lists as the file with all lists has them."""
    column = f"{step}_topk"
    return {
        (row["post_id"], row["criterion_id"]): row[column]
        for row in rows(folder / "per_query_lists.csv")
        if row[column]
    }


def test_evidence_is_ranked_as_in_a_judged_run(tmp_path: Path) -> None:
    judged = (*evidence(tmp_path, lambda row: row["groundtruth"]), "--set", "boot_b=0")
    at = judged.index("--gold")
    place = ("--runs-dir", tmp_path / "runs", "--no-report")
    for name, words in (("told", judged), ("new", judged[:at] + judged[at + 2 :])):
        done = command("run", *words, "--run-id", name, *place)
        assert done.code == 0, done.err
    told, new = (tmp_path / "runs" / name / "scores" / "1" for name in ("told", "new"))
    for step in ("retriever", "reranked"):
        assert final(new, step) == final(told, step)
    assert ranked(new) == final(new, "graph")
    assert not (told / "evidence.csv").exists()
    assert replies(new) == replies(told)
    probability = {
        (row["post_id"], row["criterion_id"]): row["p4_prob_raw"]
        for row in rows(new / "per_query.csv")
    }
    sentences = {row["sent_uid"]: row["sentence"] for row in rows(new / "evidence.csv")}
    assert all(sentences.values())
    assert all(
        row["probability"] == probability[row["post_id"], row["criterion_id"]]
        for row in rows(new / "evidence.csv")
    )


def test_a_gate_of_judged_posts_gives_states_to_new_ones(tmp_path: Path) -> None:
    source = sample("evidence-retrieval")
    place = ("--runs-dir", tmp_path / "runs", "--no-report", "--set", "boot_b=0")
    done = command(
        *(
            "run",
            "evidence-retrieval",
            "--set",
            "final_gate=true",
            "--run-id",
            "a",
            *place,
        )
    )
    assert done.code == 0, done.err
    gate = tmp_path / "runs" / "a" / "scores" / "1" / "gate_final.json"
    done = command(
        *("run", "evidence-retrieval", "--posts", source / "posts.csv"),
        *("--criteria", source / "criteria.json", "--apply-gate", gate),
        *("--run-id", "b", *place),
    )
    assert done.code == 0, done.err
    listed = rows(tmp_path / "runs" / "b" / "scores" / "1" / "evidence.csv")
    assert {row["state"] for row in listed} <= {"NEG", "UNCERTAIN", "POS"}


@pytest.mark.realdata
@pytest.mark.timeout(180)
def test_real_rankings_without_gold_are_listed_as_they_are(
    realdata: Path, tmp_path: Path
) -> None:
    source = realdata / "evidence_pipeline" / "baseline_default_val" / "per_query.csv"
    blind = tmp_path / "blind.csv"
    lines = [{**row, "gold_ids": "", "judged": "0"} for row in rows(source)]
    with blind.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    done = command(
        *("import", "evidence-retrieval", blind, "--run-id", "r"),
        *("--runs-dir", tmp_path / "runs", "--no-report"),
    )
    assert done.code == 0, done.err
    assert done.out.count("No truth given: ") == 1
    folder = tmp_path / "runs" / "r" / "scores" / "1"
    expected = {
        (row["post_id"], row["criterion_id"]): row["reranked_topk"]
        for row in rows(source)
    }
    assert len(expected) > 1_000
    assert ranked(folder) == expected
