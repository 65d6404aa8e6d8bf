"""The command show: one task of a run, or all tasks of an item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.cli.main import exit_code
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, completed, failed, plan_first, reply
from tests.store.samples import started as began

REPLY = {"form": OPENAI_CHAT, "cost_usd": 0.5}


def _did(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = exit_code(["show", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def _shown(
    capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[list[dict[str, Any]], str]:
    code, out, err = _did(capsys, *words, "--json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()], err


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scored run of each of three jobs on its sample."""
    folder = tmp_path_factory.mktemp("shown")
    for job, run in (
        ("evidence-retrieval", "posts"),
        ("property-extraction", "values"),
        ("paper-investigation", "papers"),
    ):
        words = ["--run-id", run, "--runs-dir", str(folder), "--no-report"]
        assert exit_code(["run", job, *words]) == 0
    return folder


def test_a_task_has_its_prompt_its_reply_its_value_its_score_and_its_attempt(
    sampled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = _did(capsys, sampled / "papers", "T-11")
    assert (code, err) == (0, "")
    for line in (
        "task 11  question  PMC0000001/mcq_variant:1",
        "model      baseline/lexical, replicate 1",
        '      | {"answer": "b"}',
        '      | letter  "b"',
        "score      right: b, expected b (json.whole)",
    ):
        assert line in out.splitlines()
    assert "characters left out: --full shows them]" in out
    whole = _did(capsys, sampled / "papers", 11, "--full")[1]
    assert "left out" not in whole
    (shown,), _ = _shown(capsys, sampled / "papers", 11)
    text = shown["prompt"]["messages"][1][1]
    # the end of every line of the prompt is there, however long the line is
    assert all(line[-100:] in whole for line in text.splitlines())
    assert shown["parsed"] == {"letter": "b", "rule": "json.whole"}
    assert [v["correct"] for v in shown["verdicts"]] == [True]
    assert len(shown["attempts"]) == 1


def test_a_p_value_is_shown_with_one_sign_and_stored_as_in_records(
    sampled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = _did(capsys, sampled / "papers", 23)[1]
    line = "score      right: p<0.001, sig=yes, expected p<0.001, sig=yes (object)"
    assert line in out.splitlines()
    (shown,), _ = _shown(capsys, sampled / "papers", 23)
    assert [v["value"] for v in shown["verdicts"]] == ["p=< 0.001, sig=yes"]


def test_an_item_has_all_its_tasks_and_their_follow_ups(
    sampled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, err = _shown(capsys, sampled / "papers", "PMC0000001", "--limit", 3)
    assert [task["stage"] for task in tasks] == ["extract", "question", "question"]
    assert "3 of 20 tasks are shown" in err
    tasks, err = _shown(
        capsys, sampled / "papers", "PMC0000001", "--filter", "stage:extract"
    )
    assert [task["key"] for task in tasks] == ["PMC0000001"]
    assert err == ""
    out = _did(capsys, sampled / "papers", "PMC0000001")[1]
    assert "characters in 2 texts (--full shows them)" in out


def test_quotes_stand_in_their_context(
    sampled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (post,), _ = _shown(capsys, sampled / "posts", "post_01/A.1")
    (quote,) = post["quotes"]
    assert quote["place"] == "sentence 3 of 6"
    assert quote["passage"].startswith("I lie awake")
    (paper,), _ = _shown(capsys, sampled / "values", "SL-001")
    assert len(paper["quotes"]) == len(paper["parsed"]["rows"])
    assert {quote["match"] for quote in paper["quotes"]} == {"exact"}
    out = _did(capsys, sampled / "values", "SL-001")[1]
    assert "[The compound is hexagonal and becomes superconducting below 6.2 K.]" in out


def test_without_parsing_neither_job_nor_data_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").mkdir()
    written(
        tmp_path / "r" / "log.db",
        [RUN_STARTED],
        [plan_first(3)],
        [
            began(1),
            failed(1, message="answered 503: busy\x1b[2J", retry_in_s=1.5),
            began(1, 2),
            reply(1, encode_reply("yes", "length", None), attempt=2, **REPLY),
            completed(1, 2, unparsed="truncated"),
            began(2),
        ],
    )
    code, out, err = _did(capsys, tmp_path / "r", 1, "--no-parse")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "answered 503: busy" in out
    assert "again after 1.5 s" in out
    assert "unparsed: truncated" in out
    assert "reply      3 characters, ended: length" in out
    assert "score      none: the run has not been scored" in out
    (task,), _ = _shown(capsys, tmp_path / "r", 1, "--no-parse")
    assert [attempt["error"] for attempt in task["attempts"]] == ["Overloaded", None]
    # a job that is no longer installed costs the parsed value, and nothing else
    code, out, err = _did(capsys, tmp_path / "r", 1)
    assert code == 0
    assert err.startswith("Replies are shown without their parsed values: ")
    assert "      | yes" in out
    # a task that runs, and one that waits
    out = _did(capsys, tmp_path / "r", 2, "--no-parse")[1]
    assert "state      running, 1 attempt" in out
    assert "no outcome recorded" in out
    assert "state      queued" in _did(capsys, tmp_path / "r", 3)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("PMC000001",), "has no item 'PMC000001'; the nearest are PMC00000"),
        (("pmc0000001",), "has no item 'pmc0000001'; the nearest are PMC0000001"),
        (("99999",), "no task '99999': its tasks are numbered from 1 to 100."),
        (("12", "--filter", "stage:extract"), "Task 12 is one task: leave out"),
        (
            ("PMC0000001", "--filter", "state:failed"),
            "No task of 'PMC0000001' in papers fits the filter.",
        ),
    ],
)
def test_what_is_not_there_is_a_sentence(
    sampled: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    sentence: str,
) -> None:
    code, out, err = _did(capsys, sampled / "papers", *words)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert sentence in line


@pytest.mark.parametrize("verb", ["show", "explain"])
def test_without_an_item_one_of_the_run_is_the_example(
    sampled: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code = exit_code([verb, "posts", "--runs-dir", str(sampled)])
    assert code == 2
    assert f"such as siftlog {verb} posts post_01/A.1" in capsys.readouterr().err


def test_an_imported_answer_has_no_prompt_and_no_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = Path(__file__).parents[3] / "jobs/paper_investigation/sample/records"
    files = sorted(map(str, sample.glob("*.jsonl")))
    words = ["--run-id=old", "--profile=clinpgx-qa", f"--runs-dir={tmp_path}"]
    assert exit_code(["import", "paper-investigation", *words, *files]) == 0
    capsys.readouterr()
    code, out, _ = _did(capsys, tmp_path / "old", 1)
    assert code == 0
    assert "prompt     not known: the answer was imported or cached" in out
    assert "attempts" not in out
