"""What other programs write and read themselves judges what is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.imports.forms import read_files, recognised
from runner.imports.records import ForeignReply
from tests.thirdparty import judges

pytestmark = pytest.mark.timeout(900)  # the environment may have to be made


@pytest.fixture(scope="module", autouse=True)
def _environment() -> None:
    judges.require_judges()


def read(path: Path) -> list[ForeignReply]:
    return [reply for _, reply in read_files([path])]


@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_has_the_samples_that_inspects_own_reader_reads(
    tmp_path: Path, form: str
) -> None:
    judged = judges.run_script("inspect_log.py", tmp_path, form, cwd=tmp_path)
    path = Path(judged["file"].removeprefix("file://"))
    assert recognised(path) == {"eval": "inspect", "json": "inspect-json"}[form]
    replies = [
        {
            "item": reply.item,
            "epoch": reply.epoch,
            "model": reply.model,
            "prompt": [[message.role, message.text] for message in reply.messages],
            "text": reply.text,
            "target": reply.target,
            "scores": dict(reply.scores),
            "usage": reply.usage
            and [
                reply.usage.tokens_in,
                reply.usage.tokens_out,
                reply.usage.tokens_cached,
                reply.usage.tokens_reasoning,
            ],
            "latency_ms": reply.latency_ms,
        }
        for reply in read(path)
    ]
    assert len(replies) == 24

    def place(reply: dict[str, object]) -> tuple[str, str]:
        return str(reply["item"]), str(reply["epoch"])

    assert sorted(replies, key=place) == sorted(judged["samples"], key=place)


def test_sample_files_have_the_replies_and_means_of_lm_eval(tmp_path: Path) -> None:
    judged = judges.run_script("lm_eval_samples.py", tmp_path, cwd=tmp_path)
    (says,) = (tmp_path / "out").rglob("samples_says_*.jsonl")
    (picks,) = (tmp_path / "out").rglob("samples_picks_*.jsonl")
    assert recognised(says) == recognised(picks) == "lm-eval"
    texts, choices = read(says), read(picks)
    assert {r.fields["doc_id"]: r.text for r in texts} == judged["said"]
    assert {r.fields["doc_id"]: r.text for r in choices} == judged["picked"]
    means = judged["results"]
    for name in ("strict", "loose"):
        metric = f"exact_match,{name}"
        values = [reply.scores[metric] for reply in texts]
        assert sum(values) / len(values) == means["says"][metric]
    values = [reply.scores["acc"] for reply in choices]
    assert sum(values) / len(values) == means["picks"]["acc,none"]
    # a choice is right exactly where lm_eval says so, so its target is understood
    assert [reply.text == reply.target for reply in choices] == [
        bool(v) for v in values
    ]
    assert 0 < sum(values) < len(values)


def test_an_answer_of_langfuse_has_the_values_of_its_sdk(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    judged = judges.run_script("langfuse_page.py", page, cwd=tmp_path)
    assert recognised(page) == "langfuse-api"
    assert judged == [
        {
            "model": reply.model,
            "prompt": [message.text for message in reply.messages],
            "text": reply.text,
            "usage": reply.usage and [reply.usage.tokens_in, reply.usage.tokens_out],
            "cost_usd": reply.cost_usd,
            "latency_ms": reply.latency_ms,
            "created_s": reply.created_s,
            "trace": reply.fields["trace"],
            "pmid": reply.fields["metadata.pmid"],
        }
        for reply in read(page)
    ]
